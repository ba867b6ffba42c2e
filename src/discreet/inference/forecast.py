"""Rehearse the estimation of effects on public rows: how likely each is to be shown, and its standard error.

A rehearsal is the fit itself: the same solver, plan and noise, with a curator of rows that are drawn from a declared
law. A few rows stand for all, each for as many alike (``curator.rehearsal``). No record is read.

The law: columns that do not predict one another, numbers that fill their ranges, or a part of them, evenly or are
normal within 3 deviations by turns, yes/no columns with declared shares of rows, and outcomes with a declared mean
whose margins have a declared deviation. Where columns predict classes well, few rows are in doubt, and only these tell
something; in wide ranges rows might be longer than any is. Where that is not declared, chances are those of a moderate
law, and the least ones those of hard laws. Real tables have heavier tails and columns that predict one another.
"""

import math
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, pdtrik

from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import rehearsal, use_entropy
from discreet.errors import Unsupported
from discreet.inference.intervals import Combinations
from discreet.inference.limits import shortage
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.typing import Floats, Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from discreet.accounting.pricing import PricedPlan
    from discreet.inference.sandwich import Sandwich

SAMPLE, RUNS = 2048, 40
"""Public rows, and runs on them, each with noise of its own."""
EVENLY, WIDE = math.sqrt(3.0), 3.0
"""Half of the numbers fill their declared range evenly, half are normal: how many deviations the range goes."""
TARGET_WIDE, EFFICIENT = 5.0, 1.345
"""The same for numeric targets; and how many deviations Huber's loss is wide: his choice, which loses 5 %."""
SIGNAL, STRONG, STRONG_COUNTS = 0.35, (3.0, 6.0), (1.5,)
"""Deviations of the margins, in those of errors for numbers: moderate, and strong up to near separation."""
TINY, STEEPEST_MARGIN = 1e-9, 50.0
"""Margins that vary less do not vary; those that are larger say no more."""
STRONGEST = 30.0
"""The largest deviation that can be declared: margins beyond tell no more."""
FILLED, PARTLY = 1.0, 0.1
"""What part of its declared range a number fills: moderate and hard."""
BALANCED, SETTLED = 500, 0.01
"""Rounds that give outcomes their declared shares at most, and how near to them they end: steep laws need hundreds."""
EMPTY, SURE, FEW_RUNS = 0.5, 0.8, 12
"""A fit that shows an effect less often than the first is refused before it is charged; what is advised shows it at
least as often as the second; runs that decide it."""
HARD_RUNS = 8
"""Runs of each law that is hard."""
FEWEST_RUNS, CLEARLY = 4, 0.19
"""So few runs decide where their share is so far from what is asked."""
ALIKE = 0.05
"""Chances so near to each other are said once."""
NUMBER = "number"
"""The kind of all columns that are not yes/no."""
PLENTY, NEAR, NEAR_COUNTS = 0.05, 1.3, 0.33
"""With so little shortage nothing has to be rehearsed; where the search for what suffices begins, for counts, too."""
STEP, CLOSE = 1.25, 1.15
"""The first factor of the search, and how near the largest value that fails is to the least that suffices."""
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
    """What is assumed of a table: the shares of its yes/no columns and categories, and of its outcomes.

    ``cells`` are columns that are true in so many rows, by place. Of what ``Domain.indicators`` lists other cells share
    the rest alike, yes/no columns are true in half of the rows, and all other columns are numbers. ``mean`` is the
    share of the second class, the others being alike, or the mean count; NaN for numeric targets. ``strength`` is the
    deviation of the margins, in those of errors for numbers, and ``fill`` the part of its range that a number fills;
    None: not declared, and moderate.
    """

    cells: tuple[tuple[int, float], ...] = ()
    mean: float = math.nan
    strength: float | None = None
    fill: float | None = None

    @property
    def signal(self) -> float:
        """The deviation of the margins."""
        return SIGNAL if self.strength is None else self.strength

    @property
    def filled(self) -> float:
        """The part of its range that a number fills."""
        return FILLED if self.fill is None else self.fill

    def hard(self, loss: Loss) -> list["Law"]:
        """Return laws with strong predictors in ranges that are too wide, where these are not declared; or none."""
        if None not in (self.strength, self.fill):
            return []
        strong = STRONG_COUNTS if loss.log_link else STRONG
        fill = PARTLY if self.fill is None else self.fill
        strengths = strong if self.strength is None else (self.strength,)
        return [replace(self, strength=strength, fill=fill) for strength in strengths]

    def groups(self, domain: Domain) -> list[list[int]]:
        """Return columns of which at most one is true in a row; a yes/no column by itself."""
        listed = {j for group in domain.indicators for j in group}
        return [*map(list, domain.indicators), *([j] for j, _ in self.cells if j not in listed)]

    def shares(self, domain: Domain) -> Floats:
        """Return in which share of rows each column is true; NaN for numbers."""
        shares, cells = np.full(len(ranges_of(domain)), np.nan), dict(self.cells)
        if not all(0 <= j < len(shares) for j in cells):
            raise Unsupported(f"{len(cells)} cells are declared for {len(shares)} columns: leave some out")
        for group in self.groups(domain):
            others = [j for j in group if j not in cells]
            left = 1.0 - sum(cells.get(j, 0.0) for j in group)
            values = len(others) + (len(group) == 1)  # a yes/no column has no cell for falsehood
            shares[group] = [cells.get(j, max(0.0, left) / values) for j in group]
        if np.nansum(shares) > 0 and np.nanmin(shares) <= 0:
            raise Unsupported("the shares of a category's values add up to 1 or more: leave something to the others")
        return shares

    def places(self, domain: Domain) -> tuple[Floats, Floats]:
        """Return the mean and the deviation of each column within its declared range."""
        (low, high), shares = ranges_of(domain).T, self.shares(domain)
        wide = np.where(np.arange(len(shares)) % 2, WIDE, EVENLY)
        mean = np.where(np.isnan(shares), (low + high) / 2.0, low + (high - low) * shares)
        parts = np.where(np.isnan(shares), 0.5 * self.filled / wide, np.sqrt(shares * (1.0 - shares)))
        deviation = (high - low) * parts
        return mean, np.where(deviation > 0, deviation, 1.0)

    def rows(self, stream: "Stream", count: int, domain: Domain) -> Floats:
        """Draw rows; cells are true in as many of them as their shares say."""
        (low, high), (mean, deviation), shares = ranges_of(domain).T, self.places(domain), self.shares(domain)
        rows = stream.uniforms(count * len(low)).reshape(count, len(low))
        for j in np.flatnonzero(np.isnan(shares)).tolist():
            rows[:, j] = mean[j] + deviation[j] * (ndtri if j % 2 else _evenly)(rows[:, j])
        for group in self.groups(domain):
            place = (np.argsort(np.argsort(rows[:, group[0]])) + 0.5) / count
            ends = np.cumsum(np.maximum(shares[group], 1.0 / count))
            for j, end, start in zip(group, ends, ends - shares[group], strict=True):
                rows[:, j] = np.where((place > min(start, end - 1.0 / count)) & (place <= end), high[j], low[j])
        return np.asarray(np.clip(rows, low, high))

    def effects(self, domain: Domain) -> tuple[Floats, Floats, list[str]]:
        """Return the map from columns to effects, the unit of each, and its kind.

        Effects are per deviation of a number, of truth against falsehood, and of cells against a category's first one.
        """
        shares, (low, high) = self.shares(domain), ranges_of(domain).T
        rows, names = np.eye(len(shares)), [_kind(share) for share in shares]
        first = {j: group[0] for group in self.groups(domain) for j in group}
        for j, base in first.items():
            rows[j, base] -= float(j != base)
        places = [j for j in range(len(shares)) if first.get(j, -1) != j or list(first.values()).count(j) == 1]
        units = np.where(np.isnan(shares), self.places(domain)[1], high - low)
        return rows[places], units[places], [names[j] for j in places]

    def outcomes(self, stream: "Stream", rows: Floats, domain: Domain, loss: Loss) -> Floats:
        """Draw targets in training coordinates: of the declared strength and mean."""
        (low, high), (mean, deviation) = ranges_of(domain).T, self.places(domain)
        numbers = np.isnan(self.shares(domain))
        units = np.where(
            numbers, deviation, (high - low) / 2.0
        )  # truth against falsehood: as a number's two deviations
        signs = (-1.0) ** np.arange(len(numbers))
        if self.strength is None:  # outcomes have the declared mean in every cell
            signs *= numbers
        signal = (rows - mean) / np.where(units > 0, units, 1.0) @ signs
        signal = np.clip(signal * (self.signal / max(float(signal.std()), TINY)), -STEEPEST_MARGIN, STEEPEST_MARGIN)
        if loss.task == "classification":
            return self._classes(stream, signal, max(2, loss.n_outputs), signed=loss.n_outputs == 1)
        assert domain.target_range is not None
        low, high = domain.target_range
        if loss.log_link:
            rates = np.exp(np.minimum(signal, 30.0))
            rates *= self.mean / rates.mean()
            return np.asarray(np.clip(np.ceil(pdtrik(stream.uniforms(len(rows)), rates)), low, high))
        targets = (signal + stream.normals(len(rows))) / math.hypot(1.0, self.signal)
        targets = (low + high) / 2.0 + targets * deviation_of_targets(domain, loss)
        return np.asarray(np.clip(targets, low, high))

    def _classes(self, stream: "Stream", signal: Floats, classes: int, *, signed: bool) -> Floats:
        """Draw classes; margins of every other one against the first go with the signal, the rest against it."""
        shares = np.full(classes, (1.0 - self.mean) / (classes - 1.0))
        shares[1] = self.mean
        signs = np.where(np.arange(classes) % 2, 1.0, -1.0) * (np.arange(classes) > 0)
        odds, chances = shares, np.empty((len(signal), classes))
        for _ in range(BALANCED):
            chances = odds * np.exp(np.multiply.outer(signal, signs))
            chances /= chances.sum(axis=1, keepdims=True)
            off = shares / chances.mean(axis=0)
            if np.abs(off - 1.0).max() < SETTLED:
                break
            odds = odds * off
        ends = np.cumsum(chances, axis=1)[:, :-1]
        drawn = (stream.uniforms(len(signal))[:, None] > ends).sum(axis=1).astype(float)
        return np.asarray(2.0 * drawn - 1.0 if signed else drawn)


