"""Unclipped steps after clipped ones: plan, limit without noise, neighbors, the filter, the rules of the default."""

import math
from itertools import pairwise

import numpy as np
import pytest

from discreet import Budget, DPLinearSVC, DPLogisticRegression
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.errors import Unsupported
from discreet.losses import Huber, Logistic, SmoothedHinge, Softmax, Squared
from discreet.penalties import NoPenalty
from discreet.solvers import GradientDescent, Refined, Whitened
from discreet.solvers.refined import FARTHEST, STEEPNESS
from discreet.solvers.whitened_classes import MOST_REFINED, SEVERAL_CLASSES, TWO_CLASSES, classes_for
from discreet.testing import neighbor_pairs, seeded
from tests.replaying import worst_ratio
from tests.solvers.perturbation.cases import bounds_of, fit_of, table
from tests.solvers.whitened.cases import opened, records_of

RELATIONS = ("replace_one", "zero_out", "add_remove")


def drawn(n=4000, seed=0, slopes=(1.6, -1.0, 0.8)):
    """Heavy tails, so that clips and shrunk rows bias."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, n), rng.standard_t(3, n).clip(-8, 8) / 8, rng.random(n) < 0.1])
    chances = 1 / (1 + np.exp(-(X @ np.asarray(slopes) - 1.0)))
    return X, (rng.random(n) < chances).astype(int)


def refined(n_steps=8, reach=1.25, inner=8, **settings):
    return Refined(Whitened(GradientDescent(inner, momentum=0.7, radius=100.0), **settings), n_steps, reach)


def model_of(solver="auto", epsilon=4.0, cls=DPLogisticRegression, **settings):
    return cls(epsilon, 1e-6, bounds=1.0, classes=(0, 1), solver=solver, ledger=False, **settings)


@pytest.mark.parametrize("cls", [DPLogisticRegression, DPLinearSVC])
def test_without_noise_it_is_the_minimizer(cls):
    """Rows beyond the reach count less, so a wide one; the inner solver alone stops short after a single step."""
    X, y = drawn()
    exact = model_of("gd", math.inf, cls).fit(X, y)
    solver = refined(n_steps=300, reach=64.0, inner=1, floor=1e-9)
    found = model_of(solver, math.inf, cls).fit(X, y)
    alone = model_of(solver.solver, math.inf, cls).fit(X, y)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=0.02)
    np.testing.assert_allclose(found.intercept_, exact.intercept_, atol=0.02)
    assert np.abs(alone.coef_ - exact.coef_).max() > 0.2


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_budget_is_spent_and_not_more(relation):
    X, y = drawn()
    quote = model_of(refined(), neighbors=relation).quote(X, y)
    assert 0.999 * 4.0 <= quote.price.epsilon <= 4.0
    own = {release.query: release for release in quote.priced.plan.releases}
    assert (own["noisy_second_moment"].count, own["noisy_weighted_gradient"].count) == (2, 8)
    shares = {name: r.count / r.relative_noise**2 for name, r in own.items() if name != "noisy_count"}
    assert sum(shares.values()) == pytest.approx(1.0, rel=1e-6)
    assert shares["noisy_weighted_gradient"] == pytest.approx(0.5, rel=1e-6)


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["logistic", "svc", "softmax"])
def test_fits_replay_on_neighbors(name, relation):
    fit = fit_of(name, refined(n_steps=3, inner=3), relation, epsilon=4.0)
    pairs = list(neighbor_pairs(*table(name), relation=relation, bounds=bounds_of(name)))
    assert 0.1 < worst_ratio(fit, pairs[::6], relation) <= 1.0


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_persons_replay_on_neighbors(name, relation):
    fit = fit_of(name, refined(n_steps=3, inner=3), relation, epsilon=4.0)
    pairs = list(neighbor_pairs(*table(name, "dense", groups=True), relation=relation, bounds=bounds_of(name)))
    assert 0.05 < worst_ratio(fit, pairs[::6], relation) <= 1.0


def excess(model, X, y, best):
    margins = X @ model.coef_[0] + model.intercept_[0]
    return float(np.mean(np.logaddexp(0, np.where(y > 0, -margins, margins)))) - best


def test_the_bias_of_clips_goes_with_signal():
    """At a large budget clipped steps stay off the optimum, the default does not."""
    X, y = drawn(20_000)
    best = excess(model_of("gd", math.inf).fit(X, y), X, y, 0.0)
    with seeded(3):
        clipped = excess(model_of(refined().solver, 64.0).fit(X, y), X, y, best)
        default = excess(model_of("auto", 64.0).fit(X, y), X, y, best)
    assert clipped > 4e-4
    assert -1e-6 < default < clipped / 3


def test_many_steps_contract_where_curvature_is_largest(monkeypatch):
    """Labels that nothing explains have margins of 0 and the largest curvature: longer steps would not contract."""
    rng = np.random.default_rng(0)
    X = np.eye(8)[rng.choice(8, 6000, p=[0.4, 0.3, 0.2, 0.05, 0.02, 0.01, 0.01, 0.01])]
    y = (rng.random(6000) < 0.5).astype(int)
    best = excess(model_of("gd", math.inf).fit(X, y), X, y, 0.0)
    found = []
    for steepness in (STEEPNESS, 0.4):
        monkeypatch.setattr("discreet.solvers.refined.STEEPNESS", steepness)
        with seeded(1):
            found.append(excess(model_of(refined(n_steps=40, reach=4.0), 64.0).fit(X, y), X, y, best))
    assert found[0] < 0.003
    assert found[1] > 5 * found[0]


def test_the_filter_keeps_the_start_where_there_is_only_noise():
    """A hundred rows: next to what the start's own noise did, refining moves little; with signal it moves."""
    moved = {}
    for n, epsilon in ((100, 0.2), (20_000, 16.0)):
        X, y = drawn(n)
        solver, found = refined(n_steps=4), []
        plan = solver.plan(records_of(X, y, intercept=True)[1], Logistic(), NoPenalty())
        for seed in range(6):
            with seeded(seed):
                curator = opened(X, y, plan.releases, Budget(epsilon, 1e-6, "zero_out"), intercept=True)
                end = solver.solve(curator, NoPenalty())
            start = end.trace.before
            found.append(np.linalg.norm((end.coefficients - start.coefficients) / start.noise))
        moved[n] = np.median(found)
    assert moved[100] < 0.5
    assert moved[20_000] > 2.0


