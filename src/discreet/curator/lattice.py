"""The integer lattice: how a clipped contribution, a sum and a noise become exact integers.

Notation. A record's features are integers x (``Grid``), the weights at which a gradient is asked are
integers w (``Weights``), so a margin is an exact integer. A record's contribution is q = c x with an
integer coefficient c; it satisfies ||q|| <= B. One lattice step is ``Unit.step`` in real units; the
noise has scale 2^m lattice steps (``Unit.m``).

Theorem (clip). With r = ceil(||x||) and |c| <= B // r: ||c x|| = |c| ||x|| <= (B // r) r <= B. The
same with the L1 norm and r = sum |x|. No rounding argument is needed.

Theorem (noise). The sum of contributions is an integer vector, so sum + round(2^m N) =
round(sum + 2^m N): the release is the ideal Gaussian mechanism, rounded afterwards. Its noise
multiplier is 2^m / (a B), where a B is the sensitivity under the declared relation. ``unit_for``
takes B = floor(2^m / (a z)), so the realized multiplier is never below the calibrated z.

Theorem (scalar discrete Laplace). One number with discrete Laplace noise of scale t = 2^m and whole sensitivity D
is priced as continuous Laplace noise of multiplier z, which the lemma of ``accounting.events.Laplace`` allows where
z <= t / (D + 1): not being continuous costs one step of sensitivity. ``for_a_scalar`` takes B - 1 in place of B, so
that D + 1 = a (B - 1) + 1 <= a B <= 2^m / z. For vectors, and for pure prices, D = a B is enough.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Unsupported
from discreet.typing import Floats, Integers

COEFFICIENT_LIMIT = 1 << 30
"""Coefficients c are kept within +-2^30 (a further clip), so that they fit 32 bits."""
STEEPEST_CLIPS = 16
"""Slopes of so many clips have coefficients that fit where rows are on a coarse grid (``Grid.largest_bound``)."""

_SUM_BITS = 61
LARGEST_BOUND = 1 << 40
_NOISE_BITS = 56
_LEAST_BOUND = 1 << 16
LEAST_CLIP = 1e-290

PRIVATE_N_CAP = 1 << 26
"""Records for which sums are guaranteed not to wrap where n is private. (Wrapping is harmless to noisy sums.)"""

CHOICE_N_CAP = 1 << 34
"""The same for scores of choices, where wrapping would not be harmless: more records than a machine holds."""


@dataclass(frozen=True)
class Grid:
    """How finely features are put on integers: ``bits`` fractional bits, stored as ``dtype``."""

    bits: int
    dtype: type[np.signedinteger]

    @property
    def one(self) -> int:
        """The integer that stands for 1.0."""
        return 1 << self.bits

    @property
    def largest_bound(self) -> int:
        """The largest bound B in which a slope of ``STEEPEST_CLIPS`` clips still has a coefficient of 32 bits.

        A slope is c = slope B / (clip 2^bits) lattice steps: with coarse rows and a fine lattice too many.
        """
        return COEFFICIENT_LIMIT * self.one // STEEPEST_CLIPS


COARSE = Grid(14, np.int16)
FINE = Grid(21, np.int32)


@dataclass(frozen=True)
class Unit:
    """One release's lattice: contribution bound B, noise exponent m (None: no noise), real size of a step."""

    bound: int
    m: int | None
    step: float

    def coefficient_scale(self, grid: Grid) -> float:
        """Lattice coefficients per unit of derivative: c = derivative * scale."""
        return 1.0 / (self.step * grid.one)