def deviation_of_targets(domain: Domain, loss: Loss) -> float:
    """Return the deviation of numeric targets: a part of their declared range, and no more than a loss is made for."""
    assert domain.target_range is not None
    low, high = domain.target_range
    return min((high - low) / (2.0 * TARGET_WIDE), loss.lipschitz / EFFICIENT)


def _kind(share: float) -> str:
    """Name a kind of column."""
    return NUMBER if math.isnan(share) else f"true in {share:.3g} of rows"


def _evenly(uniforms: Floats) -> Floats:
    """Return numbers of variance 1 that fill a range evenly."""
    return EVENLY * (2.0 * uniforms - 1.0)


def ranges_of(domain: Domain) -> Floats:
    """Return the columns' declared ranges in training coordinates, one row each, without the intercept's."""
    if domain.ranges is not None:
        return domain.ranges
    bounds = domain.feature_bounds[: domain.n_features - domain.intercept]
    return np.column_stack([-bounds, bounds])


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
    least : float
        How likely it is to be shown at least, whatever the strength of predictors and the part of their ranges that
        they fill, as far as these are not declared; NaN where that was not rehearsed.

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
    least: float = math.nan

    @property
    def chances(self) -> str:
        """The chance as a text, with the least one where that is clearly smaller."""
        least = f" (at least {self.least:.0%})" if self.chance - self.least > ALIKE else ""
        return f"{self.chance:.0%}{least}"


