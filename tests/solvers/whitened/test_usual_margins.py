"""Margins brought to where clipping usually leaves them: post-processing of released coefficients."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

from discreet import DPLogisticRegression
from discreet.errors import Unsupported
from discreet.solvers import Declared, GradientDescent, Whitened
from discreet.solvers.clipped_margins import LONGER, constant_path, likely_middle
from discreet.solvers.probability_calibration import SHARE, unclipped
from discreet.solvers.uncertainty.whitened_noise import Steps
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


@pytest.mark.parametrize("m", [-2.5, -0.5, 0.0, 1.5])
def test_the_intercept_is_where_steps_were_headed_unless_noise_hides_it(m):
    """Take the steps on drawn labels, by a loop of its own, and ask for the log odds that they were drawn with."""
    steps = Steps(np.full(8, 0.7), np.append(np.zeros(8), 1.0), 2.0, 0.1, 0.5)
    y = np.arange(100_000) < expit(m) * 100_000
    now = before = 0.0
    for _ in range(8):
        ahead = now + 0.7 * (now - before)
        slopes = np.clip(expit(ahead) - y, -0.5 * LONGER, 0.5 * LONGER)
        before, now = now, ahead - 2.0 * float(slopes.mean())
    assert constant_path(np.array([m]), steps)[0] == pytest.approx(now, abs=1e-3)
    assert likely_middle(now, 0.02, steps) == pytest.approx(m, abs=0.05)
    assert abs(likely_middle(now, 1e3, steps)) < 1e-3


def test_plain_steps_keep_their_direction_and_release_nothing_more():
    steps = GradientDescent(8, momentum=0.7, radius=100.0)
    raw, back = (fit(Declared(steps, unclip_intercept=how)) for how in (False, True))
    assert back.certificate_.events == raw.certificate_.events
    ratio = back.coef_ / raw.coef_
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-9)
    assert 0 < ratio[0, 0] < 1
    assert (back.coef_noise_ >= ratio * raw.coef_noise_).all()
    assert back.intercept_noise_[0] >= raw.intercept_noise_[0]
    start = (np.zeros(3), np.array([-1.0]))
    given = [fit(Declared(steps, unclip_intercept=how), start=start).intercept_[0] for how in (False, True)]
    assert given[0] == given[1]
    exact = [fit(Declared(steps, unclip_intercept=how), math.inf).intercept_[0] for how in (False, True)]
    assert exact[0] == exact[1]


def test_a_table_without_signal_costs_next_to_nothing():
    """500 rows whose labels depend on nothing: the default mostly stays at the trivial predictor, in both scores.

    The class that is commoner is visible at epsilon .1; at .01 it is not, for any method: n mu is 2.
    """
    accuracy, loss = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (500, 10)), (rng.random(500) < 0.3).astype(int)
        with seeded(seed):
            model = DPLogisticRegression(0.1, bounds=1.0, classes=(0, 1), neighbors="zero_out", ledger=False).fit(X, y)
        margins = model.decision_function(rng.uniform(-1, 1, (4000, 10)))
        accuracy.append(np.where(margins > 0, 0.3, 0.7).mean() - 0.7)
        loss.append(np.mean(np.logaddexp(0, margins) - 0.3 * margins) - 0.6109)
    assert np.mean(np.array(accuracy) < -0.05) <= 0.25  # of 120 tables 7, and 86 where slopes keep their noise
    assert np.mean(loss) < 0.05  # .024 in the mean of 120 tables, .181 there


def test_other_words_are_refused():
    with pytest.raises(Unsupported, match="usual"):
        Whitened(GradientDescent(8), calibrate_probabilities="often")
