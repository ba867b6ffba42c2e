"""How large the timed problems are: as the tables say, or tiny, to see whether a benchmark runs."""

import os

VARIABLE = "BENCHMARKS_QUICK"
"""What ``--quick`` of every command reads where it is not given, so that ``make`` can run them tiny, too."""


def size(usual: int, tiny: int) -> int:
    """Return the usual number of rows, runs or entries, or the tiny one."""
    return tiny if os.environ.get(VARIABLE) == "1" else usual
