"""Prices of perturbed minima and of assumed distances: oracle numbers, older bounds, composition, calibration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from discreet.accounting import gaussian
from discreet.accounting.events import Gaussian, PerturbedMinimum, PureDP, TotalVariation
from discreet.accounting.objective_perturbation import covers
from discreet.accounting.plan import Perturbation, Plan, Release
from discreet.accounting.pricing import calibrate, epsilon_of
from discreet.budget import Budget, Neighbors
from discreet.errors import Unsupported
from tests.accounting import published
from tests.covering import covering

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def bound(sigma, lam, slopes="logistic", neighbors=ADD, beta=0.25, **kwargs):
    return PerturbedMinimum(sigma, beta / lam, slopes, **kwargs).loss_bound(neighbors)


def plan_of(*, curvature=0.1, slopes="logistic", outside=True, **kwargs):
    inside = Release("perturb_objective", 1, mechanism="objective", perturbation=Perturbation(curvature, slopes))
    second = (Release("perturbed_minimizer", 1, relative_noise=16.0),) if outside else ()
    return Plan([inside, *second], **kwargs)


# --- oracle numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "lam", "redberg", "simple", "tight"),
    [
        (1.0, 0.5, 11.54, 6.00, 4.03),
        (1.0, 1.0, 5.30, 4.70, 3.73),
        (1.0, 2.0, 4.43, 4.18, 3.73),
        (0.1, 5.0, 62.9, 56.5, 35.2),
        (0.1, 10.0, 42.5, 39.8, 30.8),
        (8.0, 0.125, math.inf, 0.679, 0.6002),
    ],
)
def test_sigma_needed(epsilon, lam, redberg, simple, tight):
    budget = Budget(epsilon, 1e-5, ADD)
    found = [
        calibrate(plan_of(curvature=0.25 / lam, slopes=s, outside=False), budget) for s in ("one_signed", "logistic")
    ]
    # The oracle's 35.2 is a coarser upper sum: brute force has delta = 1.000e-5 at 35.09.
    assert found == pytest.approx([simple, tight], rel=4e-3)
    if math.isfinite(redberg):
        assert published.redberg_delta(epsilon, redberg, 0.25 / lam) == pytest.approx(1e-5, rel=0.02)
    else:
        assert published.redberg_delta(epsilon, 1e6, 0.25 / lam) == 1.0


# --- the numbers themselves ----------------------------------------------------------------------


@covering(("neighbors", [ADD, REPLACE]), ("slopes", ["logistic", "one_signed", "two_signed"]))
def test_integrals_agree_with_samples_of_the_bound(slopes, neighbors):
    """Quantiles of U, one for each of a million equal parts: delta, with and without a Gaussian, and moments."""
    found = bound(1.5, 0.7, slopes, neighbors)
    levels = (np.arange(10**6) + 0.5) / 10**6
    grid = np.linspace(0, 12, 400001)
    losses = np.interp(-levels, -found.survival(grid), grid)
    mean = float(np.maximum(0, -np.expm1(np.minimum(0.9 - losses, 0))).mean())
    assert found.delta_of(0.9) == pytest.approx(mean, rel=2e-3)
    x, mu = 0.9 - losses, 0.4
    both = float((ndtr(mu / 2 - x / mu) - np.exp(x) * ndtr(-mu / 2 - x / mu)).mean())
    assert found.delta_with_gaussian(0.9, mu) == pytest.approx(both, rel=2e-3)
    assert float(found.log_moments(np.array([2.0]))[0]) == pytest.approx(math.log(np.exp(2 * losses).mean()), rel=2e-3)


def test_gaussian_where_it_truly_is_and_nowhere_else():
    curvature, z = 0.125 / 9 * (1 - 1e-12), 3.0
    assert PerturbedMinimum(z, curvature, "logistic").simplified(ADD) == Gaussian(z)
    for event, neighbors in (
        (PerturbedMinimum(z, curvature * 1.001, "logistic"), ADD),
        (PerturbedMinimum(z, curvature, "logistic"), REPLACE),
        (PerturbedMinimum(z, curvature, "logistic", 1.01), ADD),
        (PerturbedMinimum(z, curvature, "one_signed"), ADD),
    ):
        assert event.simplified(neighbors) == event
    events = [PerturbedMinimum(z, curvature, "logistic"), Gaussian(4.0)]
    assert epsilon_of(events, 1e-6, ADD) == epsilon_of([Gaussian(z), Gaussian(4.0)], 1e-6, ADD)


# --- total variation -----------------------------------------------------------------------------


def test_total_variation_is_taken_from_delta():
    distance, delta = 1e-8, 1e-6
    found = epsilon_of([Gaussian(5.0), TotalVariation(distance)], delta).epsilon
    assert gaussian.delta_of(found, 1 / 5) + (1 + math.exp(found)) * distance <= delta
    less = found * (1 - 1e-8)
    assert gaussian.delta_of(less, 1 / 5) + (1 + math.exp(less)) * distance > delta
    twice = epsilon_of([Gaussian(5.0), TotalVariation(distance / 2), TotalVariation(distance / 2)], delta).epsilon
    assert twice == pytest.approx(found)
    assert epsilon_of([TotalVariation(1e-8)], 1e-6).epsilon == 0.0


def test_total_variation_is_refused_where_it_breaks_the_claim():
    with pytest.raises(Unsupported, match="no pure guarantee"):
        epsilon_of([PureDP(1.0), TotalVariation(1e-9)], 0.0)
    with pytest.raises(Unsupported, match="larger delta"):
        epsilon_of([PureDP(1.0), TotalVariation(1e-6)], 1.5e-6)
    with pytest.raises(Unsupported, match="larger delta"):
        epsilon_of([Gaussian(1.0), TotalVariation(1e-9)], 1e-8)
    plan = Plan([Release("sample", 1, mechanism="exponential")], total_variation=1e-6)
    with pytest.raises(Unsupported, match="no pure guarantee"):
        calibrate(plan, Budget(1.0))
    with pytest.raises(Unsupported, match="larger delta"):
        calibrate(plan, Budget(1.0, 1e-6))


# --- calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_epsilon_that_no_noise_meets_is_refused(delta):
    plan = plan_of(curvature=2.0, outside=False)
    with pytest.raises(Unsupported, match="larger regularization"):
        calibrate(plan, Budget(math.log(3.0), delta))
    assert calibrate(plan, Budget(1.01 * math.log(3.0), delta)) > 0


# --- properties ----------------------------------------------------------------------------------


def test_what_a_plan_covers_costs_no_more():
    """Curvature, kappa and reach at most the planned ones: the loss bound is below, at every epsilon."""
    rng, compared = np.random.default_rng(0), 0
    for _ in range(400):
        slopes = str(rng.choice(["logistic", "one_signed", "two_signed"]))
        planned, needed = (
            Perturbation(
                float(np.exp(rng.normal())), slopes, reach=float(1 + rng.exponential()) if slopes == "logistic" else 1.0
            )
            for _ in range(2)
        )
        if not covers(planned, needed):
            continue
        compared += 1
        bounds = [PerturbedMinimum(3.0, **vars(known)).loss_bound(Neighbors.ZERO_OUT) for known in (planned, needed)]
        for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
            more, less = (bound.delta_of(epsilon) for bound in bounds)
            assert less <= more * (1 + 1e-3) + 1e-15
    assert compared >= 50


def test_what_a_plan_does_not_cover():
    planned = Perturbation(0.5, "logistic", reach=2.0)
    assert covers(planned, planned)
    assert not covers(planned, replace(planned, curvature=0.6))
    assert not covers(planned, replace(planned, reach=1.5))  # the same curvature at a shorter reach is a larger kappa
    assert not covers(planned, replace(planned, slopes="one_signed"))
    assert not covers(Perturbation(0.5, "softmax", outputs=3), Perturbation(0.5, "softmax", outputs=4))
