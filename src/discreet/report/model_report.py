"""``ModelReport``: everything that may be said of one fitted model, on one page; ``report_of`` makes it for a table.

Sections about scores that were released, and about what privacy would cost by a forecast, are here; those about
privacy, and about coefficients and effects, have files of their own.

It is built from plain values: a certificate, named coefficients, declared facts, a ledger's statement, released scores,
and a forecast from public facts. It never sees a record.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from discreet.accounting.certificate import CHECKED, ESTIMATED_RANGES, GIVEN, Certificate
from discreet.errors import DiscreetError
from discreet.inference.intervals import ALL_NOISE, LEVEL, all_noise, covers, deviations
from discreet.inference.summary import Summary, shown_effects
from discreet.ledger.account import Spent
from discreet.models.scores import SHARES_AT, PrivateScore, ScorePart, facts_of, words_of
from discreet.report.effects_section import (
    Coefficient,
    coefficient_figure,
    coefficient_table,
    effects_section,
    noise_curves,
)
from discreet.report.page import (
    LEFT,
    MINUS,
    TOP,
    Axes,
    Html,
    certificate_in,
    certificate_section,
    details,
    document,
    heading,
    isolated,
    number,
    panel,
    panels,
    paragraphs,
    percent,
    round_ticks,
    short,
    table,
)
from discreet.report.privacy_sections import (
    account_bar,
    checks_section,
    hazards_section,
    one_of,
    plan_section,
    promise_section,
    released,
    trace_section,
)
from discreet.schema.columns import Number

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.models.base import DPLinearModel
    from discreet.models.forecast import Forecast, ForecastRow, Setting
    from discreet.models.synthetic import Groups
    from discreet.models.table_model import TableModel
    from discreet.models.term_effects import TermEffect


__all__ = ["Coefficient", "CostForecast", "Fact", "ModelReport", "certificate_in", "cost_forecast"]

SOURCES = {
    "declared": "declared",
    "estimated": "estimated: released with noise",
    "container": "counted: public under this relation",
    "given": "handed in as public",
}
FOOTER = "This page fetches nothing and runs no program."
_RELATIONS = {
    "replace_one": "replace one: tables that differ in one {one}, with the same number of them",
    "zero_out": "zero out: tables of which one has one {one} blanked",
    "add_remove": "add or remove: tables of which one has one {one} more",
}


@dataclass(frozen=True)
class Fact:
    """Something that the fit took as public: its name, what is said of it, and a key of ``SOURCES``."""

    name: str
    text: str
    source: str = "declared"

    @property
    def badge(self) -> Html:
        """Where it is from, as a badge."""
        kind = "estimated" if self.source == "estimated" else ""
        return Html(f'<span class="badge {kind}">{escape(SOURCES.get(self.source, self.source))}</span>')


@dataclass(frozen=True)
class ModelReport:
    """The report of a fitted model.

    ``level`` is that of the coefficients' intervals, ``units`` what a coefficient is per what. Without ``facts``, the
    certificate's are shown. ``spent`` is the ledger's statement after this fit. ``steps`` name the query of each event;
    without, those of the forecast's plan are taken where they fit. ``effects`` are shown in the place of coefficients,
    or why there are none; ``curves`` are the effects of numbers that may bend.
    """

    title: str
    certificate: Certificate
    coefficients: Sequence[Coefficient] = ()
    level: float = 0.95
    facts: Sequence[Fact] = ()
    spent: Spent | None = None
    forecast: "CostForecast | None" = None
    scores: Sequence[PrivateScore] = ()
    units: str = ""
    steps: Sequence[str] = ()
    effects: Summary | str | None = None
    curves: "Sequence[TermEffect]" = ()

    def html(self) -> str:
        """Return the page."""
        origin = self.certificate.library_version, self.certificate.created
        parts = [
            heading(self.title, self.certificate),
            self._cards(),
            promise_section(self.certificate),
            hazards_section(self.certificate),
            scores_section(self.scores),
            checks_section(self.certificate),
            effects_section(self.effects) if self.effects is not None else "",
            self._coefficients(),
            self._budget(),
            '<h2 id="plan">Plan and steps</h2>',
            plan_section(self.certificate, self.steps or (self.forecast.steps if self.forecast else ())),
            trace_section(self.certificate),
            self._public(),
            curves_section(self.forecast) if self.forecast else "",
            certificate_section(self.certificate),
            f"<footer>Made by discreet {escape(' '.join(filter(None, origin)))}. {FOOTER}</footer>",
        ]
        return document(self.title, "\n".join(part for part in parts if part))

    def _cards(self) -> str:
        certificate, unit = self.certificate, one_of(self.certificate)
        cards: list[tuple[str, str, str]] = []
        if certificate.is_private:
            cards.append(("epsilon", number(certificate.epsilon, 4), f"for each {unit}"))
            slack = "allowed slack" if certificate.delta else "no slack"
            cards.append(("delta", number(certificate.delta) if certificate.delta else "0", slack))
        n = certificate.assumed_public.get("n")
        if n is not None:
            cards.append((f"{unit}s", f"{n:,}" if isinstance(n, int) else str(n), "taken as public"))
        n_releases = sum(event.count for event in released(certificate))
        cards.append(("releases", f"{n_releases:,}", str(certificate.solver.get("name", ""))))
        if self.spent is not None:
            cards.append(("budget left", percent(1 - min(1.0, self.spent.share), 0), "of the data set's cap"))
        body = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
            for name, value, note in cards
        )
        return f'<dl class="cards">{body}</dl>'

    def _coefficients(self) -> str:
        if not self.coefficients or isinstance(self.effects, Summary):  # one number per effect
            return ""
        slopes = [c for c in self.coefficients if not c.is_intercept]
        curved = {curve.column for curve in self.curves if not curve.other}
        with_noise = [(c.value, c.half_width) for c in slopes if c.half_width is not None]
        said = [self.units if self.units.endswith(".") or not self.units else f"In {self.units}."]
        if with_noise:
            said.append("Dots are coefficients, whiskers their intervals; each column has its own scale.")
        notes = [covers(self.level)] if with_noise else []
        if any(c.is_intercept for c in self.coefficients):
            notes.append("The intercept is shown only in the table, because its scale differs.")
        warned = [ALL_NOISE] if all_noise(with_noise) else []
        shown = coefficient_table(self.coefficients, self.level)
        return "\n".join(
            [
                '<h2 id="coefficients">Coefficients</h2>',
                paragraphs([" ".join(part for part in said if part), *warned]) if any(said) else "",
                coefficient_figure([c for c in self.coefficients if c.column not in curved]) if with_noise else "",
                paragraphs(notes, "note"),
                noise_curves(self.curves, deviations(self.level, pure=self.certificate.delta == 0)),
                details(f"The numbers of all {len(self.coefficients)}, as a table", shown),
            ]
        )

    def _budget(self) -> str:
        said = "Not charged to a ledger: other releases from these records are not accounted for."
        if self.certificate.ledger is not None:
            said = "This fit was charged to a ledger before any row was read; the certificate names the entry."
        body = account_bar(self.spent) if self.spent is not None else paragraphs([said])
        return f'<h2 id="budget">Budget</h2>\n{body}'

    def _public(self) -> str:
        certificate, unit = self.certificate, one_of(self.certificate)
        relation = _RELATIONS[str(certificate.neighbors)].format(one=unit)
        protected = "one row" if certificate.unit == "record" else "all rows of one person"
        facts = [Fact("unit of privacy", protected), Fact("relation", relation), *self.facts]
        named = {fact.name for fact in self.facts}
        if not self.facts:
            public = certificate.assumed_public.items()
            facts += [Fact(name, _plain(value)) for name, value in public if name not in (CHECKED, GIVEN)]
        elif "n" in certificate.assumed_public and not named & {"n", f"{unit}s", f"number of {unit}s"}:
            facts.append(Fact(f"number of {unit}s", _plain(certificate.assumed_public["n"]), "container"))
        facts += [
            Fact(name, _plain(value), "given") for name, value in certificate.assumed_public.get(GIVEN, {}).items()
        ]
        rows = [(fact.name, Html(isolated(fact.text)), fact.badge) for fact in facts]
        said = ["The guarantee relies on these facts. They were declared, not measured, unless marked as estimated."]
        if GIVEN in certificate.assumed_public:
            said.append(
                "Facts handed in as public are the user's numbers. If they were computed from the rows, that release "
                "was not accounted for."
            )
        if any(fact.source == "estimated" for fact in facts):
            said.append(
                "Facts marked as estimated were computed from the table with noise, and are included in the price."
            )
        shown = table(["fact", "value", "source"], rows, label="Public facts", words=(1,), kind="wide stacked")
        return '<h2 id="public">Taken as public</h2>\n' + paragraphs(said) + shown


def _plain(value: object) -> str:
    """Return a declared fact as text: numbers with their commas, lists with theirs."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return "; ".join(f"{name} {_plain(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain_item, value))
    return str(value)