@dataclass(frozen=True)
class Rehearsed:
    """Which effects each run showed (run, class, effect), with standard errors and the parts that go into these."""

    names: list[str]
    shown: "NDArray[np.bool_]"
    se: Floats
    privacy: Floats
    sampling: Floats

    @property
    def chance(self) -> float:
        """The chance that an effect is shown, in the mean."""
        return float(self.shown.mean())

    @property
    def kinds(self) -> tuple[ExpectedEffect, ...]:
        """What to expect of each yes/no column, and of numbers."""
        kinds = sorted(dict.fromkeys(self.names), key=lambda name: name == NUMBER)
        return tuple(ExpectedEffect(name, *self.expected(name)[:3]) for name in kinds)

    def expected(self, kind: str) -> tuple[float, float, float, float]:
        """Return the chance of a kind, and medians where it is shown: standard error, noise's part, inflation."""
        places = [j for j, name in enumerate(self.names) if name == kind]
        shown = self.shown[..., places]
        if not shown.any():
            return 0.0, math.nan, math.nan, math.nan
        se, privacy, sampling = (part[..., places][shown] for part in (self.se, self.privacy, self.sampling))
        ratios = np.maximum(1.0, se / sampling)
        inflation = float(np.nanmedian(ratios)) if np.isfinite(ratios).any() else math.nan
        return float(shown.mean()), float(np.median(se)), float(np.median(privacy)), inflation