@lru_cache(maxsize=256)
def unit_for(
    noise_multiplier: float, factor: int | Fraction, clip: float, n: int, largest: int = LARGEST_BOUND
) -> Unit:
    """The lattice of a sum of at most ``n`` contributions of real norm ``clip``.

    ``factor`` is the sensitivity of the sum in units of one contribution's bound, which is at most ``largest``. The
    realized noise multiplier 2^m / (factor * bound) is at least ``noise_multiplier``.
    """
    if not (clip > 0 and math.isfinite(clip)):
        raise Unsupported("the clip must be positive and finite")
    if clip < LEAST_CLIP:
        raise Unsupported("the clip is too small for double precision: rescale the problem")
    most = min(largest, LARGEST_BOUND, (1 << _SUM_BITS) // n)
    if noise_multiplier == 0:
        return Unit(most, None, clip / most)
    ratio = Fraction(noise_multiplier) * factor
    m = _NOISE_BITS
    while m > 1 and (1 << m) / ratio >= most + 1:
        m -= 1
    bound = min(most, int((1 << m) / ratio))
    if bound < _LEAST_BOUND:
        raise Unsupported(
            "the noise this budget needs is beyond the lattice's range: raise epsilon or plan fewer releases"
        )
    return Unit(bound, m, clip / bound)


def for_a_scalar(unit: Unit, clip: float) -> Unit:
    """The same lattice for one number with discrete Laplace noise: a bound smaller by the one step that this costs."""
    return unit if unit.m is None else Unit(unit.bound - 1, unit.m, clip / (unit.bound - 1))


@dataclass(frozen=True)
class Weights:
    """Weights on a dyadic grid: ``integers`` (one row per output) are the weights times 2^shift."""

    integers: NDArray[np.int32]
    shift: int

    def margin_scale(self, grid: Grid) -> float:
        """Real margin per integer margin: a power of two."""
        return 2.0 ** -(self.shift + grid.bits)


def place_weights(w: Floats, grid: Grid) -> Weights:
    """Round weights (p,) or (p, K) to 32-bit integers, as finely as keeps every margin within 62 bits.

    The shift depends on the released weights alone. The rounding moves a weight by at most 2^-30 of the
    largest.
    """
    columns = np.ascontiguousarray(w[np.newaxis] if w.ndim == 1 else w.T, dtype=np.float64)
    sizes = np.abs(columns)
    largest = float(np.maximum.reduce(sizes, axis=None, initial=0.0))
    if not math.isfinite(largest):
        raise Unsupported("the weights at which an answer is asked must be finite")
    if largest == 0.0:
        return Weights(np.zeros(columns.shape, dtype=np.int32), 0)
    exponent = math.frexp(largest)[1]
    longest = max(np.add.reduce(np.ldexp(sizes, -exponent), axis=1).tolist())  # in units in which it cannot overflow
    shift = min(30 - exponent, 61 - grid.bits - exponent - math.frexp(longest)[1])
    return Weights(np.rint(np.ldexp(columns, shift)).astype(np.int32), shift)


ROOT_TWO = Fraction(1_414_213_563, 1_000_000_000)
"""Just above the square root of 2: the factor of sums of non-negative vectors under ``replace_one``."""


def weight_scale(grid: Grid) -> float:
    """Grid units per unit of weight for coordinate methods: fixed, so that margins can be updated exactly."""
    return 2.0 ** (38 - grid.bits)


def weight_room(grid: Grid) -> float:
    """The largest L1 norm of integer weights that keeps every margin an exact integer below 2^53."""
    return float(((1 << 53) - 1) >> grid.bits)


def on_weight_grid(w: Floats, grid: Grid) -> Floats:
    """Weights as integers (held in doubles) on the coordinate methods' grid."""
    integers = np.rint(w * weight_scale(grid))
    if not float(np.abs(integers).sum()) <= weight_room(grid):
        raise Unsupported("the weights are too large for exact margins (L1 norm above 2^15): use smaller steps")
    return integers


def block_bounds(clips: Floats, bound: int, use_l1: bool) -> Integers:
    """Integer bounds in proportion to ``clips`` whose L2 norm (L1 where ``use_l1``) is at most ``bound``."""
    if clips.size == 1:
        return np.array([bound], dtype=np.int64)
    size = float(clips.sum()) if use_l1 else float(np.linalg.norm(clips))
    shares = [int(bound * (float(clip) / size)) for clip in clips]
    while (sum(shares) > bound) if use_l1 else (sum(b * b for b in shares) > bound * bound):
        shares = [max(0, b - 1) for b in shares]
    return np.array(shares, dtype=np.int64)
