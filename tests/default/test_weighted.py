"""Weighted steps after clipped ones: the limit without noise, the bias that goes with signal, what only noise moves."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import DPLinearSVC, DPLogisticRegression
from discreet.default import Recipe, Shares
from discreet.default.weighted import Metric, Pooled, damping, edges_to, end
from discreet.models import DPNegativeBinomialRegressor
from discreet.testing import seeded
from tests.covering import covering

CLIPPED = Recipe(n_steps=8)


def drawn(n=4000, seed=0, slopes=(1.6, -1.0, 0.8)):
    """Heavy tails, so that clips and shrunk rows bias."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, n), rng.standard_t(3, n).clip(-8, 8) / 8, rng.random(n) < 0.1])
    chances = 1 / (1 + np.exp(-(X @ np.asarray(slopes) - 1.0)))
    return X, (rng.random(n) < chances).astype(int)


def model_of(solver="auto", epsilon=4.0, cls=DPLogisticRegression, **settings):
    return cls(epsilon, 1e-6, bounds=1.0, classes=(0, 1), solver=solver, ledger=False, **settings)


def test_counts_that_are_all_0_end_in_numbers_without_noise():
    """The Hessian and all slopes vanish on the way, and nothing hides that."""
    model = DPNegativeBinomialRegressor(math.inf, bounds=1.0, target=(0, 1e9), solver="recipe", ledger=False)
    model.fit(np.random.default_rng(2).uniform(-1, 1, (100, 3)), np.zeros(100))
    assert np.isfinite(model.coef_).all()
    assert model.intercept_ < -10


@covering(("cls", [DPLogisticRegression, DPLinearSVC]), ("coordinates", ["full", "declared"]))
def test_without_noise_it_is_the_minimizer(cls, coordinates):
    """Rows beyond the radius count less, so a wide one; one clipped step alone stops short."""
    X, y = drawn()
    exact = model_of("gd", math.inf, cls).fit(X, y)
    start = Recipe(coordinates, n_steps=1)
    solver = replace(start, n_travel=50, n_newton=20, weight_radius=1e3)
    found, alone = (model_of(one, math.inf, cls).fit(X, y) for one in (solver, start))
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=0.02)
    np.testing.assert_allclose(found.intercept_, exact.intercept_, atol=0.02)
    assert np.abs(alone.coef_ - exact.coef_).max() > 0.2