def facts(n=20_000, p=6, **changes):
    known = {"intercept": True, "neighbors": Neighbors.ZERO_OUT, **changes}
    return Domain(feature_bounds=np.ones(p), row_norm=math.sqrt(p), n=n, **known)


def test_steps_and_reach_grow_with_signal():
    budget = Budget(1.0, 1e-12, "zero_out")
    made = [classes_for(facts(n=n), Logistic(), budget, "full") for n in (1000, 6000, 10**5, 10**7, 10**10)]
    assert isinstance(made[0], Whitened)
    assert all(isinstance(one, Refined) for one in made[1:])
    assert all(a.reach <= b.reach and a.n_steps <= b.n_steps for a, b in pairwise(made[1:]))
    assert (made[-1].n_steps, made[-1].reach) == (MOST_REFINED, FARTHEST)
    narrow = [classes_for(facts(n=n, p=60), Logistic(), budget, "full") for n in (35_000, 40_000)]
    assert [one.reach for one in narrow] == [TWO_CLASSES.least_reach] * 2


def test_what_is_not_refined():
    budget = Budget(1.0, 1e-12, "zero_out")
    assert isinstance(classes_for(facts(10**6), SmoothedHinge(0.5), budget, "full"), Refined)
    assert isinstance(classes_for(facts(10**6, n_outputs=3), Softmax(3), budget, "full"), Refined)
    assert isinstance(classes_for(facts(10**4, n_outputs=30), Softmax(30), budget, "full"), Whitened)
    made = [classes_for(facts(n=n, n_outputs=3), Softmax(3), budget, "full") for n in (5000, 10**5, 10**7)]
    assert [one.heavy_ball for one in made] == [SEVERAL_CLASSES.heavy_ball] * 3
    assert made[0].reach == SEVERAL_CLASSES.least_reach
    assert all(a.reach < b.reach and a.n_steps < b.n_steps for a, b in pairwise(made))
    assert isinstance(classes_for(facts(10**6), Logistic(), Budget(math.inf), "full"), Whitened)
    for loss in (Huber(1.0), Squared()):
        with pytest.raises(Unsupported, match="losses of classes"):
            refined().plan(facts(), loss, NoPenalty())
    with pytest.raises(Unsupported, match="heavy_ball"):
        Refined(Whitened(GradientDescent(8)), heavy_ball=1.0)
    with pytest.raises(Unsupported, match="start_share must be a number between 0 and 1"):
        Refined(Whitened(GradientDescent(8)), start_share=1.0)


