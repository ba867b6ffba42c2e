"""Bring a linear predictor back to scale by few noisy gradients in two unknowns: one function for classes and numbers.

Clipped gradients leave the direction of the coefficients nearly right and their length wrong: a logistic model is too
sure of itself, a skewed target's slopes are too flat and its intercept too low. With m the predictor, mu and s its mean
and deviation by what was released,

    u = (m - mu) / s;    theta = argmin of the mean loss of theta_1 u + theta_2         (without intercept: u = m / s)

has two unknowns in place of p, so that next to nothing of the budget shows them. What the mean gradient at theta is
where theta* is the best is known for a normal u of known law (``expected_gradient``), so that two noisy ones, the
second at the estimate of the first, determine theta* and that law. They are weighed against what is known before, a
normal prior about where clipping usually leaves theta, which a penalty changes, about how much log odds mostly vary,
and about u: the result is the mode of the posterior. theta_1 = 0 is the constant predictor. Where the steps are known
well enough to tell how likely it is that columns say nothing, it is weighed in.

Privacy. The answers are noisy gradients of the plan, on records recoded by released values; the rest is
post-processing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logsumexp, softmax

from discreet.accounting.plan import Release
from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.losses.base import Loss, slope_at_zero
from discreet.penalties.base import Penalty
from discreet.solvers.shrinkage import kept
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

FARTHEST = 50.0
"""Logarithms of means are taken to be within this: beyond, neither they nor their squares are numbers."""
POINTS, WEIGHTS = (part.copy() for part in np.polynomial.hermite_e.hermegauss(61))


@dataclass(frozen=True)
class Prior:
    """Where clipping usually leaves a predictor, and how surely.

    ``kept`` is what is usually to be kept of m's deviation (and of its mean, where the loss has a sigmoid), ``spread``
    the deviation of that, ``shift`` the deviation of the intercept next to it. Rows (u, 1) longer than ``length`` count
    less.
    """

    kept: float
    spread: float
    shift: float
    length: float


CLASSES = Prior(kept=0.55, spread=0.15, shift=0.3, length=3.2)
"""Slopes clipped at half of their bound make margins about twice as large as those of the best model."""
NUMBERS = Prior(kept=1.0, spread=0.2, shift=0.15, length=8.0)
"""Residuals are clipped on both sides: little is lost but on skewed targets."""


WIDEST = 2.0
"""The deviation of log odds between rows, mostly at most."""
LAW = (0.2, 0.3)
"""How far the center of u is from 0, and the logarithm of its deviation, mostly: both are of noisy, shrunk rows."""
USUALLY = 3.0
"""How much likelier it is that columns tell something of the target than that they do not, before anything is asked."""
FARTHEST_LAW = 3.0
"""The logarithm of u's deviation is taken to be within this, whatever answers a wrong model has to explain."""
LEAST_UNIT = 0.1
"""Of log odds and of logarithms of means, in which u counts at least: where noise hides how much a predictor varies, a
smaller unit makes rows far longer than they are taken to be, and their constant, which says where the predictor should
be, is shrunk with them. A predictor that varies less hardly matters."""
LEAST_NOISE = 1e-8
"""Of an answer, where there is less: what follows from a normal u is not as exact as that."""
ROUNDS, SETTLED, DIFFERENCE = 200, 1e-5, 1e-7
"""Steps to the mode at most; how short the last one is, and of differences, in units of the prior's deviations."""


@dataclass(frozen=True)
class Calibrated:
    """Coefficients before the map; what they are of those before; what the answers' noise did to each."""

    coefficients: Floats
    share: float
    deviations: Floats


