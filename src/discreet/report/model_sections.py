"""Sections about the model: coefficients, released scores, and what privacy would cost by a forecast.

The figure of coefficients is a list of rows, each with a label, a strip and a number, in the order in which the
coefficients come: a schema's. Units differ from column to column, so each column has a scale of its own, with 0 in the
middle: what may be compared is the cells of one column, and a dot with its own whiskers. Nothing is ranked, and no dot
looks different from another: intervals of the noise alone do not tell effects from none.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from discreet.accounting.certificate import Certificate
from discreet.errors import AccountingError, DiscreetError, Unsupported
from discreet.inference.intervals import rounded
from discreet.models.scores import SHARES_AT, words_of
from discreet.report.page import MINUS, isolated, number, paragraphs, percent, round_ticks, short, table

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.models.forecast.forecast import Forecast, ForecastRow, Setting
    from discreet.models.forecast.synthetic import Groups


FIRST = 45  # rows of the figure that are shown before the rest is folded away
REACH = 46.0  # percent of a strip, from 0 in the middle to the end of a column's scale
_INTERCEPTS = {"intercept", "(intercept)", "intercept_"}


@dataclass(frozen=True)
class Coefficient:
    """One coefficient, with what the noise leaves open.

    Parameters
    ----------
    name
        As a reader should see it: ``"age"``, or a cell such as ``"workclass = private"``.
    column
        The column of the table that it belongs to; cells of one column are shown together. ``""`` for none.
    output
        The class, where there are several outputs; else ``""``.
    value, half_width
        The coefficient, and half the width of its interval; None where that is not known.
    unit
        What the coefficient is per: ``"per 1"``, ``"true against false"``.
    """

    name: str
    column: str
    output: str
    value: float
    half_width: float | None = None
    unit: str = ""

    @property
    def is_intercept(self) -> bool:
        """Whether it belongs to no column."""
        return not self.column and self.name.lower() in _INTERCEPTS

    @property
    def reach(self) -> float:
        """How far from 0 its dot or a whisker gets."""
        return abs(self.value) + self._whisker

    @property
    def _whisker(self) -> float:
        return self.half_width if self.half_width is not None and math.isfinite(self.half_width) else 0.0

    @property
    def text(self) -> str:
        """The value ± its half-width, rounded to the noise."""
        value, half_width = rounded(self.value, self.half_width)
        return _signed(f"{value} ± {half_width}" if half_width else value)


@dataclass(frozen=True)
class _Row:
    """A line of the figure: a heading, or a coefficient on its column's scale."""

    label: str
    depth: int
    unit: str = ""
    coefficient: Coefficient | None = None
    scale: float = 1.0


def coefficient_figure(coefficients: Sequence[Coefficient]) -> str:
    """Dots and whiskers, column by column."""
    drawn = [c for c in coefficients if not c.is_intercept and math.isfinite(c.value)]
    if not drawn:
        return ""
    rows, cut = _rows(drawn)
    first, rest = rows[:cut], rows[cut:]
    description = (
        f"Dot and whisker figure of {len(drawn)} coefficients, column by column. The table below has the numbers."
    )
    parts = [_forest(first, description)]
    if rest:
        more = sum(row.coefficient is not None for row in rest)
        folded = _forest(rest, f"The figure goes on with {more} coefficients.")
        parts.append(f"<details><summary>{more} more coefficients</summary>{folded}</details>")
    return "\n".join(parts)


