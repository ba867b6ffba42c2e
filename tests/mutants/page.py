"""The page that says which test kills which mutant."""

from pathlib import Path

from tests.mutants.catalog import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

PAGE = ROOT / "tests" / "mutants" / "README.md"

_TEXT = """# Planted bugs

Tests that pass say little of tests that would fail. So privacy bugs are planted into the real source, one at a time,
each a few changed lines of a kind that other libraries have had: the tests named below run on the changed package and
must fail, with the words shown. The same tests pass on the package as it is. A bug that no test notices is a hole in
the tests, and gets one.

Many are found by *replay*, which hands the same noisy answers to fits on two neighboring tables and looks for anything
that still differs; some by [audits](../../docs/audits.md) that guess from noisy answers which table it was; the rest by
exact integers, reference values and the ledger's own tests. What this cannot show: that there is no bug of a kind
nobody thought of.

`tests/mutants` holds the list; `python -m tests.mutants` writes this page.

| bug | what goes wrong | where | killed by | it says |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return _TEXT + "".join(f"{_row(mutant)}\n" for mutant in MUTANTS)


def _row(mutant: Mutant) -> str:
    where = ", ".join(f"`{path}`" for path in mutant.paths)
    killers = ", ".join(f"`{_short(killer)}`" for killer in mutant.killers)
    cells = (mutant.name, mutant.wrong, where, killers, f"`{mutant.says}`")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _short(killer: str) -> str:
    path, _, test = killer.partition("::")
    return f"{path.removeprefix('tests/').removesuffix('.py')}::{test}"


def write(path: Path = PAGE) -> None:
    """Write the page down."""
    path.write_text(page(), encoding="utf-8")
