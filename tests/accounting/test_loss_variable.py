"""The privacy loss as an object: against simulation, integration and the exact prices."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from discreet.accounting import PrivacyLoss
from discreet.accounting.events import Gaussian, Laplace, PerturbedMinimum, PureDP
from discreet.accounting.pricing import epsilon_of
from discreet.errors import AccountingError, Unsupported

CASES = {
    "gaussian": [Gaussian(2.0)],
    "gaussians": [Gaussian(4.0, 3), Gaussian(2.5)],
    "laplace": [Laplace(0.8, dimension=1)],
    "perturbed": [PerturbedMinimum(3.0, 0.3, "one_signed")],
}


@pytest.mark.parametrize("name", CASES)
def test_delta_is_the_mean_excess_of_the_loss(name):
    """delta(epsilon) = E(1 - e^(epsilon - W))_+, the integral of e^(epsilon - t) P(W > t) over t > epsilon."""
    loss = PrivacyLoss.of(CASES[name], "zero_out")
    for epsilon in (0.2, 0.7, 1.3):
        end = max(loss.reach, epsilon)

        def excess(t, epsilon=epsilon):
            return math.exp(epsilon - t) * float(np.ravel(loss.survival(np.array([t])))[0])

        tail = quad(excess, epsilon, end + 20.0, points=[end], limit=400)[0]
        assert loss.delta(epsilon) == pytest.approx(tail, rel=2e-3, abs=1e-7)


def test_the_loss_of_noise_as_drawn():
    rng = np.random.default_rng(0)
    x = rng.laplace(scale=0.8, size=400_000)
    drawn = (np.abs(x - 1.0) - np.abs(x)) / 0.8  # log of the density at 0 over that at 1
    loss = PrivacyLoss.of(CASES["laplace"])
    for t in (-1.0, 0.0, 0.5, 1.2):
        assert float(loss.survival(np.array(t))) == pytest.approx(np.mean(drawn > t), abs=5e-3)
    assert float(loss.cdf(np.array(2.0))) == 1.0


@pytest.mark.parametrize("name", ["gaussian", "gaussians"])
def test_the_theorem_claims_more_than_is_needed(name):
    """Loss <= epsilon with probability 1 - delta implies DP; the converse is false."""
    loss = PrivacyLoss.of(CASES[name])
    exact = epsilon_of(CASES[name], 1e-5).epsilon
    claimed = loss.quantile(1e-5)
    assert exact < claimed
    assert loss.delta(claimed) < 1e-5
    assert float(loss.survival(np.array(exact))) > 2e-5  # DP at (exact, 1e-5), and the loss is above it too often
    with pytest.raises(AccountingError):
        loss.quantile(0.0)


def test_other_events_are_refused():
    with pytest.raises(Unsupported, match="use price"):
        PrivacyLoss.of([PureDP(1.0)])


def test_a_picture():
    pytest.importorskip("matplotlib")
    drawn = PrivacyLoss.of(CASES["perturbed"]).plot()
    assert len(drawn.lines) == 2
    assert drawn.get_xlabel() == "t"
