"""What losses and penalties say of themselves is so."""

import numpy as np
import pytest

from discreet.bounds import Bounds
from discreet.curator import Released
from discreet.curator.queries.choices import score_of
from discreet.losses import (
    Gamma,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Softmax,
    Squared,
    Tweedie,
)
from discreet.losses.base import curvature, value, values
from discreet.losses.proofs import wrong_constants
from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
from discreet.penalties.base import prox_coordinate

ONE = [
    Logistic(),
    Logistic(3.0),
    SmoothedHinge(),
    Squared(),
    Squared(2.0),
    Huber(0.3),
    Quantile(0.9, 0.2),
    Poisson(2.0),
    NegativeBinomial(0.5, 2.0, 30.0),
    Gamma(2.0),
    Tweedie(1.4, 2.0),
]
ALL = [*ONE, Softmax(3)]
SEPARABLE = [NoPenalty(), L1(0.1), L2(0.2), ElasticNet(0.1, 0.2), Box(-1, 1)]
EACH_PENALTY = [*SEPARABLE, L2Ball(2.0), GroupL2(0.1, ((0, 1),))]
MARGINS = np.linspace(-4, 4, 41).tolist()


def targets(loss):
    if loss.task == "regression":
        return (0.0, 0.5, 1.0)
    return (-1.0, 1.0) if loss.n_outputs == 1 else tuple(range(loss.n_outputs))


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_constants_agree_with_kernels(loss):
    assert loss.proven
    assert wrong_constants(loss) == []


@pytest.mark.parametrize("loss", ONE, ids=str)
def test_a_movable_target_is_seen_through_residuals_only(loss):
    moved = [abs(value(loss, m + 0.75, t + 0.75) - value(loss, m, t)) < 1e-12 for m in MARGINS for t in targets(loss)]
    assert all(moved) == loss.movable_target
    if loss.movable_target:
        scaled = loss.with_target_scale(2.0)
        factor = 2 if isinstance(loss, Quantile) else 4  # a check loss grows with the residual, not with its square
        ratios = [value(scaled, m / 2, t / 2) * factor - value(loss, m, t) for m in MARGINS for t in targets(loss)]
        assert np.abs(ratios).max() < 1e-12


@pytest.mark.parametrize("loss", ONE, ids=str)
def test_a_quadratic_loss_has_one_curvature(loss):
    found = {round(float(curvature(loss, m, t)), 12) for m in MARGINS for t in targets(loss)}
    assert (len(found) == 1) == loss.quadratic


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_signs_of_values(loss):
    every = (*targets(loss), *[30.0] * loss.log_link)  # a loss of counts falls below 0 for large ones
    least = min(float(values(loss, np.full(loss.n_outputs, m), t)) for m in MARGINS for t in every)
    assert (least >= 0) == loss.nonnegative


@pytest.mark.parametrize("loss", ONE, ids=str)
def test_a_bounded_stand_in_is_the_same_function_on_the_ball(loss):
    found = loss.bounded_on(3.0, 1.0)
    inside = [m for m in MARGINS if abs(m) <= 3.0]
    assert all(abs(value(found, m, t) - value(loss, m, t)) < 1e-12 for m in inside for t in targets(loss))
    assert found == loss or np.isfinite(found.lipschitz)


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_links(loss):
    margins = np.array([-1.0, 0.5])
    assert np.allclose(loss.prediction(margins), np.exp(margins) if loss.log_link else margins)
    assert loss.sigmoid_link == isinstance(loss, Logistic)


class Counts(Loss):
    """A loss with a log link that says nothing more of it."""

    task, log_link = "regression", True


def test_a_log_link_without_a_limit_predicts_finite_numbers():
    margins = np.array([-1e4, 0.5, 1e4])
    model = Released("m", Bounds(1.0), Counts(), *np.zeros((4, 1)))
    for found in (Counts().prediction(margins), model.predictions(margins[:, np.newaxis])):
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[1], np.exp(0.5))
    assert score_of(Counts(), 1.0).limit == Counts().prediction_limit


@pytest.mark.parametrize("penalty", EACH_PENALTY, ids=str)
def test_penalties_are_the_functions_that_they_say(penalty):
    rng = np.random.default_rng(0)
    for w in rng.normal(size=(20, 3)):
        square = 0.5 * penalty.strong_convexity * float(np.sum(w**2))
        if penalty.ridge:
            assert penalty.value(w) == pytest.approx(square)
        if penalty.l1_l2 is not None:
            l1, l2 = penalty.l1_l2
            assert penalty.value(w) == pytest.approx(l1 * np.abs(w).sum() + 0.5 * l2 * np.sum(w**2))
        assert penalty.separable == (penalty in SEPARABLE)
        if penalty.separable:
            each = [prox_coordinate(penalty, float(x), 0.7, j) for j, x in enumerate(w)]
            assert np.allclose(penalty.prox(w, 0.7), each)
