"""``python -m tests.promises.mutants`` lists the planted bugs; with ``run``, it plants each and shows who kills it.

``python -m tests.promises.mutants run clip`` takes those with "clip" in their names.
"""

import sys
import tempfile
import time
from pathlib import Path

from tests.promises.mutants.catalog import MUTANTS
from tests.promises.mutants.planting import planted
from tests.promises.mutants.workers import Workers


def run(words: list[str]) -> None:
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    with Workers() as workers, tempfile.TemporaryDirectory() as folder:
        for index, mutant in enumerate(chosen):
            report, package = Path(folder, f"report{index}"), Path(folder, f"package{index}")
            report.mkdir()
            start = time.monotonic()
            result = workers.run(planted(mutant, package), list(mutant.killers), report)
            killer = result.failures[0] if result.failures else None
            fate = "SURVIVED" if killer is None else killer.test
            print(f"{time.monotonic() - start:5.1f} s  {mutant.name}: {fate}", flush=True)
            print(f"         {result.output[-2000:] if killer is None else killer.message[:200]!r}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2:])
    else:
        for mutant in MUTANTS:
            print(
                f"{mutant.name}\n  {mutant.wrong}\n  in {', '.join(mutant.paths)}, found by {', '.join(mutant.killers)}"
            )
