"""The audits of ``discreet audit table --json`` as a Markdown table: claimed against proved."""

from collections.abc import Sequence
from typing import Any

from discreet import __version__

HEADER = "| solver | relation | level | claimed epsilon | proved epsilon | runs per side | confidence | verdict |"


def markdown(audits: Sequence[dict[str, Any]]) -> str:
    """The table, and a line below it."""
    lines = [HEADER, "|---|---|---|---|---|---|---|---|"]
    for one in audits:
        bound = "-" if one["bound"] is None else f"{one['bound']:.2f}"
        cells = [one["subject"], one["neighbors"], one["level"], f"{float(one['claimed']):g}", bound, str(one["runs"])]
        lines.append("| " + " | ".join([*cells, f"{one['confidence']:g}", one["verdict"]]) + " |")
    refuted = sum(one["verdict"] == "REFUTED" for one in audits)
    deltas = ", ".join(sorted({f"{one['delta']:g}" for one in audits}))
    caption = f"`discreet audit table`, version {__version__}, synthetic data, delta = {deltas}: "
    return "\n".join([*lines, "", f"{caption}{refuted} of {len(audits)} claims refuted."])
