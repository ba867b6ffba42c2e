"""The gradient of the minimizer's objective to any precision: whole numbers, and decimals for the losses' slopes.

Coefficients are whole numbers W over 2^bits, so that a record's product x . W is exact. A slope is computed in decimals
of ``digits`` digits, times the record's pull, and rounded to a whole number over 2^q; the sum of these times x is
exact again, and ridge w + b is rounded once per entry. Slow, some 20 microseconds per record: ``descent.py`` asks
where double precision does not reach.

Theorem (error). Let u = 5 10^-digits, so that an operation is off by at most u times its result. Then the gradient is
off, in norm, by at most the sum over the records of

    pull ||x|| (24 + 2 K) u (1 + |slope| + beta (1 + |m| + |t|))  +  K ||x|| 2^-q,   and  2 sqrt(K p) 2^-q once.

Proof. The margin m = shrink (x . W) 2^-bits passes through three roundings, so it is off by at most 3.01 u |m|, which
moves the slope by at most 3.01 u beta |m|; the slope itself is off by the bound of ``slopes_in_decimals``, with 16 in
place of 24, as a vector of K outputs; a clip is a contraction; the pull (shrink over the person's number of rows) and
the step to units of 2^-q are three more roundings, u each relative to the slope, and the last one is to a whole number,
in each of the K outputs. Both slopes and margins may be replaced by computed ones, at 1/256 more. x is as stored and
||x|| the copy's ceiling of its norm. Rounding ridge w and b to whole numbers costs at most one unit per entry. QED

``digits`` and q are raised until the bound is as small as asked: it falls by 10^-1 per digit, so this always ends.
"""

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.certified.float_passes import View
from discreet.curator.records.admission import Records
from discreet.losses.base import slopes_in_decimals
from discreet.typing import Floats, Integers

Whole = NDArray[np.object_]
"""Python's integers, of any size, one row per output: (K, p)."""

_BLOCK = 1 << 12
"""Records at once."""
_FIRST_DIGITS = 40
_BITS_PER_DIGIT = 3.4  # a little more than log2(10)


def whole(values: Floats, bits: int) -> Whole:
    """Return finite doubles times 2^bits, rounded to whole numbers."""
    one = Fraction(2) ** bits
    exact = [round(Fraction(value) * one) for value in values.ravel().tolist()]
    return np.array(exact, dtype=object).reshape(values.shape)


def doubles(numbers: Whole, bits: int) -> Floats:
    """Return whole numbers over 2^bits as the nearest doubles; beyond their range, the largest."""
    one, up = 1 << max(bits, 0), 1 << max(-bits, 0)
    largest = int(np.finfo(np.float64).max) * one
    fitted = [min(max(int(v) * up, -largest), largest) / one for v in numbers.ravel()]
    return np.array(fitted, dtype=np.float64).reshape(numbers.shape)


@dataclass(frozen=True)
class ExactPoint:
    """A point W / 2^bits, the gradient G / 2^q there, bounds on its norm and on its error, and all margins."""

    w: Whole
    gradient: Whole
    q: int
    norm: Fraction
    error: Fraction
    margins: Floats

    @property
    def bound(self) -> Fraction:
        """Above the true gradient's norm."""
        return self.norm + self.error


