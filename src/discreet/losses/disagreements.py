"""Whether a loss is what it says of itself: sensitivities of one-shot solvers and steps rest on these constants.

Nothing here is a proof: a loss may be wrong between the points that are tried.
"""

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import cast

import numpy as np

from discreet.errors import Unsupported
from discreet.losses.base import Loss, derivatives, slopes_in_decimals, values
from discreet.typing import Floats

_MARGINS = (*np.linspace(-8, 8, 65).tolist(), -1e3, 1e3, -1e9, 1e9)
_SLACK = 1e-6
_STEP = 1e-5


def wrong_constants(loss: Loss, target_bound: float = 1.0) -> list[str]:
    """Compare a loss's declared constants with its kernels, at many margins and targets; return what does not agree.

    The slope of ``values`` must be ``derivatives``; its norm at most ``lipschitz`` (``lipschitz_for`` the targets); the
    slope's slope at most ``smoothness``; and with ``one_signed`` its sign a matter of the target alone.
    """
    with np.errstate(all="ignore"):  # kernels run without warnings where they are compiled
        findings = [text for target in _targets(loss, target_bound) for text in _of_target(loss, target, target_bound)]
    return list(dict.fromkeys(findings))


def require_proof(loss: Loss) -> None:
    """Refuse a loss that no sensitivity may rest on: see ``Loss``. Free: no record is read."""
    if type(loss).__module__.startswith("discreet.losses."):
        return
    name = type(loss).__name__
    if not loss.proven or slopes_in_decimals.dispatch(type(loss)) is slopes_in_decimals.dispatch(object):
        raise Unsupported(
            f"the noise of this solver rests on the constants of {name} and on its slopes in decimals: declare them "
            "proven and define them, or use a solver that clips, such as 'gd'"
        )
    findings = _remembered(cast(Hashable, loss))
    if findings:
        raise Unsupported(f"{name} is not what it declares, and this solver's noise rests on that: {findings[0]}")


@lru_cache(maxsize=64)
def _remembered(loss: Hashable) -> tuple[str, ...]:
    return tuple(wrong_constants(cast(Loss, loss)))


def _targets(loss: Loss, bound: float) -> list[float]:
    if loss.task == "regression":
        return [bound * share / 4 for share in range(5)]
    return [-1.0, 1.0] if loss.n_outputs == 1 else [float(k) for k in range(loss.n_outputs)]


def _of_target(loss: Loss, target: float, target_bound: float) -> list[str]:
    findings, signs = [], set()
    largest = min(float(loss.lipschitz), float(loss.lipschitz_for(target_bound)))
    for margin in _MARGINS:
        point = np.full(loss.n_outputs, margin / 2)
        point[0] = margin
        slope = _slope(loss, point, target)
        if not np.isfinite(slope).all():
            findings.append("derivative: not finite at a finite margin")
            continue
        signs.add(math.copysign(1.0, slope[0]) if slope[0] else 0.0)
        if np.linalg.norm(slope) > largest * (1 + _SLACK):
            findings.append("lipschitz: a derivative is longer than the loss declares")
        if abs(margin) < 10:
            findings += _by_differences(loss, point, target, slope)
    if loss.one_signed and {-1.0, 1.0} <= signs:
        findings.append("one_signed: the derivative changes its sign")
    return findings


def _slope(loss: Loss, point: Floats, target: float) -> Floats:
    out = np.empty(loss.n_outputs)
    derivatives(loss, point, target, out)
    return out


def _by_differences(loss: Loss, point: Floats, target: float, slope: Floats) -> list[str]:
    """Central differences along the first margin; a kink within a step is worth its curvature times the step."""
    ahead, behind = point.copy(), point.copy()
    ahead[0] += _STEP
    behind[0] -= _STEP
    findings = []
    rise = (values(loss, ahead, target) - values(loss, behind, target)) / (2 * _STEP)
    size = 1 + abs(float(values(loss, point, target)))
    bend = (_slope(loss, ahead, target)[0] - _slope(loss, behind, target)[0]) / (2 * _STEP)
    kink = min(float(loss.smoothness), 1e6) * _STEP
    if abs(rise - slope[0]) > _SLACK * size + 2 * kink:
        findings.append("derivative: it is not the slope of the value")
    if bend < -1e-4 * (1 + abs(float(loss.smoothness))):
        findings.append("convexity: the derivative falls")
    if bend > loss.smoothness * (1 + 1e-3) + 1e-4:
        findings.append("smoothness: the curvature exceeds what the loss declares")
    return findings
