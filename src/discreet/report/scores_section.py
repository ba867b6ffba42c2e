"""Released scores: a table, and the groups, tenths or cells that a score has, as a table or a picture."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.errors import AccountingError, Unsupported
from discreet.models.scoring.result import words_of
from discreet.report.html import isolated, number, paragraphs, percent, table

_SAID = "Scores that were released. What a score cost comes on top of what the model cost."
_CALIBRATION = "calibration error"
_MIDDLES = tuple((tenth + 0.5) / 10 for tenth in range(10))
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
    def from_dict(cls, found: Any) -> "Score":
        """Return the score that ``PrivateScore.to_dict`` or ``discreet score --json`` wrote.

        Its certificate is priced again: what a score claims to have cost is not taken on the file's word.
        """
        try:
            return cls._read(found)
        except (AccountingError, AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise Unsupported("this is not a score as `discreet score --json` writes it") from None

    @classmethod
    def _read(cls, found: Mapping[str, Any]) -> "Score":
        words, stored, n = words_of(found["metric"]), found["certificate"], found["n"]
        low, high, level = (_number(found[name]) for name in ("low", "high", "level"))
        parts = tuple(
            ScorePart(str(part["name"]), *(_number(part[name]) for name in ("value", "low", "high")))
            for part in found.get("parts", ())
        )
        rows = "rows" if n is None else f"{int(n):,} rows"
        epsilon, note = 0.0, f"on {rows} that were declared public"
        if stored is not None:
            certificate = Certificate.from_json(json.dumps(stored))
            certificate.verify()
            note = f"on {rows}, with noise; {certificate.headline}"
            epsilon = certificate.epsilon
        return cls(words, _number(found["value"]), low, high, level, epsilon, note, parts)


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
    whole = table(head, rows, label="Scores", numbers=(1,), kind="wide stacked")
    return '<h2 id="scores">Released scores</h2>' + paragraphs([_SAID]) + whole + "".join(map(_parts, scores))


def _parts(score: Score) -> str:
    """Return a score's parts: a picture for calibration, and a table."""
    if not score.parts:
        return ""
    shown = _as_count if _are_counts(score) else _as_score(score)
    rows = [
        f'<tr><th scope="row">{isolated(part.name)}</th><td class="number">{shown(part.value)}</td>'
        f"<td>{shown(part.low)} to {shown(part.high)}</td></tr>"
        for part in score.parts
    ]
    drawn = _calibration(score) if score.metric == _CALIBRATION else ""
    head = ["predicted chance" if drawn else "part", "happened" if drawn else "value", f"{percent(score.level, 0)}"]
    numbers = table(head, rows, label=f"Parts of the {score.metric}", numbers=(1,))
    return f"<h3>{escape(score.metric).capitalize()}, in parts</h3>{drawn}{numbers}"


def _are_counts(score: Score) -> bool:
    return any(" predicted as " in part.name for part in score.parts)


def _as_score(score: Score) -> Callable[[float], str]:
    """Accuracies in percent, all else as it is."""
    return percent if score.metric.lower() in ("accuracy", "balanced accuracy") else number


def _as_count(value: float) -> str:
    return f"{value:,.0f}"


def _calibration(score: Score) -> str:
    """Draw what happened against what was predicted: dots on the diagonal are right."""

    def place(chance: float) -> float:
        return _EDGE + _SIDE * min(max(chance, 0.0), 1.0)

    marks = []
    for middle, part in zip(_MIDDLES, score.parts, strict=False):
        if math.isnan(part.value):
            continue
        x, ends = place(middle), (place(1 - part.low), place(1 - part.high))
        marks.append(f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>')
        marks.append(f'<circle class="dot" cx="{x:.1f}" cy="{place(1 - part.value):.1f}" r="3.6"/>')
    first, last, whole = place(0.0), place(1.0), 2 * _EDGE + _SIDE
    frame = "".join(
        f'<line class="grid" x1="{first}" x2="{last}" y1="{place(at)}" y2="{place(at)}"/>'
        f'<text x="{first - 6}" y="{place(1 - at) + 4}" text-anchor="end">{at:g}</text>'
        f'<text x="{place(at)}" y="{last + 16}" text-anchor="middle">{at:g}</text>'
        for at in (0.0, 0.5, 1.0)
    )
    told = "Calibration: what happened, by the predicted chance. The table below has the numbers."
    return (
        f'<figure class="panel" style="max-width:22rem"><svg viewBox="0 0 {whole:g} {whole:g}" role="img" '
        f'aria-label="{told}">{frame}<line class="zero" x1="{first}" y1="{last}" x2="{last}" y2="{first}"/>'
        f'{"".join(marks)}<text class="name" x="{place(0.5)}" y="{whole - 2:g}" text-anchor="middle">'
        f"predicted chance</text></svg><figcaption>Dots: how often it happened, with intervals over the noise. On the "
        "line, predictions are right.</figcaption></figure>"
    )
