"""Known answers: small sums with exact results that compiled code must reproduce before it reads a record.

Numba's disk cache does not see edits in *other* files: a kernel compiled against an older loss or clip would run on
silently. So each kernel that a fit will use is first compared, on a few records chosen for their clips, with the same
sum written in unbounded Python integers (in plain floats where the kernel computes in floating point).

Each check runs once per process and combination of classes. It imports its question when it runs, since the question's
file imports the check.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from discreet.curator.lattice.lattice import COARSE, Grid
from discreet.curator.records.admission import Records
from discreet.errors import StaleKernels

ROWS = np.array(
    [
        [16384, -16384, 8192, 77, 16384],
        [1, 0, 0, 0, 16384],
        [-9000, 12000, 0, 16384, 16384],
        [0, 0, 0, 0, 0],
        [-16384, 77, 0, -3, 16384],
    ],
    dtype=np.int64,
)
"""Records on the coarse grid: more columns than loops are unrolled by, a null record, entries that are absent."""

TARGETS = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
SIZE = ROWS.shape[1]

_passed: set[tuple[Any, ...]] = set()


def once_for_classes(check: Callable[..., None]) -> Callable[..., None]:
    """Run a check once per process for the classes (and numbers of outputs) of its arguments and for its keywords."""

    @wraps(check)
    def checked(*parts: Any, **words: Any) -> None:
        inner = ((type(part), getattr(part, "n_outputs", 1), type(getattr(part, "penalty", None))) for part in parts)
        key = (check.__qualname__, *inner, *sorted(words.items()))
        if key not in _passed:
            with np.errstate(all="ignore"):  # kernels run without warnings where they are compiled
                check(*parts, **words)
            _passed.add(key)

    return checked


def require(agrees: bool, what: str = "a compiled kernel disagrees with its source") -> None:
    """Raise ``StaleKernels`` unless compiled code agrees with plain Python."""
    if not agrees:
        raise StaleKernels(f"{what}: delete the __pycache__ folders of discreet")


def known_records(sparse: bool, grid: Grid = COARSE, *, shares: Any = None, starts: Any = None) -> Records:
    """Return the rows as records of a grid."""
    integers = ROWS * (grid.one >> COARSE.bits)
    rows = integers.astype(grid.dtype)
    norms = np.ceil(np.sqrt((integers**2).sum(axis=1))).astype(np.int64)
    facts = (TARGETS, norms, np.abs(integers).sum(axis=1), starts, shares, SIZE, grid)
    if not sparse:
        return Records(rows, None, *facts)
    indptr = np.concatenate([[0], np.cumsum((rows != 0).sum(axis=1))]).astype(np.int64)
    return Records(None, (indptr, np.nonzero(rows)[1].astype(np.int32), rows[rows != 0]), *facts)
