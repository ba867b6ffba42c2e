"""Which columns each coefficient of a summary belongs to: main effects, products, places of a column with knots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from discreet.bounds import Range
from discreet.errors import Unsupported
from discreet.typing import Floats

Factors = tuple[tuple[str, str], ...]
"""What a coefficient multiplies: columns, each with its feature; empty for the intercept."""
PRODUCT = " x "


@dataclass(frozen=True)
class Structure:
    """The columns behind the coefficients of a summary.

    ``terms`` has the factors of each coefficient. ``shapes`` maps a column with knots to the form of its effect.
    ``bases`` are names of cells whose effect is 0, since the others are against them.
    """

    terms: tuple[Factors, ...]
    shapes: "Mapping[str, Shape]" = field(default_factory=dict)
    bases: frozenset[str] = frozenset()

    @classmethod
    def of_arrays(cls, names: Sequence[str], intercept: str | None) -> "Structure":
        """Return the structure of features that are columns by themselves."""
        return cls(tuple(() if name == intercept else ((name, name),) for name in names))

    def repeated(self, times: int) -> "Structure":
        """Return the same for the coefficients of several classes, one block after the other."""
        return Structure(self.terms * times, self.shapes, self.bases)

    @property
    def slopes(self) -> list[int]:
        """Places of all coefficients but intercepts."""
        return [j for j, factors in enumerate(self.terms) if factors]

    @property
    def ratios(self) -> list[int]:
        """Places of coefficients whose exponential means something: no intercept, no part of a smooth curve."""
        smooth = {name for name, shape in self.shapes.items() if shape.is_smooth}
        return [j for j in self.slopes if len(self.terms[j]) > 1 or self.terms[j][0][0] not in smooth]

    def of_column(self, column: str) -> list[int]:
        """Places of a column's coefficients, products with other columns included."""
        return [j for j, factors in enumerate(self.terms) if any(name == column for name, _ in factors)]

    def of_term(self, text: str) -> list[int]:
        """Places of the coefficients of a product of columns, such as ``age x ward``."""
        return [j for j, factors in enumerate(self.terms) if factors and PRODUCT.join(c for c, _ in factors) == text]


@dataclass(frozen=True)
class BentShape:
    """A piecewise linear effect: the coefficient of each place is the effect there."""

    features: tuple[str, ...]
    places: tuple[float, ...]

    @property
    def range(self) -> Range:
        """The ends of the column's declared range."""
        return self.places[0], self.places[-1]

    @property
    def is_smooth(self) -> bool:
        """Whether coefficients mean nothing one by one."""
        return False

    @property
    def references(self) -> tuple[float, ...]:
        """Values that effects may be against: the lowest, whose coefficient is the base."""
        return self.places[:1]

    def basis(self, x: Floats) -> Floats:
        """Return what multiplies each feature's coefficient at each x: hat functions."""
        return np.array([np.interp(x, self.places, hat) for hat in np.eye(len(self.places))]).T

    def bends(self) -> Floats:
        """Return the change of slope at each knot as combinations of the features' coefficients."""
        gaps = np.diff(self.places)[:, None]
        return np.asarray(np.diff(np.diff(np.eye(len(self.places)), axis=0) / gaps, axis=0))


@dataclass(frozen=True)
class SmoothShape:
    """A cubic spline: a line per ``unit`` of the column, and bends."""

    features: tuple[str, ...]
    range: Range
    knots: tuple[float, ...]
    unit: float = 1.0

    @property
    def is_smooth(self) -> bool:
        """Whether coefficients mean nothing one by one."""
        return True

    @property
    def references(self) -> tuple[float, ...]:
        """Values that effects may be against: the knots."""
        low, high = self.range
        return tuple(low / 2 * (1 - u) + high / 2 * (1 + u) for u in self.knots)

    def basis(self, x: Floats) -> Floats:
        """Return what multiplies each feature's coefficient at each x: x in its unit, and the bends there."""
        from discreet.curator import curve_on

        low, high = self.range
        scaled = np.clip((x - low / 2 - high / 2) / (high / 2 - low / 2), -1.0, 1.0)
        return np.column_stack([x / self.unit, curve_on(self.knots).bends(scaled)])

    def bends(self) -> Floats:
        """Return all coefficients but the line's."""
        return np.eye(len(self.features))[1:]


Shape = BentShape | SmoothShape


class Curve(NamedTuple):
    """The effect of a column with knots, by its coefficients' places; None: 0, since it is the base or not there.

    ``group`` is the class, and ``partners`` the features that it is multiplied with.
    """

    group: str
    partners: Factors
    shape: Shape
    coefficients: tuple[int | None, ...]

    def rows(self, x: Floats, count: int) -> Floats:
        """Return the effect at each x as a combination of ``count`` coefficients."""
        return self._spread(self.shape.basis(x), count)

    def bends(self, count: int) -> Floats:
        """Return what is 0 where the effect is a straight line, as combinations of ``count`` coefficients."""
        rows = self._spread(self.shape.bends(), count)
        return rows[np.any(rows != 0, axis=1)]

    def _spread(self, basis: Floats, count: int) -> Floats:
        rows = np.zeros((len(basis), count))
        for k, j in enumerate(self.coefficients):
            if j is not None:
                rows[:, j] = basis[:, k]
        return rows


def curves_of(structure: Structure, groups: Sequence[str], column: str) -> list[Curve]:
    """Return a column's curves: of each class, by itself first, then times other features."""
    shape = structure.shapes.get(column)
    if shape is None:
        if not structure.of_column(column):
            raise Unsupported(f"there is no column called {column}")
        raise Unsupported(f"{column} has no knots: only columns with knots in the schema have a curve")
    coefficients: dict[tuple[str, Factors], dict[str, int]] = {}
    for j in structure.of_column(column):
        feature = dict(structure.terms[j])[column]
        partners = tuple(factor for factor in structure.terms[j] if factor[0] != column)
        if feature in shape.features:  # not a flag of missing values
            coefficients.setdefault((groups[j], partners), {})[feature] = j
    curves = [Curve(*key, shape, tuple(map(at.get, shape.features))) for key, at in coefficients.items()]
    return sorted(curves, key=lambda curve: len(curve.partners))
