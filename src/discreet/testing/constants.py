"""Whether a loss is what it says of itself: sensitivities of one-shot solvers and steps rest on these constants."""

import math
from typing import Any

import numpy as np

from discreet.losses.base import derivatives, values

_MARGINS = (*np.linspace(-8, 8, 65).tolist(), -1e3, 1e3, -1e9, 1e9)
_SLACK = 1e-6
_STEP = 1e-5


def wrong_constants(loss: Any, target_bound: float = 1.0) -> list[str]:
    """Compare a loss's declared constants with its kernels, at many margins and targets; what does not agree.

    The slope of ``values`` must be ``derivatives``; its norm at most ``lipschitz`` (``lipschitz_for`` the targets); the
    slope's slope at most ``smoothness``; and with ``one_signed`` its sign a matter of the target alone.
    """
    with np.errstate(all="ignore"):  # kernels run without warnings where they are compiled
        findings = [text for target in _targets(loss, target_bound) for text in _of_target(loss, target, target_bound)]
    return list(dict.fromkeys(findings))


def _targets(loss: Any, bound: float) -> list[float]:
    if loss.task == "regression":
        return [bound * share / 4 for share in range(5)]
    return [-1.0, 1.0] if loss.n_outputs == 1 else [float(k) for k in range(loss.n_outputs)]


def _of_target(loss: Any, target: float, target_bound: float) -> list[str]:
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


def _slope(loss: Any, point: Any, target: float) -> Any:
    out = np.empty(loss.n_outputs)
    derivatives(loss, point, target, out)
    return out


def _by_differences(loss: Any, point: Any, target: float, slope: Any) -> list[str]:
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
    if bend > loss.smoothness * (1 + 1e-3) + 1e-4:
        findings.append("smoothness: the curvature exceeds what the loss declares")
    return findings
