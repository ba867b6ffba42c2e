"""Predicted excess is that of simulated runs on quadratic problems, and its argmin follows the signal."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.solvers.prediction import Problem, Rows, Shot, Steps, best_shot, best_steps
from discreet.solvers.propagation import average_weights

ROWS = Rows((1.0, 0.4), (2.0, 3.0), 1.0, norm=math.sqrt(6.0))
PROBLEM = Problem(effect=0.8, intercept=0.5, curvature=1.0, errors=0.6)
WIDE = 50.0
"""A clip that bites nowhere, in deviations."""
STEPS = Steps((WIDE,), (0.5,), (6,), signal=2000.0, n=1e9, bias=0.0, momentum=0.3, average="tail")


def directions():
    """Mean squares of six directions, the constant last, and the squares of distances at the start."""
    squares = np.array([1.0, 1.0, 0.4, 0.4, 0.4, 1.0])
    effects = squares[:5] / squares[:5].sum() * PROBLEM.effect**2
    return squares, np.append(effects, PROBLEM.intercept**2) / squares


def run(steps, rng, runs=4000):
    """Excess of noisy steps on a quadratic, its mean over runs."""
    squares, start = directions()
    count, eta = steps.counts[0], steps.lengths[0]
    sigma = steps.clips[0] * ROWS.norm * math.sqrt(count) / steps.signal
    now = before = np.sqrt(start) * np.ones((runs, 6))
    total = average_weights(steps.average, count)[0] * now
    for weight in average_weights(steps.average, count)[1:]:
        ahead = now + steps.momentum * (now - before)
        before, now = now, ahead - eta * (squares * ahead + sigma * rng.normal(size=now.shape))
        total = total + weight * now
    return 0.5 * float((squares * total**2).sum(axis=1).mean())


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("average", ["last", "tail", "uniform"])
def test_steps_cost_what_is_predicted(momentum, average):
    steps = replace(STEPS, momentum=momentum, average=average)
    predicted = math.exp(best_steps(ROWS, steps, (PROBLEM,)).excess)
    assert run(steps, np.random.default_rng(0)) == pytest.approx(predicted, rel=0.05)


def test_a_prediction_with_other_noise_would_be_noticed():
    predicted = math.exp(best_steps(ROWS, replace(STEPS, signal=1400.0), (PROBLEM,)).excess)
    assert run(STEPS, np.random.default_rng(0)) != pytest.approx(predicted, rel=0.2)


def test_output_perturbation_costs_what_is_predicted():
    shot = Shot((WIDE,), (0.3,), signal=500.0, n=1e9, bias=0.0)
    predicted = math.exp(best_shot(ROWS, shot, (PROBLEM,)).excess)
    squares, start = directions()
    noise = WIDE / shot.signal * np.random.default_rng(0).normal(size=(40_000, 6))
    away = noise / 0.3 - np.sqrt(start) * 0.3 / (squares + 0.3)
    assert 0.5 * float((squares * away**2).sum(axis=1).mean()) == pytest.approx(predicted, rel=0.03)


def test_more_signal_means_wider_clips_and_less_excess():
    likely = tuple(Problem(effect, 0.1, 1.0, 1.0) for effect in (0.0, 0.3, 1.0))
    grid = Steps((0.1, 0.4, 1.6, 4.8), (1.0, 0.25, 0.01), (1, 4, 16), signal=1.0, n=1e4, bias=0.3)
    found = [best_steps(ROWS, replace(grid, signal=signal), likely) for signal in (100.0, 1000.0, 1e4, 1e5)]
    assert [one.clip for one in found] == sorted(one.clip for one in found)
    assert [one.excess for one in found] == sorted((one.excess for one in found), reverse=True)
    assert found[0].clip < found[-1].clip
