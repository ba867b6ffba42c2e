"""``python -m tests.mutants`` writes the page; with ``run``, it plants every mutant and shows who kills it.

``python -m tests.mutants run clip`` takes those with "clip" in their names.
"""

import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.catalog import MUTANTS
from tests.mutants.page import PAGE, write
from tests.mutants.planting import planted
from tests.mutants.workers import Workers


def run(wanted: list[str]) -> None:
    chosen = [mutant for mutant in MUTANTS if not wanted or any(word in mutant.name for word in wanted)]
    with Workers() as workers, tempfile.TemporaryDirectory() as folder:
        for index, mutant in enumerate(chosen):
            report, package = Path(folder, f"report{index}"), Path(folder, f"package{index}")
            report.mkdir()
            start = time.monotonic()
            found = workers.run(planted(mutant, package), list(mutant.killers), report)
            killer = found.failures[0] if found.failures else None
            fate = "SURVIVED" if killer is None else killer.test
            print(f"{time.monotonic() - start:5.1f} s  {mutant.name}: {fate}", flush=True)
            print(f"         {found.output[-2000:] if killer is None else killer.message[:200]!r}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2:])
    else:
        write()
        print(f"wrote {PAGE}")
