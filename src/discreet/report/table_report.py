"""The report of a table model: what a ``ModelReport`` needs, from a fitted model and its schema."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.accounting.cell_counts import CHECKED, ESTIMATED_RANGES
from discreet.models.inference.shown_effects import shown_effects
from discreet.models.intervals import LEVEL, deviations
from discreet.models.selection.search_price import facts_of
from discreet.report.model_report import Coefficient, Fact, ModelReport, Score, cost_forecast
from discreet.schema.columns import Number

if TYPE_CHECKING:
    from discreet.ledger.account import Spent
    from discreet.models.table_model import TableModel
    from discreet.models.term_effects import TermEffect

_EXTRA = {ESTIMATED_RANGES: "noisy_counts", CHECKED: "noisy_checks"}
"""What reading a table releases next to the solver's plan, by the fact that it leaves in the certificate."""


def report_of(
    model: "TableModel", title: str, spent: "Spent | None" = None, scores: Sequence[Score] = ()
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
    """The effects of numbers that may bend."""
    kinds = model.schema_.columns.items()
    bent = {name for name, kind in kinds if isinstance(kind, Number) and (kind.is_curve or kind.is_bent)}
    return [effect for effect in model.term_effects() if effect.column in bent]


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
    from discreet.schema.description import describe

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
    if schema.person is not None:
        facts.append(Fact(schema.person, "names the person behind a row"))
    if "n" in public:
        unit = "persons" if schema.person is not None else "rows"
        facts.append(Fact(f"number of {unit}", f"{public['n']:,}", "declared" if schema.rows else "container"))
    return facts
