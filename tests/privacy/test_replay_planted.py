"""Planted bugs, each of a kind that real libraries had: replay must catch every one."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, Budget, DPLogisticRegression, Neighbors
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData, session
from discreet.curator.engines import base
from discreet.curator.engines.dense import DenseEngine
from discreet.curator.lattice import noise
from discreet.curator.lattice.lattice import COEFFICIENT_LIMIT, unit_for
from discreet.curator.queries.gradients import GradientQuery
from discreet.curator.records import admission
from discreet.losses import Logistic
from discreet.models import fitting
from discreet.penalties import NoPenalty
from discreet.solvers.base import Solution
from discreet.solvers.sgd import StochasticGradientDescent
from discreet.testing import fresh_noise, neighbor_pairs, replay
from tests.priced import priced_at
from tests.testing.small_fits import bounds_of, fit_of, prices_remembered, table

RELATIONS = ("replace_one", "zero_out", "add_remove")


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with prices_remembered():
        yield


@pytest.fixture(autouse=True)
def _self_tested():
    """The curator's own self-test has run: what is planted below must be found by replay alone."""
    for groups in (False, True):
        for name in ("logistic", "softmax"):
            fit_of(name)(*table(name, groups=groups))


def kinds(fit, data, relation="replace_one", *, bounds=None, only=""):
    """The kinds of findings over all pairs of neighbors whose name contains ``only``."""
    bounds = bounds or bounds_of("logistic")
    pairs = neighbor_pairs(*data, relation=relation, bounds=bounds, sampled=False)
    chosen = [pair for pair in pairs if only in pair.name]
    assert chosen
    return {found.kind for pair in chosen for found in replay(fit, pair.data, pair.neighbor, relation).findings}


def patched_sum(monkeypatch, change):
    """Let ``change(engine, query, honest)`` stand in for a gradient's sum over an engine."""
    honest = GradientQuery.over
    monkeypatch.setattr(GradientQuery, "over", lambda self, engine: change(engine, self, lambda e, q: honest(q, e)))


def patched_records(monkeypatch, change):
    """Let the door hand in ``change(records)``."""
    honest = admission.admit
    monkeypatch.setattr(admission, "admit", lambda *args, **words: change(honest(*args, **words)))


@pytest.mark.parametrize("relation", RELATIONS)
def test_nothing_is_found_in_the_honest_fit(relation):
    assert kinds(fit_of("logistic", "gd", relation), table("logistic"), relation) == set()


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_clip(monkeypatch, relation):
    def limits(reach, shares, bound):
        return np.where(reach > 0, COEFFICIENT_LIMIT, 0).astype(np.int32)

    monkeypatch.setattr(base, "coefficient_limits", limits)
    assert kinds(fit_of("logistic", "gd", relation), table("logistic"), relation) == {"sensitivity"}


@pytest.mark.parametrize("relation", RELATIONS)
def test_twice_the_clip(monkeypatch, relation):
    honest = base.coefficient_limits
    monkeypatch.setattr(base, "coefficient_limits", lambda reach, shares, bound: honest(reach, shares, 2 * bound))
    assert kinds(fit_of("logistic", "gd", relation), table("logistic"), relation) == {"sensitivity"}


def test_factor_two_forgotten(monkeypatch):
    monkeypatch.setattr(Neighbors, "sum_factor", property(lambda self: 1))
    assert "sensitivity" in kinds(fit_of("logistic"), table("logistic"))


def test_factor_two_forgotten_in_the_lattice_only(monkeypatch):
    """The claim stays right, the noise is half of it: seen by comparing noise and certificate."""
    monkeypatch.setattr(session, "unit_for", lambda multiplier, factor, clip, n: unit_for(multiplier, 1, clip, n))
    assert kinds(fit_of("logistic"), table("logistic")) == {"price"}