def coefficient_table(coefficients: Sequence[Coefficient], level: float) -> str:
    """All numbers, to read and to copy."""
    several, units = any(c.output for c in coefficients), any(c.unit for c in coefficients)
    has_noise = any(c.half_width is not None for c in coefficients)
    head = ["coefficient", *(["output"] if several else []), *(["unit"] if units else []), "value"]
    head += [f"± (half-width, {100 * level:g}%)"] if has_noise else []
    rows = []
    for c in in_order(coefficients):
        value, half_width = rounded(c.value, c.half_width)
        cells = [f'<th scope="row">{isolated(c.name)}</th>']
        cells += [f"<td>{isolated(c.output)}</td>"] if several else []
        cells += [f"<td>{isolated(c.unit)}</td>"] if units else []
        cells.append(f'<td class="number">{_signed(value)}</td>')
        cells += [f'<td class="number">{half_width}</td>'] if has_noise else []
        rows.append(f"<tr>{''.join(cells)}</tr>")
    numeric = [place for place, name in enumerate(head) if place and name not in ("output", "unit")]
    return table(head, rows, label="Coefficients", numeric=numeric)


def _signed(text: str) -> str:
    """A number with a real minus in front."""
    return MINUS + text[1:] if text.startswith("-") else text


def _groups(coefficients: Iterable[Coefficient]) -> list[list[Coefficient]]:
    """One list per column, in the order in which the columns come."""
    groups: dict[tuple[str, str], list[Coefficient]] = {}
    for c in coefficients:
        groups.setdefault((c.column, "" if c.column else c.name), []).append(c)
    return list(groups.values())


def in_order(coefficients: Sequence[Coefficient]) -> list[Coefficient]:
    """The figure's order, the intercept last."""
    slopes = [c for group in _groups(c for c in coefficients if not c.is_intercept) for c in group]
    return [*slopes, *(c for c in coefficients if c.is_intercept)]


def _rows(coefficients: Sequence[Coefficient]) -> tuple[list[_Row], int]:
    """The lines of the figure, and after how many of them the rest is folded away: between columns where possible."""
    rows: list[_Row] = []
    cut = 0
    for group in _groups(coefficients):
        rows += _group_rows(group)
        cut = len(rows) if len(rows) <= FIRST else cut
    if len(rows) <= FIRST + 5:
        return rows, len(rows)
    return rows, cut if cut >= FIRST // 2 else FIRST


def _group_rows(group: list[Coefficient]) -> list[_Row]:
    names, scale = list(dict.fromkeys(c.name for c in group)), max(c.reach for c in group)
    nested = len(names) > 1
    rows = [_Row(group[0].column, 0)] if nested else []
    for name in names:
        cells = [c for c in group if c.name == name]
        label, unit = _within(name, group[0].column) if nested else name, cells[0].unit
        if len(cells) == 1 and not cells[0].output:
            rows.append(_Row(label, int(nested), unit, cells[0], scale))
        else:
            rows.append(_Row(label, int(nested), unit))
            rows += [_Row(c.output, int(nested) + 1, "", c, scale) for c in cells]
    return rows


def _within(name: str, column: str) -> str:
    """What a cell is called under its column's heading: "workclass = private" is "private"."""
    rest = name.removeprefix(column)
    if rest == name or not rest or rest[0] not in " =:[_(":
        return name
    rest = rest.strip(" =:_")
    return rest[1:-1] if rest[:1] + rest[-1:] in ("[]", "()") else rest or name


def _forest(rows: Sequence[_Row], description: str) -> str:
    body = "".join(_line(row) for row in rows)
    return f'<figure class="forest"><div role="img" aria-label="{description}">{body}{_zero()}</div></figure>'


def _line(row: _Row) -> str:
    kind, mark, value = f"row deep{row.depth}", "", ""
    if row.coefficient is None:
        kind += " heading"
    else:
        mark, value = _mark(row.coefficient, row.scale), row.coefficient.text
    unit = f" <small>{isolated(row.unit)}</small>" if row.unit and not row.label.endswith(row.unit) else ""
    return (
        f'<div class="{kind}"><span class="label">{isolated(row.label)}{unit}</span><span class="strip"><svg>'
        f'<line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>{mark}</svg></span>'
        f'<span class="value">{value}</span></div>'
    )


