"""How long a fit will take on a cluster: a model of its cost, from the plan and public sizes alone.

With n rows, p columns, W workers of one core and P parts,

    read      n p READ / W                         once: files to integers
    passes    n p (PASS + p PRODUCTS) / W          each; products in passes that return p^2 sums
    overhead  LATENCY + P PER_PART                 each; the scheduler serves one part after the other

so that more workers help until the overhead is what remains: then larger parts do. Rates are those of one core of a
common server; ``python -m benchmarks scale`` measures yours.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from discreet.accounting.plan import AdaptivePlan
from discreet.errors import Unsupported
from discreet.models.forecast.forecast import MAX_CELLS, point_of, setting_of
from discreet.models.forecast.synthetic import Groups

READ, PASS, PRODUCTS = 11e-9, 0.16e-9, 0.03e-9
"""Seconds per value of one core: from Parquet to the lattice; in a gradient; per column in a sum of products."""
LATENCY, PER_PART = 6e-3, 0.7e-3
"""Seconds per pass, and per part and pass."""
PART_ROWS = 1 << 18
MATRICES = ("noisy_second_moment", "noisy_curvature", "noisy_score_covariance")


@dataclass(frozen=True)
class ClusterTime:
    """What a fit on a cluster is predicted to take, in seconds.

    Parameters
    ----------
    workers, parts, passes : int
        Cores that work, parts of the table, and passes over it.
    read, work, overhead : float
        Seconds of reading and encoding, of passes, and of the scheduler.

    Examples
    --------
    >>> from discreet.models.forecast.cluster import ClusterTime
    >>> ClusterTime(16, 100, 20, 60.0, 30.0, 1.5).seconds
    91.5
    """

    workers: int
    parts: int
    passes: int
    read: float
    work: float
    overhead: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.read + self.work + self.overhead

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        return {**asdict(self), "seconds": self.seconds}

    def __str__(self) -> str:
        parts = f"reading {self.read:,.0f} s, {self.passes} passes {self.work:,.0f} s"
        return (
            f"On a cluster with {self.workers:,} workers and {self.parts:,} parts: about {self.seconds:,.0f} s "
            f"({parts}, overhead {self.overhead:,.0f} s). A rough model of one-core workers: docs/how-to/scale.md."
        )


def cluster_time(estimator: Any, n: int, p: int | None, workers: int, indicators: Groups | None = None) -> ClusterTime:
    """Predict how long a fit of n rows takes on a cluster, by its plan; an adaptive plan is refused."""
    if workers < 1:
        raise Unsupported("a cluster has at least one worker")
    setting = setting_of(estimator, p, indicators)
    plan = point_of(setting, n, estimator.epsilon, MAX_CELLS).plan
    if isinstance(plan, AdaptivePlan):
        raise Unsupported("an adaptive solver decides on its way how often it asks: its time is not predicted")
    columns, parts = len(setting.ranges[0]), math.ceil(n / PART_ROWS)
    matrices = sum(release.count for release in plan.releases if release.query in MATRICES)
    values, busy = n * columns, min(workers, parts)
    work = values * (PASS * plan.count + PRODUCTS * columns * matrices) / busy
    overhead = plan.count * (LATENCY + PER_PART * parts)
    return ClusterTime(workers, parts, plan.count, READ * values / busy, work, overhead)