def test_more_releases_than_paid_for(monkeypatch):
    honest = Plan.events
    monkeypatch.setattr(Plan, "events", lambda self, z, *, pure: honest(shortened(self), z, pure=pure))
    assert kinds(fit_of("logistic"), table("logistic")) == {"price"}


def shortened(plan):
    return Plan(replace(release, count=1) for release in plan.releases)


@pytest.mark.parametrize("relation", RELATIONS)
def test_clip_after_the_sum(monkeypatch, relation):
    """The mean gradient is clipped instead of each record's."""

    def clipped_late(engine, query, honest):
        reach = np.where(engine.records.norms > 0, 1, 0)
        loose = DenseEngine(replace(engine.records, norms=reach))
        total = honest(loose, query)
        norm, most = math.sqrt(float(np.sum(total.astype(float) ** 2))), query.bound * engine.n_units
        return total if norm <= most else (total * (most / norm)).astype(np.int64)

    patched_sum(monkeypatch, clipped_late)
    assert "sensitivity" in kinds(fit_of("logistic", "gd", relation), table("logistic"), relation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_intercept_outside_the_clip(monkeypatch, relation):
    def without_intercept(records):
        squares = records.norms**2 - np.where(records.norms > 0, records.grid.one**2, 0)
        return replace(records, norms=np.ceil(np.sqrt(np.maximum(squares, 0))).astype(np.int64))

    patched_records(monkeypatch, without_intercept)
    assert kinds(fit_of("logistic", "gd", relation), table("logistic"), relation) == {"sensitivity"}


@pytest.mark.parametrize("relation", RELATIONS)
def test_person_clipped_row_by_row(monkeypatch, relation):
    honest = base.coefficient_limits
    monkeypatch.setattr(base, "coefficient_limits", lambda reach, shares, bound: honest(reach, None, bound))
    found = kinds(fit_of("logistic", "gd", relation), table("logistic", groups=True), relation)
    assert found == {"sensitivity"}


def test_penalty_inside_the_records_share(monkeypatch):
    """Each record brings its share of the penalty's gradient, outside the clip."""

    def penalized(engine, query, honest):
        share = np.rint(query.weights.integers * 2.0**-query.weights.shift * query.scale * engine.grid.one)
        return honest(engine, query) + engine.n_units * share.astype(np.int64)

    patched_sum(monkeypatch, penalized)
    assert kinds(fit_of("logistic", "gd", "add_remove"), table("logistic"), "add_remove") == {"sensitivity"}


@pytest.mark.parametrize("relation", ["zero_out", "add_remove"])
def test_norm_of_cells_stored_in_parts(monkeypatch, relation):
    """Compressed rows whose repeated entries are not added up: the norm is that of the parts."""
    monkeypatch.setattr(sparse.csr_array, "sum_duplicates", lambda self: None)
    fit, data = fit_of("logistic", "gd", relation), table("logistic", "sparse")
    assert kinds(fit, data, relation, only="in parts") == {"sensitivity"}


def test_n_read_from_data(monkeypatch):
    monkeypatch.setattr(PrivateData, "public_n", lambda self, neighbors: len(self._PrivateData__y))
    found = kinds(fit_of("logistic", "gd", "add_remove"), table("logistic"), "add_remove")
    assert "attribute" in found


def test_classes_read_from_data(monkeypatch):
    honest = DPLogisticRegression.fit

    def fit(self, X, y, groups=None):
        self.classes = tuple(np.unique(y[np.isfinite(y)]).tolist())
        return honest(self, X, y, groups=groups)

    monkeypatch.setattr(DPLogisticRegression, "fit", fit)
    bounds, data = bounds_of("softmax"), table("softmax")
    found = kinds(fit_of("softmax", "gd", "add_remove"), data, "add_remove", bounds=bounds, only="only member")
    assert {"attribute", "queries"} <= found


def test_ranges_read_from_data(monkeypatch):
    honest = PrivateData.__init__

    def measured(self, X, y, bounds, **settings):
        honest(self, X, y, Bounds(float(np.nanmax(np.abs(X))), classes=bounds.classes), **settings)

    monkeypatch.setattr(PrivateData, "__init__", measured)
    assert "attribute" in kinds(fit_of("logistic"), table("logistic"), only="far outside")


def test_missing_cells_filled_in(monkeypatch):
    """A record with a missing cell is kept, and so the null record contributes."""
    honest = admission.encode.encode_rows
    monkeypatch.setattr(admission.encode, "encode_rows", lambda block, *rest: honest(np.nan_to_num(block), *rest))
    assert "sensitivity" in kinds(fit_of("logistic", "gd", "zero_out"), table("logistic"), "zero_out")


def test_missing_cells_raise(monkeypatch):
    honest = admission.numbers

    def checked(values):
        array = honest(values)
        if not np.isfinite(array).all():
            raise ValueError("Input X contains NaN.")
        return array

    monkeypatch.setattr(admission, "numbers", checked)
    assert "raised" in kinds(fit_of("logistic"), table("logistic"), only="missing")


def test_a_value_in_an_exception(monkeypatch):
    """Both runs raise, with different texts."""
    honest = admission.admit

    def refused(X, *rest, **words):
        honest(X, *rest, **words)
        raise ValueError(f"cannot use {X[0, 0]}")

    monkeypatch.setattr(admission, "admit", refused)
    assert kinds(fit_of("logistic"), table("logistic"), only="first: replaced by high") == {"raised", "vacuous"}


def test_a_warning_about_values(monkeypatch):
    honest = admission.admit

    def warned(X, *rest, **words):
        if not np.isfinite(X).all():
            warnings.warn("some records are incomplete", stacklevel=2)
        return honest(X, *rest, **words)

    monkeypatch.setattr(admission, "admit", warned)
    assert kinds(fit_of("logistic"), table("logistic"), only="replaced by missing") == {"warned"}


@pytest.mark.parametrize(("stream", "kind"), [("out", "printed"), ("err", "complained"), ("log", "logged")])
def test_a_line_about_values(monkeypatch, stream, kind):
    import logging
    import sys

    honest = admission.admit

    def talking(X, *rest, **words):
        line = f"largest value {np.nanmax(X)}"
        if stream == "log":
            logging.getLogger("some.solver").debug(line)
        else:
            print(line, file=sys.stderr if stream == "err" else sys.stdout)
        return honest(X, *rest, **words)

    monkeypatch.setattr(admission, "admit", talking)
    assert kinds(fit_of("logistic"), table("logistic"), only="far outside") == {kind}


def test_a_diagnostic_on_the_model(monkeypatch):
    """The fraction of clipped or null records, left on the fitted object."""
    honest = DPLogisticRegression.fit

    def fit(self, X, y, groups=None):
        honest(self, X, y, groups=groups)
        self.fraction_null_ = float(np.mean(~np.isfinite(X).all(axis=1)))
        return self

    monkeypatch.setattr(DPLogisticRegression, "fit", fit)
    pair = next(p for p in neighbor_pairs(*table("logistic"), bounds=bounds_of("logistic")) if "by missing" in p.name)
    report = replay(fit_of("logistic"), pair.data, pair.neighbor)
    assert [found.kind for found in report.findings] == ["attribute"]
    assert "fraction_null_" in str(report)
    assert replay(fit_of("logistic"), pair.data, pair.neighbor, private=["fraction_null_"]).ok


def test_the_exact_sum_used_beside_the_noisy_one(monkeypatch):
    """A solver that normalizes by the realized batch: post-processing of something never released."""
    drawn = []
    honest = noise.poisson_sample

    def seen(n, numerator, entropy):
        drawn.append(len(honest_units := honest(n, numerator, entropy)))
        return honest_units

    def solve(self, chosen, penalty, progress=None):
        gradient = chosen.noisy_gradient(np.zeros(chosen.domain.shape), clip=self.clip)
        return Solution(-gradient / max(1, drawn[-1]))

    monkeypatch.setattr(noise, "poisson_sample", seen)
    monkeypatch.setattr(StochasticGradientDescent, "solve", solve)
    monkeypatch.setattr("discreet.solvers.gradient_loop.count_release", lambda domain: ())
    data = table("logistic")
    reports = [
        replay(fit_of("logistic", "sgd", "add_remove"), pair.data, pair.neighbor, "add_remove", seed=seed)
        for pair in neighbor_pairs(*data, relation="add_remove", bounds=bounds_of("logistic"), sampled=True)
        if pair.name == "last: high, added"
        for seed in range(8)
    ]
    assert any(found.kind == "attribute" for report in reports for found in report.findings)


def early_stopping_fit(X, y, groups=None):
    """A toy solver that looks at the training loss, in the clear, to decide when to stop."""
    bounds, budget = bounds_of("logistic"), Budget(2.0, 1e-5)
    plan = Plan([Release("noisy_gradient", 5, clip=0.05)])
    opened = PrivateData(X, y, bounds).open(price_plan(plan, budget), Logistic())
    w = np.zeros(opened.domain.shape)
    for _ in range(5):
        w = NoPenalty().prox(w - opened.noisy_gradient(w, clip=0.05) / len(y), 1.0)
        with np.errstate(all="ignore"):
            loss = np.mean(np.logaddexp(0, -(2 * y - 1) * (X @ w[:-1] + w[-1])))
        if loss < 10:
            break
    return w


def test_early_stopping_on_data():
    assert "queries" in kinds(early_stopping_fit, table("logistic"))


def test_noise_from_the_data(monkeypatch):
    """Noise scaled to what this data set happens to contain."""
    largest = []
    admit = admission.admit

    def measured(X, *rest, **words):
        largest.append(float(np.nanmax(X)))
        return admit(X, *rest, **words)

    monkeypatch.setattr(admission, "admit", measured)
    monkeypatch.setattr(
        session, "unit_for", lambda z, factor, clip, n: unit_for(z * (1 + (largest[-1] > 20)), factor, clip, n)
    )
    assert "lattice" in kinds(fit_of("logistic"), table("logistic"), only="far outside")


def test_the_same_noise_for_every_step(monkeypatch):
    honest = noise.rounded_gaussian
    memory = {}
    monkeypatch.setattr(
        noise, "rounded_gaussian", lambda count, m, entropy: memory.setdefault((count, m), honest(count, m, entropy))
    )
    report = fresh_noise(fit_of("logistic"), table("logistic"))
    assert [found.kind for found in report.findings] == ["noise"]


def test_the_same_noise_for_every_class(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda count, m, entropy: np.tile(honest(count // 3, m, entropy), 3))
    assert not fresh_noise(fit_of("softmax"), table("softmax")).ok


def test_no_noise(monkeypatch):
    monkeypatch.setattr(fitting, "price_plan", priced_at(0.0))
    assert not fresh_noise(fit_of("logistic"), table("logistic")).ok


def test_a_sum_that_is_beyond_its_sensitivity_once(monkeypatch):
    """Memory that was not cleared, say: the third run is honest, and as near to the first as to the second."""
    errors = iter([6, 0, 0, -6])

    def wrong_once(engine, query, honest):
        total = honest(engine, query)
        total[0, 0] += next(errors, 0) * query.bound // 5
        return total

    patched_sum(monkeypatch, wrong_once)
    report = replay(fit_of("logistic"), table("logistic"), table("logistic"))
    assert [found.kind for found in report.findings] == ["sensitivity"]
    assert report.ratio == pytest.approx(1.2)
    assert not report.ok


def test_a_fit_that_asks_nothing():
    report = replay(lambda X, y, groups=None: 1.0, table("logistic"), table("logistic"))
    assert [found.kind for found in report.findings] == ["vacuous"]
