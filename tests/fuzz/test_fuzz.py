"""Calls with hostile parameters end in a release, or in an error of ours before the charge."""

import os

import pytest

from discreet import DPLogisticRegression
from discreet.errors import Unsupported
from discreet.solvers import GradientDescent
from tests.fuzz import calls
from tests.fuzz.calls import CRASH, ENDLESS, FOREIGN, LATE, REFUSED, SERVED, SILENT, Case, call, drawn, fuzz
from tests.fuzz.entries import entries, left_out
from tests.fuzz.values import VALUES

MANY = int(os.environ.get("DISCREET_FUZZ_CALLS", "2500"))
"""So many calls the thorough test makes; ``python -m tests.fuzz`` makes all of them."""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch, tmp_path):
    """Calls may write files."""
    monkeypatch.chdir(tmp_path)


def test_nothing_public_is_left_out():
    assert left_out() == set()


@pytest.mark.parametrize("name", sorted(entries()))
def test_what_is_right_is_served(name):
    """Else a refusal would be of something else than the hostile parameter."""
    outcome = call(Case(name, {}))
    assert outcome.kind == SERVED, outcome


def test_few_calls():
    outcomes = [call(case) for case in drawn(400, seed=len(VALUES))]
    assert [one for one in outcomes if one.kind in calls.FAILURES] == []
    assert {SERVED, REFUSED} <= {one.kind for one in outcomes}


@pytest.mark.thorough
def test_many_calls(capsys):
    found = fuzz(drawn(MANY, seed=MANY))
    with capsys.disabled():
        print(f"\n{found}")
    assert found.failures == []
    assert len(found.outcomes) == min(MANY, len(drawn(None, 0)))
    assert found.counts[SERVED] > 0


# --- failures are noticed -----------------------------------------------------------------------------


def planted(monkeypatch, change):
    plan = GradientDescent.solve
    monkeypatch.setattr(GradientDescent, "solve", lambda self, *given: change(lambda: plan(self, *given)))
    return call(Case("DPLogisticRegression", {}))


def raising(error):
    def raised(_):
        raise error

    return raised


def test_a_foreign_error_is_noticed(monkeypatch):
    assert planted(monkeypatch, raising(KeyError("x"))).kind == FOREIGN


def test_a_charge_that_the_error_reports_is_told_from_one_that_it_does_not(monkeypatch):
    assert planted(monkeypatch, raising(Unsupported("too large"))).kind == LATE
    monkeypatch.setattr(calls, "says_charged", lambda error: "charged" in str(error))
    assert planted(monkeypatch, raising(Unsupported("too large"))).kind == SILENT


def test_a_call_that_does_not_end_is_noticed(monkeypatch):
    monkeypatch.setattr(calls, "SECONDS", 1)

    def forever(_):
        while True:
            pass

    assert planted(monkeypatch, forever).kind == ENDLESS


@pytest.mark.thorough
def test_a_process_that_ends_is_noticed_and_the_others_run_on(monkeypatch):
    monkeypatch.setenv("DISCREET_FUZZ_CRASH", "Budget")
    found = fuzz([Case("Bounds in DPRidge", {"n": "2.5"}), Case("Budget", {}), Case("Bounds in DPRidge", {"n": "-1"})])
    assert [one.kind for one in found.outcomes] == [REFUSED, CRASH, REFUSED]


def test_a_signature_is_read_when_it_changes(monkeypatch):
    entries.cache_clear()
    monkeypatch.setattr(DPLogisticRegression, "__init__", lambda self, epsilon=1.0, *, novel=None: None)
    try:
        assert entries()["DPLogisticRegression"].parameters == ("epsilon", "novel")
    finally:
        entries.cache_clear()
