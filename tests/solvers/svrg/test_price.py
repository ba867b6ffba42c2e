"""The price of a run of DP-SVRG, computed a second time from events written by hand, and by dp_accounting itself."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Bounds, DPLogisticRegression
from discreet.accounting.events import Gaussian, PoissonSampled
from discreet.accounting.pricing import epsilon_of
from discreet.solvers import VarianceReducedDescent
from discreet.testing import seeded
from tests.replaying import window
from tests.solvers.svrg.cases import RELATIONS

S, M, Q, SHARE = 3, 4, 0.25, 0.4
SOLVER = VarianceReducedDescent(
    n_epochs=S, n_inner=M, sampling_probability=Q, clip=0.3, anchor_share=SHARE, step_size=1.0
)


def table(n=40):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X[:, 0] > 0).astype(float)


def certified(relation="replace_one", epsilon=1.0, delta=1e-6, solver=SOLVER):
    bounds = Bounds(1.0, classes=(0, 1), n=40 if relation == "add_remove" else None)
    with seeded(1), window() as seen:
        model = DPLogisticRegression(epsilon, delta, bounds=bounds, neighbors=relation, solver=solver).fit(*table())
    return model.certificate_, seen


def realized(measurement):
    """Noise over sensitivity, from the lattice."""
    return float(Fraction(1 << measurement.unit.m) / (measurement.factor * measurement.unit.bound))


def checked(relation="replace_one"):
    """The noise that was drawn, priced as what was drawn: S Gaussians and S m sampled ones."""
    certificate, seen = certified(relation)
    anchors = [realized(m) for m in seen if m.query == "noisy_gradient"]
    changes = [realized(m) for m in seen if m.query == "noisy_gradient_change"]
    assert len(anchors) == S
    assert S * (M - 1) <= len(changes) <= S * M
    assert all(m.factor == (2 if relation == "replace_one" else 1) for m in seen)
    by_hand = [Gaussian(min(anchors), S), PoissonSampled(math.ceil(Q * 65536), Gaussian(min(changes), len(changes)))]
    spent = epsilon_of(by_hand, 1e-6, relation).epsilon
    assert spent <= 1.0 * (1 + 1e-3), "what was drawn costs more than the certificate says"
    assert spent >= 0.9, "the price is far from what was drawn"
    listed = certificate.events
    assert listed[0] == Gaussian(listed[0].noise_multiplier, S)
    assert isinstance(listed[1], PoissonSampled)
    assert listed[1].numerator == 16384
    assert listed[1].event.count >= len(changes)
    assert min(anchors) >= listed[0].noise_multiplier * (1 - 1e-12)
    assert min(changes) >= listed[1].event.noise_multiplier * (1 - 1e-12)
    return certificate, anchors, changes


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_certificate_is_the_composition_of_both_kinds(relation):
    certificate, anchors, changes = checked(relation)
    z = certificate.noise_multiplier
    assert min(changes) == pytest.approx(z, rel=1e-4)
    assert min(anchors) == pytest.approx(z * math.sqrt((1 - SHARE) / (SHARE * (M - 1))) / Q, rel=1e-4)
    listed = certificate.events
    by_hand = [Gaussian(listed[0].noise_multiplier)] * S
    by_hand += [PoissonSampled(16384, Gaussian(z))] * listed[1].event.count
    again = epsilon_of(by_hand, 1e-6, relation).epsilon
    assert 1.0 - 2e-3 <= again <= 1.0
    assert certificate.epsilon == 1.0