def _mark(c: Coefficient, scale: float) -> str:
    def at(value: float) -> str:
        share = value / scale if 0 < scale < math.inf else 0.0
        return f"{50 + REACH * min(max(share, -1.0), 1.0):.2f}%"

    whisker = ""
    if c.half_width is not None and math.isfinite(c.half_width):
        ends = at(c.value - c.half_width), at(c.value + c.half_width)
        whisker = f'<line class="whisker" x1="{ends[0]}" x2="{ends[1]}" y1="50%" y2="50%"/>'
    return f'{whisker}<circle class="dot" cx="{at(c.value)}" cy="50%" r="4.2"/>'


def _zero() -> str:
    return (
        '<div class="row axis"><span class="label"></span><span class="strip"><svg>'
        '<text x="50%" y="14" text-anchor="middle">0</text></svg></span><span class="value"></span></div>'
    )


_SAID = "Scores that were released. What a score cost comes on top of what the model cost."
_CALIBRATION = "calibration error"
_SIDE, _EDGE = 200.0, 34.0


@dataclass(frozen=True)
class ScorePart:
    """One of several numbers of a score: a group's, a class's, a tenth's, a cell's; NaN where nothing can be said."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """A score that was released, or measured on public rows.

    Parameters
    ----------
    metric, value, low, high, level
        ``"accuracy"``, ``"AUC"``, ``"R2"``; its value and an interval of this level, None where there is none.
    epsilon
        What it cost in addition to the model; 0 on public rows.
    note
        On which rows, and why it may be shown.
    parts
        The numbers of groups, classes, tenths or cells, where the score has some.
    """

    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    epsilon: float = 0.0
    note: str = ""
    parts: Sequence[ScorePart] = ()

    @classmethod
    def from_dict(cls, stored: Any) -> "Score":
        """Return the score that ``PrivateScore.to_dict`` or ``discreet score --json`` wrote.

        Its certificate is priced again: what a score claims to have cost is not taken on the file's word.
        """
        try:
            return cls._read(stored)
        except (AccountingError, AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise Unsupported("this is not a score as `discreet score --json` writes it") from None

    @classmethod
    def _read(cls, score: Mapping[str, Any]) -> "Score":
        words, stored, n = words_of(score["metric"]), score["certificate"], score["n"]
        low, high, level = (_number(score[name]) for name in ("low", "high", "level"))
        parts = tuple(
            ScorePart(str(part["name"]), *(_number(part[name]) for name in ("value", "low", "high")))
            for part in score.get("parts", ())
        )
        rows = "rows" if n is None else f"{int(n):,} rows"
        epsilon, note = 0.0, f"on {rows} that were declared public"
        if stored is not None:
            certificate = Certificate.from_json(json.dumps(stored))
            certificate.verify()
            note = f"on {rows}, with noise; {certificate.headline}"
            epsilon = certificate.epsilon
        return cls(words, _number(score["value"]), low, high, level, epsilon, note, parts)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def scores_section(scores: Sequence[Score]) -> str:
    """Return the section; nothing without scores."""
    if not scores:
        return ""
    rows = []
    for score in scores:
        shown = _as_score(score)
        interval = ""
        if score.low is not None and score.high is not None:
            interval = f"{shown(score.low)} to {shown(score.high)} ({percent(score.level, 0)})"
        paid = f"epsilon = {number(score.epsilon)}" if score.epsilon else "nothing"
        rows.append(
            f'<tr><th scope="row">{escape(score.metric)}</th><td class="number">{shown(score.value)}</td>'
            f'<td data-label="interval">{interval}</td><td data-label="cost">{paid}</td>'
            f'<td class="words">{escape(score.note)}</td></tr>'
        )
    head = ["score", "value", "interval", "cost", "on which rows"]
    whole = table(head, rows, label="Scores", numeric=(1,), kind="wide stacked")
    return '<h2 id="scores">Released scores</h2>' + paragraphs([_SAID]) + whole + "".join(map(_parts, scores))


def _parts(score: Score) -> str:
    """Return a score's parts: a picture of calibration and of the ROC curve, and a table."""
    if not score.parts:
        return ""
    shown = _as_count if _are_counts(score) else _as_score(score)
    rows = [
        f'<tr><th scope="row">{isolated(part.name)}</th><td class="number">{shown(part.value)}</td>'
        f"<td>{shown(part.low)} to {shown(part.high)}</td></tr>"
        for part in score.parts
    ]
    drawn = _SQUARES[score.metric].drawn(score.parts) if score.metric in _SQUARES else ""
    chances = score.metric == _CALIBRATION
    head = ["predicted chance" if chances else "part", "happened" if chances else "value", percent(score.level, 0)]
    cells = table(head, rows, label=f"Parts of the {score.metric}", numeric=(1,))
    return f"<h3>{escape(score.metric[:1].upper() + score.metric[1:])}, in parts</h3>{drawn}{cells}"