def _plain_item(item: object) -> str:
    if isinstance(item, list) and len(item) == 2 and all(isinstance(end, float) for end in item):
        return "{:g} to {:g}".format(*item)
    return str(item)


_EXTRA = {ESTIMATED_RANGES: "noisy_counts", CHECKED: "noisy_checks"}
"""What reading a table releases next to the solver's plan, by the fact that it leaves in the certificate."""


def report_of(
    model: "TableModel", title: str, spent: "Spent | None" = None, scores: Sequence[PrivateScore] = ()
) -> ModelReport:
    """Return the report; ``spent`` is the ledger's statement after the fit, ``scores`` what else was released."""
    estimator, certificate = model.estimator_, model.certificate_
    n = certificate.assumed_public.get("n")
    ahead = (
        None if n is None else cost_forecast(estimator, int(n), estimator.n_features_in_, indicators=model.indicators_)
    )
    extra = [query for fact, query in _EXTRA.items() if fact in certificate.assumed_public]
    return ModelReport(
        title=title,
        certificate=certificate,
        coefficients=_coefficients(model),
        level=LEVEL,
        facts=_facts(model),
        spent=spent,
        forecast=ahead,
        scores=scores,
        units=_units(model),
        steps=(*ahead.steps, *extra) if extra and ahead is not None else (),
        effects=shown_effects(model),
        curves=_curves(model),
    )


