"""What a solver is: a plan made without data, and a computation on a curator's answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty

if TYPE_CHECKING:
    from discreet.curator import Curator

Progress = Callable[[int, int], None]
"""Called with (steps done, steps planned): both public."""


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the released coefficients, in training coordinates, (p,) or (p, K).

    ``noise`` is the standard deviation of what the privacy noise alone did to each of them, to first order
    (``spread``): made of public and released values, so free. None where there is no honest figure; the solver's
    ``solve`` says why.
    """

    coefficients: NDArray[np.float64]
    noise: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class RiskBound:
    """What theory says of E F - F* before any data is read.

    ``upper`` is a bound where ``explicit``, else an order without its constant; ``lower`` is the order of what no
    private algorithm can beat on the worst problem with these constants.
    """

    upper: float
    lower: float
    explicit: bool


class Solver(Protocol):
    """One algorithm, configured."""

    @property
    def name(self) -> str:
        """Its short name, as in ``solver="gd"``."""
        ...

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """The releases it will ask for; no data is read."""
        ...

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress | None = None) -> Solution:
        """Ask them, and compute."""
        ...

    def settings(self) -> dict[str, object]:
        """Its public settings, for the certificate."""
        ...


def count_release(domain: Domain, relative_noise: float = 1.0) -> tuple[Release, ...]:
    """A noisy count, where n is private and not declared: what turns a sum into a mean must be bought."""
    if domain.n is not None:
        return ()
    return (Release("noisy_count", 1, relative_noise=relative_noise, clip=1.0, dimension=1),)


def public_count(curator: "Curator") -> float:
    """n as far as it is public: declared or agreed on by neighbors, else the noisy count, at least 1."""
    n = curator.domain.n
    return float(n) if n is not None else max(1.0, curator.noisy_count())
