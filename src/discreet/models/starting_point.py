"""The point that a solver starts from, in the user's own units: the w0 of the sources.

Privacy: a public model, or one that was released and paid for, is a constant of this fit. It changes no sensitivity and
no event, since each answer's clip holds at every point: free. Coefficients that were computed from private records
without privacy are neither, and no program can tell: the user declares them public, and the certificate lists them.
"""

from typing import Any

import numpy as np

from discreet.accounting.plan import Plan
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.typing import Floats

STEPS = ("noisy_gradient", "noisy_coordinate_gradient")
"""What a solver that moves from a point asks for."""
_HOW = "start=(model.coef_, model.intercept_)"


def starting_point(start: Any, data: PrivateData, loss: Loss) -> Floats:
    """Return (coefficients, intercept) as weights in training coordinates, (p,) or (p, K)."""
    if not isinstance(start, (tuple, list)) or len(start) != 2:
        raise Unsupported(f"start is a pair of coefficients and intercept: {_HOW}")
    try:
        coef, intercept = (np.asarray(part, dtype=np.float64) for part in start)
    except (TypeError, ValueError):
        raise Unsupported(f"start is a pair of numbers: {_HOW}") from None
    outputs = loss.n_outputs
    if coef.size != outputs * data.n_columns or intercept.size not in (1, outputs):
        raise Unsupported(
            f"start has {coef.size} coefficients and {intercept.size} intercepts: this model has {data.n_columns} "
            f"features and {outputs} outputs"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise Unsupported("start must be finite numbers")
    w = in_training_units(coef, intercept, data, loss)
    if not data.scaling.intercept and intercept.any():
        raise Unsupported("this model has no intercept to start from: give an intercept of 0")
    return w


def refuse_without_steps(plan: Plan) -> None:
    """Refuse a start where nothing moves from it: a minimizer is the same wherever its search began."""
    if not any(release.query in STEPS for release in plan.releases):
        raise Unsupported("this solver releases a minimizer, which no start changes: leave start out, or use gd or cd")


def in_training_units(coef: Floats, intercept: Floats, data: PrivateData, loss: Loss) -> Floats:
    """Return coefficients in the user's own units as the curator's weights: the way back of a fit."""
    (center, scale), outputs = data.target_place(loss), loss.n_outputs
    w = coef.reshape(outputs, data.n_columns) * data.scaling.scale / scale
    if data.scaling.intercept:
        middle = coef.reshape(outputs, data.n_columns) @ data.scaling.center
        w = np.column_stack([w, (np.broadcast_to(intercept.reshape(-1), outputs) + middle - center) / scale])
    return np.ascontiguousarray(w[0] if outputs == 1 else w.T)
