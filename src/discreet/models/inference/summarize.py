"""From a fitted model to its summary: units, names, bases, and why there is none."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.errors import Unsupported
from discreet.models.inference.hypotheses import Blocks
from discreet.models.inference.structure import Structure
from discreet.models.inference.summary import Summary
from discreet.models.inference.units import Units, intercept_name, own_units
from discreet.solvers.base import Effects
from discreet.solvers.sandwich_rules import FORECAST
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel
    from discreet.schema.schema import Schema

CAUTION = (
    "Do not trust effects on counts with far-out values or strong overdispersion, nor those of a model that is wrong "
    "where columns are far out: far-out rows count less there, which changes what is estimated. See docs/inference.md, "
    "When coverage fails."
)
"""When effects are not to be trusted: the first words of every summary, of the report's effects and of the page."""
TOLD, NAMED = 0.02, 4
"""A part of a variance that allows for bias is spoken of from here on, of at most so many effects by name."""


class MeanInterval(NamedTuple):
    """Predicted means with intervals: for the mean of all records with these features, not for one record.

    Parameters
    ----------
    mean, low, high : ndarray
        One number per row, on the scale of the target (probabilities for classes).

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models import MeanInterval
    >>> MeanInterval(np.array([0.5]), np.array([0.4]), np.array([0.6])).low
    array([0.4])
    """

    mean: Floats
    low: Floats
    high: Floats


def summary_of(model: "DPLinearModel", level: float, schema: "Schema | None" = None) -> Summary:
    """Return the summary of a fitted model, in the columns' own units where there is a schema."""
    reason = why_not(model)
    if reason is not None:
        raise Unsupported(reason)
    slope, intercept = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)
    columns = np.vstack([slope, intercept]) if model.fit_intercept else slope
    units = _arrays(model) if schema is None else own_units(schema, fit_intercept=model.fit_intercept)
    assert model.effects_ is not None
    names, structure = list(units.names), units.structure
    shown, effects = units.matrix @ columns, model.effects_.through(units.matrix)
    blocks: Blocks = ()
    if columns.shape[1] > 1:
        blocks = tuple((str(label), name) for label in model.classes_[1:] for name in names)
        structure = structure.repeated(columns.shape[1] - 1)
        shown, names = shown[:, 1:] - shown[:, :1], [f"{label}: {name}" for label, name in blocks]
    about = (_facts(model), _ratio(model), level, blocks, structure, model.certificate_, str(model.cov_type))
    made = Summary(tuple(names), shown.T.ravel(), effects, *about)
    made.facts.update(_bias(names, made.effects))
    hidden = made.hidden[structure.slopes or slice(None)]
    if hidden.all():
        raise Unsupported(
            "No standard errors can be given: every effect is smaller than the privacy noise. The budget was spent. "
            "For another fit, use more rows, fewer columns, narrower ranges or a larger epsilon"
            f"{'' if blocks else f' ({FORECAST})'}"
        )
    return made


def why_not(model: Any) -> str | None:
    """Return why a fitted model has no summary, and what would help; None where it has one."""
    effects = getattr(model, "effects_", None)
    if effects is None:
        if getattr(model, "penalty", None) == "l1" or not hasattr(model, "inference"):
            return (
                "this model's effects have no standard errors: a penalty with corners moves them to 0, and a hinge has "
                "no likelihood; use DPLinearRegression, DPRidge, DPHuberRegressor, DPPoissonRegressor or "
                "DPLogisticRegression with inference='sandwich'"
            )
        return (
            "nothing was reserved for standard errors: fit again with inference='sandwich' (discreet fit --inference "
            "sandwich); intervals() tells what the privacy noise alone did"
        )
    return None


def mean_interval(model: "DPLinearModel", X: Floats, level: float) -> MeanInterval:
    """Return predicted means of encoded, clipped rows, with intervals."""
    summary = summary_of(model, level)
    if summary.blocks:
        raise Unsupported("predicted means have intervals for numbers and two classes: see summary() for effects")
    rows = np.hstack([X, np.ones((len(X), 1))]) if model.fit_intercept else X
    ratio = _ratio(model)
    mean = rows @ np.append(np.ravel(model.coef_), np.ravel(model.intercept_) if model.fit_intercept else [])
    found = (mean, *summary.interval(rows)[1:])
    if ratio == "odds ratio":
        return MeanInterval(*(1.0 / (1.0 + np.exp(-end)) for end in found))
    return MeanInterval(*(np.exp(end) if ratio else end for end in found))


def _arrays(model: Any) -> Units:
    named = getattr(model, "feature_names_in_", None)
    count = model.n_features_in_
    names = [str(name) for name in named] if named is not None else [f"x{j}" for j in range(count)]
    intercept = intercept_name(names) if model.fit_intercept else None
    names += [] if intercept is None else [intercept]
    return Units(tuple(names), np.eye(len(names)), Structure.of_arrays(names, intercept))


def _ratio(model: Any) -> str:
    loss = model._facts()[1]
    if loss.softmax_link:
        return "relative risk ratio"
    return "odds ratio" if loss.sigmoid_link else "rate ratio" if loss.log_link else ""


def _facts(model: Any) -> dict[str, str]:
    certificate = model.certificate_
    budget = f"epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.3g}, {certificate.neighbors}"
    return {
        "caution": CAUTION,
        "model": type(model).__name__,
        "covariance": f"{model.cov_type}: sampling and privacy noise, sandwich",
        "guarantee": budget,
        "target": _target(model),
        **({"classes": f"log odds against {model.classes_[0]}"} if model._facts()[1].softmax_link else {}),
        **_weights(model.effects_),
    }


def _bias(names: list[str], effects: Effects) -> dict[str, str]:
    """Name the effects whose standard errors allow for what weights may do to them."""
    parts = np.diag(effects.bias) / np.maximum(np.diag(effects.covariance), 1e-300)
    longest = [name for name, part in sorted(zip(names, parts, strict=True), key=lambda pair: -pair[1]) if part > TOLD]
    if not longest:
        return {}
    more = f" and {len(longest) - NAMED} more" if len(longest) > NAMED else ""
    said = "Standard errors allow for bias of columns whose declared ranges go far beyond most rows"
    return {"bias": f"{said} ({', '.join(longest[:NAMED])}{more})"}


def _target(model: Any) -> str:
    """Name what is estimated: the plain model's coefficients, or those of one in which some rows count less."""
    name = "least squares" if model._facts()[1].quadratic else "the population's unpenalized coefficients"
    effects, clipped = model.effects_, "for records clipped to their declared ranges"
    if not effects.far + effects.cut > 0:
        return f"{name}, {clipped}"
    return f"bounded-influence regression: {name}, {clipped}, where about {_few_rows(effects)} count less"


def _few_rows(effects: Effects) -> str:
    """Say how many rows count less than others, by noisy counts."""
    far = f"{effects.far:.1%} of rows (over {effects.reach:.2g} times the typical size)" if effects.far > 0 else ""
    cut = f"{effects.cut:.2%} of residuals" if effects.cut > 0 else ""
    return " and ".join(filter(None, (far, cut)))


def _weights(effects: Effects) -> dict[str, str]:
    """Say what it means that rows count less than others, where some do."""
    if not effects.far > 0:
        return {}
    told = (
        f"Unusual rows (over {effects.reach:.2g} times the typical size) are down-weighted; if the model is "
        "misspecified, results differ from an unweighted fit"
    )
    return {"weights": told}