def _are_counts(score: Score) -> bool:
    return any(" predicted as " in part.name for part in score.parts)


def _as_score(score: Score) -> Callable[[float], str]:
    """Accuracies in percent, all else as it is."""
    return percent if score.metric.lower() in ("accuracy", "balanced accuracy") else number


def _as_count(value: float) -> str:
    return f"{value:,.0f}"


@dataclass(frozen=True)
class _Square:
    """A picture of shares by shares, with the diagonal: its name for screen readers, its axis and its caption."""

    label: str
    axis: str
    caption: str
    places: Sequence[float]
    is_line: bool

    def drawn(self, parts: Sequence[ScorePart]) -> str:
        """Return the picture of a score's parts at these places; a line goes from corner to corner."""
        shown = [(x, part) for x, part in zip(self.places, parts, strict=False) if not math.isnan(part.value)]
        marks = []
        for x, part in ((_place(x), part) for x, part in shown):
            ends = _place(1 - part.low), _place(1 - part.high)
            marks.append(f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>')
            marks.append(f'<circle class="dot" cx="{x:.1f}" cy="{_place(1 - part.value):.1f}" r="3.6"/>')
        if self.is_line:
            points = [(0.0, 0.0), *((x, part.value) for x, part in shown), (1.0, 1.0)]
            path = " ".join(f"{_place(x):.1f},{_place(1 - y):.1f}" for x, y in points)
            marks.append(f'<polyline class="whisker" fill="none" points="{path}"/>')
        first, last, whole = _place(0.0), _place(1.0), 2 * _EDGE + _SIDE
        frame = "".join(
            f'<line class="grid" x1="{first}" x2="{last}" y1="{_place(at)}" y2="{_place(at)}"/>'
            f'<text x="{first - 6}" y="{_place(1 - at) + 4}" text-anchor="end">{at:g}</text>'
            f'<text x="{_place(at)}" y="{last + 16}" text-anchor="middle">{at:g}</text>'
            for at in (0.0, 0.5, 1.0)
        )
        return (
            f'<figure class="panel" style="max-width:22rem"><svg viewBox="0 0 {whole:g} {whole:g}" role="img" '
            f'aria-label="{self.label}">{frame}<line class="zero" x1="{first}" y1="{last}" x2="{last}" y2="{first}"/>'
            f'{"".join(marks)}<text class="name" x="{_place(0.5)}" y="{whole - 2:g}" text-anchor="middle">'
            f"{self.axis}</text></svg><figcaption>{self.caption}</figcaption></figure>"
        )


def _place(share: float) -> float:
    return _EDGE + _SIDE * min(max(share, 0.0), 1.0)


_SQUARES = {
    _CALIBRATION: _Square(
        "Calibration: what happened, by the predicted chance. The table below has the numbers.",
        "predicted chance",
        "Dots: how often it happened, with intervals over the noise. On the line, predictions are right.",
        SHARES_AT["calibration"],
        is_line=False,
    ),
    "area under the ROC curve": _Square(
        "ROC curve: true positive rate by false positive rate. The table below has the numbers.",
        "false positive rate",
        "True positive rate, with a band over the noise that holds for the whole curve. On the diagonal, the model "
        "tells nothing.",
        SHARES_AT["auc"],
        is_line=True,
    ),
}


MULTIPLES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)  # of the asked epsilon, and of the asked n
FITS, CELLS = 3, 50_000
WIDEST = 250  # columns beyond which one simulated fit takes seconds
SECONDS = 4.0


