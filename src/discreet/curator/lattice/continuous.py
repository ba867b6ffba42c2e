"""Random numbers of the continuum, from the same entropy as the lattice's noise: floating point.

What the lattice does not reach (noise inside an objective, points of a posterior) is drawn here. Each
number is a real draw rounded to a double, not an exactly sampled integer, so the certificate of
whatever uses this module says ``arithmetic: idealized``. Nothing is buffered: no state to fork or copy.
"""

import math

import numpy as np
from scipy.special import ndtri

from discreet.curator.lattice.entropy import Entropy
from discreet.typing import Floats, Words

Shape = int | tuple[int, ...]

_BELOW_ONE = 1.0 - 2.0**-53


class Draws:
    """Independent draws of the usual distributions from a source of uniform 64-bit words."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def uniform(self, shape: Shape = ()) -> Floats:
        """Uniform on the open interval (0, 1): steps of 2^-64 near zero, of 2^-53 near one."""
        return np.minimum((self._words(shape).astype(np.float64) + 0.5) * 2.0**-64, _BELOW_ONE)

    def normal(self, shape: Shape = ()) -> Floats:
        """Standard normal: one bit is the sign, 63 bits the depth in the lower tail, so out to 9 deviations."""
        words = self._words(shape)
        half = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * ndtri(half))

    def exponential(self, shape: Shape = ()) -> Floats:
        """Exponential of mean one; the fine steps of ``uniform`` near zero make its upper tail."""
        return -np.log(self.uniform(shape))

    def gamma(self, shape_parameter: int) -> float:
        """Gamma of an integer shape and scale one: a sum of that many exponentials."""
        if shape_parameter < 1:
            raise ValueError("a Gamma draw here needs an integer shape of at least one")
        return float(self.exponential(shape_parameter).sum())

    def gamma_vector(self, p: int, scale: float) -> Floats:
        """A vector b of R^p with density proportional to exp(-||b||_2 / scale).

        In polar coordinates the density is r^(p-1) exp(-r / scale) times the uniform law of the sphere:
        a Gamma(p, scale) radius and, apart from it, the direction of a standard normal vector.
        """
        radius = scale * self.gamma(p)
        direction = self.normal(p)
        return direction * (radius / np.linalg.norm(direction))

    def _words(self, shape: Shape) -> Words:
        count = shape if isinstance(shape, int) else math.prod(shape)
        return self._entropy.words(count).reshape(shape)