class ExactGradient:
    """Gradients of J over private records at coefficients with ``bits`` fractional bits."""

    def __init__(self, records: Records, view: View, objective: Any, linear: Floats, bits: int) -> None:
        self._records, self._loss, self.bits = records, objective.loss, bits
        self._ridge, self._linear = [Fraction(r) for r in objective.ridge.tolist()], linear
        self._places = view.limits.size  # the copy's layout pads its records
        n = records.n_rows
        self._shrinks, self._limits = view.shrinks.ravel()[:n], view.limits.ravel()[:n]
        self._shares = np.ones(n, dtype=np.int64) if records.shares is None else records.shares
        self._digits = _FIRST_DIGITS

    def at(self, w: Whole, accuracy: Fraction) -> ExactPoint:
        """Return the gradient at ``w``, off by at most ``accuracy`` in norm."""
        while True:
            point = self._pass(w)
            if point.error <= accuracy:
                return point
            self._digits *= 2

    def _pass(self, w: Whole) -> ExactPoint:
        records, outputs, q = self._records, len(w), math.ceil(_BITS_PER_DIGIT * self._digits)
        q_sum, total = q + records.grid.bits, np.full(w.shape, 0, dtype=object)
        margins, sizes, lengths = np.zeros((self._places, outputs)), Decimal(0), 0
        context = decimal.Context(self._digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
        with decimal.localcontext(context):
            unit, scale = 1 / Decimal(1 << (self.bits + records.grid.bits)), Decimal(1 << q)
            for chosen, values, columns, starts in self._blocks():
                products = np.array([np.add.reduceat(values * row[columns], starts) for row in w])
                coefficients = np.empty((outputs, len(chosen)), dtype=object)
                for j, i in enumerate(chosen.tolist()):
                    shrink = Decimal(float(self._shrinks[i]))
                    own = [Decimal(int(product)) * unit * shrink for product in products[:, j]]
                    slopes, pull = self._slopes(i, own), shrink / int(self._shares[i])
                    coefficients[:, j] = [int((slope * pull * scale).to_integral_value()) for slope in slopes]
                    margins[i] = [float(m) for m in own]
                    sizes += self._size(i, own, slopes) * pull * int(records.norms[i])
                    lengths += int(records.norms[i])
                counts = np.diff(np.append(starts, len(values)))
                for row, own_coefficients in zip(total, coefficients, strict=True):
                    np.add.at(row, columns, np.repeat(own_coefficients, counts) * values)
        gradient = total + self._smooth_part(w, q_sum)
        norm = Fraction(math.isqrt(sum(int(g) ** 2 for g in gradient.ravel())) + 1, 1 << q_sum)
        roundings = Fraction(24 + 2 * outputs) * Fraction(5, 10**self._digits) * Fraction(sizes) / records.grid.one
        last = Fraction(outputs * lengths + 2 * math.isqrt(w.size) + 2, 1 << q_sum)
        return ExactPoint(w, gradient, q_sum, norm, roundings * Fraction(257, 256) + last, margins)

    def _slopes(self, i: int, margins: list[Decimal]) -> list[Decimal]:
        limit = Decimal(float(self._limits[i]))
        slopes = slopes_in_decimals(self._loss, margins, Decimal(float(self._records.targets[i])))
        return [max(min(slope, limit), -limit) for slope in slopes]

    def _size(self, i: int, margins: list[Decimal], slopes: list[Decimal]) -> Decimal:
        """What the error of a record's slope is in proportion to."""
        largest = max(abs(margin) for margin in margins) + abs(Decimal(float(self._records.targets[i])))
        return 1 + sum((abs(s) for s in slopes), Decimal(0)) + Decimal(float(self._loss.smoothness)) * (1 + largest)

    def _smooth_part(self, w: Whole, q: int) -> Whole:
        """ridge w + b, in units of 2^-q."""
        unit = Fraction(2) ** (q - self.bits)
        shares = [ridge * unit for ridge in self._ridge] * len(w)
        scaled = [(share.numerator * int(v)) // share.denominator for share, v in zip(shares, w.ravel(), strict=True)]
        return np.asarray(np.array(scaled, dtype=object).reshape(w.shape) + whole(self._linear, q))

    def _blocks(self) -> Iterator[tuple[Integers, Whole, Integers, Integers]]:
        """Records that are not null, some at a time: which, their entries, the entries' columns, where each begins."""
        records = self._records
        kept = np.flatnonzero(records.norms > 0)
        for first in range(0, len(kept), _BLOCK):
            chosen = kept[first : first + _BLOCK]
            if records.sparse is None:
                assert records.rows is not None
                columns = np.tile(np.arange(records.n_columns), len(chosen))
                starts = np.arange(len(chosen)) * records.n_columns
                yield chosen, records.rows[chosen].ravel().astype(object), columns, starts
                continue
            indptr, indices, data = records.sparse
            counts = (indptr[chosen + 1] - indptr[chosen]).astype(np.int64)
            starts = np.cumsum(counts) - counts
            places = np.repeat(indptr[chosen] - starts, counts) + np.arange(counts.sum())
            yield chosen, data[places].astype(object), indices[places].astype(np.int64), starts
