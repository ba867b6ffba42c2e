"""What may be spent: ``Budget``; and what a neighbor is: ``Neighbors``."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from discreet.errors import DiscreetError
from discreet.parameters import Weight, conforms


class Neighbors(StrEnum):
    """Relation between data sets that must be hard to tell apart.

    ``replace_one``: any one record is exchanged for any other; n is the same, hence public.
    ``zero_out``: any one record is exchanged for the null record, which contributes nothing; n is public.
    ``add_remove``: any one record is added or removed; n is private.

    Examples
    --------
    >>> from discreet import Neighbors
    >>> Neighbors("add_remove").n_is_public
    False
    """

    n_is_public: bool
    """Whether neighbors have equally many records, so that n may be read."""
    sum_factor: int
    """Sensitivity of a sum of vectors of norm at most C, in units of C."""

    REPLACE_ONE = "replace_one", True, 2
    ZERO_OUT = "zero_out", True, 1
    ADD_REMOVE = "add_remove", False, 1

    def __new__(cls, relation: str, *facts: int) -> Self:
        member = str.__new__(cls, relation)
        member._value_, (is_public, member.sum_factor) = relation, facts
        member.n_is_public = bool(is_public)
        return member


class InvalidBudget(DiscreetError, ValueError):
    """Epsilon, delta or the relation is not one that a guarantee can have."""


@dataclass(frozen=True)
class Budget:
    """(epsilon, delta) guarantee under a neighboring relation.

    Parameters
    ----------
    epsilon : float
        Positive. ``inf`` asks for no privacy at all: the noise-free limit, marked NOT PRIVATE in the certificate.
    delta : float, default=0.0
        In [0, 1). 0 asks for pure epsilon-DP.
    neighbors : Neighbors or str, default="replace_one"
        The relation.

    Examples
    --------
    >>> from discreet import Budget
    >>> Budget(1.0, 1e-6).is_pure
    False
    """

    epsilon: float
    delta: float = 0.0
    neighbors: Neighbors = Neighbors.REPLACE_ONE
    is_pure: bool = field(init=False, repr=False, compare=False)
    """Whether the guarantee has no delta."""
    is_private: bool = field(init=False, repr=False, compare=False)
    """Whether there is a guarantee at all."""

    def __post_init__(self) -> None:
        if not (conforms(self.epsilon, float) and self.epsilon > 0):
            raise InvalidBudget(
                "epsilon must be a positive number (or inf for no privacy), such as Budget(epsilon=1.0)"
            )
        if not conforms(self.delta, Weight):
            raise InvalidBudget("delta must lie in [0, 1), such as 1e-6; 0 asks for pure epsilon-DP")
        try:
            object.__setattr__(self, "neighbors", Neighbors(self.neighbors))
        except ValueError:
            names = ", ".join(repr(str(relation)) for relation in Neighbors)
            raise InvalidBudget(f"neighbors must be one of {names}") from None
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        object.__setattr__(self, "is_pure", self.delta == 0.0)
        object.__setattr__(self, "is_private", math.isfinite(self.epsilon))