def _curves(model: "TableModel") -> "list[TermEffect]":
    """Return the effects of numbers that may bend, and of products with numbers."""
    kinds = model.schema_.columns.items()
    bent = {name for name, kind in kinds if isinstance(kind, Number) and (kind.is_curve or kind.is_bent)}
    numeric = {name for name, kind in kinds if isinstance(kind, Number)}
    return [effect for effect in model.shown_effects() if effect.column in (numeric if effect.other else bent)]


def _units(model: "TableModel") -> str:
    effect = facts_of(model.estimator_).loss.margin_name
    classes: Sequence[object] = getattr(model.estimator_, "classes_", ())
    target = model.schema_.target
    of = f" of {target.column} = {classes[1]}" if target is not None and len(classes) == 2 else ""
    return (
        f"Change of {effect}{of} per unit of a number, per level, for true against false, and for being in a cell, in "
        "the columns' own units and in the schema's order, as discreet inspect shows them."
    )


def _coefficients(model: "TableModel") -> list[Coefficient]:
    named, width = model.coefficients(), deviations(LEVEL, pure=model.certificate_.delta == 0)
    several = len({c.output for c in named}) > 1
    half_widths = [None if c.noise is None else width * c.noise for c in named]
    return [
        Coefficient(c.name, c.column, c.output if several else "", c.value, half_width, c.unit)
        for c, half_width in zip(named, half_widths, strict=True)
    ]


def _facts(model: "TableModel") -> list[Fact]:
    from discreet.schema.schema import describe

    public, schema = model.certificate_.assumed_public, model.schema_
    estimated = public.get(ESTIMATED_RANGES, {})
    facts = []
    if schema.target is not None:
        ends = schema.target.range
        labels = f"one of {', '.join(map(str, schema.target.classes or ()))}"
        text = labels if ends is None else "{:g} to {:g}".format(*ends)
        facts.append(Fact(f"{schema.target.column} (to predict)", text))
    for name, kind in schema.columns.items():
        said = describe(kind)
        text = f"{said.text}; if missing: {said.missing}"
        facts.append(Fact(name, text, "estimated" if name in estimated else "declared"))
    facts += [Fact(" x ".join(group), "product of columns") for group in schema.interactions]
    if schema.weight is not None:
        facts.append(Fact(schema.weight.column, "weight of a row, {:g} to {:g}".format(*schema.weight.range)))
    if schema.offset is not None:
        role = "exposure" if schema.offset.log else "offset"
        facts.append(Fact(schema.offset.column, "{}, {:g} to {:g}".format(role, *schema.offset.range)))
    if schema.person is not None:
        facts.append(Fact(schema.person, "names the person behind a row"))
    if "n" in public:
        unit = "persons" if schema.person is not None else "rows"
        facts.append(Fact(f"number of {unit}", f"{public['n']:,}", "declared" if schema.rows else "container"))
    return facts


