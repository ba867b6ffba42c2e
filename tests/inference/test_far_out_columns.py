"""Columns with a few rows far out: least squares and counts hide what these rows may decide, and nothing else."""

import numpy as np
import pytest

from benchmarks.problems.ugly import plain_fit
from discreet import Bounds, DPHuberRegressor, DPLinearRegression, DPPoissonRegressor
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.inference.estimate import FAR_OUT, Extents
from discreet.inference.limits import far_out, grid, most_beyond
from discreet.testing import neighbor_pairs, seeded
from tests.covering import covering
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import bounds_of, fit_of, table

MODELS = {
    "linear": (DPLinearRegression, {"target": (0.0, 60.0)}),
    "poisson": (DPPoissonRegressor, {"target": (0.0, 60.0)}),
    "huber": (DPHuberRegressor, {"target": (0.0, 60.0), "width": 2.0}),
}
N, WIDEST = 20_000, 60.0


def drawn(kind, seed=0):
    """Draw two usual columns, and one whose declared range is wide; the mean bends where the wide one is far out."""
    rng = np.random.default_rng(seed)
    wide = {"tail": rng.lognormal(0, 1, N), "narrow": rng.normal(0, 1, N)}[kind].clip(-WIDEST, WIDEST)
    X = np.column_stack([rng.uniform(-1, 1, N), rng.normal(0, 0.3, N).clip(-1, 1), wide])
    rate = np.exp(np.minimum(0.3 * X[:, 0] + 0.1 * wide, 3.5))
    return X, np.minimum(rng.poisson(rate), 60).astype(float)


def summary(name, kind, epsilon=3.0, relation="zero_out", seed=0):
    cls, facts = MODELS[name]
    bounds = Bounds([(-1, 1), (-1, 1), (-WIDEST, WIDEST)])
    model = cls(epsilon, bounds=bounds, neighbors=relation, inference="sandwich", ledger=False, **facts)
    with seeded(seed):
        return model.fit(*drawn(kind, seed)).summary()


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("name", ["linear", "poisson"])
def test_far_out_rows_hide_their_column_and_no_other(name, relation):
    for seed in (1, 3):
        found = summary(name, "tail", relation=relation, seed=seed)
        assert found.hidden[:3].tolist() == [False, False, True]
        assert "far out" in found.reasons["x2"]
        assert "narrower range" in " ".join(str(found).split())


def test_far_out_rows_hide_columns_that_predict_each_other():
    """Misread cells that are usual by themselves, but not next to another column: both effects hang on these rows."""
    for seed in (1, 3):
        rng = np.random.default_rng(seed)
        size = rng.normal(0, 1, N).clip(-6, 6)
        X = np.column_stack([rng.uniform(-1, 1, N), size, (size + 0.2 * rng.normal(size=N)).clip(-6, 6)])
        y = X @ [0.5, 1.0, 1.0] + rng.normal(size=N)
        X[:60, 2] = rng.choice([-6.0, 6.0], 60)
        bounds = Bounds([(-1, 1), (-6, 6), (-6, 6)], target=(-20, 20))
        with seeded(seed):
            model = DPLinearRegression(3.0, bounds=bounds, neighbors="zero_out", inference="sandwich", ledger=False)
            assert model.fit(X, y).summary().hidden[:3].tolist() == [False, True, True]


def test_a_wide_range_alone_hides_nothing():
    shown = [~summary("linear", "narrow", seed=seed).hidden[:3] for seed in range(1, 17, 2)]
    assert np.mean(shown, axis=0)[:2].min() == 1.0
    assert np.mean(shown, axis=0)[2] > 0.6, "a count's noise is above its own deviation one time in six"


def test_bounded_slopes_do_not_hide_it():
    assert not summary("huber", "tail", seed=1).hidden[2]


@pytest.mark.whole
def test_with_much_signal_it_is_shown_again():
    """Nothing is cut, which counts then tell."""
    found, (plain, se) = summary("linear", "tail", epsilon=1e5).columns(), plain_fit(*drawn("tail"), "linear")
    np.testing.assert_allclose(found["coef"], plain, atol=0.1 * se.max())
    np.testing.assert_allclose(found["se"], se, rtol=0.05)


def test_rare_values_are_no_far_out_columns():
    """Half yes, one in a hundred yes, and a number within a hundredth of its declared range."""
    shares = np.array([0.5, 0.01])
    variances = np.append(shares * (1 - shares), 0.01**2)
    means = np.append(shares, 0.0)
    second = np.diag(np.append(variances, 0.0)) + np.outer(np.append(means, 1.0), np.append(means, 1.0))
    domain = Domain(
        feature_bounds=np.ones(4),
        row_norm=2.0,
        n=1000,
        intercept=True,
        neighbors=Neighbors.ZERO_OUT,
        ranges=np.array([[0.0, 1.0], [0.0, 1.0], [-1.0, 1.0]]),
    )
    extents = Extents.of(np.linalg.inv(second), domain)
    np.testing.assert_allclose(extents.ends, [1.0, 0.99 / np.sqrt(0.0099), 100.0], rtol=1e-6)
    assert extents.two_valued.tolist() == [True, True, False]
    assert extents.far.tolist() == [False, False, True, False]
    assert extents.sure == pytest.approx(0.99 / np.sqrt(0.0099))
    assert extents.ends[2] > FAR_OUT
    np.testing.assert_allclose(extents.alone, extents.ends, rtol=1e-6)
    second[0, 2] = second[2, 0] = 0.8 * np.sqrt(second[2, 2] * variances[0])
    np.testing.assert_allclose(Extents.of(np.linalg.inv(second), domain).alone[2], 100.0 / 0.6, rtol=1e-6)


def test_counts_that_do_not_stand_out_are_none():
    assert far_out(np.array([900.0, 30.0, 3.0, -8.0]), 10.0).tolist() == [30.0, 0.0, 0.0]
    edges = grid(1.0, 10.0)
    counts = np.zeros(len(edges) + 1)
    assert most_beyond(counts, edges, 2.0, 1e-3) == 0.0
    assert most_beyond(counts, edges, 2.0, 1.0) > 1.0, "noise may hide rows"
    counts[-1] = 5.0
    assert most_beyond(counts, edges, 2.0, 1e-3) == pytest.approx(5.0, abs=0.01)


@pytest.mark.few(2)
@covering(("name", ["linear", "poisson"]), ("relation", ["replace_one", "zero_out", "add_remove"]))
def test_fits_that_count_far_out_rows_replay_on_neighbors(name, relation, monkeypatch):
    """Columns count as far out from a small size on, so that every fit asks how many rows are."""
    monkeypatch.setattr("discreet.inference.estimate.FAR_OUT", 0.01)
    fit = fit_of(name, "auto", relation, epsilon=4000.0, inference="sandwich", even_if_empty=True)
    pairs = list(neighbor_pairs(*table(name), relation=relation, bounds=bounds_of(name)))
    assert 0.1 < worst_ratio(fit, pairs[::6], relation) <= 1.0