class Calibration:
    """Rescale and shift the predictor v of recoded rows by noisy mean gradients, asked at ``theta`` of rows (u, 1).

    Its caller asks, of records through ``recoding``, one gradient within ``clip`` for each of ``noises``, the noise of
    each mean answer per unit of its clip, and adds what comes. ``mean`` and ``deviation`` are the predictor's own,
    ``likely`` is the part of its variance that is not noise, ``whole`` what its slopes are multiplied by before all
    else, ``start`` the constant that steps began with, ``unsure`` the deviation of the noise in it; ``is_told``: it is
    the best constant but for that, so that a predictor that hardly varies or moved from it is hardly off by more. So it
    is where the noise of the mean is known, ``step_noise``; then a shift that does not stand out of the noise of the
    answers is none.

    ``evidence`` is the logarithm of how much likelier the steps' slopes are if columns tell
    anything of the target: what follows without is weighed in, as likely as it is by steps and answers together.
    """

    def __init__(
        self,
        loss: Loss,
        recoding: Recoding,
        v: Floats,
        *,
        mean: float,
        deviation: float,
        clip: float,
        noises: list[float],
        penalty: Penalty,
        likely: float = 1.0,
        whole: float = 1.0,
        start: float = 0.0,
        unsure: float = 0.0,
        is_told: bool = False,
        step_noise: float | None = None,
        evidence: float | None = None,
    ) -> None:
        is_regression = loss.task == "regression"
        prior = NUMBERS if is_regression else CLASSES
        intercept = len(v) > len(recoding.center)
        self.recoding = two = predictor_coordinates(recoding, v, mean, deviation, prior, intercept=intercept)
        offset = two.coefficients(np.zeros(1 + intercept))
        linear = (two.coefficients(np.eye(1 + intercept)).T - offset).T
        strength = penalty.strong_convexity / (recoding.target_scale**2 if is_regression else 1.0)
        doubt = (1.0 - likely) / 2.0  # halfway between all of it and the part that is not noise, as unsure as that
        pulled = strength * np.square(linear).sum(axis=0) / (1.0 if is_regression else loss.smoothness)
        left = np.resize((prior.kept + pulled) / (1.0 + pulled), 2)  # a penalty holds back what clips let grow
        shift = prior.shift
        length = whole * deviation
        theta = np.array([left[0] * (1.0 - doubt) * length, start + left[1] * (mean - start)])[: 1 + intercept]
        if step_noise is not None:
            shift = min(shift, math.hypot(step_noise, shift * math.hypot(mean - start, deviation)))
        if is_told:
            shift *= min(1.0, math.hypot(mean - start, deviation))
        usual = np.array(
            [
                (prior.spread + doubt) * length,
                math.hypot(shift, unsure) + (0 if is_regression else prior.spread * abs(mean - start)),
            ]
        )
        if not is_regression:  # what steps found, as surely as it is known, and what predictors mostly are
            weight = WIDEST**2 / (WIDEST**2 + usual[0] ** 2)
            theta[0], usual[0] = weight * theta[0], math.sqrt(weight) * usual[0]
        self._before = Before(theta, usual[: 1 + intercept], linear, offset, strength)
        self._loss, self._deviation, self._start = loss, deviation, start
        self._evidence = evidence
        self._shrinks = step_noise is not None and intercept
        self.clip, self.noises, self.theta = clip, noises, theta
        self._answers: list[Answer] = []
        self._moved = np.zeros((len(theta), 1))

    def add(self, gradient: Floats) -> None:
        """Take the next noisy mean gradient at ``theta``, and move there where the best predictor now seems to be."""
        noise = self.clip * max(self.noises[len(self._answers)], LEAST_NOISE)
        self._answers.append(Answer(self.theta, gradient, noise))
        self._mode = posterior_mode(self._loss, self._before, self._answers)
        self.theta, self._moved = self._mode.theta, self._mode.moved

    def result(self) -> Calibrated:
        """Return the coefficients of the best predictor by all answers."""
        theta, moved = self.theta.copy(), self._moved
        if self._evidence is not None:
            constant = posterior_mode(self._loss, self._before, self._answers, is_constant=True)
            chance = float(expit(math.log(USUALLY) + self._evidence + self._mode.evidence - constant.evidence))
            theta = chance * theta + (1.0 - chance) * constant.theta
        noise = float(np.linalg.norm(moved[-1]))
        if self._shrinks and noise > 0:
            theta[-1] = self._start + noise * float(kept((theta[-1:] - self._start) / noise)[0])
        deviations = np.sqrt(np.square(self._before.linear @ moved).sum(axis=1))
        is_noisy = max(self.noises, default=0.0) > 0
        return Calibrated(self.recoding.coefficients(theta), float(theta[0] / self._deviation), deviations * is_noisy)


@dataclass(frozen=True)
class Before:
    """What is known of theta* before any answer: about where it is, how surely, and the penalty's pull.

    The penalty is ``strength / 2`` times the square of ``linear theta + offset``.
    """

    theta: Floats
    deviations: Floats
    linear: Floats
    offset: Floats
    strength: float


@dataclass(frozen=True)
class Answer:
    """A noisy mean gradient, where it was asked for, and the deviation of its noise."""

    theta: Floats
    gradient: Floats
    noise: float


@dataclass(frozen=True)
class Mode:
    """The mode of theta* after some answers, and what a deviation of each of their numbers moves it by.

    ``evidence`` is the logarithm of how likely the answers are, but for what is the same with and without a slope.
    """

    theta: Floats
    moved: Floats
    evidence: float


