"""Norms of groups of coefficients: whole groups are kept or dropped."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from discreet.errors import Unsupported
from discreet.parameters import CountOrZero, NonNegative, checked
from discreet.penalties.base import Penalty, register_penalty
from discreet.typing import Floats


class _Fields(NamedTuple):
    strength: float
    groups: tuple[tuple[int, ...], ...]


@register_penalty("group_l2")
class GroupL2(_Fields, Penalty):
    """psi(w) = strength sum_g sqrt(|g|) ||w_g||, over disjoint groups g of column indices; other columns are free.

    With a = step strength sqrt(|g|), the prox shortens each w_g by a, and stops at zero: w_g max(0, 1 - a / ||w_g||).
    Where the coefficients are (p, K), w_g holds the rows of the group for all outputs, and |g| still counts rows.

    Parameters
    ----------
    strength : float
        The weight, at least 0.
    groups : iterable of iterables of int
        Disjoint groups of column numbers, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import GroupL2
    >>> GroupL2(1.0, [(0, 1), (2,)]).value(np.array([0.0, 0.0, -2.0]))
    2.0
    """

    __slots__ = ()

    @checked
    def __new__(cls, strength: NonNegative, groups: Sequence[Sequence[CountOrZero]]) -> Self:
        columns = [column for group in groups for column in group]
        if len(set(columns)) != len(columns) or not all(map(len, groups)):
            raise Unsupported("groups must be non-empty, disjoint tuples of column indices, such as ((0, 1), (2,))")
        return super().__new__(cls, float(strength), tuple(map(tuple, groups)))

    def _blocks(self, w: Floats) -> Iterable[tuple[list[int], float, float]]:
        """Each group's rows, its norm and its weight."""
        if any(column >= len(w) for group in self.groups for column in group):
            raise Unsupported("a group names a column that the coefficients do not have: number columns from 0")
        for group in self.groups:
            rows = list(group)
            yield rows, float(np.sqrt(np.sum(np.square(w[rows])))), self.strength * math.sqrt(len(rows))

    def value(self, w: Floats) -> float:
        """Return the weighted sum of the groups' norms."""
        return sum(weight * norm for _, norm, weight in self._blocks(w))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return w with every group shortened by its weight."""
        out = np.array(w, dtype=np.float64)
        for rows, norm, weight in self._blocks(w):
            out[rows] *= 1.0 - step * weight / norm if norm > step * weight else 0.0
        return out
