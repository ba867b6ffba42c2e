"""Replayable noise for experiments on synthetic and public data: fast, and never private."""

import numpy as np
from numpy.typing import NDArray


class SeededWords:
    """Words of numpy's generator from a seed; a certificate would be stamped NOT PRIVATE."""

    name = "seeded PCG64 of numpy (for experiments)"
    is_private = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` words; read-only as the system's, so that compiled code is the same."""
        drawn = self._generator.integers(0, 1 << 64, size=count, dtype=np.uint64)
        drawn.flags.writeable = False
        return drawn
