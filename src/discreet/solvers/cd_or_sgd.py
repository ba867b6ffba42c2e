"""Coordinate descent or stochastic gradients? Their utility bounds, for the constants of one's own problem.

Both papers' bounds for convex losses are, up to the same factor sqrt(p ln(1/delta)) / (n epsilon) and constants,

    DP-CD   ||Delta||_{M^-1} ||w*||_M      Delta_j: sensitivities of gradient entries, M_j: coordinates' smoothness
    DP-SGD  ||Delta||_2 ||w*||_2

By Cauchy and Schwarz the first is at least sum_j Delta_j |w*_j|, and it is that where Delta_j is in proportion to
M_j |w*_j|. With equal M_j both are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import Unsupported
from discreet.parameters import Finite, Positive, checked


@dataclass(frozen=True)
class ComparedBounds:
    """Both bounds, up to a common factor."""

    cd: float
    sgd: float

    @property
    def ratio(self) -> float:
        """DP-CD's bound over DP-SGD's: below 1 where coordinate descent is promised less error."""
        return self.cd / self.sgd

    @property
    def better(self) -> str:
        """``"cd"`` or ``"sgd"``, by the bounds alone."""
        return "cd" if self.ratio < 1 else "sgd"


@checked
def compare_bounds(
    sensitivities: Sequence[Positive], smoothness: Sequence[Positive], solution: Sequence[Finite]
) -> ComparedBounds:
    """Compare the utility bounds of DP-CD and DP-SGD for constants that are publicly known.

    Parameters
    ----------
    sensitivities : sequence of float
        Delta_j, or L_j or clips C_j in proportion to it: how far a record can move entry j of the gradient.
    smoothness : sequence of float
        M_j, the smoothness of the mean loss along coordinate j.
    solution : sequence of float
        The sizes of the coefficients that are expected, w* - w0: a guess or bounds on them.

    Returns
    -------
    ComparedBounds
        ``cd`` and ``sgd`` up to a common factor, their ``ratio``, and which is ``better``.

    Raises
    ------
    Unsupported
        If these are no vectors of one length, with positive sensitivities and smoothness.

    Examples
    --------
    >>> from discreet.solvers import compare_bounds
    >>> found = compare_bounds([1.0, 0.1, 0.1], [1.0, 0.01, 0.01], [0.1, 3.0, 3.0])
    >>> found.better, round(found.ratio, 2)
    ('cd', 0.18)
    """
    entries, curvatures = np.array(sensitivities), np.array(smoothness)
    sizes = np.abs(np.array(solution, dtype=np.float64))
    if not entries.shape == curvatures.shape == sizes.shape or not (np.isfinite(sizes).all() and sizes.any()):
        raise Unsupported("give one sensitivity, one smoothness and one coefficient per column, not all of them 0")
    cd = np.sqrt(np.sum(entries**2 / curvatures) * np.sum(curvatures * sizes**2))
    return ComparedBounds(float(cd), float(np.linalg.norm(entries) * np.linalg.norm(sizes)))