@dataclass(frozen=True)
class Simulated:
    """Simulated fits at one epsilon or number of rows: their mean loss of score, the least and the most."""

    at: float
    lost: float
    least: float
    most: float


@dataclass(frozen=True)
class CostForecast:
    """What privacy would cost at other budgets and on other tables.

    Parameters
    ----------
    n, p, epsilon
        The table and the budget that were asked for; the curves go through them.
    score
        ``"accuracy"`` or ``"R2"``: what is lost.
    over_epsilon, over_rows
        The simulation. Empty where there was no time for one.
    steps
        The queries of the plan, in order.
    remarks
        How the numbers came about.
    """

    n: int
    p: int
    epsilon: float
    score: str
    over_epsilon: tuple[Simulated, ...]
    over_rows: tuple[Simulated, ...]
    steps: tuple[str, ...]
    remarks: tuple[str, ...]


class _Late(Exception):
    """The simulation takes too long."""


def cost_forecast(
    estimator: Any, n: int, p: int | None = None, *, indicators: "Groups | None" = None, seconds: float = SECONDS
) -> CostForecast | None:
    """Forecast the cost of privacy for an estimator, fitted or not, for n rows and p columns. No data is read.

    Parameters
    ----------
    estimator
        A linear model of this library, as configured for the fit.
    n, p
        Rows (persons, where they are the unit) and columns that the estimator sees. p may be left out where its bounds
        list them.
    indicators
        The columns of which at most one is on, group by group. None: the last third, in fours.
    seconds
        How long a simulation may compute before there is none.

    Returns
    -------
    CostForecast or None
        None where there is nothing to foresee: epsilon is infinite, or the settings cannot be planned without data.
    """
    from discreet.models.forecast.forecast import setting_of

    if not math.isfinite(estimator.epsilon):
        return None
    try:
        setting = setting_of(estimator, p, indicators)
        plan = _plan(setting, int(n))
        inference = getattr(estimator, "inference", None)
        released = _plan(setting, int(n), cov_type=estimator.cov_type) if inference else plan
        simulated, remarks = _simulation(setting, plan, int(n), seconds)
    except DiscreetError:
        return None
    return CostForecast(
        n=int(n),
        p=setting.n_columns,
        epsilon=float(estimator.epsilon),
        score=setting.target.score_name,
        over_epsilon=_points(simulated.over_epsilon, lambda row: row.epsilon) if simulated else (),
        over_rows=_points(simulated.over_n, lambda row: float(row.n)) if simulated else (),
        steps=tuple(release.query for release in released.releases if release.count),
        remarks=remarks,
    )


def _plan(setting: "Setting", n: int, *, cov_type: str | None = None) -> "Plan":
    """Return the plan of a fit; with ``cov_type``, of one that estimates standard errors."""
    from discreet.budget import Neighbors
    from discreet.models.fit import budget_of, choose_solver, inferring

    estimator, relation = setting.estimator, Neighbors(setting.estimator.neighbors)
    public = n if relation.n_is_public or setting.bounds.n is not None else None
    domain = replace(setting.facts().domain(Neighbors.ZERO_OUT, setting.loss), neighbors=relation, n=public)
    budget = budget_of(estimator.epsilon, estimator.delta, relation, public, allow_large_delta=True)
    solver, _ = choose_solver(estimator.solver, domain, setting.loss, setting.penalty, budget)
    if cov_type is not None:
        facts, automatic = (domain, setting.loss, setting.penalty, budget), estimator.solver == "auto"
        solver = inferring(cov_type, solver, *facts, automatic=automatic, even_if_empty=True)
    plan: Plan = solver.plan(domain, setting.loss, setting.penalty)
    return plan