def posterior_mode(loss: Loss, before: Before, answers: list[Answer], *, is_constant: bool = False) -> Mode:
    """Return the mode of theta* after some answers; ``is_constant``: where theta*_1 is known to be 0.

    Next to theta* the center and the deviation of u are unknown. At theta* the penalty's slope is minus the loss's.
    """
    k = len(before.theta)
    start, deviations = np.append(before.theta, (0.0, 0.0)), np.append(before.deviations, LAW)

    def misses(x: Floats) -> Floats:
        theta, law = x[:, :k], (x[:, k], np.exp(np.clip(x[:, k + 1], -FARTHEST_LAW, FARTHEST_LAW)))
        pull = before.strength * ((theta @ before.linear.T + before.offset) @ before.linear)
        each = (
            (answer.gradient - expected_gradient(loss, answer.theta, theta, *law) + pull) / answer.noise
            for answer in answers
        )
        return np.concatenate([*each, (x - start) / deviations], axis=1)

    first = np.append(0.0, start[1:]) if is_constant else start
    mode, slopes = least_squares(misses, first, deviations, is_fixed=is_constant)
    missed, known = misses(mode[None])[0], np.ones(len(start), dtype=np.bool_)
    if is_constant:
        missed[-len(start)], known[0] = 0.0, False
    evidence = -float(missed @ missed + np.linalg.slogdet(slopes[:, known].T @ slopes[:, known])[1]) / 2.0
    moved = deviations[:k, None] * np.linalg.pinv(slopes)[:k, : -len(start)]
    return Mode(mode[:k], np.asarray(moved, dtype=np.float64), evidence)


def least_squares(
    misses: Callable[[Floats], Floats], start: Floats, scales: Floats, *, is_fixed: bool = False
) -> tuple[Floats, Floats]:
    """Return the x with the least sum of squares, its first number at least 0, and how each miss changes there.

    That is per unit of ``scales``, about as large as which the unknowns are. ``is_fixed``: the first number stays where
    it is. Levenberg's damped steps: ``misses`` takes several x, so that differences in all unknowns come from one call.
    """

    def around(x: Floats) -> tuple[Floats, Floats]:
        found = misses(np.vstack([x, x + np.diag(DIFFERENCE * scales)]))
        return found[0], (found[1:] - found[0]).T / DIFFERENCE

    x, damping = start, 1e-3
    missed, slopes = around(x)
    for _ in range(ROUNDS):
        free = np.ones(len(x), dtype=np.bool_)
        free[0] = not is_fixed and (x[0] > 0 or slopes[:, 0] @ missed < 0)
        damped = np.vstack([slopes[:, free], damping * np.eye(int(free.sum()))])
        moved = x.copy()
        moved[free] -= (
            scales[free] * np.linalg.lstsq(damped, np.append(missed, np.zeros(int(free.sum()))), rcond=None)[0]
        )
        moved[0] = max(0.0, moved[0])
        is_there = bool((np.abs(moved - x) <= SETTLED * scales).all())
        found, changed = around(moved)
        if found @ found <= missed @ missed:
            x, missed, slopes, damping = moved, found, changed, damping / 10.0
        else:
            damping *= 10.0
        if is_there:
            break
    return x, slopes


def predictor_coordinates(
    recoding: Recoding, v: Floats, mean: float, deviation: float, prior: Prior, *, intercept: bool
) -> Recoding:
    """Return the map to (u, 1); rows are not shrunk before they are u."""
    direction = v if recoding.matrix is None else recoding.matrix @ v
    matrix = (direction / deviation)[:, None]
    if intercept:
        matrix = np.column_stack([matrix, np.zeros(len(direction))])
        matrix[-1] += np.array([-mean / deviation, 1.0]) / recoding.constant
    return replace(recoding, row_norm=math.inf, matrix=matrix, reach=prior.length)


def expected_gradient(loss: Loss, at: Floats, best: Floats, center: Floats, deviation: Floats) -> Floats:
    """Return the mean gradients at one theta where others are the best, and u is normal: one row of numbers for each.

    The slope of a loss of a mean mu is (mu - y) mu' / V(mu), and y is the best theta's mean on average.
    """
    u = center[:, None] + deviation[:, None] * POINTS
    rows = np.stack([u if loss.movable_target else np.clip(u, -3.0, 3.0), np.ones_like(u)], axis=1)[:, : len(at)]
    now, then = at @ rows, (best[:, None] @ rows)[:, 0]
    if loss.movable_target:
        slopes = now - then
    elif loss.log_link:
        mean, truth = (loss.prediction(np.clip(margins, -FARTHEST, FARTHEST)) for margins in (now, then))
        variances = np.array([loss.variance(each) for each in mean.ravel().tolist()]).reshape(mean.shape)
        slopes = (mean - truth) * mean / variances
    else:
        slopes = expit(now) - expit(then)
    return np.asarray((rows @ (slopes * WEIGHTS / WEIGHTS.sum())[:, :, None])[:, :, 0])


