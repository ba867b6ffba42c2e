"""What a page of the documentation does, step by step: Python that runs, files, commands that are typed.

    ```python       run; a ``text`` block right after it is its output, word for word
    ```toml         with a first line such as ``# schema.toml``: written to that file
    ```console      ``$ discreet ...``, each with what it prints; ``# exit code 1`` behind it where it is not 0

Noise differs from run to run, so in what commands print every number stands for any number, blanks do not matter, and a
line ``...`` stands for any lines. ``python -m tests.docs.pages`` writes what Python prints today into the pages.
"""

import contextlib
import io
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# (\S+\.toml)\n")
EXIT = re.compile(r"\s+# exit code (\d+)$")
NUMBER = re.compile(r"\b[0-9a-f]{16,}\b|[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|[-+]?\b(?:inf|nan)\b")


@dataclass(frozen=True)
class Step:
    """One block of a page: its kind, the line before it, its text, and the output that the page shows, and where."""

    kind: str
    line: int
    text: str
    shown: str | None
    shown_at: tuple[int, int]


def steps(path: Path) -> list[Step]:
    """The blocks of a page that do something."""
    page = path.read_text(encoding="utf-8")
    found = [Step(m[1], page[: m.start(2)].count("\n"), m[2], m[3], m.span(3)) for m in BLOCK.finditer(page)]
    return [step for step in found if step.kind != "toml" or FILE.match(step.text)]


PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if steps(path)]


def run(path: Path) -> None:
    """Do what the page says, in the current folder."""
    namespace = {"__name__": "__main__"}
    for step in steps(path):
        where = f"{path.name}, line {step.line}"
        if step.kind == "python":
            printed = _python(step, path, namespace)
            assert step.shown in (None, printed), f"{where}: the page shows another output"
        elif step.kind == "toml":
            name = FILE.match(step.text)
            assert name is not None
            Path(name[1]).write_text(step.text, encoding="utf-8")
        else:
            for command, expected in commands(step.text):
                _command(command, expected, where)


def rewrite(path: Path) -> None:
    """Write what the page's Python blocks print today into the page; commands that they need are typed."""
    page, namespace, shift = path.read_text(encoding="utf-8"), {"__name__": "__main__"}, 0
    for step in steps(path):
        if step.kind == "python":
            printed = _python(step, path, namespace)
            if step.shown is not None:
                start, end = (place + shift for place in step.shown_at)
                page, shift = page[:start] + printed + page[end:], shift + len(printed) - len(step.shown)
        elif step.kind == "toml":
            Path(FILE.match(step.text)[1]).write_text(step.text, encoding="utf-8")
        else:
            for command, _ in commands(step.text):
                _typed(command)
    path.write_text(page, encoding="utf-8")


def _python(step: Step, path: Path, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    source = "\n" * step.line + step.text  # so that a traceback names the page's own line
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(path), "exec"), namespace)
    return printed.getvalue()


def commands(block: str) -> list[tuple[str, list[str]]]:
    """(command, the lines below it), where a line that ends in a backslash goes on."""
    found: list[tuple[str, list[str]]] = []
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def _typed(command: str):
    from discreet.cli.app import app

    program, *words = shlex.split(EXIT.sub("", command))
    assert program == "discreet", f"{program} is no command of discreet's"
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, words)


def _command(command: str, expected: list[str], where: str) -> None:
    code, result = EXIT.search(command), _typed(command)
    assert result.exit_code == (int(code[1]) if code else 0), f"{where}: {command}: {result.output}"
    printed = result.output.splitlines()
    assert matches(expected, printed), f"{where}: {command} prints something else:\n{result.output}"


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether this is what was printed, up to numbers and blanks; ``...`` stands for any lines."""
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(plain(line)) + "\n" for line in _lines(expected))
    return re.fullmatch(pattern, "".join(plain(line) + "\n" for line in _lines(printed))) is not None


def _lines(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


def plain(line: str) -> str:
    """A line with # for every number, and single blanks."""
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


if __name__ == "__main__":
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            rewrite(page)
