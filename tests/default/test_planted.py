"""Bugs planted in a recipe and its steps: each must be caught by a check that honest code passes."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.curator.session import Session
from discreet.default import recipe as recipe_module
from discreet.default import rows as rows_module
from discreet.default.recipe import Recipe
from discreet.default.weighted import Weighted
from discreet.solvers import calibration
from discreet.testing import fresh_noise, neighbor_pairs, replay
from tests.covering import covering
from tests.default import test_classes, test_price
from tests.default.cases import RECIPES
from tests.solvers.perturbation.cases import bounds_of, fit_of, table


def findings(kind="weighted", name="logistic", relation="replace_one", words="high"):
    """What replay finds, over pairs whose name has one of the words; a budget that lets every step move."""
    fit = fit_of(name, RECIPES[kind], relation, epsilon=300.0)
    pairs = neighbor_pairs(*table(name), relation=relation, bounds=bounds_of(name))
    found = [replay(fit, pair.data, pair.neighbor, relation) for pair in pairs if words in pair.name]
    return {finding.kind for report in found for finding in report.findings}


@covering(("kind", ["weighted", "declared, weighted"]), ("name", ["logistic", "softmax", "ridge"]))
def test_honest_code_passes(kind, name):
    assert not findings(kind, name)


def _records(curator):
    return curator._session.admitted.records


def test_a_radius_read_from_the_records(monkeypatch):
    honest = Weighted.__init__

    def longest(self, curator, *known):
        *rest, reach = known
        honest(self, curator, *rest, reach * (1.0 + 1e-9 * float(_records(curator).norms.sum())))

    monkeypatch.setattr(Weighted, "__init__", longest)
    assert findings() & {"sensitivity", "lattice", "attribute"}


def test_a_clip_that_follows_the_records(monkeypatch):
    honest = rows_module.slope_at_zero
    steps = Recipe._clipped_steps

    def curious(self, curator, *arguments):
        factor = 1.0 + float(_records(curator).norms.mean()) % 1.0
        monkeypatch.setattr(rows_module, "slope_at_zero", lambda loss: factor * honest(loss))
        return steps(self, curator, *arguments)

    monkeypatch.setattr(Recipe, "_clipped_steps", curious)
    assert findings("clipped") & {"lattice", "attribute"}


def test_a_calibration_by_exact_predictors(monkeypatch):
    honest = calibration.calibrate

    def exact(curator, loss, recoding, v, *, mean, deviation, **known):
        rows = _records(curator).rows.astype(float)
        return honest(curator, loss, recoding, v, mean=mean, deviation=deviation + float(np.abs(rows).mean()), **known)

    monkeypatch.setattr(recipe_module, "calibrate", exact)
    assert findings("clipped") & {"lattice", "attribute", "sensitivity"}


def test_a_hessian_at_the_exact_mean(monkeypatch):
    honest = Weighted.hessian

    def shifted(self, v, bound):
        made = honest(self, v, bound)
        return replace(made, values=made.values + 1e-9 * float(_records(self._curator).norms.sum()))

    monkeypatch.setattr(Weighted, "hessian", shifted)
    assert "attribute" in findings()


@covering(("name", ["logistic", "softmax", "svc"]), ("kind", ["declared", "diagonal", "clipped"]))
def test_exact_shares_of_classes(monkeypatch, name, kind):
    """Steps that start where the labels are, not where a noisy answer says that they are."""
    honest = Recipe._class_shares

    def exact(curator, admitted, n):
        shares = honest(curator, admitted, n)
        labels = _records(curator).targets
        counts = [float(np.sum(labels == label)) for label in ((-1, 1) if len(shares) == 2 else range(len(shares)))]
        return (np.array(counts) + 1.0) / (sum(counts) + len(shares))

    assert not findings(kind, name)
    monkeypatch.setattr(Recipe, "_class_shares", staticmethod(exact))
    assert findings(kind, name) & {"attribute", "lattice", "sensitivity"}


def test_a_clip_that_cuts_shares_of_classes(monkeypatch):
    """Half the slope of a constant row: no privacy is lost, as the curator clips, but shares are drawn to even ones."""
    honest = recipe_module.slope_at_zero
    test_classes.test_the_first_gradient_is_that_of_the_counts("declared", "logistic")
    monkeypatch.setattr(recipe_module, "slope_at_zero", lambda loss: 0.5 * honest(loss))
    with pytest.raises(AssertionError):
        test_classes.test_the_first_gradient_is_that_of_the_counts("declared", "logistic")


def _multiplier(monkeypatch, change):
    honest = Session.multiplier
    monkeypatch.setattr(Session, "multiplier", lambda self, release: honest(self, change(release)))


@pytest.mark.parametrize(
    "query", ["noisy_weighted_gradient", "noisy_curvature", "noisy_second_moment", "noisy_gradient", "noisy_mean"]
)
def test_a_relative_noise_that_is_ignored(monkeypatch, query):
    _multiplier(monkeypatch, lambda r: replace(r, relative_noise=1.0) if r.query == query else r)
    with pytest.raises(AssertionError):
        test_price.test_each_answer_has_the_noise_of_its_own_entry_in_the_order_of_the_plan(
            "weighted", "logistic", "zero_out"
        )
    with pytest.raises(AssertionError):
        test_price.test_the_certificate_costs_the_whole_budget_and_not_more("weighted", "logistic", "zero_out", 1.0)
    assert "price" in findings()


def _scheduled(monkeypatch, choose):
    monkeypatch.setattr(Session, "_next", lambda self, query: choose(self._schedule.get(query, [])))


def _last_first(entries):
    left = [entry for entry in reversed(entries) if entry.left > 0]
    return (left or entries or [None])[0]


def test_entries_of_a_query_in_another_order(monkeypatch):
    """The same noises for other answers: no privacy is lost, but steps weigh their answers by wrong figures."""
    _scheduled(monkeypatch, _last_first)
    with pytest.raises(AssertionError):
        test_price.test_each_answer_has_the_noise_of_its_own_entry_in_the_order_of_the_plan(
            "weighted", "logistic", "zero_out"
        )


def test_an_entry_with_less_noise_for_all(monkeypatch):
    """The last Newton step's noise, which is the least, for every weighted gradient."""

    def least(entries):
        left = sum(entry.left for entry in entries)
        if not entries:
            return None
        entry = min(entries, key=lambda one: one.release.relative_noise)
        entry.left = max(entry.left, 1 if left > 0 else 0)
        others = [one for one in entries if one is not entry and one.left > 0]
        if others:
            others[0].left -= 1
            entry.left += 1
        return entry

    _scheduled(monkeypatch, least)
    with pytest.raises(AssertionError):
        test_price.test_the_certificate_costs_the_whole_budget_and_not_more("weighted", "logistic", "zero_out", 1.0)
    assert "price" in findings()


def test_one_noise_for_two_hessians_of_a_step(monkeypatch):
    honest, kept = Session.noise, {}

    def noise(self, release, unit, count, **known):
        drawn = honest(self, release, unit, count, **known)
        return kept.setdefault((id(self), count), drawn) if release.query == "noisy_weighted_gradient" else drawn

    monkeypatch.setattr(Session, "noise", noise)
    assert not fresh_noise(fit_of("logistic", RECIPES["weighted"], "zero_out"), table("logistic"), runs=1).ok


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_a_plan_whose_shares_do_not_add_up(monkeypatch, wrong):
    honest = recipe_module.newton_shares
    monkeypatch.setattr(recipe_module, "newton_shares", lambda n, share: [wrong * one for one in honest(n, share)])
    with pytest.raises(AssertionError):
        test_price.test_each_share_goes_where_it_is_said_to()