def _simulation(setting: "Setting", plan: "Plan", n: int, seconds: float) -> "tuple[Forecast | None, tuple[str, ...]]":
    from discreet.models.forecast.forecast import forecast

    if plan.is_sampled:
        return None, ("Not simulated: subsampled steps take too long to price at other settings.",)
    if setting.n_columns > WIDEST:
        return None, (f"Not simulated: more than {WIDEST} columns take too long.",)
    epsilon, end = float(setting.estimator.epsilon), time.thread_time() + seconds

    def on_time(done: int, total: int) -> None:
        if time.thread_time() > end:  # of this thread: a busy machine must not change the page
            raise _Late

    try:
        simulated = forecast(
            setting.estimator,
            n,
            setting.n_columns,
            epsilons=[epsilon * by for by in MULTIPLES],
            n_grid=[max(2, round(n * by)) for by in MULTIPLES],
            seeds=FITS,
            max_cells=CELLS,
            indicators=setting.indicators,
            progress=on_time,
        )
    except _Late:
        return None, (f"Not simulated: it takes more than {seconds:g} seconds. Use DPLinearModel.forecast.",)
    return simulated, simulated.remarks


def _points(rows: "tuple[ForecastRow, ...]", x: "Callable[[ForecastRow], float]") -> tuple[Simulated, ...]:
    return tuple(Simulated(x(row), row.gap, min(row.gaps), max(row.gaps)) for row in rows)


WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 34.0, 46.0
LEAST_SPAN = 0.02  # of a score: smaller differences are noise of the simulation


