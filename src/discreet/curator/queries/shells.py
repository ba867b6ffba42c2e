"""How many records lie where: noisy counts by the length of rows, and the size of slopes, Hessians and scores.

They say how far limits on rows and slopes must reach before little is cut, and how many rows a limit does cut: so that
limits are chosen by the records and not by a guess, and what they change is reported.
"""

from __future__ import annotations  # nested functions would build their annotations on every call

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.curator.engines.base import LocalEngine, unit_bounds
from discreet.curator.kernels import class_effects
from discreet.curator.kernels import effects as kernels
from discreet.curator.queries.effects import EffectQuery, point_of, root_two, spend
from discreet.errors import PlanViolation
from discreet.typing import Floats, Integers

if TYPE_CHECKING:
    from discreet.curator.session import Session

KINDS = 4
"""Lengths, slopes, Hessians, scores: a row is in one shell of each that is asked for."""
MOST_EDGES = 256


class Edges(NamedTuple):
    """Ends of shells, increasing, one array for each kind: of a row's length, slope, weighted Hessian and score.

    Parameters
    ----------
    lengths, slopes, hessians, scores : ndarray
        Edges; with k of them there are k + 1 shells, and with none no record is counted.
    """

    lengths: Floats
    slopes: Floats
    hessians: Floats
    scores: Floats


class Shells(NamedTuple):
    """Noisy counts of records in each shell, and the standard deviation of each count's noise: a public number.

    Parameters
    ----------
    lengths, slopes, hessians, scores : ndarray
        Counts from the innermost shell on.
    noise : float
        Standard deviation of each.
    """

    lengths: Floats
    slopes: Floats
    hessians: Floats
    scores: Floats
    noise: float


@dataclass(frozen=True)
class ShellQuery(EffectQuery):
    """Counts of rows by shells at a point; ``bound`` is what a record adds to each of its shells."""

    edges: Edges = field(default_factory=lambda: Edges(*(np.empty(0) for _ in range(KINDS))))

    def over(self, engine: LocalEngine) -> Integers:
        """Return how many times ``bound`` is in each shell, the kinds after one another."""
        counted = unit_bounds(self.bound, engine.records) * (engine.records.norms > 0)
        facts, w, margin = self._facts(engine, counted.astype(np.float64))
        rows = engine.records.rows
        assert rows is not None
        measured = np.empty((len(rows), 2))
        measure = class_effects.class_slopes_and_curvatures if self._several else kernels.slopes_and_curvatures
        measure(rows, facts, w, margin, self.loss, measured)
        lengths = engine.records.norms / self.scale
        weights = self.row_weights(engine) / engine.weights
        slopes, bends = measured.T
        values = (lengths, slopes, weights * bends * np.square(lengths), weights * slopes * lengths)
        parts = []
        for edges, value in zip(self.edges, values, strict=True):
            out = np.zeros(shells_of(edges), dtype=np.int64)
            if len(edges):
                np.add.at(out, np.searchsorted(edges, value, side="left"), counted)
            parts.append(out)
        return np.concatenate(parts)


def noisy_shells(session: Session, w: Floats, *, edges: Edges, reach: float, slack: float = 1.0) -> Shells:
    """Return how many records are in each shell at ``w``; Hessians and scores are weighted by ``reach``.

    Privacy
    -------
    Sensitivity: a row adds the integer b to one shell of each of the m kinds that have edges, whatever its numbers are
    (NaN is in the last shell), so the norm of what it adds is b sqrt(m); with b = isqrt(B^2 // m), at most B. Each of a
    person's k rows adds b // k to its shells, so that the sum of k such vectors is no longer than one of b. A null
    record adds 0. So B under ``zero_out`` and ``add_remove``. Under ``replace_one`` no entry is negative, so
    ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2: sqrt(2) B.
    Mechanism: sum + round(2^m N(0, I)). Sums of integers are exact.
    Event: ``Gaussian`` at 2^m / sensitivity >= the planned multiplier.
    Conditions: w, edges, reach and slack depend on public and released values only.
    """
    if any(len(some) > MOST_EDGES or not np.all(np.diff(some) > 0) for some in edges):
        raise PlanViolation(f"edges of shells increase, and are at most {MOST_EDGES} of a kind")
    kinds = sum(len(some) > 0 for some in edges)
    if not kinds:
        raise PlanViolation("shells need edges of at least one kind")
    release, unit = spend(session, "noisy_shells", w, math.sqrt(kinds), reach, root_two(session))
    one = math.isqrt(unit.bound**2 // kinds)
    sizes = [shells_of(some) for some in edges]
    drawn = session.noise(release, unit, sum(sizes))
    grid = float(session.engine.grid.one)
    query = ShellQuery(*point_of(session, w), one, grid, reach * grid, slack, edges)
    exact = session.engine.total(query)
    released = session.release(release, unit, exact, exact + drawn, factor=root_two(session)) / one  # type: ignore[arg-type]
    spread = 0.0 if unit.m is None else 2.0**unit.m / one
    lengths, slopes, hessians, scores = np.split(released, np.cumsum(sizes)[:-1])
    return Shells(lengths, slopes, hessians, scores, spread)


def shells_of(edges: Floats) -> int:
    """Return how many shells there are between and beyond some edges; none without edges."""
    return len(edges) + 1 if len(edges) else 0
