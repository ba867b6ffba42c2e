"""The commands that the files for users and contributors name, and how a test runs each at its smallest.

A command stands in a block without a language, or in backquotes; ``make`` stands for the lines of its recipe. A command
that no entry here covers fails a test, and so does an entry that no file names.
"""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "RELEASING.md")
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(
    r"(?:[A-Z]+=\S+ )*(?:(?:make|discreet|pytest|hatchling|pip) [a-z\"]|\S*python3? -m \S|\S*python3? \S+\.py|\.ci/\w)"
)


@dataclass(frozen=True)
class Tiny:
    """Words that make a command small, or a command in its place; or the reason why it is not run."""

    words: str = ""
    instead: str = ""
    reason: str = ""


QUICK = Tiny()
"""``BENCHMARKS_QUICK=1`` suffices."""
POINT = Tiny("--jobs 1 --seeds 1 --set synthetic_number")
TESTS = Tiny("-n 0 tests/test_bounds.py")

NOT_RUN = {
    r"\bpip install\b|-m venv\b": "installs from the network",
    r"peers\.py (diffprivlib|opacus|dp_ebm) ": "needs a library that is installed by hand, in its own environment",
}
TARGETS_NOT_RUN = {
    "venv": "installs from the network; the environment that runs these tests is what it makes",
    "lock": "installs from the network",
    "test-spark": "installs from the network",
    "hooks": "writes into the repository's own hooks",
    "release-check": "builds and installs for minutes; tests/release has a test of each part",
}

SECTIONS: dict[str, dict[str, Tiny]] = {
    "users": {
        "discreet demo": Tiny("--rows 2000"),
        "discreet schema new patients.csv --target readmitted": QUICK,
        "discreet fit patients.csv --schema schema.toml --epsilon 1 --out model": QUICK,
        "discreet verify model": QUICK,
        "discreet serve": Tiny(instead="discreet serve --help"),
    },
    "tools": {
        "python -m tests.compile": Tiny(reason="minutes without a cache; `make test` runs it before these tests"),
        'python -m pytest -n 2 --dist worksteal -m "not thorough"': TESTS,
        "python -m pytest -n 2 --dist worksteal -m thorough": TESTS,
        "pytest tests/a/test_b.py": Tiny(instead="pytest tests/test_bounds.py -q"),
        "python -m tests.promises.surface": Tiny("--cases 5"),
        "python -m tests.fuzz": Tiny("--calls 5"),
        "ruff check .": QUICK,
        "ruff format --check .": QUICK,
        "mypy": Tiny("src/discreet/errors.py"),
        "lint-imports": QUICK,
        "ruff check --fix .": QUICK,
        "ruff format .": QUICK,
        "NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict --quiet": Tiny(reason="tests/docs/test_site.py runs it"),
        "python -m docs.extensions.report_picture": Tiny(reason="needs Chromium"),
        "hatchling build": QUICK,
        ".ci/run": Tiny(instead="bash -n .ci/run"),
        "rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis": QUICK,
        "find src tests benchmarks examples -name __pycache__ -type d -prune"
        " -exec rm -rf {} + 2>/dev/null || true": QUICK,
    },
    "audits": {
        "discreet audit replay": Tiny("--solver gd"),
        "discreet audit gradient --epsilon 1 --runs 1000000": Tiny("--runs 1000"),
        "mkdir -p build": QUICK,
        "discreet audit table --runs 2000 --json > build/audits.json": Tiny("--solver gd --runs 50"),
        "python -m benchmarks audits build/audits.json": QUICK,
        "python -m benchmarks audits build/audits.json --page docs/measured/audits.md": QUICK,
    },
    "accuracy": {
        "python -m benchmarks accuracy --data data": POINT,
        "python -m benchmarks accuracy --data DIR --set adult --solver auto --epsilon 1 --relation zero_out --seeds 40"
        " --large-seeds 3": Tiny(
            instead="python -m benchmarks accuracy --set synthetic --solver auto --jobs 1 --seeds 1"
        ),
        "python -m benchmarks accuracy --data data --export build/tables": Tiny("--seeds 1"),
        "python benchmarks/methods/peers.py adassp --tables build/tables --out build/adassp.json": Tiny("--seeds 1"),
        "python benchmarks/methods/peers.py ihm --tables build/tables --out build/ihm.json": Tiny("--seeds 1"),
        "python -m benchmarks accuracy --data data --export build/tables --seeds 4": Tiny(
            instead="python -m benchmarks accuracy --data data --export build/tables --seeds 1"
        ),
        "python -m benchmarks accuracy --data data --solver lines --solver curves -e 0.5 -e 1 -e 4 --seeds 4"
        " --large-seeds 1 --out build/curves --peers build/dp_ebm.json --curves docs/measured/curves.md"
        " --compared-curves docs/compared.md": Tiny(
            instead="python -m benchmarks accuracy --set synthetic --solver lines --solver curves --epsilon 1 --jobs 1"
            " --seeds 1 --out build/curves"
        ),
        "python -m benchmarks accuracy --data data --epsilon 1 --relation zero_out": POINT,
        "python -m benchmarks accuracy --data data --solver auto --widen 3"
        " --page docs/measured/accuracy.md --compared docs/compared.md": POINT,
        "python -m benchmarks accuracy --data data --solver auto --widen 3 --peers build/diffprivlib.json"
        " --peers build/opacus.json --peers build/dp_ebm.json --peers build/adassp.json --peers build/ihm.json"
        " --page docs/measured/accuracy.md --compared docs/compared.md": Tiny(
            instead="python -m benchmarks accuracy --solver auto --peers build/adassp.json --peers build/ihm.json"
            " --jobs 1 --seeds 1"
        ),
    },
    "comparisons": {
        "python -m benchmarks coordinates": Tiny("--seeds 1 --jobs 1"),
        "python -m benchmarks coordinates --out docs/figures --page docs/measured/coordinates.md": Tiny(
            "--seeds 1 --jobs 1"
        ),
        "python -m benchmarks scale": QUICK,
        "python -m benchmarks scale workers persons --rows 1e7 --columns 50": QUICK,
        "python -m benchmarks scale disk --rows 1e7 --columns 50": QUICK,
        "python -m benchmarks solvers": Tiny("--method gd"),
        "python -m benchmarks solvers --data DIR --table adult --method agd --epsilon 0.1 --folds 5 --quick": Tiny(
            instead="python -m benchmarks solvers --table synthetic --method agd --epsilon 0.1 --folds 5 --quick"
        ),
        "python -m benchmarks consistency --data data": QUICK,
        "python -m benchmarks defaults": Tiny("--quick --seeds 1 --solver auto --epsilon 1 --relation zero_out"),
        "python -m benchmarks defaults --half reporting --problems 100 --solver auto --epsilon 1 --relation zero_out"
        " --seeds 3 --quick": Tiny("--out build/reporting"),
        "python -m benchmarks coverage": QUICK,
        "python -m benchmarks shown": QUICK,
        "python -m benchmarks tuned": Tiny("--jobs 1 --solver gd --problem labels-even"),
        "python -m benchmarks wide --data data": Tiny("--seeds 1"),
        "python -m benchmarks inference": QUICK,
        "python -m benchmarks experiments": Tiny("two_record_median lecture_bound --jobs 1"),
        "DISCREET_DATA= python -m benchmarks experiments --figures docs/figures"
        " --page docs/measured/experiments.md": Tiny("two_record_median --jobs 1"),
        "DISCREET_DATA= python -m benchmarks experiments --check": Tiny("two_record_median --jobs 1"),
    },
    "speed": {
        "python -m benchmarks speed": QUICK,
        "python -m benchmarks speed --quick": Tiny("noise"),
        "python -m benchmarks speed gradient noise": QUICK,
        "python -m benchmarks speed --rounds 50": Tiny("noise"),
        "python -m benchmarks speed --json results.json": Tiny("noise"),
        "python -m benchmarks speed --check": Tiny("noise"),
        "python -m benchmarks speed --store --page docs/measured/speed.md": Tiny("noise"),
        "build/peers/bin/python -m benchmarks speed sgd": Tiny(instead="python -m benchmarks speed sgd"),
        "build/foreign/bin/python -m benchmarks speed foreign": Tiny(instead="python -m benchmarks speed foreign"),
    },
}


