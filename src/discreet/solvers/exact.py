"""The minimizer itself, for records without privacy (``epsilon=inf``).

    w = argmin (1/n) sum_i l_i(w) + psi(w)

in double precision, for any penalty, however wide declared ranges are. Released: w. Privacy: none. Cost: n p^2 once,
and n p for each step; squares take one.
"""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, check_fields
from discreet.penalties.base import Penalty
from discreet.solvers.base import UNWATCHED, Progress, Solution, count_release, public_count

if TYPE_CHECKING:
    from discreet.curator import Curator

MOST_COLUMNS = 2000
"""Of more columns the second moment does not pay."""


@dataclass(frozen=True)
class ExactMinimizer:
    """The minimizer, without privacy: what ``solver="auto"`` is for ``epsilon=inf`` wherever records are at hand.

    Parameters
    ----------
    n_steps : int, default=5000
        Steps at most; they end where they move nothing beyond rounding.

    Examples
    --------
    >>> from discreet import DPLinearRegression
    >>> from discreet.solvers import ExactMinimizer
    >>> DPLinearRegression(epsilon=float("inf"), solver=ExactMinimizer(), bounds=1.0).solver.n_steps
    5000
    """

    n_steps: Count = 5000
    name: ClassVar[str] = "exact"

    def __post_init__(self) -> None:
        check_fields(self)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the minimizer, and a count where n is private or records have weights."""
        if domain.remote or domain.n_features > MOST_COLUMNS or not math.isfinite(loss.smoothness):
            raise Unsupported("exact minimizers are of records on one machine with at most 2,000 columns: use 'gd'")
        return Plan((Release("exact_minimizer", 1), *count_release(domain)))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask for the minimizer."""
        n = public_count(curator)
        (w,) = (curator.exact_minimizer(penalty, n=n, n_steps=self.n_steps) for _ in progress(range(1)))
        return Solution(w)

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}
