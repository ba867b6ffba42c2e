"""Rehearse the estimation of effects on public rows: how likely each is to be shown, and its standard error.

A rehearsal runs ``estimate`` as a fit would, with the same limits, steps, covariance and rules of what is shown. Its
answers come from ``PublicRows``: a sample of rows of a declared law in whitened coordinates, whose sums are multiplied
by n over the size of the sample, with the noise that the priced plan has for each answer. No record is read.

The law: columns that do not predict one another, numbers that fill their ranges evenly or are normal within
3 deviations by turns, yes/no columns with
declared shares of rows, and outcomes with a declared mean whose margins have a moderate deviation. Real tables have
heavier tails and columns that predict one another, so a forecast is a best case for columns of these shares.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, ndtri, pdtrik

from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import Edges, Shells
from discreet.errors import Unsupported
from discreet.inference.estimate import FARTHEST, Refinement, whitening
from discreet.inference.intervals import Combinations
from discreet.inference.limits import FORECAST, shortage
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.solvers.coordinates import Target, noises
from discreet.typing import Floats, Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.accounting.plan import Plan
    from discreet.inference.sandwich import Sandwich

SAMPLE, RUNS = 2048, 40
"""Public rows, and runs on them, each with noise of its own."""
EVENLY, WIDE = math.sqrt(3.0), 3.0
"""Half of the numbers fill their declared range evenly, half are normal: how many deviations the range goes."""
TARGET_WIDE = 5.0
"""The same for numeric targets."""
SIGNAL = 0.35
"""Deviation of the margins."""
BEGUN = 0.6
"""What is taken of the law's coefficients as the start of the steps."""
EMPTY, SURE, FEW_RUNS = 0.5, 0.8, 12
"""A fit that shows an effect less often than the first is refused before it is charged; what is advised shows it at
least as often as the second; runs that decide it."""
REHEARSED = {"noisy_second_moment": 1, "noisy_shells": 2}
"""How many of a plan's last answers to a query are rehearsed, where it asks for more."""
PLENTY, FAR_SHORT = 0.05, 4.0
"""With so little shortage nothing has to be rehearsed, and with so much nothing is shown."""
MOST = 2.0**24
"""Times as many rows, or as large an epsilon, are looked at for advice."""


