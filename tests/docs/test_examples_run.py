"""Every Python block of the README and of the documentation runs, and prints what the page says it prints.

The blocks of a page share one namespace, in their order. A ``text`` block right after a Python block is that
block's output, word for word.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def _blocks(path: Path) -> list[tuple[int, str, str | None]]:
    """(line, code, the output that the page shows) of each Python block."""
    text = path.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m.group(1), m.group(2)) for m in BLOCK.finditer(text)]


PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if _blocks(path)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, code, shown in _blocks(path):
        printed = io.StringIO()
        source = "\n" * line + code  # so that a traceback names the page's own line
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(path), "exec"), namespace)
        if shown is not None:
            assert printed.getvalue() == shown, f"{path.name}, line {line}: the page shows another output"


def test_every_python_block_is_found():
    """A fence that is indented or spelled otherwise would be skipped silently."""
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        fences = re.findall(r"^\s*(?:```|~~~)\s*(?:python|py|pycon)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == len(_blocks(path)), path.name


def test_there_are_examples():
    assert {"README.md", "quickstart.md", "cd.md", "gcd.md"} <= {path.name for path in PAGES}
