"""Public means, scales and covariance of the features, in the user's own units: a stage then estimates none of them.

Privacy: constants of the fit, from a public sample, a codebook or a published table. No record enters them, so they
change no sensitivity and no event: rows are shrunk and contributions clipped in whichever coordinates they make. Wrong
ones cost accuracy, never privacy. Moments that were computed from private records without privacy are not public, and
no program can tell: the user declares them public, and the certificate lists them.
"""

from typing import Any

import numpy as np

from discreet.bounds import Moments
from discreet.curator import PrivateData
from discreet.errors import Unsupported
from discreet.typing import Floats

_HOW = "public_moments=(means, covariance), or (means, standard deviations)"
_ROUNDING = 1e-9


def moments_of(given: Any, data: PrivateData) -> Moments:
    """Return (means, covariance) or (means, standard deviations) in training coordinates."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise Unsupported(f"public moments are a pair: {_HOW}")
    try:
        mean, spread = (np.asarray(part, dtype=np.float64) for part in given)
    except (TypeError, ValueError):
        raise Unsupported(f"public moments are numbers: {_HOW}") from None
    p = data.n_columns
    if mean.shape != (p,) or spread.shape not in ((p,), (p, p)):
        raise Unsupported(f"public moments need a number for each of {p} features: {_HOW}")
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        raise Unsupported("public moments must be finite numbers")
    scaling = data.scaling
    inverse = np.divide(1.0, scaling.scale, out=np.zeros(p), where=scaling.scale > 0)
    placed = (mean - scaling.center) * inverse
    if spread.ndim == 1:
        if (spread < 0).any():
            raise Unsupported("standard deviations must not be negative")
        return Moments(placed, spread * inverse)
    covariance = spread * np.outer(inverse, inverse)
    _check_covariance(covariance)
    return Moments(placed, np.sqrt(np.diag(covariance).clip(0.0)), covariance)


def _check_covariance(covariance: Floats) -> None:
    """Refuse a matrix that no table has as its covariance."""
    largest = float(np.abs(covariance).max(initial=0.0))
    if np.abs(covariance - covariance.T).max(initial=0.0) > _ROUNDING * largest:
        raise Unsupported("a covariance must be symmetric")
    if np.linalg.eigvalsh(covariance).min(initial=0.0) < -_ROUNDING * len(covariance) * largest:
        raise Unsupported("a covariance must have no negative eigenvalue: compute it from complete rows")


def refuse_unused(solver: Any) -> None:
    """Refuse moments that a solver would not look at: the user would believe that they helped."""
    stage = solver
    while stage is not None:
        if getattr(stage, "takes_public_moments", False):
            return
        stage = getattr(stage, "solver", None)
    raise Unsupported(
        f"{solver.name} estimates no moments here, so public ones would not be used: leave public_moments out, or use "
        "solver=Whitened(...), or Standardized(...) for sparse or very wide records"
    )