def rehearse(
    solver: "Sandwich",
    domain: Domain,
    loss: Loss,
    penalty: Penalty,
    budget: Budget,
    law: Law,
    runs: int = RUNS,
    threshold: float | None = None,
) -> Rehearsed:
    """Estimate the effects of a law's tables, each run with noise of its own. Public facts only; seeds are fixed.

    With a ``threshold`` runs end as soon as the chance is clearly on one side of it.
    """
    priced, answers = price_plan(solver.plan(domain, loss, penalty), budget), list[tuple[Floats, ...]]()
    for seed in range(runs):
        answers.append(Context().run(_run, solver, domain, loss, penalty, priced, law, seed))  # nobody looks on
        share = float(np.mean([shown for shown, *_ in answers]))
        if threshold is not None and seed + 1 >= FEWEST_RUNS and abs(share - threshold) > CLEARLY:
            break
    _, units, names = law.effects(domain)
    if loss.movable_target:
        units = units / deviation_of_targets(domain, loss)
    shown, se, privacy, sampling = (np.array(part) for part in zip(*answers, strict=True))
    return Rehearsed(names, shown.astype(np.bool_), se * units, privacy * units, sampling * units)


def assumption(loss: Loss, law: Law | None = None) -> str:
    """Say what chances assume."""
    law = law or usual_law(loss)
    varied = "Log odds" if loss.task == "classification" else "Log rates" if loss.log_link else "Predictions"
    unit = "" if varied.startswith("Log") else " deviations of residuals"
    is_even = loss.task == "classification" and math.isclose(law.mean * max(2, loss.n_outputs), 1.0)
    even = "Classes are assumed to be even: declare mean where they are not. " if is_even else ""
    assumed = f"{even}{varied} are assumed to vary by {law.signal:g}{unit}, and ranges to be filled to {law.filled:.0%}"
    hard = law.hard(loss)
    if not hard:
        return f"{assumed}."
    most = f"by up to {hard[-1].signal:g} and to {hard[-1].filled:.0%}"
    return f"{assumed}; for the least chances, {most}. Declare strength and fill."


def expected_effects(
    solver: "Sandwich", domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, law: Law
) -> tuple[ExpectedEffect, ...]:
    """Return what to expect of each kind of column, by a law and by its hard variant."""
    return with_least(rehearse(solver, domain, loss, penalty, budget, law), solver, domain, loss, penalty, budget, law)


def with_least(
    rehearsed: Rehearsed, solver: "Sandwich", domain: Domain, loss: Loss, penalty: Penalty, budget: Budget, law: Law
) -> tuple[ExpectedEffect, ...]:
    """Return what to expect of each kind of column after its rehearsals, with the least chances."""
    hard = [rehearse(solver, domain, loss, penalty, budget, other, HARD_RUNS) for other in law.hard(loss)]
    every = [rehearsed, *hard]
    return tuple(kind._replace(least=min(r.expected(kind.name)[0] for r in every)) for kind in rehearsed.kinds)


def usual_law(
    loss: Loss,
    cells: "Sequence[float] | Mapping[int, float]" = (),
    mean: float | None = None,
    strength: float | None = None,
    fill: float | None = None,
) -> Law:
    """Return the law of declared shares; of outcomes without one, even classes and a mean count of 1.

    ``cells`` are by place, or those of the first columns.
    """
    classes = loss.task == "classification"
    usual = 1.0 / max(2, loss.n_outputs) if classes else 1.0 if loss.log_link else math.nan
    places = cells if isinstance(cells, Mapping) else dict(enumerate(cells))
    shares = tuple((int(place), float(share)) for place, share in places.items())
    law = Law(shares, usual if mean is None else float(mean), strength, fill)
    if not all(0 < share < 1 for _, share in law.cells):
        raise Unsupported("cells are shares of rows in which yes/no columns are true, each between 0 and 1")
    if (classes and not 0 < law.mean < 1) or (loss.log_link and not 0 < law.mean < math.inf):
        raise Unsupported("mean is the share of the second class, between 0 and 1, or a positive mean count")
    if not 0 <= law.signal <= STRONGEST or not 0 < law.filled <= 1:
        raise Unsupported(f"strength is a deviation from 0 to {STRONGEST:g}; fill is a part, above 0 and at most 1")
    return law