def test_inference_refines_once():
    """Effects start from the clipped steps: a second refinement would take half of their budget."""
    X, y = drawn(20_000)
    quote = model_of("auto", 4.0, inference="sandwich").quote(X, y)
    own = {release.query: release.count for release in quote.priced.plan.releases}
    assert own["noisy_second_moment"] == 1


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


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_without_noise_several_classes_are_at_the_minimizer(momentum):
    X, y = four_classes(3000)
    solver = Refined(refined(inner=1, floor=1e-9).solver, 300, 64.0, heavy_ball=momentum)
    found = several(solver, math.inf).fit(X, y)
    assert loss_of_several(found.coef_, found.intercept_, X, y) < best_of_several(X, y) + 1e-5
    np.testing.assert_allclose(found.coef_.sum(axis=0), 0.0, atol=1e-9)


def test_the_bias_of_several_classes_goes_with_signal():
    """Clipped steps stay off the optimum at any epsilon; the default comes ever nearer."""
    X, y = four_classes(20_000)
    best, found = best_of_several(X, y), {}
    with seeded(5):
        for epsilon in (4.0, 64.0):
            clipped = several(refined().solver, epsilon).fit(X, y)
            model = several("auto", epsilon).fit(X, y)
            assert model.certificate_.solver["name"] == "refined"
            found[epsilon] = [loss_of_several(m.coef_, m.intercept_, X, y) - best for m in (clipped, model)]
    assert found[64.0][0] > 0.005
    assert -1e-6 < found[64.0][1] < found[4.0][1] < found[4.0][0] / 3
    assert found[64.0][1] < 5e-4


def test_ridge_of_several_classes_is_the_penalized_optimum():
    X, y = four_classes(3000)
    solver = Refined(refined(inner=1, floor=1e-9).solver, 300, 64.0, heavy_ball=0.7)
    exact = several("gd", math.inf, penalty="l2", alpha=0.05).fit(X, y)
    found = several(solver, math.inf, penalty="l2", alpha=0.05).fit(X, y)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=0.01)


def test_noise_figures_of_several_classes_are_those_of_fits():
    """Deviations over 24 fits of one table, against what each fit reports of its noise alone: within a factor of 2."""
    X, y = four_classes(8000)
    fits = []
    for seed in range(24):
        with seeded(seed):
            fits.append(several("auto", 8.0).fit(X, y))
    spread = np.std([model.coef_ for model in fits], axis=0, ddof=1)
    said = np.median([model.coef_noise_ for model in fits], axis=0)
    assert 0.5 < np.median(said / spread) < 2.0


def test_rows_count_no_further_than_declared_ranges_reach():
    """Two 0/1 columns have no room for rows of 14 typical lengths: noise for them was .125 of a slope here, not .02."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30_000, 2)).astype(float)
    y = (rng.random(30_000) < 1 / (1 + np.exp(0.8 - X @ [1.2, -0.6]))).astype(int)
    found = []
    for seed in range(6):
        with seeded(seed):
            found.append(model_of(epsilon=4.0).fit(X, y).coef_[0])
    assert np.std(found, axis=0).max() < 0.05
