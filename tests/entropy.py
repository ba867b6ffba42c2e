"""Seeded words for tests that draw little and often."""

import numpy as np

from discreet.curator.noise import SeededEntropy


class Buffered(SeededEntropy):
    """A seeded stream that is made in large pieces: thousands of small requests would each cost a whole cipher run."""

    def __init__(self, seed):
        super().__init__(seed)
        self._left = np.empty(0, dtype=np.uint64)

    def words(self, count):
        if count > self._left.size:
            self._left = super().words(max(count, 1 << 16))
        taken, self._left = self._left[:count], self._left[count:]
        return taken
