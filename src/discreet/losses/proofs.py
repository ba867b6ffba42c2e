"""Whether a loss is what it says of itself: sensitivities of one-shot solvers and steps rest on these constants.

Nothing here is a proof: a loss may be wrong between the points that are tried.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import cast

import numpy as np

from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss, derivatives, slopes_in_decimals, values
from discreet.typing import Floats

_MARGINS = (*np.linspace(-8, 8, 65).tolist(), -1e3, 1e3, -1e9, 1e9)
_NEAR = 10.0
"""Curvatures, decimals and slopes of bounded margins are looked at for margins up to here."""
_REACHES = (0.5, 2.0, 8.0)
_SLACK = 1e-6
_STEP = 1e-5


def wrong_constants(loss: Loss, target_bound: float = 1.0, least_target: float = 0.0) -> list[str]:
    """Compare what a loss says of itself with its kernels, at many margins and targets; return what does not agree.

    The slope of ``values`` must be ``derivatives``, and that of ``slopes_in_decimals``; its norm at most ``lipschitz``
    (``lipschitz_for`` the targets and margins); the slope's slope at most ``smoothness``, constant where ``quadratic``;
    with ``one_signed`` its sign a matter of the target alone; and for objective perturbation the curvature no more than
    ``perturbed_curvature`` and ``perturbation_slopes`` say.
    """
    targets = _targets(loss, target_bound, least_target)
    with np.errstate(all="ignore"):  # kernels run without warnings where they are compiled
        findings = [text for target in targets for text in _of_target(loss, target, target_bound)]
    return list(dict.fromkeys(findings))


def require_proof(loss: Loss, domain: Domain) -> None:
    """Refuse a loss that no sensitivity may rest on: see ``Loss``. Free: no record is read.

    A class says ``proven`` for itself: one that inherits it has other kernels than those that were proven.
    """
    if _is_built_in(loss):
        return
    name, has_slopes = type(loss).__name__, type(loss) in slopes_in_decimals.registry
    if not ("proven" in vars(type(loss)) and loss.proven and has_slopes):
        raise Unsupported(
            f"the noise of this solver rests on the constants of {name} and on its slopes in decimals: declare them "
            "proven and define them, or use a solver that clips, such as 'gd'"
        )
    ends = (0.0 if loss.log_link else -domain.target_bound, domain.target_bound)
    findings = _remembered(cast(Hashable, loss), *(ends if domain.target_range is None else domain.target_range))
    if findings:
        raise Unsupported(f"{name} is not what it declares, and this solver's noise rests on that: {findings[0]}")


@lru_cache(maxsize=64)
def _remembered(loss: Hashable, low: float, high: float) -> tuple[str, ...]:
    low, high = sorted((low, high), key=abs)
    return tuple(wrong_constants(cast(Loss, loss), high, low))


def _is_built_in(loss: Loss) -> bool:
    return type(loss).__module__.startswith("discreet.losses.")


def _targets(loss: Loss, bound: float, least: float) -> list[float]:
    if loss.task == "regression":
        return [least + (bound - least) * share / 4 for share in range(5)]
    return [-1.0, 1.0] if loss.n_outputs == 1 else [float(k) for k in range(loss.n_outputs)]


@dataclass(frozen=True)
class _Point:
    """The slope at a margin, its size, and its own slope (NaN far out)."""

    margin: float
    slope: Floats
    size: float
    bend: float = math.nan


def _of_target(loss: Loss, target: float, target_bound: float) -> list[str]:
    findings: list[str] = []
    seen: list[_Point] = []
    bound = abs(target_bound)
    largest = min(float(loss.lipschitz), float(loss.lipschitz_for(bound)))
    for margin in _MARGINS:
        at = np.full(loss.n_outputs, margin / 2)
        at[0] = margin
        slope = _slope(loss, at, target)
        if not np.isfinite(slope).all():
            findings.append("derivative: not finite at a finite margin")
            continue
        point = _Point(margin, slope, float(np.linalg.norm(slope)))
        if point.size > largest * (1 + _SLACK):
            findings.append("lipschitz: a derivative is longer than the loss declares")
        if abs(margin) < _NEAR:
            more, bend = _by_differences(loss, at, target, slope)
            findings += more
            point = _Point(margin, slope, point.size, bend)
            findings += _in_decimals(loss, at, target, slope)
        seen.append(point)
    return [*findings, *_of_points(loss, seen, bound), *_of_perturbation(loss, seen, largest)]


def _slope(loss: Loss, point: Floats, target: float) -> Floats:
    out = np.empty(loss.n_outputs)
    derivatives(loss, point, target, out)
    return out


def _by_differences(loss: Loss, point: Floats, target: float, slope: Floats) -> tuple[list[str], float]:
    """Central differences along the first margin; a kink within a step is worth its curvature times the step."""
    ahead, behind = point.copy(), point.copy()
    ahead[0] += _STEP
    behind[0] -= _STEP
    findings = []
    rise = (values(loss, ahead, target) - values(loss, behind, target)) / (2 * _STEP)
    size = 1 + abs(float(values(loss, point, target)))
    bend = float((_slope(loss, ahead, target)[0] - _slope(loss, behind, target)[0]) / (2 * _STEP))
    kink = min(float(loss.smoothness), 1e6) * _STEP
    if abs(rise - slope[0]) > _SLACK * size + 2 * kink:
        findings.append("derivative: it is not the slope of the value")
    if bend < -1e-4 * (1 + abs(float(loss.smoothness))):
        findings.append("convexity: the derivative falls")
    if bend > _above(loss.smoothness):
        findings.append("smoothness: the curvature exceeds what the loss declares")
    return findings, bend


def _above(curvature: float) -> float:
    """A little more, for differences."""
    return curvature * (1 + 1e-3) + 1e-4


def _in_decimals(loss: Loss, point: Floats, target: float, slope: Floats) -> Iterator[str]:
    """Compare with the slopes that certified minimizers fall back on, where there are any."""
    if slopes_in_decimals.dispatch(type(loss)) is slopes_in_decimals.dispatch(object):
        return
    with localcontext(prec=40):
        exact = slopes_in_decimals(loss, [Decimal(float(m)) for m in point], Decimal(float(target)))
    if any(
        abs(float(decimal) - double) > 1e-9 * (1 + abs(double))
        for decimal, double in zip(exact, slope.tolist(), strict=True)
    ):
        yield "slopes_in_decimals: they are not the derivative"


def _of_points(loss: Loss, seen: list[_Point], target_bound: float) -> Iterator[str]:
    """Look at a target's points together."""
    signs = {math.copysign(1.0, point.slope[0]) for point in seen if point.slope[0]}
    if loss.one_signed and len(signs) > 1:
        yield "one_signed: the derivative changes its sign"
    bends = [point.bend for point in seen if not math.isnan(point.bend)]
    if loss.quadratic and bends and max(bends) - min(bends) > 1e-3 * (1 + abs(float(loss.smoothness))):
        yield "quadratic: the curvature is not constant"
    for reach in _REACHES if loss.n_outputs == 1 else ():
        longest = max((point.size for point in seen if abs(point.margin) <= reach), default=0.0)
        if longest > loss.lipschitz_for(target_bound, reach) * (1 + _SLACK):
            yield "lipschitz_for: a derivative at a bounded margin is longer than the loss declares"