_GOLDEN, _FIRST, _SECOND = (np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mixed(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


class Stream:
    """Words of SplitMix64 (Steele, Lea & Flood 2014) from a public seed: fast, repeatable, never private."""

    name = "seeded SplitMix64 (for rehearsals)"
    is_private = False

    def __init__(self, *seeds: int) -> None:
        self._key = np.zeros(1, dtype=np.uint64)
        for seed in seeds:
            self._key = _mixed(self._key + np.array([seed], dtype=np.uint64) * _GOLDEN + _SECOND)
        self._at = 0

    def words(self, count: int) -> Words:
        """The next ``count`` words; read-only as the system's, so that compiled code is the same."""
        places = np.arange(self._at + 1, self._at + count + 1, dtype=np.uint64)
        self._at += count
        words = _mixed(places * _GOLDEN + self._key)
        words.flags.writeable = False
        return words

    def uniforms(self, count: int) -> Floats:
        """Numbers strictly between 0 and 1."""
        return np.asarray(((self.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)

    def normals(self, count: int) -> Floats:
        """Standard normal numbers."""
        return np.asarray(ndtri(self.uniforms(count)))


@dataclass(frozen=True)
class Law:
    """What is assumed of a table: the shares of its yes/no columns, and the mean of its outcome.

    ``cells`` are the shares of rows in which these columns are true; all other columns are numbers. ``mean`` is the
    share of the second class or the mean count; NaN for numeric targets.
    """

    cells: tuple[float, ...] = ()
    mean: float = math.nan

    def deviations(self, columns: int) -> Floats:
        """Return the deviation of each column: 1 for numbers."""
        shares = np.array(self.cells[:columns])
        return np.append(np.sqrt(shares * (1.0 - shares)), np.ones(columns - len(shares)))

    def bounds(self, columns: int) -> Floats:
        """Return the largest distance of each column from its mean, in deviations."""
        shares = np.array(self.cells[:columns])
        numbers = np.where(np.arange(columns - len(shares)) % 2, WIDE, EVENLY)
        return np.append(np.maximum(shares, 1.0 - shares) / np.sqrt(shares * (1.0 - shares)), numbers)

    def rows(self, stream: "Stream", columns: int, *, intercept: bool) -> Floats:
        """Draw whitened rows; a yes/no column is true in as many of them as its share says."""
        bounds = self.bounds(columns)
        rows = stream.uniforms(SAMPLE * columns).reshape(SAMPLE, columns)
        for j, bound in enumerate(bounds):
            if j < len(self.cells):
                share = self.cells[j]
                true = np.argsort(rows[:, j]) < max(1.0, share * SAMPLE)
                rows[:, j] = (true - share) / math.sqrt(share * (1.0 - share))
            else:
                rows[:, j] = bound * (2.0 * rows[:, j] - 1.0) if bound == EVENLY else ndtri(rows[:, j])
        rows = np.clip(rows, -bounds, bounds)
        return np.column_stack([rows, np.ones(SAMPLE)]) if intercept else rows


@dataclass(frozen=True)
class PublicRows:
    """Answers as a curator would give them, of public whitened rows: sums times ``times``, with a plan's noise."""

    rows: Floats
    y: Floats
    times: float
    loss: Loss
    domain: Domain
    budget: Budget
    plan: "Plan"
    noise_multiplier: float
    stream: Stream
    gradients: int
    _asked: dict[str, int] = field(default_factory=dict)

    @cached_property
    def lengths(self) -> Floats:
        """The lengths of the rows."""
        return np.asarray(np.linalg.norm(self.rows, axis=1))

    def _noise(self, query: str, factor: float) -> float:
        """Return the deviation of the next answer's noise per unit of its clip; what came before is not rehearsed."""
        every = noises(self, query)  # type: ignore[arg-type]  # it answers as a curator does
        place = self._asked[query] = self._asked.get(query, -1) + 1
        rehearsed = {**REHEARSED, "noisy_weighted_gradient": self.gradients}.get(query, len(every))
        return every[place + len(every) - rehearsed] / factor

    @property
    def _root(self) -> float:
        return math.sqrt(self.budget.neighbors.sum_factor)

    def _weights(self, reach: float, slack: float) -> Floats:
        part = reach / np.maximum(self.lengths, 1e-300)
        return np.asarray(np.minimum(1.0, np.minimum(part, slack * part**2)))

    def _parts(self, v: Floats) -> tuple[Floats, Floats]:
        """Return slopes and curvatures of the loss at the rows' margins."""
        margins = self.rows @ v
        if self.loss.sigmoid_link:
            mean = expit(margins)
            return mean - self.y, mean * (1.0 - mean)
        if self.loss.log_link:
            mean = np.exp(np.minimum(margins, 30.0))
            return mean - self.y, mean
        slopes, top = margins - self.y, self.loss.lipschitz
        return np.clip(slopes, -top, top), (np.abs(slopes) <= top).astype(float)

    def _sum_of_squares(self, sizes: Floats, clip: float, noise: float) -> Floats:
        """Return a noisy sum of sizes times z z^T, each at most ``clip`` in norm."""
        squares = np.square(self.lengths)
        sizes = np.minimum(sizes, clip / np.maximum(squares, 1e-300))
        p = self.rows.shape[1]
        drawn = self.stream.normals(p * p).reshape(p, p)
        return np.asarray(self.times * (self.rows.T * sizes) @ self.rows + noise * clip * (drawn + drawn.T) / 2.0)

    def start_noise(self, mean: float, share: float) -> float:
        """Return about the noise in coefficients of counts where steps begin: gradients of whole declared counts."""
        unit = self.budget.neighbors.sum_factor * self.noise_multiplier / math.sqrt(share)
        clip = self.domain.target_bound * math.sqrt(self.rows.shape[1])
        return min(1.0, unit * clip / (self.times * len(self.rows) * mean))

    def noisy_second_moment(self, radius: float) -> tuple[Floats, float]:
        """Return the noisy mean of z z^T over rows shrunk to the radius, and the deviation of its noise."""
        n, noise = self.times * len(self.rows), self._noise("noisy_second_moment", self._root)
        sizes = np.minimum(1.0, np.square(radius / np.maximum(self.lengths, 1e-300)))
        return self._sum_of_squares(sizes, radius**2, noise) / n, noise * radius**2 / n

    def noisy_weighted_gradient(self, v: Floats, *, clip: float, reach: float, slack: float) -> Floats:
        """Answer as ``Curator.noisy_weighted_gradient``."""
        sizes = self._weights(reach, slack) * self._parts(v)[0]
        sizes = sizes * np.minimum(1.0, clip / np.maximum(np.abs(sizes) * self.lengths, 1e-300))
        noise = self._noise("noisy_weighted_gradient", 1.0) * clip
        return np.asarray(self.times * self.rows.T @ sizes + noise * self.stream.normals(len(v)))

    def noisy_curvature(self, v: Floats, *, clip: float, reach: float, slack: float) -> Floats:
        """Answer as ``Curator.noisy_curvature``."""
        sizes = self._weights(reach, slack) * self._parts(v)[1]
        return self._sum_of_squares(sizes, clip, self._noise("noisy_curvature", self._root))

    def noisy_score_covariance(self, v: Floats, *, clip: float, reach: float, slack: float) -> Floats:
        """Answer as ``Curator.noisy_score_covariance``."""
        sizes = np.square(self._weights(reach, slack) * self._parts(v)[0])
        return self._sum_of_squares(sizes, clip, self._noise("noisy_score_covariance", self._root))

    def noisy_squared_slopes(self, v: Floats, *, clip: float) -> float:
        """Answer as ``Curator.noisy_squared_slopes``."""
        noise = self._noise("noisy_squared_slopes", self.budget.neighbors.sum_factor) * clip
        return float(
            self.times * np.minimum(np.square(self._parts(v)[0]), clip).sum() + noise * float(self.stream.normals(1)[0])
        )

    def noisy_shells(self, v: Floats, *, edges: Edges, reach: float, slack: float) -> Shells:
        """Answer as ``Curator.noisy_shells``."""
        kinds = sum(len(some) > 0 for some in edges)
        noise = self._noise("noisy_shells", self._root) * math.sqrt(kinds)
        slopes, bends = self._parts(v)
        weights = self._weights(reach, slack)
        sizes = (self.lengths, weights * bends * self.lengths**2, weights * np.abs(slopes) * self.lengths)
        places = [np.searchsorted(some, size) for some, size in zip(edges, sizes, strict=False)]
        entries = np.abs(self.rows) / (edges.columns if len(edges.columns) else np.inf)
        places.append(np.where(entries.max(axis=1) > 1, entries.argmax(axis=1) + 1, 0))
        counts = [
            self.times * np.bincount(place, minlength=shells) + noise * self.stream.normals(shells)
            if shells
            else np.zeros(0)
            for place, shells in zip(places, edges.shells, strict=True)
        ]
        lengths, hessians, scores, columns = counts
        return Shells(lengths, hessians, scores, columns, noise)


class ExpectedEffect(NamedTuple):
    """What to expect of one kind of column.

    Parameters
    ----------
    name : str
        The kind: a number, or a yes/no column that is true in some share of rows.
    chance : float
        How likely its effect is to be shown.
    se, se_privacy : float
        Its standard error where it is shown (per standard deviation of a number, true against false), and the part of
        it that is privacy noise; NaN where it is never shown.

    Examples
    --------
    >>> from discreet.models import ExpectedEffect
    >>> ExpectedEffect("number", 0.98, 0.02, 0.01).chance
    0.98
    """

    name: str
    chance: float
    se: float
    se_privacy: float


@dataclass(frozen=True)
class Rehearsed:
    """Which slopes each run showed, with their standard errors per unit of the column and the noise's part in these."""

    shown: Floats
    se: Floats
    privacy: Floats

    @property
    def chances(self) -> Floats:
        """The chance that each slope is shown."""
        return np.asarray(self.shown.mean(axis=0))

    @property
    def some(self) -> float:
        """The chance that any slope is."""
        return float(self.shown.any(axis=1).mean())

    def kinds(self, law: Law) -> tuple[ExpectedEffect, ...]:
        """Return what to expect of each yes/no column, and of numbers."""
        columns = self.shown.shape[1]
        names = [f"true in {share:.3g} of rows" for share in law.cells[:columns]]
        places = {name: [j for j, other in enumerate(names) if other == name] for name in names}
        places |= {"number": list(range(len(names), columns))} if columns > len(names) else {}
        return tuple(ExpectedEffect(name, *self._of(at)) for name, at in places.items())

    def _of(self, places: list[int]) -> tuple[float, float, float]:
        shown = self.shown[:, places]
        if not shown.any():
            return 0.0, math.nan, math.nan
        se, privacy = (float(np.median(part[:, places][shown])) for part in (self.se, self.privacy))
        return float(shown.mean()), se, privacy


def rehearse(
    solver: "Sandwich", domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, law: Law, runs: int = RUNS
) -> Rehearsed:
    """Estimate the effects of a law's tables, each run with noise of its own. Public facts only; the seed is fixed."""
    assert domain.n is not None
    priced = price_plan(solver.plan(domain, loss, penalty), budget)
    columns = domain.n_features - domain.intercept
    bounds = np.append(law.bounds(columns), np.ones(int(domain.intercept)))
    bound = TARGET_WIDE if loss.movable_target else domain.target_bound
    admitted = replace(domain, feature_bounds=bounds, row_norm=FARTHEST, ranges=None, target_bound=bound)
    loss = loss.with_target_scale(1.0 / TARGET_WIDE) if loss.movable_target else loss
    facts = (loss, admitted, budget, priced.plan, priced.noise_multiplier)
    outcomes = [_run(solver.settled, law, facts, Stream(seed, columns)) for seed in range(runs)]
    shown, se, privacy = (np.array(part) for part in zip(*outcomes, strict=True))
    unit = law.deviations(columns)
    return Rehearsed(shown, se / unit, privacy / unit)


def usual_law(loss: Loss, cells: tuple[float, ...] = (), mean: float | None = None) -> Law:
    """Return the law of declared shares; of outcomes without one, even classes and a mean count of 1."""
    usual = 0.5 if loss.sigmoid_link else 1.0 if loss.log_link else math.nan
    law = Law(tuple(map(float, cells)), usual if mean is None else float(mean))
    if not all(0 < share < 1 for share in law.cells):
        raise Unsupported("cells are shares of rows in which yes/no columns are true, each between 0 and 1")
    if (loss.sigmoid_link and not 0 < law.mean < 1) or (loss.log_link and not 0 < law.mean < math.inf):
        raise Unsupported("mean is the share of the second class, between 0 and 1, or a positive mean count")
    return law


def chance(
    solver: "Sandwich", domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, law: Law, runs: int = FEW_RUNS
) -> float:
    """Return how likely an effect is to be shown, in the mean of columns; 1 far above the least signal."""
    lack = shortage(domain, loss, budget)
    if lack < PLENTY and not law.cells:
        return 1.0
    if loss.n_outputs > 1:
        return float(lack <= 1.0)
    return float(rehearse(solver, domain, loss, penalty, budget, law, runs).chances.mean())


def too_few(
    complete: "Callable[[Domain, Budget], Sandwich]",
    domain: Domain,
    loss: Loss,
    penalty: Penalty,
    budget: Budget,
    law: Law | None = None,
) -> str | None:
    """Return why a summary would probably be empty, and which rows, epsilon or columns would do; None where it is not.

    ``complete`` returns the method for other facts. Each remedy is found by the rule itself, and rounded to the safe
    side. A default delta falls with the square of n; so does the one here, which is safe for a delta that stays.
    """
    law, n, p = law or usual_law(loss), domain.n, domain.n_features - domain.intercept
    if n is None or not budget.is_private:  # what noise hides is reported afterwards
        return None

    def suffices(domain: Domain, budget: Budget, least: float = SURE) -> bool:
        return chance(complete(domain, budget), domain, loss, penalty, budget, law) >= least

    def with_columns(columns: int) -> bool:
        ranges = None if domain.ranges is None else domain.ranges[:columns]
        bounds = np.append(domain.feature_bounds[:columns], domain.feature_bounds[p:])
        return suffices(replace(domain, feature_bounds=bounds, ranges=ranges), budget)

    if suffices(domain, budget, EMPTY):
        return None
    near = max(1.0, shortage(domain, loss, budget) / FAR_SHORT)
    rows = _least(
        lambda rows: suffices(
            replace(domain, n=math.ceil(rows)), replace(budget, delta=budget.delta * (n / math.ceil(rows)) ** 2)
        ),
        n * near,
    )
    epsilon = _least(lambda epsilon: suffices(domain, replace(budget, epsilon=epsilon)), budget.epsilon * near)
    columns = _most(with_columns, p)
    unit = "persons" if domain.grouped else "rows"
    fewer = f", or at most {_counted(columns)}" if columns else ""
    larger = "" if epsilon is None else f"; with these {unit} epsilon = {epsilon:g}{fewer}"
    needed = "far more" if rows is None else f"about {rows:,.0f}"
    return (
        f"Too few {unit} for standard errors: most effects would probably be hidden. You have {n:,} {unit}. "
        f"At epsilon = {budget.epsilon:g}, {_counted(p)} need {needed} {unit}{larger}. Nothing was released; "
        f"even_if_empty=True (--even-if-empty) fits anyway{f' ({FORECAST})' if domain.n_outputs == 1 else ''}"
    )


def _least(suffices: "Callable[[float], bool]", start: float) -> float | None:
    """Return about the least value from ``start`` on that suffices: two digits, rounded up; None without one."""
    high = start
    while not suffices(high):
        high *= 2.0
        if high > MOST * start:
            return None
    low = high / 2.0
    for _ in range(6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return math.ceil(high / digit * (1.0 - 1e-12)) * digit


def _most(suffices: "Callable[[int], bool]", columns: int) -> int:
    """Return the largest number below ``columns`` that suffices, by halving; 0 without one."""
    low, high = 0, columns
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if suffices(middle) else (low, middle)
    return low


def _counted(columns: int) -> str:
    return f"{columns} feature column{'' if columns == 1 else 's'}"


def _run(
    solver: "Sandwich", law: Law, facts: "tuple[Loss, Domain, Budget, Plan, float]", stream: Stream
) -> tuple["NDArray[np.bool_]", Floats, Floats]:
    """Return which slopes one run shows, their standard errors, and the noise's part."""
    loss, domain = facts[:2]
    assert domain.n is not None
    assert solver.limits is not None
    columns, bounds = domain.n_features - domain.intercept, domain.feature_bounds
    rows = law.rows(stream, columns, intercept=domain.intercept)
    truth, y = _outcomes(stream, rows, loss, law, intercept=domain.intercept)
    public = PublicRows(rows, y, domain.n / SAMPLE, *facts, stream, solver.n_gradients)
    radius = min(solver.limits.reach * math.sqrt(domain.n_features), FARTHEST, float(np.linalg.norm(bounds)))
    linear, length = whitening(*public.noisy_second_moment(radius))
    public = replace(public, rows=rows @ linear)
    counts = Target(law.mean, float(np.std(y))) if loss.log_link else None
    sure = float(np.max(bounds[: len(law.cells)], initial=0.0))
    longest = float(np.linalg.norm(bounds)) * float(np.linalg.norm(linear, 2))
    run = Refinement(solver, public, float(domain.n), length, longest, counts, bounds, sure)  # type: ignore[arg-type]
    noise = public.start_noise(law.mean, solver.start_share) * stream.normals(len(truth)) if loss.log_link else 0.0
    start = np.asarray(np.linalg.solve(linear, BEGUN * truth + noise))
    _, effects, limits = run.effects(start, linear)
    effects = solver.answered_for(effects, loss, domain, linear, limits)
    combinations, slopes = Combinations(np.zeros(len(bounds)), effects), np.eye(len(bounds))[:columns]
    return ~combinations.hidden(slopes), combinations.deviations(slopes), combinations.privacy(slopes)


def _outcomes(stream: Stream, Z: Floats, loss: Loss, law: Law, *, intercept: bool) -> tuple[Floats, Floats]:
    """Draw coefficients of a moderate signal, and outcomes of the declared mean."""
    columns = Z.shape[1] - intercept
    truth = np.zeros(Z.shape[1])
    truth[:columns] = SIGNAL / math.sqrt(columns) * (-1.0) ** np.arange(columns)
    if loss.sigmoid_link:
        level = math.log(law.mean / (1.0 - law.mean))
        truth[columns:] = level
        return truth, (stream.uniforms(len(Z)) < expit(Z[:, :columns] @ truth[:columns] + level)).astype(float)
    if loss.log_link:
        level = math.log(law.mean) - SIGNAL**2 / 2.0
        truth[columns:] = level
        return truth, np.ceil(
            pdtrik(stream.uniforms(len(Z)), np.exp(np.minimum(Z[:, :columns] @ truth[:columns] + level, 30.0)))
        )
    return truth, np.asarray(Z @ truth + math.sqrt(1.0 - SIGNAL**2) * stream.normals(len(Z)))
