"""The terms of a table model: which numbers have curves where the schema leaves that open."""

from typing import Any

from discreet.curator import Layout, TableStream
from discreet.models.base import DPLinearModel
from discreet.schema.columns import KNOTS

AUTO, CURVES = "auto", "curves"
TERMS = (AUTO, "linear", CURVES)


def with_terms(terms: str, stream: TableStream, estimator: DPLinearModel) -> TableStream:
    """Return the rows of a table with the curves that ``terms`` stand for, and a note on why."""
    schema = stream.schema
    if terms == CURVES:
        return stream.declared_by(schema.with_curves(KNOTS), f"numbers have curves with {KNOTS} knots, as asked for")
    if terms != AUTO or schema.with_curves(KNOTS) == schema:
        return stream
    if getattr(estimator, "inference", None) or estimator.solver != "auto":
        return stream
    knots, reason = _chosen(stream, estimator)
    return stream.declared_by(schema if knots is None else schema.with_curves(knots), reason)


def _chosen(stream: TableStream, estimator: Any) -> tuple[int | None, str]:
    """Return the knots that the default's table says, by the public facts of the table with lines."""
    from discreet.default.table import Facts, knots_for  # here: a fit imports no solver but its own

    fit = estimator._told(*estimator._declared())
    _, domain, budget = fit.declare(stream, None, None)
    facts = Facts(domain, fit.loss, fit.penalty, budget)
    return knots_for(facts, lambda knots: len(Layout(stream.schema.with_curves(knots)).features))