def test_weighted_steps_do_not_diverge_from_a_start_far_away():
    """One step to begin with, a Hessian from there, labels that one column explains."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 3))
    y = (X[:, 0] + rng.normal(0, 0.05, 20_000) > 0).astype(int)
    best = excess(model_of("gd", math.inf).fit(X, y), X, y, 0.0)
    for solver in (Recipe(n_steps=1, n_travel=20, n_newton=5), Recipe(n_steps=1, n_newton=8)):
        with seeded(1):
            assert excess(model_of(solver, 16.0).fit(X, y), X, y, best) < math.log(2.0) - best


def excess(model, X, y, best):
    margins = X @ model.coef_[0] + model.intercept_[0]
    return float(np.mean(np.logaddexp(0, np.where(y > 0, -margins, margins)))) - best


def test_the_bias_of_clips_goes_with_signal():
    """At a large budget clipped steps stay off the optimum, less so where they are calibrated; the default does not."""
    X, y = drawn(20_000)
    best = excess(model_of("gd", math.inf).fit(X, y), X, y, 0.0)
    with seeded(3):
        alone = excess(model_of(replace(CLIPPED, shares=Shares(calibration=0.0)), 64.0).fit(X, y), X, y, best)
        clipped = excess(model_of(CLIPPED, 64.0).fit(X, y), X, y, best)
        default = excess(model_of("auto", 64.0).fit(X, y), X, y, best)
    assert alone > 4e-4
    assert clipped < alone / 3
    assert -1e-6 < default < clipped / 3


def four_classes(n, seed=0):
    """Heavy tails and a rare cell, labels by the model itself."""
    X, _ = drawn(n, seed)
    rng = np.random.default_rng(seed + 1)
    margins = X @ rng.normal(0, 1.5, (3, 4)) + [0.5, 0.0, -0.5, 0.2]
    return X, np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)


def several(solver="auto", epsilon=4.0, **settings):
    return DPLogisticRegression(
        epsilon, 1e-6, bounds=1.0, classes=(0, 1, 2, 3), solver=solver, ledger=False, **settings
    )


def loss_of_several(coefficients, intercepts, X, y):
    margins = X @ np.transpose(coefficients) + intercepts
    return float(np.mean(np.logaddexp.reduce(margins, axis=1) - margins[np.arange(len(y)), y]))


def best_of_several(X, y):
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=1e8, tol=1e-8, max_iter=1000).fit(X, y)
    return loss_of_several(found.coef_, found.intercept_, X, y)


def test_the_bias_of_several_classes_goes_with_signal():
    """Clipped steps stay off the optimum at any epsilon; the default comes ever nearer."""
    X, y = four_classes(20_000)
    best, found = best_of_several(X, y), {}
    with seeded(5):
        for epsilon in (4.0, 64.0):
            clipped = several(CLIPPED, epsilon).fit(X, y)
            model = several("auto", epsilon).fit(X, y)
            assert model.certificate_.solver["n_newton"] > 0
            found[epsilon] = [loss_of_several(m.coef_, m.intercept_, X, y) - best for m in (clipped, model)]
    assert found[64.0][0] > 0.005
    assert -1e-6 < found[64.0][1] < found[4.0][1] < found[4.0][0] / 3
    assert found[64.0][1] < 5e-4


@pytest.mark.parametrize("shares", [[0.9, 0.1], [0.6, 0.3, 0.1]], ids=["two classes", "three"])
def test_noise_hardly_moves_the_coefficients_of_rare_cells(shares):
    """Cells of 60 to 280 rows that say nothing: what each Newton step would let through by chance does not add up."""
    rng, n, classes = np.random.default_rng(0), 14_000, range(len(shares))
    X = (rng.random((n, 5)) < [0.02, 0.015, 0.01, 0.006, 0.004]).astype(float)
    y = rng.choice(classes, n, p=shares)
    trivial, lost = -np.log(np.bincount(y) / n)[y].mean(), []
    for seed in range(6):
        facts = {"bounds": [(0, 1)] * 5, "classes": tuple(classes), "neighbors": "zero_out", "ledger": False}
        with seeded(seed):
            model = DPLogisticRegression(1.0, 1e-8, **facts).fit(X, y)
        assert model.certificate_.solver["n_newton"] > 0
        lost.append(-np.log(model.predict_proba(X)[np.arange(n), y]).mean() - trivial)
    assert np.mean(lost) < 0.006


def test_the_end_is_the_edge_of_the_last_shell_with_a_record():
    edges = edges_to(8.0, 1.0)
    assert edges[0] <= 1.0 < edges[1]
    assert edges[-1] == 8.0
    counts = np.zeros(len(edges) + 1)
    assert end(counts + 0.3, edges, 0.15) == edges[0]
    counts[5] = 1.0
    assert end(counts - 0.3, edges, 0.15) == edges[5]
    counts[-1] = 1.0
    assert end(counts, edges, 0.15) == edges[-1]
    counts[-1] = 0.55
    assert end(counts, edges, 0.01) == edges[-1]
    assert end(counts, edges, 0.15) == edges[5]


def test_steps_are_damped_by_how_far_the_hessian_bends():
    """Newton's steps on exp(m) - 20 m from far below jump beyond any margin; damped ones arrive."""
    margin = -3.0
    for _ in range(30):
        move = (20.0 - math.exp(margin)) / math.exp(margin)
        margin += damping(abs(move)) * move
    assert math.isclose(margin, math.log(20.0), rel_tol=1e-9)
    assert damping(0.0) == 1.0


def test_limits_are_where_rows_end_where_counts_tell_single_rows():
    """At a very large budget the table asks for sizes, and nothing is cut or wider than it must be."""
    X, y = drawn(2000)
    with seeded(1):
        model = model_of(epsilon=1e6).fit(X, y)
    shares = model.certificate_.solver["shares"]
    assert 0 < shares["sizes"] <= shares["newton"]
    assert model_of(epsilon=100.0).fit(X, y).certificate_.solver["shares"]["sizes"] == 0


def test_newton_steps_add_up_to_the_least_noise():
    """Steps that agree but for noise are weighed by it; where one leads elsewhere, those before are forgotten."""
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    metric = Metric(np.array([0.1, 0.2, 0.4]), vectors, 0.0)
    optimum, noises, ends, claimed = np.array([1.0, -2.0, 0.5]), (0.4, 0.2, 0.1), [], 0.0
    for _ in range(2000):
        pooled = Pooled(np.zeros(3))
        for noise in noises:
            there = optimum + vectors @ (rng.normal(0, noise, 3) / metric.safe)
            claimed = pooled.add(there, metric, noise)
        ends.append(metric.safe * (vectors.T @ (pooled.mean - optimum)))
    deviation, alone = np.std(ends), noises[-1]
    assert deviation < 0.97 * alone
    assert np.mean(claimed) < alone
    pooled.add(optimum + 50.0, metric, 0.1)
    np.testing.assert_allclose(pooled.mean, optimum + 50.0, atol=0.1)
