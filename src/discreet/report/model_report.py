"""``ModelReport``: everything that may be said of one fitted model, on one page; ``report_of`` makes it for a table.

It is built from plain values: a certificate, named coefficients, declared facts, a ledger's statement, released scores,
and a forecast from public facts. It never sees a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from discreet.accounting.cell_counts import CHECKED, ESTIMATED_RANGES
from discreet.accounting.certificate import GIVEN, Certificate
from discreet.inference.intervals import ALL_NOISE, LEVEL, all_noise, covers, deviations
from discreet.inference.summary import Summary, shown_effects
from discreet.ledger.account import Spent
from discreet.models.scores import PrivateScore
from discreet.models.search_price import facts_of
from discreet.report.effects_section import (
    Coefficient,
    coefficient_figure,
    coefficient_table,
    effects_section,
    noise_curves,
)
from discreet.report.figures import details
from discreet.report.model_sections import CostForecast, cost_forecast, curves_section, scores_section
from discreet.report.page import (
    certificate_in,
    certificate_section,
    document,
    heading,
    isolated,
    number,
    paragraphs,
    percent,
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
    from discreet.models.table_model import TableModel
    from discreet.models.term_effects import TermEffect


__all__ = ["Coefficient", "CostForecast", "Fact", "ModelReport", "certificate_in", "cost_forecast"]

SOURCES = {
    "declared": "declared",
    "estimated": "estimated: released with noise",
    "container": "counted: public under this relation",
    "given": "handed in as public",
}
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
    forecast: CostForecast | None = None
    scores: Sequence[PrivateScore] = ()
    units: str = ""
    steps: Sequence[str] = ()
    effects: Summary | str | None = None
    curves: "Sequence[TermEffect]" = ()

    def html(self) -> str:
        """The page."""
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
            self._forecast(),
            certificate_section(self.certificate),
            self._footer(),
        ]
        return document(self.title, "\n".join(part for part in parts if part))

    def _cards(self) -> str:
        certificate, unit = self.certificate, one_of(self.certificate)
        cards: list[tuple[str, str, str]] = []
        if certificate.is_private:
            cards.append(("epsilon", number(certificate.epsilon, 4), f"for each {unit}"))
            cards.append(
                (
                    "delta",
                    number(certificate.delta) if certificate.delta else "0",
                    "allowed slack" if certificate.delta else "no slack",
                )
            )
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
        facts = [
            Fact(
                "unit of privacy", "one row" if certificate.unit == "record" else "all rows of one person", "declared"
            ),
            Fact("relation", relation, "declared"),
            *self.facts,
        ]
        named = {fact.name for fact in self.facts}
        if not self.facts:
            public = certificate.assumed_public.items()
            facts += [Fact(name, _plain(value)) for name, value in public if name not in (CHECKED, GIVEN)]
        elif "n" in certificate.assumed_public and not named & {"n", f"{unit}s", f"number of {unit}s"}:
            facts.append(Fact(f"number of {unit}s", _plain(certificate.assumed_public["n"]), "container"))
        facts += [
            Fact(name, _plain(value), "given") for name, value in certificate.assumed_public.get(GIVEN, {}).items()
        ]
        rows = [
            f'<tr><th scope="row">{isolated(fact.name)}</th><td class="words">{isolated(fact.text)}</td><td>'
            f'<span class="badge {"estimated" if fact.source == "estimated" else ""}">'
            f"{escape(SOURCES.get(fact.source, fact.source))}</span></td></tr>"
            for fact in facts
        ]
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
        shown = table(["fact", "value", "source"], rows, label="Public facts", kind="wide stacked")
        return '<h2 id="public">Taken as public</h2>\n' + paragraphs(said) + shown

    def _forecast(self) -> str:
        if self.forecast is None:
            return ""
        return '<h2 id="forecast">Other budgets, other tables</h2>\n' + curves_section(self.forecast)

    def _footer(self) -> str:
        origin = " ".join(part for part in (self.certificate.library_version, self.certificate.created) if part)
        return f"<footer>Made by discreet {escape(origin)}. This page fetches nothing and runs no program.</footer>"


def _plain(value: object) -> str:
    """A declared fact as text: numbers with their commas, lists with theirs."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return "; ".join(f"{name} {_plain(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_range(item) if isinstance(item, list) else str(item) for item in value)
    return str(value)


def _range(pair: list[object]) -> str:
    return (
        f"{pair[0]:g} to {pair[1]:g}" if len(pair) == 2 and all(isinstance(end, float) for end in pair) else str(pair)
    )


_EXTRA = {ESTIMATED_RANGES: "noisy_counts", CHECKED: "noisy_checks"}
"""What reading a table releases next to the solver's plan, by the fact that it leaves in the certificate."""


def report_of(
    model: "TableModel", title: str, spent: "Spent | None" = None, scores: Sequence[PrivateScore] = ()
) -> ModelReport:
    """The report; ``spent`` is the ledger's statement after the fit, ``scores`` what else was released."""
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
    """The effects of numbers that may bend, and of products with numbers."""
    kinds = model.schema_.columns.items()
    bent = {name for name, kind in kinds if isinstance(kind, Number) and (kind.is_curve or kind.is_bent)}
    numeric = {name for name, kind in kinds if isinstance(kind, Number)}
    curves = [effect for effect in model.term_effects() if effect.column in bent]
    return curves + [effect for effect in model.product_effects() if effect.column in numeric]


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
    return [
        Coefficient(
            c.name,
            c.column,
            c.output if several else "",
            c.value,
            None if c.noise is None else width * c.noise,
            c.unit,
        )
        for c in named
    ]


def _facts(model: "TableModel") -> list[Fact]:
    from discreet.schema.schema import describe

    public, schema = model.certificate_.assumed_public, model.schema_
    estimated = public.get(ESTIMATED_RANGES, {})
    facts = []
    if schema.target is not None:
        ends = schema.target.range
        text = (
            f"one of {', '.join(map(str, schema.target.classes or ()))}"
            if ends is None
            else f"{ends[0]:g} to {ends[1]:g}"
        )
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