@dataclass(frozen=True)
class _Frame:
    """A panel's axes: x is logarithmic; y is whatever ``height`` makes of it."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        share = (math.log(value) - math.log(self.x_low)) / (math.log(self.x_high) - math.log(self.x_low))
        return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * share

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(share, -0.02), 1.02))


def curves_section(forecast: CostForecast) -> str:
    """Simulated losses, and what they are worth."""
    parts = []
    if forecast.over_epsilon:
        panels = "".join(_panel_of(forecast, over_rows=over_rows) for over_rows in (False, True))
        said = "Line: mean loss. Band: smallest to largest loss of the simulated fits. Ring: this model's settings."
        parts = [paragraphs([_answer(forecast)]), f'<div class="panels">{panels}</div>', paragraphs([said], "note")]
    return "\n".join([*parts, paragraphs(forecast.remarks, "note")])


def _shown(forecast: CostForecast, lost: float) -> str:
    """A loss, in percentage points or of R2."""
    shown = f"{100 * lost:.1f}" if forecast.score == "accuracy" else f"{lost:.3f}"
    return shown.replace("-", MINUS)


def _unit(forecast: CostForecast) -> str:
    return "points of accuracy" if forecast.score == "accuracy" else "of R²"


def _answer(forecast: CostForecast) -> str:
    def near(points: Sequence[Simulated], at: float) -> str:
        return _shown(forecast, min(points, key=lambda point: abs(math.log(point.at / at))).lost)

    epsilon, rows = forecast.epsilon, float(forecast.n)
    at_budget = near(forecast.over_epsilon, epsilon)
    others = [near(forecast.over_epsilon, epsilon * by) for by in (0.5, 2)]
    others += [near(forecast.over_rows, rows * by) for by in (0.5, 2)]
    moved = (
        f"With half the epsilon it costs {others[0]}, with twice the epsilon {others[1]}, with half the rows "
        f"{others[2]} and with twice the rows {others[3]}."
    )
    if set(others) == {at_budget}:
        moved = "With half or twice the epsilon or the rows it costs the same, to the last digit shown."
    return (
        f"On synthetic tables of this shape, privacy costs such a fit {at_budget} {_unit(forecast)}, compared with the "
        f"same model without privacy on the same rows. {moved} The simulation did not use this model's table, and says "
        "nothing about how well this model predicts: release a score for that."
    )


def _panel_of(forecast: CostForecast, *, over_rows: bool) -> str:
    points = forecast.over_rows if over_rows else forecast.over_epsilon
    everything = (*forecast.over_epsilon, *forecast.over_rows)
    high = max([0.0, *(point.most for point in everything)])
    low = min([0.0, *(point.least for point in everything)])
    margin = max(LEAST_SPAN - (high - low), 0.0) / 2
    room = 0.1 * (high - low + 2 * margin)
    frame = _Frame(points[0].at, points[-1].at, low - margin - room, high + margin + room)
    here = float(forecast.n) if over_rows else forecast.epsilon
    nearest = min(points, key=lambda point: abs(math.log(point.at / here)))
    line = _path([(frame.x(point.at), frame.y(point.lost)) for point in points])
    band = [(frame.x(point.at), frame.y(point.most)) for point in points]
    band += [(frame.x(point.at), frame.y(point.least)) for point in reversed(points)]
    level = frame.y(0.0)
    body = [
        f'<path class="range" d="{_path(band)}Z"/>',
        f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>',
        f'<text class="of-level" x="{LEFT + 4}" y="{level + 13:.1f}">without privacy</text>',
        f'<path class="curve" d="{line}"/>',
        *(f'<circle class="point" cx="{frame.x(p.at):.1f}" cy="{frame.y(p.lost):.1f}" r="3"/>' for p in points),
        _ring(frame, nearest.at, nearest.lost, _shown(forecast, nearest.lost)),
    ]
    description = ", ".join(f"{_shown(forecast, p.lost)} at {_at(p.at, over_rows)}" for p in points)
    ticks = round_ticks(frame.y_low, frame.y_high, 6)

    def label(value: float) -> str:
        return number(100 * value if forecast.score == "accuracy" else value)

    what = "Points of accuracy lost" if forecast.score == "accuracy" else "R² lost"
    title = f"{what}, over {'rows' if over_rows else 'epsilon'}"
    return _panel(title, description, frame, body, [point.at for point in points], ticks, label, over_rows)


def _panel(
    title: str,
    description: str,
    frame: _Frame,
    body: Sequence[str],
    places: Sequence[float],
    ticks: Sequence[float],
    label: Callable[[float], str],
    over_rows: bool,
) -> str:
    floor = HEIGHT - BOTTOM
    grid = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{frame.y(t):.1f}" y2="{frame.y(t):.1f}"/>'
        f'<text x="{LEFT - 7}" y="{frame.y(t) + 4:.1f}" text-anchor="end">{escape(label(t))}</text>'
        for t in ticks
    )
    names = "".join(
        f'<text x="{frame.x(at):.1f}" y="{floor + 17}" text-anchor="middle">'
        f"{short(at) if over_rows else f'{at:.3g}'}</text>"
        for at in places
    )
    axis = "rows (logarithmic)" if over_rows else "epsilon (logarithmic; smaller is more private)"
    return (
        f'<figure class="panel"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(title)}: {escape(description)}">'
        f'<text class="title" x="0" y="14">{escape(title)}</text>{grid}'
        f'<line class="zero" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>{"".join(body)}{names}'
        f'<text class="name" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{axis}</text>'
        "</svg></figure>"
    )


def _ring(frame: _Frame, at: float, value: float, text: str) -> str:
    x, y = frame.x(at), frame.y(value)
    below = y + 24 if y < TOP + 40 else y - 13
    return (
        f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        f'<text class="here" x="{x:.1f}" y="{below:.1f}" text-anchor="middle">{escape(text)}</text>'
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _at(place: float, over_rows: bool) -> str:
    return f"{place:,.0f} rows" if over_rows else f"epsilon {place:.3g}"
