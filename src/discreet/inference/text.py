"""Tables of effects as plain text, Markdown, LaTeX and HTML: of one model, and of several side by side (``etable``).

Names may hold anything: each format escapes them.
"""

import html
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.errors import Unsupported
from discreet.parameters import Share, checked

if TYPE_CHECKING:
    import pandas as pd

    from discreet.inference.summary import Summary

DASH = "\N{EN DASH}"
"""Stands for every number of an effect that noise hides."""
Cells = Sequence[Sequence[str]]
"""Rows of texts, the headings first; the first column has names."""
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
          "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"$<$", ">": r"$>$", "|": r"$|$",
          DASH: "--"}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*<\[\]|]|(?<!\w)_|_(?!\w))")


def data_frames() -> Any:
    """Return pandas; where it is not installed, say what needs it."""
    try:
        import pandas
    except ImportError:
        raise Unsupported("a data frame needs pandas: install discreet[tables]; columns() needs nothing") from None
    return pandas


def one_line(text: str) -> str:
    """Return a text without line breaks and control characters, which would end a row."""
    return "".join(character if character.isprintable() else " " for character in text)


def plain_lines(rows: Cells) -> list[str]:
    """Return aligned lines: names to the left, numbers to the right."""
    texts = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[j]) for row in texts) for j in range(len(texts[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in texts]


def markdown_table(rows: Cells) -> str:
    """Return a table with pipes."""
    lines = ["| " + " | ".join(_MARKDOWN.sub(r"\\\1", one_line(cell)) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]])


def latex_table(rows: Cells, foot: int = 0) -> str:
    """Return a ``tabular`` that needs no package, with a line before its last ``foot`` rows."""
    lines = [" & ".join("".join(_LATEX.get(c, c) for c in one_line(cell)) for cell in row) + r" \\" for row in rows]
    begin, end = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", r"\end{tabular}"
    cut = len(lines) - foot
    below = [r"\hline", *lines[cut:]] if foot else []
    return "\n".join([begin, r"\hline", lines[0], r"\hline", *lines[1:cut], *below, r"\hline", end])


ABOVE = ("caution", "target")
"""Notes that stand above a table: when not to trust it, and what is estimated. All others stand below."""
_STYLES = {
    "table": "display:block;overflow-x:auto;max-width:100%;border-collapse:collapse;text-align:right",
    "caption": "text-align:left",
    "th": "text-align:left;vertical-align:top",
    "td": "padding-left:1em;white-space:nowrap",
    "note": "text-align:left;white-space:normal;padding-top:.5em",
}


def html_table(rows: Cells, notes: Mapping[str, str] | None = None, foot: int = 0) -> str:
    """Return a ``table`` element; the last ``foot`` rows are its foot, and notes stand above and below."""

    def element(tag: str, text: str, style: str = "", more: str = "") -> str:
        return f'<{tag}{more} style="{_STYLES[style or tag]}">{text}</{tag}>'

    def line(row: Sequence[str], tag: str) -> str:
        first, *others = map(html.escape, row)
        return f"<tr>{element('th', first)}{''.join(element(tag, cell, 'td') for cell in others)}</tr>"

    said = {name: html.escape(f"{name}: {text}") for name, text in (notes or {}).items()}
    caption = element("caption", "<br>".join(said[name] for name in ABOVE if name in said))
    across = f' colspan="{len(rows[0])}"'
    below = "<br>".join(text for name, text in said.items() if name not in ABOVE)
    lines = [line(row, "td") for row in rows[1:]]
    cut = len(lines) - foot
    lines += [f"<tr>{element('td', below, 'note', across)}</tr>"] if below else []
    return (
        f'<table style="{_STYLES["table"]}">{caption}<thead>{line(rows[0], "th")}</thead>'
        f"<tbody>{''.join(lines[:cut])}</tbody><tfoot>{''.join(lines[cut:])}</tfoot></table>"
    )


HIDDEN = f"{DASH} not shown: the line 'hidden' of each model's own summary says why, and what would help"
UNADJUSTED = "Other effects may not be adjusted for these: where columns go together, they count their effect too"
OTHER = "(other)"
WIDTH = 100
"""Columns of text; facts are wrapped at it."""
HEADINGS = {"se_privacy": "se privacy", "p": "P>|z|"}


class Tabular:
    """Tables that print as aligned text and show as HTML in notebooks; papers take Markdown or LaTeX."""

    foot: int = 0
    notes: Mapping[str, str]

    def cells(self) -> Cells:
        """Return the table as texts, the headings first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_markdown(self) -> str:
        """Return the table in Markdown, with pipes."""
        return markdown_table(self.cells())

    def to_latex(self) -> str:
        """Return the table in LaTeX, as a ``tabular`` that needs no package."""
        return latex_table(self.cells(), self.foot)

    def to_html(self) -> str:
        """Return the table in HTML, as a ``table`` element, names escaped."""
        return html_table(self.cells(), self.notes, self.foot)


def notes_lines(notes: Mapping[str, str], width: int) -> list[str]:
    """Return notes, each behind its name, wrapped."""
    label = max(map(len, notes), default=0)
    lines = []
    for name, value in notes.items():
        first, *more = textwrap.wrap(value, max(WIDTH, width) - label - 2) or [""]
        lines += [f"{name.ljust(label)}  {first}", *(" " * (label + 2) + line for line in more)]
    return lines


def hidden_text(reasons: Mapping[str, str]) -> str:
    """Say why effects are not shown: the names of those with one reason together."""
    if not reasons:
        return HIDDEN
    shown = ". ".join(f"{', '.join(names)}: {reason}" for reason, names in grouped(reasons).items())
    return f"{DASH} not shown. {shown}. {UNADJUSTED}"


_SHARE = re.compile(r"\((below 1%|about (\d+)%)\)")


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each reason with the names it is given for; reasons that differ in a share of rows alone are one."""
    alike: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        alike.setdefault(_SHARE.sub("()", reason), []).append(name)
    groups = dict[str, list[str]]()
    for reason, names in alike.items():
        shares = sorted({(int(m[2] or 0), m[1]) for m in map(_SHARE.search, (reasons[name] for name in names)) if m})
        ends = list(dict.fromkeys(text for _, text in (*shares[:1], *shares[-1:])))
        groups[reason.replace("()", f"({' to '.join(ends)})")] = names
    return groups


NEAR_ONE, MOST_PLACES = 0.005, 12
"""Ratios nearer to 1 are shown with more places."""


def number_text(column: str, value: float) -> str:
    """Return a number of a column as it is shown; a dash for NaN."""
    if math.isnan(value):
        return DASH
    if column == "p":
        return "<.001" if value < 0.001 else f"{value:.3f}"
    if column in ("z", "inflation"):
        return f"{value:.2f}"
    away = abs(value - 1.0)
    if column.endswith("ratio") and 0 < away < NEAR_ONE:  # with two digits of what it is more or less than 1
        return f"{value:.{min(1 - math.floor(math.log10(away)), MOST_PLACES)}f}"
    return f"{value:.4g}"


TOGETHER = "budgets of fits on the same records add up: a ledger has their total"


@dataclass(frozen=True, repr=False)
class EffectsTable(Tabular):
    """Effects of several models side by side: printing it shows a table, notebooks show it as HTML.

    Parameters
    ----------
    rows : tuple
        Rows of texts, the headings first.
    foot : int
        How many of the last rows are about the models, not effects.
    notes : dict
        What the numbers are.

    Examples
    --------
    >>> from discreet.models import EffectsTable
    >>> table = EffectsTable((("", "(1)"), ("age", "0.03")))
    >>> print(table.to_markdown())
    |  | (1) |
    |---|---:|
    | age | 0.03 |
    >>> table.to_latex()[:15], table.to_html()[:6]
    ('\\\\begin{tabular}', '<table')
    """

    rows: tuple[tuple[str, ...], ...]
    foot: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> Cells:
        """Return ``rows``."""
        return self.rows

    @property
    def frame(self) -> "pd.DataFrame":
        """The texts as a data frame."""
        pd = data_frames()
        head, *rows = self.rows
        return pd.DataFrame([row[1:] for row in rows], index=[row[0] for row in rows], columns=list(head[1:]))

    def __str__(self) -> str:
        lines = plain_lines(self.rows)
        rule, cut = "=" * max(map(len, lines)), len(lines) - self.foot
        below = [rule.replace("=", "-"), *lines[cut:]] if self.foot else []
        notes = notes_lines(self.notes, len(rule))
        return "\n".join([rule, lines[0], rule.replace("=", "-"), *lines[1:cut], *below, rule, *notes])


@checked
def etable(
    models: Any,
    *,
    labels: Sequence[str] | None = None,
    ratios: bool = False,
    show: Literal["se", "interval", "p"] | None = None,
    level: Share | None = None,
) -> EffectsTable:
    """Return the effects of several models side by side.

    Parameters
    ----------
    models : sequence of fitted models or of Summary
        Each with ``inference="sandwich"``; one alone is a column by itself.
    labels : sequence of str, default=None
        Names of the columns; None: (1), (2), ...
    ratios : bool, default=False
        Whether odds ratios (rate ratios, relative risk ratios) are shown in place of coefficients.
    show : {"se", "interval", "p"}, default=None
        What stands below each effect. None: standard errors, with ratios intervals.
    level : float, default=None
        That of the intervals; None: each summary's.

    Returns
    -------
    EffectsTable
        Prints as text; ``to_markdown``, ``to_latex`` and ``to_html`` are for papers. A dash stands for an effect that
        noise hides, an empty cell for one that a model does not have.

    Raises
    ------
    Unsupported
        If a model has no summary, or no ratios.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPLinearRegression, etable
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = X @ [1.0, 0.0] + rng.normal(0, 0.5, 20_000)
    >>> model = DPLinearRegression(1.0, bounds=1.0, target=(-4, 4), inference="sandwich").fit(X, y)
    >>> print(etable([model, model], labels=["all", "again"]).to_markdown().splitlines()[0])
    |  | all | again |
    """
    listed = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    if not all(hasattr(model, "combinations") or callable(getattr(model, "summary", None)) for model in listed):
        raise Unsupported("etable needs fitted models, or their summaries")
    summaries: list[Summary] = [model if hasattr(model, "combinations") else model.summary() for model in listed]
    names = [f"({k})" for k in range(1, len(summaries) + 1)] if labels is None else [str(label) for label in labels]
    below = show or ("interval" if ratios else "se")
    if not summaries or len(names) != len(summaries):
        raise Unsupported("etable needs at least one model, and one label for each")
    if ratios and show == "se":
        raise Unsupported("ratios have no standard errors: show intervals, or p")
    if ratios and not all(summary.ratio for summary in summaries):
        raise Unsupported("a model's effects are differences, not ratios: leave ratios out")
    parts = [_cells(summary, below, level, ratios=ratios) for summary in summaries]
    pairs = [pair for summary in summaries for pair in zip(summary.names, summary.structure.terms, strict=True)]
    intercepts = {name for name, factors in pairs if not factors}
    rows = [(name, *cells) for name, *cells in _aligned(parts, intercepts)]
    about = [_about(summary) for summary in summaries]
    foot = [(key, *(facts.get(key, "") for facts in about)) for key in about[0]]
    head = ("", *names)
    return EffectsTable((head, *rows, *foot), len(foot), _notes(summaries, below, level, ratios=ratios))


def _cells(summary: "Summary", show: str, level: float | None, *, ratios: bool) -> dict[str, tuple[str, str]]:
    """Return name -> the effect and what stands below it."""
    columns, cells = summary.columns(level), {}
    ends = {end: np.exp(columns[end]) if ratios else columns[end] for end in ("coef", "low", "high")}
    for j in summary.structure.ratios if ratios else range(len(summary.names)):
        value, low, high = (number_text("ratio" if ratios else end, float(ends[end][j])) for end in ends)
        below = {"se": f"({number_text('se', float(columns['se'][j]))})", "interval": f"[{low}, {high}]"}
        below["p"] = f"(p = {number_text('p', float(columns['p'][j]))})".replace("= <", "< ")
        cells[summary.names[j]] = (value, "" if value == DASH else below[show])
    return cells


def _aligned(parts: list[dict[str, tuple[str, str]]], intercepts: set[str]) -> list[list[str]]:
    """Return two rows per effect, in the order in which effects come, intercepts last."""
    names = sorted(dict.fromkeys(name for part in parts for name in part), key=intercepts.__contains__)
    rows = []
    for name in names:
        cells = [part.get(name, ("", "")) for part in parts]
        rows += [[name, *(value for value, _ in cells)], ["", *(below for _, below in cells)]]
    return rows


def _about(summary: "Summary") -> dict[str, str]:
    """Return what the foot says of a model."""
    certificate = summary.certificate
    n = None if certificate is None else certificate.assumed_public.get("n")
    people = "persons" if certificate is not None and certificate.unit == "person" else "rows"
    return {
        "model": summary.facts.get("model", ""),
        "rows": "" if n is None else f"{n:,}{' persons' if people == 'persons' else ''}",
        "epsilon": "" if certificate is None else f"{certificate.epsilon:.6g}",
        "delta": "" if certificate is None else f"{certificate.delta:.3g}",
        "relation": "" if certificate is None else str(certificate.neighbors),
        "covariance": summary.cov_type,
    }


def _notes(summaries: "list[Summary]", show: str, level: float | None, *, ratios: bool) -> dict[str, str]:
    levels = dict.fromkeys(f"{100 * (summary.level if level is None else level):g}%" for summary in summaries)
    kinds = ", ".join(dict.fromkeys(summary.ratio for summary in summaries))
    what = f"{kinds}s" if ratios else "coefficients in the columns' own units"
    under = {"se": "standard errors", "interval": f"intervals ({', '.join(levels)})", "p": "p-values"}[show]
    notes = {"shown": f"{what}; below each {under} that count sampling and privacy noise"}
    notes |= {"hidden": HIDDEN} if any(summary.hidden.any() for summary in summaries) else {}
    return notes | {"together": TOGETHER} if len(summaries) > 1 else notes