_SAID = "Scores that were released. What a score cost comes on top of what the model cost."
_SIDE, _EDGE = 200.0, 34.0


def scores_section(scores: Sequence[PrivateScore]) -> str:
    """Return the section; nothing without scores."""
    if not scores:
        return ""
    rows = []
    for score in scores:
        shown, where = _as_score(score), "rows" if score.n is None else f"{score.n:,} rows"
        paid, note = "nothing", f"on {where} that were declared public"
        if score.certificate is not None:
            paid = f"epsilon = {number(score.certificate.epsilon)}"
            note = f"on {where}, with noise; {score.certificate.headline}"
        interval = f"{shown(score.low)} to {shown(score.high)} ({percent(score.level, 0)})"
        rows.append((words_of(score.metric), shown(score.value), interval, paid, note))
    head = ["score", "value", "interval", "cost", "on which rows"]
    whole = table(head, rows, label="Scores", numeric=(1,), words=(4,), kind="wide stacked")
    return '<h2 id="scores">Released scores</h2>' + paragraphs([_SAID]) + whole + "".join(map(_parts, scores))


def _parts(score: PrivateScore) -> str:
    """Return a score's parts: a picture of calibration and of the ROC curve, and a table."""
    if not score.parts:
        return ""
    are_counts = any(" predicted as " in part.name for part in score.parts)
    shown = "{:,.0f}".format if are_counts else _as_score(score)
    rows = [(part.name, shown(part.value), f"{shown(part.low)} to {shown(part.high)}") for part in score.parts]
    drawn = _SQUARES[score.metric].drawn(score.parts) if score.metric in _SQUARES else ""
    chances, words = score.metric == "calibration", words_of(score.metric)
    head = ["predicted chance" if chances else "part", "happened" if chances else "value", percent(score.level, 0)]
    cells = table(head, rows, label=f"Parts of the {words}", numeric=(1,))
    return f"<h3>{escape(words[:1].upper() + words[1:])}, in parts</h3>{drawn}{cells}"


