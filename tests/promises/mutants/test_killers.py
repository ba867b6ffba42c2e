"""Tests for what a mutant showed to be untested, and the audits as judges of real code with a bug in it."""

import math
import threading

import numpy as np
import pytest

from discreet import Bounds, Budget, DPLogisticRegression, Ledger, audit
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian
from discreet.accounting.objective_perturbation import perturbation_of
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import calibrate, price_plan
from discreet.bounds import Domain
from discreet.budget import Neighbors
from discreet.curator import PrivateData
from discreet.curator.records.admission import grouping
from discreet.errors import LedgerError, MissingBounds
from discreet.ledger import sqlite
from discreet.losses import Logistic, Squared
from discreet.solvers import CoordinateDescent, OutputPerturbation
from discreet.solvers.coordinate_geometry import Geometry
from tests.replaying import window

SURE = 1 - 1e-6


# --- what was untested ------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [None, 0.4])
@pytest.mark.parametrize("longest", [0.5, 1.0, 7.0])
def test_objective_perturbation_pays_for_the_curvature_of_the_longest_record(longest, clip):
    """f'' r^2 over all slopes and lengths that the clip leaves alone: in units in which R is not 1."""
    domain = Domain(np.array([longest]), longest, 100, Neighbors.ZERO_OUT, intercept=False)
    slopes, lengths = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, longest, 401))
    curvatures = slopes * (1 - slopes) * lengths**2
    unclipped = curvatures if clip is None else curvatures[slopes * lengths <= clip]
    assert perturbation_of(Logistic(), domain, clip, 3.0).curvature >= unclipped.max() / 3.0


@pytest.mark.parametrize("delta", [1.4e-7, 1e-6 / 3])
def test_the_text_of_a_certificate_shows_every_digit_of_delta(delta):
    budget = Budget(1.0, delta)
    noise = calibrate(Plan([Release("noisy_gradient", 1)]), budget)
    made = Certificate(epsilon=1.0, delta=delta, neighbors=budget.neighbors, events=(Gaussian(noise),))
    assert f"delta = {delta!r}, per record" in made.text()


def test_a_curator_reads_no_target_range_from_the_data():
    data = PrivateData(np.ones((3, 1)), [0.0, 1.0, 5.0], Bounds(1.0))
    with pytest.raises(MissingBounds, match="target"):
        data.domain(Neighbors.REPLACE_ONE, Squared())


def test_a_second_writer_of_a_ledger_waits_for_the_first(tmp_path, monkeypatch):
    """Before it has read anything: what it would read could be old when it writes."""
    monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
    ledger = Ledger.create(tmp_path / "budget.db")
    entered = []

    def enter():
        try:
            with ledger._store.writing():
                entered.append(True)
        except LedgerError:
            entered.append(False)

    with ledger._store.writing():
        other = threading.Thread(target=enter)
        other.start()
        other.join()
    assert entered == [False]


def test_a_planned_sample_is_drawn():
    """Every record adds the same integer, so that an exact sum tells how many there were."""
    n, count = 400, 25
    data = PrivateData(np.ones((n, 1)), np.ones(n), Bounds(1.0, classes=(0, 1)), fit_intercept=False)
    with window() as seen:
        curator = data.open(
            price_plan(Plan([Release("noisy_gradient", count, 0.25, clip=0.25)]), Budget(1.0, 1e-6)), Logistic()
        )
        for _ in range(count):
            curator.noisy_gradient(np.zeros(1), clip=0.25)
    drawn = np.array([abs(int(answer.exact[0, 0])) / answer.unit.bound for answer in seen])
    expected = n * count / 4
    assert abs(drawn.sum() - expected) < 6 * math.sqrt(expected)
    assert len(set(drawn.round(3))) > 5


@pytest.mark.parametrize("names", [[math.nan, float("nan"), "a"], [None, None, "a"]])
def test_rows_without_a_name_are_one_person(names):
    assert len(grouping(names, 3)[1]) - 1 == 2


# --- audits -----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_audit_of_a_gradient_refutes_nothing(mechanism):
    delta = 0.0 if mechanism == "laplace" else 1e-6
    found = audit.gradient(1.0, delta, mechanism=mechanism, runs=60_000, confidence=SURE)
    assert not found.refuted, str(found)


def few():
    """Records of one feature; a neighbor has the opposite label in the first."""
    X, y = np.ones((12, 1)), np.ones(12, dtype=int)
    other = y.copy()
    other[0] = 0
    return (X, y), (X, other)


def fit_with(solver, epsilon=1.0, **settings):
    facts = {"bounds": Bounds(1.0, classes=(0, 1)), "fit_intercept": False, "ledger": False, "solver": solver}

    def fit(X, y, groups=None):
        return DPLogisticRegression(epsilon, 1e-6, **facts, **settings).fit(X, y)

    return fit


@pytest.mark.thorough
@pytest.mark.statistical
def test_the_audit_of_a_transcript_refutes_nothing():
    solver = CoordinateDescent(n_outer=1, n_inner=3, geometry=Geometry(clip=0.25), relative_step=1e-4)
    found = audit.transcript(fit_with(solver, alpha=0.0), *few(), runs=250, confidence=SURE)
    assert not found.refuted, str(found)


@pytest.mark.thorough
@pytest.mark.statistical
def test_the_audit_of_a_model_refutes_nothing():
    fit, (data, neighbor) = fit_with(OutputPerturbation(regularization=0.5), alpha=0.5), few()
    events = fit(*data).certificate_.events
    found = audit.model(fit, data, neighbor, epsilon=1.0, delta=1e-6, runs=200, confidence=SURE, events=events)
    assert not found.refuted, str(found)


def test_the_audit_by_replay_refutes_nothing():
    bounds = Bounds(1.0, classes=(0, 1))
    found = audit.replay(fit_with("gd", alpha=0.0), *few()[0], bounds=bounds)
    assert not found.refuted, str(found)
