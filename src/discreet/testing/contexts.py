"""Two ways to make a fit repeatable: noise from a public seed, or no noise at all."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from discreet.curator import Measurement, SeededEntropy, observe, use_entropy


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside the block noise and samples come from ``seed``: the same fits give the same answers.

    The stream runs on from fit to fit; enter the context again to start over. Certificates are stamped
    NOT PRIVATE.
    """
    with use_entropy(SeededEntropy(seed)):
        yield


@contextmanager
def noiseless() -> Iterator[None]:
    """Inside the block every release is the exact clipped sum. Certificates are stamped NOT PRIVATE.

    Plans, prices, clips and Poisson samples are as ever; only the noise is left out. Add ``seeded`` to
    fix the samples too.
    """
    with observe(_exact):
        yield


def _exact(measurement: Measurement) -> NDArray[np.int64]:
    return measurement.exact
