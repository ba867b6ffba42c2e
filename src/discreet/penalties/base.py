"""What a penalty is: a NamedTuple with a value, a proximal operator and its strong convexity.

``prox_coordinate(penalty, x, step, j)`` is the proximal operator of one coordinate, for the separable
penalties; it is dispatched on the penalty's class in plain Python and inside compiled loops alike.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from discreet.errors import Unsupported
from discreet.parameters import CountOrZero, NonNegative, Positive, checked
from discreet.registry import BUILT_IN_PENALTIES, Registry, not_a_tuple
from discreet.scalar_functions import scalar_function
from discreet.typing import Floats

prox_coordinate = scalar_function("prox_coordinate")
Strength = float | Floats


class Penalty:
    """psi in F(w) = (1/n) sum of losses + psi(w), a function of the coefficients alone, of shape (p,) or (p, K).

    One's own has ``value`` and ``prox`` at least, and states where the other answers differ.

    Attributes
    ----------
    separable : bool
        Whether psi is a sum over coordinates, so that ``prox_coordinate`` is defined.
    ridge : bool
        Whether psi(w) is (strong_convexity/2) ||w||**2, which may be 0.

    Examples
    --------
    >>> from discreet.penalties import L2, Penalty
    >>> isinstance(L2(0.1), Penalty), L2(0.1).ridge
    (True, True)
    """

    __slots__ = ()
    separable = False
    ridge = False

    @property
    def strong_convexity(self) -> float:
        """The largest mu for which psi(w) - (mu/2) ||w||**2 is convex; 0.0 where there is none."""
        return 0.0

    @property
    def l1_l2(self) -> tuple[Strength, Strength] | None:
        """(l1, l2) where psi(w) is l1 ||w||_1 + (l2/2) ||w||**2, else None; arrays for one number per coordinate."""
        return None

    @property
    def hessian(self) -> Floats | None:
        """The Hessian where psi is a quadratic that Newton steps add to their own, with ``gradient``; else None."""
        return None

    def gradient(self, w: Floats) -> Floats:
        """Return psi's gradient, where there is a ``hessian``."""
        raise NotImplementedError

    def value(self, w: Floats) -> float:
        """Return psi(w); inf outside a constraint."""
        raise NotImplementedError

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the minimizer over v of psi(v) + ||v - w||**2 / (2 step), a new array."""
        raise NotImplementedError


PENALTIES: Registry[type[Penalty]] = Registry("penalty", BUILT_IN_PENALTIES, not_a_tuple)
register_penalty = PENALTIES.register


class _NoPenaltyFields(NamedTuple):
    strength: float  # numba types a tuple better with a field


class NoPenalty(_NoPenaltyFields, Penalty):
    """psi(w) = 0; the prox is the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import NoPenalty
    >>> NoPenalty().prox(np.array([3.0, -0.5]), step=1.0)
    array([ 3. , -0.5])
    """

    __slots__ = ()
    separable = True
    ridge = True
    l1_l2 = (0.0, 0.0)

    def __new__(cls) -> "NoPenalty":
        return super().__new__(cls, 0.0)

    def __getnewargs__(self) -> tuple[()]:
        """What a copy is made from."""
        return ()

    def value(self, w: Floats) -> float:
        """Return 0."""
        return 0.0

    def prox(self, w: Floats, step: float) -> Floats:
        """Return a copy of w."""
        return np.array(w, dtype=np.float64)


@prox_coordinate.of(NoPenalty)
def _none_prox(penalty, x, step, j):  # type: ignore[no-untyped-def]
    return x


class _L1Fields(NamedTuple):
    strength: float


class L1(_L1Fields, Penalty):
    """psi(w) = strength ||w||_1: 0 in v - w + step strength d|v| gives the prox soft(w, step strength), per entry.

    soft(x, a) moves x towards zero by a, and stops there.

    Parameters
    ----------
    strength : float
        The weight of the sum of absolute values, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import L1
    >>> L1(1.0).prox(np.array([3.0, -0.5]), step=1.0).round(3)
    array([ 2., -0.])
    """

    __slots__ = ()
    separable = True

    @checked
    def __new__(cls, strength: NonNegative) -> Self:
        return super().__new__(cls, float(strength))

    @property
    def l1_l2(self) -> tuple[float, float]:
        """The strength, and no squares."""
        return self.strength, 0.0

    def value(self, w: Floats) -> float:
        """Return strength times the sum of |w_j|."""
        return self.strength * float(np.sum(np.abs(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return soft(w, step strength)."""
        return np.asarray(np.copysign(np.maximum(np.abs(w) - step * self.strength, 0.0), w), dtype=np.float64)


@prox_coordinate.of(L1)
def _l1_prox(penalty, x, step, j):  # type: ignore[no-untyped-def]
    size = abs(x) - step * penalty.strength
    size = size if size > 0.0 else 0.0
    return size if x > 0.0 else -size


class _L2Fields(NamedTuple):
    strength: float