def _of_perturbation(loss: Loss, seen: list[_Point], largest: float) -> Iterator[str]:
    """What objective perturbation is priced by (``accounting/objective_perturbation.py``), for rows of norm up to 1."""
    kind = loss.perturbation_slopes
    if loss.n_outputs > 1:
        if kind == "softmax" and not _is_built_in(loss):
            yield "perturbation_slopes: what is known of softmax is known of Softmax alone"
        return
    near = [point for point in seen if not math.isnan(point.bend)]
    longest = largest if math.isfinite(largest) else 1.0
    for clip in (longest, longest / 2, longest / 8):
        allowed = loss.perturbed_curvature(1.0, clip)
        if any(point.bend * min(1.0, clip / max(point.size, 1e-300)) ** 2 > _above(allowed) for point in near):
            yield "perturbed_curvature: the curvature exceeds what the loss declares"
    if kind == "one_signed" and not loss.one_signed:
        yield "perturbation_slopes: a loss that is not one_signed has slopes of two signs"
    if kind == "logistic":
        sharpness = 4 * loss.perturbed_curvature(1.0, 1.0)
        logistic = all(point.bend <= _above(sharpness * point.size * (1 - point.size)) for point in near)
        if not (loss.one_signed and largest <= 1 and logistic):
            yield "perturbation_slopes: the curvature is not that of a logistic loss"