def normal_hessian(theta: Floats) -> Floats:
    """Return the Hessian of the mean logistic loss where u is standard normal."""
    rows = np.stack([np.clip(POINTS, -3.0, 3.0), np.ones_like(POINTS)])[: len(theta)]
    chance = expit(theta @ rows)
    return np.asarray((rows * (chance * (1.0 - chance) * WEIGHTS / WEIGHTS.sum())) @ rows.T)


def mean_curvature(mean: float, deviation: float) -> float:
    """Return the mean curvature of the logistic loss at margins of this mean and deviation."""
    return float(normal_hessian(np.array([deviation, mean]))[1, 1])


# --- the constant that steps start from ----------------------------------------------------------------
#
# Without it the intercept is the longest way that steps go, and where columns say little nearly all that they find.
#
#     classes    g = noisy mean gradient at 0 of rows that are a constant 1: it tells each class's share
#     counts     g = noisy mean slope of records at one constant prediction, which is linear in the mean target
#
# Released: that answer. Privacy: that of ``noisy_coordinate_gradient``, or of ``noisy_gradient`` for several outputs,
# on the records as they were admitted; what follows is post-processing.

LEAST_SHARE = float(np.finfo(np.float64).tiny)
"""The least share of a class, without noise."""
LARGEST_CONSTANT = 100.0
"""The largest constant: margins of a hundred are certain of everything."""
UNEVEN = 0.3
"""How far the share of a class is from an even one, mostly."""
USUAL = 1.0 / 16.0
"""The root of a count's mean square over the largest one that is declared, mostly at most."""


class Constant(NamedTuple):
    """The margin, one for each of several outputs, and the deviation of its noise."""

    margin: Floats | float
    noise: Floats | float


def constant_query(domain: Domain) -> str:
    """Return the question that is asked."""
    return "noisy_coordinate_gradient" if domain.n_outputs == 1 else "noisy_gradient"


def constant_release(domain: Domain, relative_noise: float) -> Release:
    """List the answer, with this noise."""
    dimension = 1 if domain.n_outputs == 1 else None
    return Release(constant_query(domain), 1, relative_noise=relative_noise, dimension=dimension)


def released_constant(curator: "Curator", n: float, noise: float, strength: float) -> Constant:
    """Ask for the constant; ``noise`` is the answer's, per unit of its clip, ``strength`` an L2 penalty's."""
    loss = curator.loss
    if not loss.log_link:
        shares, noise = released_shares(curator, n, noise, denoise=True)
        return Constant(best_constant(loss, shares, strength), constant_doubt(loss, shares, noise, strength, shift=0.0))
    mean, noise = released_mean(curator, n, noise)
    return Constant(best_log_mean(loss, mean, strength), noise / mean)


def released_shares(curator: "Curator", n: float, noise: float, *, denoise: bool = False) -> tuple[Floats, float]:
    """Return the noisy shares of classes, and the noise of the mean gradient that they were read from.

    That is the constant's entry of the gradient at 0; of several outputs the gradient of rows that are a constant.
    """
    domain, loss, clip = curator.domain, curator.loss, slope_at_zero(curator.loss)
    if loss.n_outputs == 1:
        gradient = curator.noisy_coordinate_gradient(np.zeros(domain.shape), domain.n_features - 1, clips=clip)
    else:
        features, column = domain.n_features - 1, np.zeros((domain.n_features, 1))
        column[-1] = 1.0
        with curator.recoded(Recoding(np.zeros(features), np.ones(features), matrix=column, reach=1.0)):
            gradient = curator.noisy_gradient(np.zeros((1, *domain.shape[1:])), clip=clip)[0]
    noise *= clip / n
    return class_shares(loss, np.atleast_1d(gradient) / n, noise, denoise=denoise), noise


