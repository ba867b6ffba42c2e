"""Generated parts of a Markdown page, between two markers, and the files next to it that hold long tables."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from discreet.cli.terminal import Refused

Rows = list[list[str]]


def into_page(page: str, text: str, name: str) -> str:
    """Return the page with ``text`` in place of what stands between its two markers."""
    start, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise Refused(f"the page needs the lines {start} and {end}")
    return f"{before}{start}\n\n{text}\n\n{end}{after}"


def rewrite(page: Path | None, text: str, name: str, shown: Sequence[int] | None = None) -> None:
    """Write ``text`` into a page's generated part, where a page is given.

    Where ``shown`` is given, only these of its tables stay in the page, by their place; the others become CSV files
    next to it, which the page links to.
    """
    if page is None:
        return
    if shown is not None:
        text, tables = without_tables(text, shown)
        for stale in [page.with_name(f"{name}.csv"), *page.parent.glob(f"{name}-*.csv")]:
            stale.unlink(missing_ok=True)
        names = [f"{name}.csv" if at == 1 else f"{name}-{at}.csv" for at in range(1, len(tables) + 1)]
        for file, rows in zip(names, tables, strict=True):
            with page.with_name(file).open("w", encoding="utf-8", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows(rows)
        titles = [rows[1][0].partition(":")[0] or f"By {', '.join(rows[0][1:3])}" for rows in tables]
        links = [f"- [{title}]({file})" for title, file in zip(titles, names, strict=True)]
        text = "\n\n".join(filter(None, [text, "Tables as files:" if links else "", "\n".join(links)]))
    page.write_text(into_page(page.read_text(encoding="utf-8"), text, name), encoding="utf-8")


def without_tables(text: str, shown: Sequence[int]) -> tuple[str, list[Rows]]:
    """Return a text without its tables, but for those at the places ``shown``, and the tables with their captions.

    Tables with the same columns become one. A caption is the paragraph above a table, which leaves with it, or the
    heading that it stands under.
    """
    kept: list[str] = []
    heading, tables = "", {}
    blocks = re.split(r"\n\n+", text.strip())
    places = [at for at, block in enumerate(blocks) if block.startswith("|")]
    chosen = {places[place] for place in shown if -len(places) <= place < len(places)}
    for at, block in enumerate(blocks):
        heading = block if block.startswith("#") else heading
        if at not in places or at in chosen:
            kept.append(block)
            continue
        is_caption = bool(kept) and (kept[-1].startswith("**") or kept[-1].endswith((":", "=")))
        caption = _plain(kept.pop() if is_caption else heading)
        head, _, *lines = block.splitlines()
        rows = tables.setdefault(head, [["part", *_cells(head)]])
        rows += [[caption, *_cells(line)] for line in lines]
    return "\n\n".join(kept), list(tables.values())


def _cells(line: str) -> list[str]:
    """Return the cells of a line of a Markdown table."""
    return [_plain(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _plain(text: str) -> str:
    """Return a text without marks of emphasis and headings."""
    return re.sub(r"\*\*|`|^#+ ", "", text).strip(" :")
