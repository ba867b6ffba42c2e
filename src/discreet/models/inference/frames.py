"""Tables of a summary with broom's names, and the budget that a standard error needs. Post-processing of releases."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.gaussian import epsilon_of, mu_of
from discreet.errors import Unsupported
from discreet.models.inference.grid import data_frames

if TYPE_CHECKING:
    import pandas as pd

    from discreet.models.inference.summary import Summary

BROOM = {
    "coef": "estimate",
    "se": "std.error",
    "z": "statistic",
    "p": "p.value",
    "low": "conf.low",
    "high": "conf.high",
    "se_privacy": "std.error.privacy",
    "inflation": "inflation",
}


def tidy(summary: "Summary", level: float | None, *, exponentiate: bool) -> "pd.DataFrame":
    """Return one row per effect, with broom's names."""
    pd = data_frames()

    if exponentiate and not summary.ratio:
        raise Unsupported("this model's effects are differences, not ratios: leave exponentiate out")
    columns, rows = summary.columns(level), summary.structure.ratios if exponentiate else slice(None)
    frame = pd.DataFrame({new: columns[old] for old, new in BROOM.items()})
    frame.insert(0, "term", [name for _, name in summary.blocks] or list(summary.names))
    if summary.blocks:
        frame.insert(0, "y.level", [group for group, _ in summary.blocks])
    if exponentiate:
        ends = ["estimate", "conf.low", "conf.high"]
        frame[ends] = np.exp(frame[ends])
    return frame.iloc[rows].reset_index(drop=True)


def glance(summary: "Summary") -> "pd.DataFrame":
    """Return one row about the model, with broom's names where it has some."""
    pd = data_frames()

    certificate, slopes = summary.certificate, summary.structure.slopes
    hidden = summary.hidden
    shown = [j for j in slopes if not hidden[j]]
    about: dict[str, Any] = {"model": summary.facts.get("model", ""), "nobs": None}
    about |= dict.fromkeys(("epsilon", "delta"), math.nan) | dict.fromkeys(("neighbors", "unit"), "")
    if certificate is not None:
        about |= {
            "nobs": certificate.assumed_public.get("n"),
            "epsilon": certificate.epsilon,
            "delta": certificate.delta,
        }
        about |= {"neighbors": str(certificate.neighbors), "unit": certificate.unit}
    about |= {"cov_type": summary.cov_type, "effects": len(slopes), "hidden": len(slopes) - len(shown)}
    try:
        test = summary.wald_test(np.eye(len(summary.names))[shown])
        about |= {"statistic": test.statistic, "df": test.df, "p.value": test.p}
    except Unsupported:
        about |= {"statistic": math.nan, "df": len(shown), "p.value": math.nan}
    frame = pd.DataFrame([about])
    return frame.astype({"nobs": "Int64", "df": "Int64"})


def epsilon_for(summary: "Summary", effect: str, standard_error: float) -> float:
    """Return about the epsilon at which an effect has this standard error; ``Summary.epsilon_for`` explains it."""
    certificate = summary.certificate
    if certificate is None or not (0 < certificate.epsilon < math.inf and certificate.delta > 0):
        raise Unsupported("epsilon_for needs a summary of a private fit")
    if not 0 < standard_error < math.inf:
        raise Unsupported("standard_error must be positive, such as 0.05")
    row = summary.combination(effect)
    se, privacy = (float(part(row)[0]) for part in (summary.combinations.deviations, summary.combinations.privacy))
    if math.isnan(se):
        raise Unsupported(f"noise hides {effect}: this fit does not say what epsilon it needs; see forecast_effects()")
    sampling = math.sqrt(max(se**2 - privacy**2, 0.0))
    if standard_error <= sampling:
        times = (sampling / standard_error) ** 2
        raise Unsupported(
            f"no epsilon has a standard error of {standard_error:g} for {effect} with these rows: sampling alone has "
            f"about {sampling:.2g}; more than {times:.2g} times as many rows may have it"
        )
    factor = privacy / math.sqrt(standard_error**2 - sampling**2)
    return epsilon_of(mu_of(certificate.epsilon, certificate.delta) * factor, certificate.delta)