def targets() -> list[str]:
    """Return what ``make`` can be asked for."""
    return re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def named(file: str) -> list[str]:
    """Return the commands in a file, in its order."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = [line for kind, block in BLOCK.findall(text) if not kind for line in block.splitlines()]
    spans = [re.sub(r"\s+#.*", "", line) for line in lines] + INLINE.findall(BLOCK.sub("", text))
    return [_plain(span) for span in spans if COMMAND.match(span.strip())]


def all_commands() -> set[str]:
    """Return every command that is named, with recipes in place of ``make``."""
    found = {command for file in FILES for command in named(file)} | {f"make {target}" for target in targets()}
    lines = {line for command in found for line in (recipe(command) if "make " in command else (command,))}
    return {line for line in lines if not any(re.search(pattern, line) for pattern in NOT_RUN)}


@cache
def recipe(command: str) -> tuple[str, ...]:
    """Return the lines that ``make`` would run for the targets that are run here; it has to know the others, too."""
    before, _, words = command.partition("make ")
    asked = shlex.split(words)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    environment |= dict(word.split("=", 1) for word in shlex.split(before))
    _dry(asked, environment)
    run = [word for word in asked if word not in TARGETS_NOT_RUN]
    return tuple(map(_plain, _dry(run, environment))) if any("=" not in word for word in run) else ()


def _dry(words: list[str], environment: dict[str, str]) -> list[str]:
    dry = ["make", "-n", "--no-print-directory", "-o", ".venv/.installed", *words]
    done = subprocess.run(dry, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.replace("\\\n", " ").splitlines()


def _plain(command: str) -> str:
    """Return a command in one line, as in an environment that is active, and with all that is optional."""
    whole = re.sub(r" \[(-[^\]]*)\]", r" \1", command)
    return " ".join(whole.replace(".venv/bin/", "").split())