def released_mean(curator: "Curator", n: float, noise: float) -> tuple[float, float]:
    """Return the noisy mean of counts or amounts, at least its noise, and its noise.

    With records at the prediction c the slope of an outcome y is in proportion to c - y, and y counts up to 2 c. Of
    outcomes with the mean square u^2 that takes at most u^2 / (8 c), because y - 2 c <= y^2 / (8 c), and the noise is
    c / N, with N the signal: c is where both together are least.
    """
    domain, loss = curator.domain, curator.loss
    usual, largest = USUAL * domain.target_bound, domain.target_bound / 2.0
    c = largest if noise == 0 else min(largest, usual * math.sqrt(n / noise / 8.0))
    place = np.zeros(domain.shape)
    place[-1] = math.log(c)
    low, high = (float(loss.slopes_at(place[-1:], y)[0]) for y in (0.0, 2.0 * c))
    gradient = curator.noisy_coordinate_gradient(place, domain.n_features - 1, clips=max(abs(low), abs(high)))
    mean = 2.0 * c * (low - float(gradient[0]) / n) / (low - high)
    noise *= 2.0 * c * max(abs(low), abs(high)) / (n * (low - high))
    return min(2.0 * c, max(mean, noise)), noise


def class_shares(loss: Loss, gradient: Floats, noise: float, *, denoise: bool = False) -> Floats:
    """Return the shares of classes that a mean gradient at 0 of constant rows tells.

    With f' at 0 of each class, a mean slope g of two classes says (g - f'_1) / (f'_0 - f'_1); K outputs each lack their
    class's share. Shares are drawn to even ones (``denoise``: onto) by what is noise in them, and are at least the
    noise.
    """
    count = max(2, len(gradient))
    if len(gradient) > 1:
        away = -gradient
    else:
        negative, positive = (float(loss.slopes_at(np.zeros(1), sign)[0]) for sign in (-1.0, 1.0))
        away, noise = (gradient - negative) / (positive - negative) - 0.5, noise / abs(positive - negative)
    if denoise and noise > 0:
        away = noise * kept(away / noise, (UNEVEN / noise) ** 2)
    elif noise > 0:
        away = away * (UNEVEN**2 / (UNEVEN**2 + noise**2))
    away = away if len(away) > 1 else np.append(-away, away)
    shares = np.maximum(1.0 / count + away, max(LEAST_SHARE, min(noise, 0.5 / count)))
    return np.asarray(shares / shares.sum())


def constant_doubt(
    loss: Loss, shares: Floats, noise: float, strength: float, shift: float = CLASSES.shift
) -> Floats | float:
    """Return about how far the constant of noisy shares is from the best: by their noise, and by what columns do.

    ``noise`` is that of the mean gradient that they were read from, ``shift`` what columns do; 0: by noise alone.
    """
    if loss.n_outputs > 1:
        return np.asarray(np.hypot(shift, noise / shares))
    off = noise / abs(float(np.subtract(*(loss.slopes_at(np.zeros(1), sign)[0] for sign in (-1.0, 1.0)))))
    ends = (min(1.0, max(0.0, float(shares[1]) + sign * off)) for sign in (-1.0, 1.0))
    low, high = (best_constant(loss, np.array([1.0 - end, end]), strength) for end in ends)
    return math.hypot(shift, float(high - low) / 2.0)


def best_constant(loss: Loss, shares: Floats, strength: float) -> Floats | float:
    """Return the constant margin (one per class of several) with the least expected loss and L2 penalty."""
    if loss.n_outputs > 1:

        def sloped(margins: Floats) -> tuple[float, Floats]:
            height = float(logsumexp(margins) - shares @ margins + strength * margins @ margins / 2.0)
            return height, softmax(margins) - shares + strength * margins

        return np.asarray(minimize(sloped, np.zeros(len(shares)), jac=True, method="BFGS").x)

    def slope(margin: float) -> float:
        each = [float(loss.slopes_at(np.array([margin]), sign)[0]) for sign in (-1.0, 1.0)]
        return float(shares @ each) + strength * margin

    return _flat_point(slope)


def best_log_mean(loss: Loss, mean: float, strength: float) -> float:
    """Return the log of the constant with the least expected loss (linear in the target) and L2 penalty."""
    return _flat_point(lambda margin: float(loss.slopes_at(np.array([margin]), mean)[0]) + strength * margin)


def _flat_point(slope: Callable[[float], float]) -> float:
    """Return where a slope that does not fall is 0; the end at which it is nearest to 0 where it is not."""
    if slope(-LARGEST_CONSTANT) >= 0 or slope(LARGEST_CONSTANT) <= 0:
        return -LARGEST_CONSTANT if slope(-LARGEST_CONSTANT) >= 0 else LARGEST_CONSTANT
    return float(brentq(slope, -LARGEST_CONSTANT, LARGEST_CONSTANT))
