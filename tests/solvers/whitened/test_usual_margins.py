"""Margins brought to where clipping usually leaves them: post-processing of released coefficients."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

from discreet import DPLogisticRegression
from discreet.errors import Unsupported
from discreet.solvers import Declared, GradientDescent, Whitened
from discreet.solvers.probability_calibration import SHARE, unclipped
from discreet.testing import seeded


@pytest.mark.parametrize("share", [0.03, 0.2, 0.45, 0.7, 0.95])
def test_unclipped_is_the_root_of_clipped_steps(share):
    """Descend on clipped slopes of a constant margin, then ask for the share that it stands for."""
    margin = 0.0
    for _ in range(3000):
        margin -= (1 - share) * min(0.5, expit(margin)) - share * min(0.5, expit(-margin))
    assert unclipped(margin) == pytest.approx(logit(share), abs=1e-6)


def fit(solver, epsilon=1.0, seed=1, **settings):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 3))
    y = (rng.random(600) < expit(2 * X[:, 0] - 1.5)).astype(int)
    with seeded(seed):
        return DPLogisticRegression(
            epsilon, 1e-6, bounds=1.0, classes=(0, 1), solver=solver, ledger=False, **settings
        ).fit(X, y)


def test_the_usual_shrinks_slopes_and_releases_nothing():
    steps = GradientDescent(8, momentum=0.7, radius=100.0)
    raw, usual = (fit(Whitened(steps, calibrate_probabilities=how)) for how in (False, "usual"))
    np.testing.assert_allclose(usual.coef_, SHARE * raw.coef_, rtol=1e-9)
    assert usual.certificate_.events == raw.certificate_.events
    assert abs(usual.intercept_[0]) < abs(raw.intercept_[0])


def test_plain_steps_move_the_intercept_alone():
    steps = GradientDescent(8, momentum=0.7, radius=100.0)
    raw, back = (fit(Declared(steps, unclip_intercept=how)) for how in (False, True))
    np.testing.assert_array_equal(back.coef_, raw.coef_)
    assert back.intercept_[0] == pytest.approx(unclipped(raw.intercept_[0]))
    given = fit(Declared(steps, unclip_intercept=True), start=(np.zeros(3), np.array([-1.0])))
    assert given.intercept_[0] == fit(Declared(steps), start=(np.zeros(3), np.array([-1.0]))).intercept_[0]
    exact = [fit(Declared(steps, unclip_intercept=how), math.inf).intercept_[0] for how in (False, True)]
    assert exact[0] == exact[1]


def test_other_words_are_refused():
    with pytest.raises(Unsupported, match="usual"):
        Whitened(GradientDescent(8), calibrate_probabilities="often")
