"""``Audit``: what an audit tried, what it found next to what was claimed, and its verdict."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import Unsupported
from discreet.typing import Floats

REFUTED, NOT_REFUTED = "REFUTED", "NOT REFUTED"
SYNTHETIC = "synthetic"
SHOWN = 2000


@dataclass(frozen=True)
class Sides:
    """The scores of the runs on the two neighbors, and the threshold that tells them apart: for a picture."""

    without: tuple[float, ...]
    inside: tuple[float, ...]
    threshold: float

    @classmethod
    def of(cls, without: Floats, inside: Floats, threshold: float) -> "Sides":
        """Keep the first scores of each side."""
        first, second = (tuple(side.ravel()[:SHOWN].tolist()) for side in (without, inside))
        return cls(first, second, threshold)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Result of an audit. It can refute a claim; it never proves one.

    Parameters
    ----------
    level : str
        ``"replay"``, ``"gradient"``, ``"transcript"``, ``"model"`` or ``"one_run"``.
    subject : str
        What was audited.
    neighbors : str
        The relation of the two data sets.
    claimed, delta : float
        The claim.
    bound : float, default=None
        The lower bound on epsilon that the runs prove; None where the level is deterministic.
    confidence : float, default=1.0
        The chance that a bound does not exceed the truth.
    runs : int, default=0
        On each side.
    findings : tuple of str, default=()
        What was found without statistics: each of them refutes.
    data : str, default="synthetic"
        ``"synthetic"``, or the name that the user gave to what was audited on.
    settings : dict
        What else it takes to do the same again.
    sides : Sides, default=None
        The scores of the runs, for a picture.

    Examples
    --------
    >>> from discreet.audit import Audit
    >>> Audit(level="model", subject="a fit", neighbors="replace_one", claimed=1.0, delta=0.0, bound=1.3).verdict
    'REFUTED'
    """

    level: str
    subject: str
    neighbors: str
    claimed: float
    delta: float
    bound: float | None = None
    confidence: float = 1.0
    runs: int = 0
    findings: tuple[str, ...] = ()
    data: str = SYNTHETIC
    settings: Mapping[str, Any] = field(default_factory=dict)
    sides: Sides | None = field(default=None, compare=False, repr=False)

    @property
    def refuted(self) -> bool:
        """Whether the claim cannot be true (at the stated confidence)."""
        return bool(self.findings) or (self.bound is not None and self.bound > self.claimed)

    @property
    def verdict(self) -> str:
        """``REFUTED`` or ``NOT REFUTED``; never more."""
        return REFUTED if self.refuted else NOT_REFUTED

    def to_json(self) -> str:
        """Return everything but the scores, as JSON."""
        stored = asdict(self)
        del stored["sides"]
        stored["claimed"] = self.claimed if math.isfinite(self.claimed) else "inf"
        return json.dumps({**stored, "verdict": self.verdict}, indent=2, sort_keys=True, default=str)

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.subject}, {self.level}, {self.neighbors}"]
        lines.append(f"  claimed   epsilon = {self.claimed:.4g}, delta = {self.delta:.3g}")
        if self.bound is not None:
            lines.append(f"  proved    epsilon >= {self.bound:.4g} at a confidence of {self.confidence:g}")
            runs = "one run" if self.runs == 1 else f"{self.runs} runs on each side"
            lines.append(f"  from      {runs}, on {self.data} data")
        else:
            lines.append(f"  from      {self.runs} pairs of neighbors, on {self.data} data, without statistics")
        lines += [f"  found     {finding}" for finding in self.findings]
        if not self.refuted:
            lines.append(
                "  This is no proof: an audit finds what it tries, and the claim rests on the mechanism's proof."
            )
        return "\n".join(lines)

    def figure(self, path: str | Path) -> Path:
        """Draw the runs' scores on both sides, and the bound next to the claim (needs matplotlib)."""
        return _draw(self, Path(path))


_SIDES = ("#4c72b0", "#dd8452")


def _draw(audit: Audit, path: Path) -> Path:
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
