"""The budget trace in a certificate: written down, checked, shown and saved."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet import Certificate, DPLogisticRegression
from discreet.accounting.plan import Charge
from discreet.errors import AccountingError, DiscreetError
from discreet.solvers import AdaptiveDescent, GradientDescent
from tests.solvers.agd.cases import small_table


def fit(solver="agd", epsilon=1.0):
    X, y = small_table(n=30)
    return DPLogisticRegression(epsilon, 1e-6, bounds=1.0, classes=(-1, 1), solver=solver).fit(X, y)


@pytest.fixture(scope="module")
def certificate():
    return fit(AdaptiveDescent(n_rounds=4, clip=0.5)).certificate_


def test_it_says_what_was_spent_on_what_and_when(certificate):
    assert {charge.query for charge in certificate.trace} == {"noisy_gradient", "select_candidate"}
    assert not certificate.trace[-1].answered
    assert all(charge.answered for charge in certificate.trace[:-1])
    spent = sum(Fraction(charge.rho) for charge in certificate.trace if charge.answered)
    assert 0 < spent <= Fraction(certificate.events[0].rho)
    assert certificate.is_private
    assert certificate.verify().is_private


def overspent(certificate):
    rho = 2 * certificate.events[0].rho
    return replace(certificate, trace=(*certificate.trace, Charge("noisy_gradient", rho, 9)))


def test_a_trace_that_spends_more_than_its_events_is_refused(certificate):
    with pytest.raises(AccountingError, match="trace"):
        overspent(certificate).verify()
    whole = certificate.events[0].rho
    exact = replace(certificate, trace=(Charge("noisy_gradient", whole, 1),))
    exact.verify()
    just_above = (Charge("noisy_gradient", whole, 1), Charge("noisy_gradient", 5e-324, 1))
    with pytest.raises(AccountingError, match="trace"):
        replace(certificate, trace=just_above).verify()
    refused = replace(certificate, trace=(Charge("noisy_gradient", 10 * whole, 1, answered=False),))
    refused.verify()


def test_a_trace_without_an_event_that_pays_is_refused(certificate):
    plain = fit(GradientDescent(n_steps=3)).certificate_
    with pytest.raises(AccountingError, match="trace"):
        replace(plain, trace=certificate.trace).verify()


def edited(certificate, **changes):
    stored = json.loads(certificate.to_json())
    stored["trace"].append({"query": "noisy_gradient", "rho": 1e-9, "round": 1, "answered": True, **changes})
    return json.dumps(stored)


@pytest.mark.parametrize(
    "changes",
    [{"rho": -5.0}, {"rho": 0.0}, {"rho": "0.1"}, {"rho": None}, {"rho": "inf"}, {"rho": True}, {"round": "two"},
     {"round": -1}, {"answered": "no"}, {"query": 7}, {"extra": 1}],
    ids=str,
)  # fmt: skip
def test_a_line_that_no_filter_wrote_is_refused(certificate, changes):
    with pytest.raises(DiscreetError):
        Certificate.from_json(edited(certificate, **changes)).verify()


def test_a_negative_charge_does_not_hide_an_overspent_budget(certificate):
    rho = overspent(certificate).trace[-1].rho
    with pytest.raises(AccountingError):
        Charge("noisy_gradient", -rho, 9)
