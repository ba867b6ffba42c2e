"""Every solver is charged before it reads a record, answers no more than it paid for, and certifies what it released.

For each case of the registry: the price of the certificate's events is the budget at most, the answers are those of the
events, a ledger has one charge when the first row is read, a cap is kept, and the certificate says the same in JSON.
"""

import json

import jsonschema
import numpy as np
import pytest

from discreet import Certificate, Ledger, load
from discreet.errors import BudgetExceeded
from discreet.json_schemas import json_schema
from discreet.testing import noiseless
from tests.covering import covering
from tests.promises.crash.fits import Watched
from tests.registry import DELTA, RELATIONS, N, cases, model, table
from tests.replaying import window

CASES = cases()
DATASET = "people"
NOISY_INSIDE = ("perturbed_minimizer", "sample_minimizer")
"""Their noise is in the objective, or is the draw itself: tests/solvers/perturbation."""


def case_and_loss(name):
    case = CASES[name]
    return case, case.losses[0]


def noises(measured):
    """Return the noise of each sum over its sensitivity, from its lattice, the smallest first."""
    sums = [one for one in measured if one.norm in ("l1", "l2") and one.query not in NOISY_INSIDE]
    return sorted(2.0**one.unit.m / (float(one.factor) * one.unit.bound) for one in sums)


def planned(certificate):
    """Return the noise of each sum that the certificate prices, the smallest first."""
    events = [getattr(event, "event", event) for event in certificate.events]
    sums = [event for event in events if hasattr(event, "noise_multiplier")]
    return sorted(event.noise_multiplier for event in sums for _ in range(getattr(event, "count", 1)))


@covering(("name", CASES), ("relation", RELATIONS))
def test_the_price_is_the_budget_and_the_answers_are_those_that_were_paid_for(name, relation):
    case, loss = case_and_loss(name)
    relation = relation if relation in case.relations else case.relations[0]
    certificate = model(loss, case, relation, n=N).fit(*table(loss)[:2]).certificate_
    with window() as measured:
        assert not model(loss, case, relation, n=N).fit(*table(loss)[:2]).certificate_.is_private  # observed
    verification = certificate.verify()
    assert verification.is_private
    assert verification.epsilon <= certificate.epsilon * (1 + 1e-9)
    assert certificate.epsilon <= case.epsilon * (1 + 1e-9)
    assert certificate.delta <= (0.0 if case.pure else DELTA)
    if not certificate.trace:  # what an adaptive run releases follows from its answers
        counts = [getattr(event, "count", 1) for event in certificate.events]
        assert len(measured) <= sum(counts)
        pairs = zip(noises(measured), planned(certificate), strict=False)
        assert all(drawn >= paid * (1 - 1e-12) for drawn, paid in pairs)
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    jsonschema.validate(json.loads(certificate.to_json()), json_schema("certificate"))


def exhausted(ledger, fit):
    """Fit until the ledger refuses; return how many fits it has."""
    for _ in range(9):
        try:
            fit()
        except BudgetExceeded:
            break
    return ledger.spent(DATASET).fits


@pytest.mark.parametrize("name", CASES)
def test_the_charge_is_in_the_ledger_before_a_record_is_read_and_the_cap_is_kept(name):
    case, loss = case_and_loss(name)
    ledger = Ledger.create(":memory:")
    ledger.grant(DATASET, 1.5 * case.epsilon, 3 * DELTA, neighbors="zero_out")
    X, y, _ = table(loss)
    charges = []
    watched = X.view(Watched)
    watched.when_read = lambda: charges.append(ledger.spent(DATASET).fits)
    estimator = model(loss, case, "zero_out").set_params(ledger=ledger, dataset=DATASET)
    estimator.fit(watched, y)
    assert charges
    assert set(charges) == {1}
    count = exhausted(ledger, lambda: estimator.fit(watched, y))
    charges.clear()
    with window() as measured, pytest.raises(BudgetExceeded):
        estimator.fit(watched, y)
    assert not charges
    assert not measured
    assert ledger.spent(DATASET).fits == count


@pytest.mark.few(15)
@pytest.mark.parametrize("name", CASES)
def test_a_saved_model_is_the_model_with_its_solver_and_certificate(name, tmp_path):
    case, loss = case_and_loss(name)
    X, y, _ = table(loss)
    fitted = model(loss, case, "zero_out", n=N).fit(X, y)
    again = load(fitted.save(tmp_path / "model.discreet"))
    assert (again.predict(X) == fitted.predict(X)).all()
    assert again.certificate_ == fitted.certificate_
    assert repr(again.solver) == repr(fitted.solver)


@pytest.mark.parametrize("name", ["gd: steps", "recipe: auto"])
def test_a_fit_without_noise_certifies_nothing(name):
    case, loss = case_and_loss(name)
    with noiseless():
        fitted = model(loss, case, "zero_out").fit(*table(loss)[:2])
    assert not fitted.certificate_.is_private
    assert np.isfinite(fitted.coef_).all()
