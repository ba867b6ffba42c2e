"""Two ways to make a fit repeatable: noise from a public seed, or no noise at all."""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.curator import Measurement, SeededEntropy, observe, use_entropy
from discreet.typing import Integers


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw noise and samples from ``seed`` inside the block: the same fits give the same answers.

    The stream runs on from fit to fit; enter the context again to start over. Certificates are stamped
    NOT PRIVATE.

    Parameters
    ----------
    seed : int
        Public, and therefore no protection.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import seeded
    >>> def fitted():
    ...     with seeded(0):
    ...         return DPRidge(delta=1e-6, bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3))
    >>> fitted().coef_.tolist() == fitted().coef_.tolist(), fitted().certificate_.is_private
    (True, False)
    """
    with use_entropy(SeededEntropy(seed)):
        yield


@contextmanager
def noiseless() -> Iterator[None]:
    """Release the exact clipped sums inside the block. Certificates are stamped NOT PRIVATE.

    Plans, prices, clips and Poisson samples are as ever; only the noise is left out. Add ``seeded`` to
    fix the samples too.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import noiseless
    >>> with noiseless():
    ...     model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3))
    >>> model.certificate_.is_private
    False
    """
    with observe(_exact):
        yield


def _exact(measurement: Measurement) -> Integers:
    return measurement.exact
