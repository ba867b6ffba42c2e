"""What a cell holds: what was declared, nothing, or something else. Each cell for itself."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.schema.cell_meaning import MISSING
from discreet.typing import Floats, Integers

States: TypeAlias = NDArray[np.int8]

FINE, ABSENT, STRANGE = 0, 1, 2
NOT_ASKED: States = np.empty(0, dtype=np.int8)
"""Where nobody asks what the cells hold."""


def states_of_numbers(found: Floats, low: float, high: float) -> States:
    """Return ABSENT where there is no finite number, STRANGE where it lies outside the range."""
    outside = (found < low) | (found > high)
    return np.where(np.isfinite(found), outside * np.int8(STRANGE), np.int8(ABSENT)).astype(np.int8)


def states_of_labels(positions: Integers, count: int) -> States:
    """Return ABSENT where a cell is empty, STRANGE where it is none of ``count`` labels."""
    return np.where(positions == MISSING, ABSENT, np.where(positions == count, STRANGE, FINE)).astype(np.int8)