def _as_score(score: PrivateScore) -> Callable[[float], str]:
    """Accuracies in percent, all else as it is."""
    return percent if score.metric in ("accuracy", "balanced_accuracy") else number


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
    "calibration": _Square(
        "Calibration: what happened, by the predicted chance. The table below has the numbers.",
        "predicted chance",
        "Dots: how often it happened, with intervals over the noise. On the line, predictions are right.",
        SHARES_AT["calibration"],
        is_line=False,
    ),
    "auc": _Square(
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
    """What privacy would cost at other budgets and on other tables, in ``score``; curves go through n and epsilon.

    ``over_epsilon`` and ``over_rows`` are empty where there was no time to simulate; ``remarks`` say why.
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
    estimator: "DPLinearModel",
    n: int,
    p: int | None = None,
    *,
    indicators: "Groups | None" = None,
    seconds: float = SECONDS,
) -> CostForecast | None:
    """Forecast the cost of privacy for an estimator, fitted or not, for n rows and p columns. No data is read.

    ``indicators`` are the columns of which at most one is on, group by group (None: the last third, in fours);
    ``seconds`` is how long a simulation may compute before there is none. None where there is nothing to foresee:
    epsilon is infinite, or the settings cannot be planned without data.
    """
    from discreet.models.forecast import setting_of

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
    from discreet.models.fit import choose_solver, inferring

    estimator, (domain, budget) = setting.estimator, setting.planned(n, setting.estimator.epsilon)
    facts = domain, setting.loss, setting.penalty, budget
    solver, _ = choose_solver(estimator.solver, *facts)
    if cov_type is not None:
        solver = inferring(cov_type, solver, *facts, automatic=estimator.solver == "auto", even_if_empty=True)
    return solver.plan(domain, setting.loss, setting.penalty)


def _simulation(setting: "Setting", plan: "Plan", n: int, seconds: float) -> "tuple[Forecast | None, tuple[str, ...]]":
    from discreet.models.forecast import forecast

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
        return None, (
            f"Not simulated here, since it takes more than {seconds:g} seconds: see discreet forecast, or the "
            "estimator's forecast().",
        )
    return simulated, simulated.remarks


def _points(rows: "tuple[ForecastRow, ...]", x: "Callable[[ForecastRow], float]") -> tuple[Simulated, ...]:
    return tuple(Simulated(x(row), row.gap, min(row.gaps), max(row.gaps)) for row in rows)


LEAST_SPAN = 0.02  # of a score: smaller differences are noise of the simulation


def curves_section(forecast: CostForecast) -> str:
    """Simulated losses, and what they are worth."""
    parts = []
    if forecast.over_epsilon:
        drawn = [_panel(forecast, over_rows=over_rows) for over_rows in (False, True)]
        said = "Line: mean loss. Band: smallest to largest loss of the simulated fits. Ring: this model's settings."
        parts = [paragraphs([_answer(forecast)]), panels(drawn), paragraphs([said], "note")]
    title = '<h2 id="forecast">Other budgets, other tables</h2>'
    return "\n".join([title, *parts, paragraphs(forecast.remarks, "note")])


def _shown(forecast: CostForecast, lost: float) -> str:
    """Return a loss, in percentage points or of R2."""
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


def _panel(forecast: CostForecast, *, over_rows: bool) -> str:
    points = forecast.over_rows if over_rows else forecast.over_epsilon
    everything = (*forecast.over_epsilon, *forecast.over_rows)
    high = max([0.0, *(point.most for point in everything)])
    low = min([0.0, *(point.least for point in everything)])
    margin = max(LEAST_SPAN - (high - low), 0.0) / 2
    room = 0.1 * (high - low + 2 * margin)
    axes = Axes((points[0].at, points[-1].at), (low - margin - room, high + margin + room), is_log=True)
    here = float(forecast.n) if over_rows else forecast.epsilon
    nearest = min(points, key=lambda point: abs(math.log(point.at / here)))
    body = [
        axes.band([(point.at, point.least, point.most) for point in points]),
        axes.level(0.0),
        f'<text class="of-level" x="{LEFT + 4}" y="{axes.y(0.0) + 13:.1f}">without privacy</text>',
        axes.curve([(point.at, point.lost) for point in points]),
        *(f'<circle class="point" cx="{axes.x(p.at):.1f}" cy="{axes.y(p.lost):.1f}" r="3"/>' for p in points),
        _ring(axes, nearest, _shown(forecast, nearest.lost)),
    ]
    is_accuracy = forecast.score == "accuracy"
    title = f"{'Points of accuracy' if is_accuracy else 'R²'} lost, over {'rows' if over_rows else 'epsilon'}"
    spoken = f"{title}: " + ", ".join(f"{_shown(forecast, p.lost)} at {_at(p.at, over_rows)}" for p in points)
    x_ticks = [(point.at, short(point.at) if over_rows else f"{point.at:.3g}") for point in points]
    y_ticks = [(at, number(100 * at if is_accuracy else at)) for at in round_ticks(*axes.y_range, 6)]
    name = "rows (logarithmic)" if over_rows else "epsilon (logarithmic; smaller is more private)"
    return panel(title, spoken, axes, body, x_ticks, y_ticks, name)


def _ring(axes: Axes, point: Simulated, text: str) -> str:
    x, y = axes.x(point.at), axes.y(point.lost)
    below = y + 24 if y < TOP + 40 else y - 13
    return (
        f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="7"/>'
        f'<text class="here" x="{x:.1f}" y="{below:.1f}" text-anchor="middle">{escape(text)}</text>'
    )


def _at(place: float, over_rows: bool) -> str:
    return f"{place:,.0f} rows" if over_rows else f"epsilon {place:.3g}"
