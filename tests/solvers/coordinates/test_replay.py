"""Every variant of cd and gcd on worst-case neighbors with frozen answers, and planted bugs that must be caught."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet import Budget
from discreet.accounting import Release
from discreet.curator import session
from discreet.curator.engines import base
from discreet.curator.lattice.lattice import Unit, unit_for
from discreet.curator.queries import choices, coordinates, moments
from discreet.losses import Squared
from discreet.solvers import AdaptiveClip, CoordinateDescent, Geometry, GreedyCoordinateDescent
from discreet.testing import neighbor_pairs, replay
from tests.replaying import worst_ratio
from tests.solvers.coordinates.tables import opened
from tests.testing.small_fits import ESTIMATORS, bounds_of, fit_of, table

CLIP = Geometry(clip=0.05)
CD = {
    "uniform": CoordinateDescent(n_inner=4, geometry=CLIP, relative_step=2.0),
    "importance": CoordinateDescent(n_outer=2, n_inner=2, geometry=CLIP, schedule="importance"),
    "cyclic": CoordinateDescent(n_inner=4, geometry=Geometry(clip=0.05, clip_rule="uniform"), schedule="cyclic"),
    "blocks": CoordinateDescent(n_inner=3, geometry=CLIP, block_size=2),
    "bought": CoordinateDescent(n_inner=3, geometry=Geometry(clip=0.05, smoothness="private", row_clip=0.7)),
    "papers-squares": CoordinateDescent(n_inner=3, geometry=Geometry(clip=0.05, smoothness="paper")),
    "adaptive": CoordinateDescent(n_inner=3, geometry=CLIP, adaptive=AdaptiveClip()),
}
GCD = {rule: GreedyCoordinateDescent(n_steps=2, geometry=CLIP, rule=rule) for rule in choices.RULES}
GCD |= {
    "batch": GreedyCoordinateDescent(n_steps=2, geometry=CLIP, block_size=2),
    "flip": GreedyCoordinateDescent(n_steps=2, geometry=CLIP, selection="permute_and_flip"),
    "paper": GreedyCoordinateDescent(n_steps=2, geometry=CLIP, rule="gs", calibration="paper"),
    "unequal": GreedyCoordinateDescent(n_steps=2, geometry=Geometry(clip=0.05, clip_rule="uniform")),
}
VARIANTS = {**{f"cd-{name}": solver for name, solver in CD.items()}, **{f"gcd-{n}": s for n, s in GCD.items()}}


def fit_for(variant, relation, name="logistic", **settings):
    kind = "pure" if variant == "gcd-flip" else "cd"
    fit = fit_of(name, kind, relation, solver=VARIANTS[variant], **settings)
    if variant != "gcd-paper":
        return fit
    given = {"bounds": bounds_of(name), "neighbors": relation, "solver": VARIANTS[variant], "penalty": "l1"}
    return lambda X, y, groups=None: ESTIMATORS[name](1.0, 1e-5, **given).fit(X, y, groups=groups)


def pairs_of(data, relation, name="logistic", every=7, offset=0):
    return list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name)))[offset::every]


def worst(variant, relation, data, name="logistic"):
    fit = fit_for(variant, relation, name)
    return worst_ratio(fit, pairs_of(data, relation, name, offset=len(variant) % 7), relation)


def found(variant, relation, data=None, only="", every=2):
    data = table("logistic", n=12) if data is None else data
    fit, kinds = fit_for(variant, relation), set()
    fit(*data)
    for pair in pairs_of(data, relation, every=every):
        if only in pair.name:
            kinds |= {finding.kind for finding in replay(fit, pair.data, pair.neighbor, relation).findings}
    return kinds


def changed_query(monkeypatch, change):
    honest = coordinates.CoordinateQuery.over
    monkeypatch.setattr(coordinates.CoordinateQuery, "over", lambda self, engine: honest(change(self), engine))


def changed(query, **values):
    names = ("w", "loss", "columns", "scales", "bounds", "margin_scale")
    return SimpleNamespace(**({name: getattr(query, name) for name in names} | values))


@pytest.mark.parametrize("variant", ["cd-uniform", "cd-blocks"])
def test_one_clip_for_all_coordinates_is_caught(monkeypatch, variant):
    """Entries are clipped where a whole gradient would be: sqrt(p) too late."""
    changed_query(monkeypatch, lambda query: changed(query, bounds=2 * query.bounds))
    assert "sensitivity" in found(variant, "zero_out")


def test_block_bounds_of_single_coordinates_are_caught(monkeypatch):
    monkeypatch.setattr(coordinates, "block_bounds", lambda clips, bound, use_l1: np.full(clips.size, bound))
    assert "sensitivity" in found("cd-blocks", "replace_one")


def test_a_lattice_of_another_coordinate_is_caught(monkeypatch):
    """Noise made for a smaller C_j: the realized noise falls short of what the certificate says."""

    def smaller(multiplier, factor, clip, n):
        unit = unit_for(multiplier, factor, clip, n)
        return Unit(unit.bound, unit.m - 1, unit.step)

    monkeypatch.setattr(session, "unit_for", smaller)
    assert "price" in found("cd-uniform", "zero_out", only="last: high")


def test_the_scale_of_another_coordinate_changes_the_answer():
    """The units of a coordinate are its own: with wrong ones the mean over draws is not the gradient."""
    X = np.full((50, 2), 0.5)
    y = np.full(50, -0.25)
    clips = np.array([10.0, 0.3])
    curator = opened(X, y, Squared(), Release("noisy_coordinate_gradient", 2000), budget=Budget(500.0, 1e-5))
    block = np.array([curator.noisy_coordinate_gradient(np.zeros(2), [0, 1], clips=clips) for _ in range(400)])
    assert block.mean(axis=0) == pytest.approx([6.25, 6.25], abs=5 * block.std(axis=0).max() / 20)
    single = np.array([curator.noisy_coordinate_gradient(np.zeros(2), [1], clips=clips[1:])[0] for _ in range(400)])
    assert single.std() / block[:, 0].std() == pytest.approx(0.3 / np.hypot(10, 0.3), rel=0.25)


@pytest.mark.few(1)
@pytest.mark.parametrize("variant", ["gcd-gs", "gcd-gs-q", "gcd-flip"])
def test_selection_with_half_the_range_is_caught(monkeypatch, variant):
    """Scores twice as tall as the lattice says."""
    honest = choices.scores
    monkeypatch.setattr(choices, "scores", lambda *arguments: 2.0 * honest(*arguments))
    assert "sensitivity" in found(variant, "replace_one")


def test_a_lattice_of_half_the_range_is_caught(monkeypatch):
    honest = choices.score_lattice

    def doubled(epsilon, n):
        step, m = honest(epsilon, n)
        return 2 * step, m

    monkeypatch.setattr(choices, "score_lattice", doubled)
    assert "price" in found("gcd-gs-q", "replace_one", only="last: high")


def test_squared_norms_without_the_root_of_two_are_caught(monkeypatch):
    """x = R e_1 for R e_2 moves the sums by sqrt(2) R^2."""
    monkeypatch.setattr(moments, "ROOT_TWO", 1)
    data = table("logistic", n=12)
    other = data.X.copy()
    data.X[0], other[0] = [1.0, 0.0, 0.0], [0.0, 10.0, 0.0]
    fit = fit_of("logistic", "cd", "replace_one", solver=CD["bought"], fit_intercept=False)
    kinds = {finding.kind for finding in replay(fit, data, (other, data.y)).findings}
    assert "sensitivity" in kinds


def test_squared_norms_without_scaling_are_caught(monkeypatch):
    monkeypatch.setattr(moments, "unit_bounds", lambda bound, records: np.full(records.n_rows, 1 << 61))
    assert "sensitivity" in found("cd-bought", "zero_out")


@pytest.mark.few(1)
@pytest.mark.parametrize("variant", ["cd-uniform", "cd-bought", "gcd-gs-q"])
def test_persons_bounded_row_by_row_are_caught(monkeypatch, variant):
    honest = coordinates.person_bounds

    def ignored(bounds, shares, *, dimensions):
        if shares is None:
            return honest(bounds, shares, dimensions=dimensions)
        return np.stack([np.full(shares.shape, float(bound)) for bound in bounds])

    monkeypatch.setattr(coordinates, "person_bounds", ignored)
    monkeypatch.setattr(base, "parts_of_units", lambda n, shares: np.ones(n))
    monkeypatch.setattr(moments, "unit_bounds", lambda bound, records: np.full(records.n_rows, bound))
    assert "sensitivity" in found(variant, "zero_out", table("logistic", groups=True, n=12))


def test_margins_of_the_exact_weights_are_caught(monkeypatch):
    """A program whose next step sees the exact sum instead of the released one."""
    honest = coordinates._observed_steps

    def leaking(session, release, unit, program):
        last, sums = honest(session, release, unit, program)
        exact = coordinates.CoordinateQuery(
            last, program.loss, np.array([0]), program.scales[[0]], np.array([program.bound]), program.margin_scale
        ).over(session.engine)
        return last + exact[0] % 3, sums + exact[0] % 3

    monkeypatch.setattr(coordinates, "_observed_steps", leaking)
    assert "attribute" in found("cd-uniform", "zero_out", every=1)
