"""Tables of texts as plain text, Markdown, LaTeX and HTML. Names may hold anything: each format escapes them."""

import html
import re
from collections.abc import Sequence
from typing import Any

from discreet.errors import Unsupported

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
    lines = [" & ".join(_latex(one_line(cell)) for cell in row) + r" \\" for row in rows]
    begin, end = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", r"\end{tabular}"
    cut = len(lines) - foot
    below = [r"\hline", *lines[cut:]] if foot else []
    return "\n".join([begin, r"\hline", lines[0], r"\hline", *lines[1:cut], *below, r"\hline", end])


def html_table(rows: Cells, caption: str = "", foot: int = 0) -> str:
    """Return a ``table`` element; the last ``foot`` rows are its foot."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
    lines = [
        f"<tr><th>{html.escape(row[0])}</th>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row[1:])}</tr>"
        for row in rows[1:]
    ]
    cut = len(lines) - foot
    below = f"<tfoot>{''.join(lines[cut:])}</tfoot>" if foot else ""
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(lines[:cut])}</tbody>{below}</table>"
    )


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