def chance(
    solver: "Sandwich",
    domain: Domain,
    loss: Loss,
    penalty: Penalty,
    budget: Budget,
    law: Law,
    runs: int = FEW_RUNS,
    threshold: float | None = None,
) -> float:
    """Return how likely an effect is to be shown, in the mean of columns; 1 far above the least signal."""
    if shortage(domain, loss, budget) < PLENTY and law == usual_law(loss):
        return 1.0
    return rehearse(solver, domain, loss, penalty, budget, law, runs, threshold).chance


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
        return chance(complete(domain, budget), domain, loss, penalty, budget, law, threshold=least) >= least

    def longer(rows: float) -> tuple[Domain, Budget]:
        whole = math.ceil(rows)
        return replace(domain, n=whole), replace(budget, delta=budget.delta * (n / whole) ** 2)

    def lack(domain: Domain, budget: Budget) -> float:
        return shortage(domain, loss, budget)

    if suffices(domain, budget, EMPTY):
        return None
    guess = n * max(1.0, lack(domain, budget) / (NEAR_COUNTS if loss.log_link else NEAR))
    rows = _least(lambda rows: suffices(*longer(rows)), guess, n)
    near = NEAR if rows is None else lack(*longer(rows))
    guess = _where(lambda epsilon: lack(domain, replace(budget, epsilon=epsilon)) <= near, budget.epsilon)
    epsilon = _least(lambda epsilon: suffices(domain, replace(budget, epsilon=epsilon)), guess, budget.epsilon)
    most = next((k for k in range(p - 1, 0, -1) if lack(_narrower(domain, k), budget) <= near), 0)
    fewer_columns = (most * quarters // 4 for quarters in (4, 3, 2))
    columns = next((k for k in fewer_columns if k and suffices(_narrower(domain, k), budget)), 0)
    unit = "persons" if domain.grouped else "rows"
    fewer = f", or at most {_counted(columns)}" if columns else ""
    larger = "" if epsilon is None else f"; with these {unit} epsilon = {epsilon:g}{fewer}"
    needed = "far more" if rows is None else f"about {rows:,.0f}"
    return (
        f"Too few {unit} for standard errors: most effects would probably be hidden. You have {n:,} {unit}. "
        f"At epsilon = {budget.epsilon:g}, {_counted(p)} need {needed} {unit}{larger}"
    )


def _narrower(domain: Domain, columns: int) -> Domain:
    """Return the domain of the first columns alone."""
    ends = slice(domain.n_features - domain.intercept, None)
    bounds = np.append(domain.feature_bounds[:columns], domain.feature_bounds[ends])
    groups = (tuple(j for j in group if j < columns) for group in domain.indicators)
    return replace(
        domain,
        feature_bounds=bounds,
        ranges=None if domain.ranges is None else domain.ranges[:columns],
        indicators=tuple(filter(None, groups)),
        row_norm=min(domain.row_norm, float(np.linalg.norm(bounds))),
    )


def _where(holds: "Callable[[float], bool]", start: float) -> float:
    """Return about the least value from ``start`` on for which a public rule holds."""
    value = start
    while not holds(value) and value < MOST * start:
        value *= 1.05
    return value


def _least(suffices: "Callable[[float], bool]", guess: float, failing: float) -> float | None:
    """Return about the least value that suffices, searched from a guess: two digits, rounded up; None without one.

    What is at most ``failing`` does not suffice.
    """
    low, high, step = failing, max(guess, STEP * failing), STEP
    while not suffices(high):
        low, high, step = high, high * step, step * STEP
        if high > MOST * failing:
            return None
    while high > CLOSE * low:
        middle = max(math.sqrt(low * high), high / STEP)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return math.ceil(high / digit * (1.0 - 1e-12)) * digit


def _counted(columns: int) -> str:
    return f"{columns} feature column{'' if columns == 1 else 's'}"


def _run(
    solver: "Sandwich", domain: Domain, loss: Loss, penalty: Penalty, priced: "PricedPlan", law: Law, seed: int
) -> tuple[Floats, ...]:
    """Return which effects one run shows, class by class, with their errors, the noise's part and the sampling's."""
    assert domain.n is not None
    stream, times = Stream(seed, domain.n_features), max(1, domain.n // SAMPLE)
    rows = law.rows(stream, round(domain.n / times), domain)
    y = law.outcomes(stream, rows, domain, loss)
    matrix = law.effects(domain)[0]
    shape = max(1, domain.n_outputs - 1), len(matrix)
    with use_entropy(stream):
        curator = rehearsal(rows, y, domain, loss, priced, times=times)
        try:
            effects = solver.settled.solve(curator, penalty).effects
        except (ArithmeticError, np.linalg.LinAlgError):  # such a fit is reported as diverged
            effects = None
    if effects is None:
        return np.zeros(shape), *np.full((3, *shape), np.nan)
    effects = effects.through(np.column_stack([matrix, np.zeros((len(matrix), int(domain.intercept)))]))
    combinations, every = Combinations(np.zeros(len(effects.metric)), effects), np.eye(len(effects.metric))
    parts = combinations.deviations, combinations.privacy, combinations.sampling
    shown = (~combinations.hidden(every)).astype(float)
    return shown.reshape(shape), *(part(every).reshape(shape) for part in parts)
