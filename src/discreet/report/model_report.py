"""``ModelReport``: everything that may be said of one fitted model, on one page.

It is built from plain values: a certificate, named coefficients, declared facts, a ledger's statement, released scores,
and a forecast from public facts. It never sees a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from discreet.accounting.cell_counts import CHECKED
from discreet.accounting.certificate import Certificate
from discreet.accounting.coverage import GIVEN
from discreet.ledger.account import Spent
from discreet.models.inference.summary import Summary
from discreet.models.intervals import ALL_NOISE, all_noise, covers, deviations
from discreet.report.budget_section import account_bar, plan_section, released
from discreet.report.checks_section import checks_section
from discreet.report.coefficients_section import Coefficient, coefficient_figure, coefficient_table
from discreet.report.effect_curves import noise_curves
from discreet.report.effects_section import effects_section
from discreet.report.forecast_curves import curves_section
from discreet.report.forecast_section import CostForecast, cost_forecast
from discreet.report.guarantee_section import one_of, promise_section
from discreet.report.hazards_section import hazards_section
from discreet.report.html import isolated, number, paragraphs, percent, table
from discreet.report.page import certificate_in, certificate_section, document, heading, trace_section
from discreet.report.scores_section import Score, scores_section

if TYPE_CHECKING:
    from discreet.models.term_effects import TermEffect

__all__ = ["Coefficient", "CostForecast", "Fact", "ModelReport", "Score", "certificate_in", "cost_forecast"]

SOURCES = {
    "declared": "declared",
    "estimated": "estimated: released with noise",
    "container": "known from the file's form",
    "given": "handed in as public",
}
_RELATIONS = {
    "replace_one": "replace one: tables that differ in one {one}, with the same number of them",
    "zero_out": "zero out: tables of which one has one {one} blanked",
    "add_remove": "add or remove: tables of which one has one {one} more",
}


@dataclass(frozen=True)
class Fact:
    """Something that the fit took as public.

    Parameters
    ----------
    name, text
        What it is about, such as a column's name, and what is said: ``"number from 18 to 110"``.
    source
        ``"declared"`` by the owner; ``"estimated"``: a range found with noise, paid for from the budget and released;
        ``"container"``: known from the form of the table, such as the number of rows; ``"given"``: numbers that the
        user handed in, such as a start.
    """

    name: str
    text: str
    source: str = "declared"


@dataclass(frozen=True)
class ModelReport:
    """The report of a fitted model.

    Parameters
    ----------
    title
        Such as ``"Private model of readmission"``.
    certificate
        The model's certificate; it is embedded in the page.
    coefficients, level, units
        The coefficients, the level of their intervals, and what a coefficient is per what:
        ``"log-odds per unit of the column"``, or a whole sentence.
    facts
        What was taken as public, column by column. Empty: as the certificate lists it.
    spent
        The ledger's statement of the data set after this fit; None without a ledger.
    forecast
        Of ``cost_forecast(estimator, n, p)``; None leaves the section out.
    scores
        Scores that may be shown.
    steps
        Names of the queries, one for each event of the certificate. Empty: those of the forecast's plan where they fit.
    effects
        The summary of effects for a population, shown in place of the coefficients; why there is none; None without
        inference.
    curves
        The effects of numbers that may bend, drawn in place of their coefficients' marks.
    """

    title: str
    certificate: Certificate
    coefficients: Sequence[Coefficient] = ()
    level: float = 0.95
    facts: Sequence[Fact] = ()
    spent: Spent | None = None
    forecast: CostForecast | None = None
    scores: Sequence[Score] = ()
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
        made, one = self.certificate, one_of(self.certificate)
        cards: list[tuple[str, str, str]] = []
        if made.is_private:
            cards.append(("epsilon", number(made.epsilon, 4), f"for each {one}"))
            cards.append(
                ("delta", number(made.delta) if made.delta else "0", "allowed slack" if made.delta else "no slack")
            )
        n = made.assumed_public.get("n")
        if n is not None:
            cards.append((f"{one}s", f"{n:,}" if isinstance(n, int) else str(n), "taken as public"))
        asked = sum(event.count for event in released(made))
        cards.append(("releases", f"{asked:,}", str(made.solver.get("name", ""))))
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
        slopes, curved = [c for c in self.coefficients if not c.is_intercept], {curve.column for curve in self.curves}
        known = [(c.value, c.half_width) for c in slopes if c.half_width is not None]
        said = [self.units if self.units.endswith(".") or not self.units else f"In {self.units}."]
        if known:
            said.append("Dots are the coefficients, whiskers their intervals, each column on a scale of its own.")
        notes = [covers(self.level)] if known else []
        if any(c.is_intercept for c in self.coefficients):
            notes.append("The intercept is in the table only: it has another scale.")
        warned = [ALL_NOISE] if all_noise(known) else []
        shown = coefficient_table(self.coefficients, self.level)
        return "\n".join(
            [
                '<h2 id="coefficients">Coefficients</h2>',
                paragraphs([" ".join(part for part in said if part), *warned]) if any(said) else "",
                coefficient_figure([c for c in self.coefficients if c.column not in curved]) if known else "",
                paragraphs(notes, "note"),
                noise_curves(self.curves, deviations(self.level, pure=self.certificate.delta == 0)),
                f"<details><summary>The numbers of all {len(self.coefficients)}, as a table</summary>{shown}</details>",
            ]
        )

    def _budget(self) -> str:
        said = (
            "This fit was charged to no ledger. What else was released of these rows, if anything, is not known here."
        )
        if self.certificate.ledger is not None:
            said = "This fit was charged to a ledger before a row was read; the certificate names the entry."
        body = account_bar(self.spent) if self.spent is not None else paragraphs([said])
        return f'<h2 id="budget">Budget</h2>\n{body}'

    def _public(self) -> str:
        made, one = self.certificate, one_of(self.certificate)
        relation = _RELATIONS[str(made.neighbors)].format(one=one)
        facts = [
            Fact("unit of privacy", "one row" if made.unit == "record" else "all rows of one person", "declared"),
            Fact("relation", relation, "declared"),
            *self.facts,
        ]
        named = {fact.name for fact in self.facts}
        if not self.facts:
            public = made.assumed_public.items()
            facts += [Fact(name, _plain(value)) for name, value in public if name not in (CHECKED, GIVEN)]
        elif "n" in made.assumed_public and not named & {"n", f"{one}s", f"number of {one}s"}:
            facts.append(Fact(f"number of {one}s", _plain(made.assumed_public["n"]), "container"))
        facts += [Fact(name, _plain(value), "given") for name, value in made.assumed_public.get(GIVEN, {}).items()]
        rows = [
            f'<tr><th scope="row">{isolated(fact.name)}</th><td class="words">{isolated(fact.text)}</td><td>'
            f'<span class="badge {"estimated" if fact.source == "estimated" else ""}">'
            f"{escape(SOURCES.get(fact.source, fact.source))}</span></td></tr>"
            for fact in facts
        ]
        said = [
            "The promise rests on these facts. None of them was measured, except where it says that it was estimated."
        ]
        if GIVEN in made.assumed_public:
            said.append(
                "Those handed in as public are the user's numbers. If they came from the rows, that was not counted."
            )
        if any(fact.source == "estimated" for fact in facts):
            said.append(
                "Those marked as estimated were found in the table with noise. They are released, and in the price."
            )
        shown = table(["what", "what is said of it", "from"], rows, label="Public facts", kind="wide stacked")
        return '<h2 id="public">Taken as public</h2>\n' + paragraphs(said) + shown

    def _forecast(self) -> str:
        if self.forecast is None:
            return ""
        return '<h2 id="forecast">Other budgets, other tables</h2>\n' + curves_section(self.forecast)

    def _footer(self) -> str:
        made = " ".join(part for part in (self.certificate.library_version, self.certificate.created) if part)
        return f"<footer>Made by discreet {escape(made)}. This page fetches nothing and runs no program.</footer>"


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
