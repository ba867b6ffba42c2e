"""Generated parts of a Markdown page, between two markers."""

from pathlib import Path

from discreet.cli.terminal import Refused


def into_page(page: str, text: str, name: str) -> str:
    """Return the page with ``text`` in place of what stands between its two markers."""
    start, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise Refused(f"the page needs the lines {start} and {end}")
    return f"{before}{start}\n\n{text}\n\n{end}{after}"


def rewrite(page: Path | None, text: str, name: str) -> None:
    """Write ``text`` into a page's generated part, where a page is given."""
    if page is not None:
        page.write_text(into_page(page.read_text(encoding="utf-8"), text, name), encoding="utf-8")
