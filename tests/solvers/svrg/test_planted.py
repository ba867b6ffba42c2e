"""Bugs planted in DP-SVRG: each must be caught by a check that honest code passes."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.accounting.plan import Plan
from discreet.budget import Neighbors
from discreet.curator.known_answers import check_change_kernels, check_kernels
from discreet.curator.queries.gradients import GradientQuery
from discreet.curator.session import Session
from discreet.losses import Logistic, Squared
from discreet.solvers import VarianceReducedDescent, svrg
from discreet.testing import neighbor_pairs, replay
from tests.solvers.perturbation.cases import bounds_of, fit_of, table
from tests.solvers.svrg import test_changes, test_price
from tests.solvers.svrg.cases import change, ratio_of


@pytest.fixture(autouse=True, scope="module")
def _checked_kernels():
    """The self-test would find bugs planted in the engine too, on its first run: it is to have had that."""
    for loss in (Logistic(), Squared()):
        check_kernels(loss, sparse=False, sampled=True)
        check_change_kernels(loss, sparse=False)


SOLVER = VarianceReducedDescent(n_epochs=1, n_inner=3, sampling_probability=1.0, clip=5.0, step_size=2.0)


def replays(relation="replace_one", solver=SOLVER):
    fit = fit_of("logistic", solver, relation)
    pairs = neighbor_pairs(*table("logistic"), relation=relation, bounds=bounds_of("logistic"))
    return all(replay(fit, pair.data, pair.neighbor, relation).ok for pair in pairs if "high" in pair.name)


def loosened(monkeypatch):
    """Changes are scaled for the clip, and not clipped."""
    honest = GradientQuery.over

    def over(query, engine):
        loose = query if query.anchor is None else replace(query, bound=query.bound << 5)
        return honest(loose, engine)

    monkeypatch.setattr(GradientQuery, "over", over)


def test_a_clip_that_is_not_executed(monkeypatch):
    assert ratio_of(change(np.ones((1, 2)), np.ones(1), Squared(), 100.0, -100.0, 0.2)[0])[0] > 0
    loosened(monkeypatch)
    norm, limit = ratio_of(change(np.ones((1, 2)), np.ones(1), Squared(), 100.0, -100.0, 0.2)[0])
    assert norm > limit
    with pytest.raises(AssertionError):
        test_changes.test_the_clip_bites_far_below_the_change()


def test_privacy_rests_on_the_clip_and_not_on_the_smoothness(monkeypatch):
    """A smoothness that is a tenth of the true one costs utility; without the clip it costs privacy."""
    honest = svrg.gradient_smoothness
    monkeypatch.setattr(svrg, "gradient_smoothness", lambda loss, domain: 0.1 * honest(loss, domain))
    assert replays()
    loosened(monkeypatch)
    assert not replays()


def test_noise_of_another_clip(monkeypatch):
    """Noise scaled by the gradient's bound instead of the change's own clip."""
    honest = Session.unit

    def unit(self, release, clip, factor=None):
        return honest(self, release, 1.0 if release.query == "noisy_gradient_change" else clip, factor)

    monkeypatch.setattr(Session, "unit", unit)
    for clip in (2.0, 1e-3):
        assert test_changes.proportional("zero_out", clip) < test_changes.SIGNIFICANCE


def test_too_little_noise_for_a_wide_clip(monkeypatch):
    """The lattice of the clip, the noise of half of it."""
    honest = Session.unit

    def unit(self, release, clip, factor=None):
        made = honest(self, release, clip, factor)
        return replace(made, m=made.m - 1) if release.query == "noisy_gradient_change" else made

    monkeypatch.setattr(Session, "unit", unit)
    with pytest.raises(AssertionError):
        test_changes.proportional("zero_out", 2.0)
    with pytest.raises(AssertionError, match="costs more"):
        test_price.checked()


def test_everybody_in_every_sample(monkeypatch):
    """Priced as sampled, drawn whole."""
    monkeypatch.setattr(Session, "sample", lambda self, release: None)
    with pytest.raises(AssertionError):
        _same_sample(monkeypatch)


def _same_sample(monkeypatch):
    test_changes.test_both_gradients_see_the_same_sample(np.asarray, None, monkeypatch)


def test_sampling_priced_twice(monkeypatch):
    """A price that is not of what was drawn: the probability counted as its square."""
    honest = Plan.events

    def events(self, noise_multiplier, *, pure):
        cheaper = [replace(r, sampling_probability=float(r.sampling_probability) ** 2) for r in self.releases]
        return honest(Plan(cheaper), noise_multiplier, pure=pure)

    monkeypatch.setattr(Plan, "events", events)
    with pytest.raises(AssertionError, match="costs more"):
        test_price.checked()


def test_sampling_left_out_of_the_price(monkeypatch):
    """Dearer than need be: the certificate is then not of what was drawn."""
    honest = Plan.events

    def events(self, noise_multiplier, *, pure):
        whole = [replace(r, sampling_probability=1) for r in self.releases]
        return honest(Plan(whole), noise_multiplier, pure=pure)

    monkeypatch.setattr(Plan, "events", events)
    with pytest.raises(AssertionError):
        test_price.checked()


def test_only_the_anchors_priced(monkeypatch):
    honest = Plan.events
    monkeypatch.setattr(Plan, "events", lambda self, z, *, pure: honest(Plan(self.releases[:1]), z, pure=pure))
    with pytest.raises(AssertionError, match="costs more"):
        test_price.checked()


def test_the_factor_two_forgotten(monkeypatch):
    monkeypatch.setattr(Neighbors, "sum_factor", property(lambda self: 1))
    assert not replays(solver=replace(SOLVER, clip=0.1))
    with pytest.raises(AssertionError):
        test_price.checked()


def test_gradients_of_two_samples(monkeypatch):
    """The difference of two sampled gradients, each over a sample of its own: a record is in one and not the other."""
    honest, rng = GradientQuery.over, np.random.default_rng(0)

    def over(query, engine):
        if query.anchor is None or query.units is None:
            return honest(query, engine)
        other = np.flatnonzero(rng.uniform(size=engine.n_units) < 0.4)
        here = honest(replace(query, anchor=None), engine)
        return here - honest(replace(query, anchor=None, weights=query.anchor, units=other), engine)

    monkeypatch.setattr(GradientQuery, "over", over)
    with pytest.raises(AssertionError):
        _same_sample(monkeypatch)


def test_gradients_clipped_one_by_one(monkeypatch):
    """The difference of two clipped gradients is up to twice the clip long."""
    honest = GradientQuery.over

    def over(query, engine):
        if query.anchor is None:
            return honest(query, engine)
        other = replace(query, anchor=None, weights=query.anchor)
        return honest(replace(query, anchor=None), engine) - honest(other, engine)

    monkeypatch.setattr(GradientQuery, "over", over)
    with pytest.raises(AssertionError):
        test_changes.test_the_clip_bites_far_below_the_change()


def test_honest_code_passes():
    assert replays()
    test_price.checked()
    test_changes.test_the_clip_bites_far_below_the_change()