class L2(_L2Fields, Penalty):
    """psi(w) = (strength/2) ||w||**2: v + step strength v = w gives the prox w / (1 + step strength).

    Parameters
    ----------
    strength : float
        The weight of the squared norm, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import L2
    >>> L2(1.0).prox(np.array([3.0, -0.5]), step=1.0)
    array([ 1.5 , -0.25])
    """

    __slots__ = ()
    separable = True
    ridge = True

    @checked
    def __new__(cls, strength: NonNegative) -> Self:
        return super().__new__(cls, float(strength))

    @property
    def strong_convexity(self) -> float:
        """The strength: psi is that quadratic."""
        return self.strength

    @property
    def l1_l2(self) -> tuple[float, float]:
        """No absolute values, and the strength."""
        return 0.0, self.strength

    def value(self, w: Floats) -> float:
        """Return (strength/2) ||w||**2."""
        return 0.5 * self.strength * float(np.sum(np.square(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the shrunken w."""
        return np.asarray(w, dtype=np.float64) / (1.0 + step * self.strength)


@prox_coordinate.of(L2)
def _l2_prox(penalty, x, step, j):  # type: ignore[no-untyped-def]
    return x / (1.0 + step * penalty.strength)


class _ElasticNetFields(NamedTuple):
    l1: float
    l2: float


class ElasticNet(_ElasticNetFields, Penalty):
    """psi(w) = l1 ||w||_1 + (l2/2) ||w||**2: the prox is soft(w, step l1) / (1 + step l2), per entry.

    0 in (1 + step l2) v - w + step l1 d|v|: first the step of the absolute values, then the shrinkage of the squares.

    Parameters
    ----------
    l1, l2 : float
        The weights of the sum of absolute values and of the squared norm, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import ElasticNet
    >>> ElasticNet(1.0, 1.0).prox(np.array([3.0, -0.5]), step=1.0).round(3)
    array([ 1., -0.])
    """

    __slots__ = ()
    separable = True

    @checked
    def __new__(cls, l1: NonNegative, l2: NonNegative) -> Self:
        return super().__new__(cls, float(l1), float(l2))

    @property
    def strong_convexity(self) -> float:
        """l2: what the squares give."""
        return self.l2

    @property
    def l1_l2(self) -> tuple[float, float]:
        """Both strengths."""
        return self.l1, self.l2

    def value(self, w: Floats) -> float:
        """Return l1 ||w||_1 + (l2/2) ||w||**2."""
        return self.l1 * float(np.sum(np.abs(w))) + 0.5 * self.l2 * float(np.sum(np.square(w)))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return soft(w, step l1) / (1 + step l2)."""
        soft = np.copysign(np.maximum(np.abs(w) - step * self.l1, 0.0), w)
        return np.asarray(soft / (1.0 + step * self.l2), dtype=np.float64)


@prox_coordinate.of(ElasticNet)
def _elastic_net_prox(penalty, x, step, j):  # type: ignore[no-untyped-def]
    size = abs(x) - step * penalty.l1
    size = (size if size > 0.0 else 0.0) / (1.0 + step * penalty.l2)
    return size if x > 0.0 else -size


class _GroupL2Fields(NamedTuple):
    strength: float
    groups: tuple[tuple[int, ...], ...]


class GroupL2(_GroupL2Fields, Penalty):
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


_ROUNDING = 1e-12
"""How far outside, relatively, a projected point may come to lie."""


class _L2BallFields(NamedTuple):
    radius: float


class L2Ball(_L2BallFields, Penalty):
    """psi(w) = 0 where ||w|| <= radius, else inf; the prox shrinks longer w onto the sphere and moves no other.

    A point inside is never stretched: a projection onto the sphere would be expansive.

    Parameters
    ----------
    radius : float
        Of the ball around 0.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import L2Ball
    >>> L2Ball(1.0).prox(np.array([3.0, 4.0]), step=1.0)
    array([0.6, 0.8])
    """

    __slots__ = ()

    @checked
    def __new__(cls, radius: Positive) -> Self:
        return super().__new__(cls, float(radius))

    def value(self, w: Floats) -> float:
        """Return 0 inside, inf outside."""
        return 0.0 if float(np.sqrt(np.sum(np.square(w)))) <= self.radius * (1.0 + _ROUNDING) else float("inf")

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the nearest point of the ball."""
        norm = float(np.sqrt(np.sum(np.square(w))))
        return np.array(w, dtype=np.float64) if norm <= self.radius else np.asarray(w * (self.radius / norm))


class _BoxFields(NamedTuple):
    low: float
    high: float


class Box(_BoxFields, Penalty):
    """psi(w) = 0 where low <= w_j <= high for every j, else inf; the prox clips, whatever the step.

    Parameters
    ----------
    low, high : float
        The ends of the interval that every coefficient stays in.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.penalties import Box
    >>> Box(0.0, 1.0).prox(np.array([3.0, -0.5]), step=1.0)
    array([1., 0.])
    """

    __slots__ = ()
    separable = True

    @checked
    def __new__(cls, low: float, high: float) -> Self:
        if not low <= high:
            raise Unsupported("a box needs low <= high, such as Box(0.0, 1.0)")
        return super().__new__(cls, float(low), float(high))

    def value(self, w: Floats) -> float:
        """Return 0 inside, inf outside."""
        return 0.0 if bool(np.all((w >= self.low) & (w <= self.high))) else float("inf")

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the nearest point of the box."""
        return np.clip(np.asarray(w, dtype=np.float64), self.low, self.high)


@prox_coordinate.of(Box)
def _box_prox(penalty, x, step, j):  # type: ignore[no-untyped-def]
    x = x if x > penalty.low else penalty.low
    return x if x < penalty.high else penalty.high
