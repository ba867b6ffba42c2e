"""The picture of an audit: the scores of both sides, and the bound next to the claim."""

from pathlib import Path
from typing import Any

from discreet.audit.audit_result import Audit
from discreet.errors import Unsupported

_SIDES = ("#4c72b0", "#dd8452")


def draw(audit: Audit, path: Path) -> Path:
    """Write the picture; the ending of the path says in which format."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Unsupported("pictures need matplotlib: pip install 'discreet[plot]'") from None
    if audit.sides is None or audit.bound is None:
        raise Unsupported("a deterministic audit has no scores to show: print it")
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    scores, bar = figure.subplots(1, 2, width_ratios=(2, 1))
    _scores(scores, audit)
    _bar(bar, audit)
    figure.suptitle(f"{audit.verdict}: {audit.subject}, {audit.neighbors}", fontsize=11)
    figure.savefig(path, dpi=150)
    return path


def _scores(axes: Any, audit: Audit) -> None:
    sides = audit.sides
    assert sides is not None
    shown = [list(sides.without), list(sides.inside)]
    axes.hist(shown, bins=40, histtype="stepfilled", alpha=0.55, color=_SIDES, label=["one side", "its neighbor"])
    axes.axvline(sides.threshold, color="black", linewidth=1, label="threshold")
    axes.set_xlabel("score of a run")
    axes.set_ylabel("runs")
    axes.legend(frameon=False, fontsize=9)


def _bar(axes: Any, audit: Audit) -> None:
    assert audit.bound is not None
    axes.barh(
        ["proved", "claimed"], [audit.bound, audit.claimed], color=["#c44e52" if audit.refuted else "#55a868", "0.7"]
    )
    for place, value in enumerate((audit.bound, audit.claimed)):
        axes.text(value, place, f" {value:.3g}", va="center")
    axes.set_xlabel(f"epsilon at delta = {audit.delta:g}")
    axes.set_xlim(0, 1.25 * max(audit.bound, audit.claimed, 1e-3))
