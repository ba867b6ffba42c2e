"""Noisy sums of what each row contributes to a score: one curator's query, on a table made of released values.

A row becomes a few numbers, none negative, that depend on that row and on what was released before. Neighboring tables
so become neighboring tables, null rows null rows, and ``Curator.noisy_mean_squares`` is asked for the sum. As no two
entries have opposite signs, exchanging a row moves the sum by sqrt(2) times its bound, not twice.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import PricedPlan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator.lattice.lattice import ROOT_TWO
from discreet.curator.metrics.intervals import GUARD, Noise
from discreet.curator.metrics.row_values import Cells
from discreet.curator.private_data import PrivateData
from discreet.curator.records.stream import ValuesElsewhere
from discreet.errors import Unsupported
from discreet.ledger.ledger import Reservation
from discreet.losses import Logistic
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator.curator import Curator


QUERY = "noisy_mean_squares"
Values = Floats | ValuesElsewhere
"""What is kept of each row: an array, or parts of it on the workers of a cluster."""
ROUNDING = 2.0**-19
"""What a number between 0 and 1 may lose on the lattice, where squares keep 20 bits; 0 and 1 lose nothing."""
MOST_CELLS = (1 << 20) - 2
"""The most columns of numbers on one common scale, whose rows' squared norms fit 62 bits."""
SLACK = 1 + 2.0**-16


def plan_of(shares: tuple[float, ...], *, pure: bool) -> Plan:
    """One release for each share of the budget: of mu^2 with Gaussian noise, of epsilon with Laplace noise."""
    return Plan(Release(QUERY, 1, relative_noise=1 / share if pure else math.sqrt(1 / share)) for share in shares)


@dataclass
class NoisySums:
    """Releases the sums of a plan one after another, each with the noise that was planned for it."""

    priced: PricedPlan
    groups: Any
    progress: Callable[[int, int], None] | None = None
    released: int = 0
    curator: "Curator | None" = field(default=None, repr=False)

    @property
    def plan(self) -> Plan:
        """The releases, one per sum."""
        return self.priced.plan

    @property
    def budget(self) -> Budget:
        """What they may cost together."""
        return self.priced.budget

    def issued(self, promised: Certificate, reservation: Reservation | None) -> Certificate:
        """Return what was promised of the score, with where the noise of its sums came from, and who looked."""
        assert self.curator is not None
        return self.curator.issued(promised, reservation)

    def release(self, values: Values, cells: Cells, *, length: float = 1.0) -> tuple[Floats, Noise]:
        """Return the noisy sum of the rows' squared cells, and its noise; no row of squares is longer than ``length``.

        ``values`` are what is kept of each row, at hand or on a cluster.
        """
        if cells.size > MOST_CELLS:
            raise Unsupported("the score has more than a million cells: use metric='accuracy', or fewer groups")
        clip = length * SLACK
        part = self.priced.only(self.released, clip)
        bounds = Bounds(1.0, classes=(0, 1), scale="global")
        if isinstance(values, np.ndarray):
            table, targets = cells(values), np.zeros(len(values))
        else:
            table, targets = values.table(cells), None
        data = PrivateData(table, targets, bounds, groups=self.groups, fit_intercept=False, ledger=False)
        self.curator = data.open(part, Logistic())
        sums = self.curator.noisy_mean_squares(clip=clip, n=1.0)
        self.released += 1
        if self.progress is not None:
            self.progress(self.released, len(self.plan.releases))
        return sums, noise_of(part, clip)


def noise_of(priced: PricedPlan, clip: float) -> Noise:
    """Return the noise in each cell of a plan's first release."""
    pure, factor = priced.budget.is_pure, priced.budget.neighbors.sum_factor
    sensitivity = clip * float(factor if pure or factor == 1 else ROOT_TWO)
    multiplier = priced.noise_multiplier * priced.plan.releases[0].relative_noise
    return Noise(sensitivity * multiplier * GUARD, pure)
