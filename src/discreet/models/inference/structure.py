"""Which columns each coefficient of a summary belongs to: main effects, products, places of a column with knots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from discreet.errors import Unsupported
from discreet.typing import Floats

Factors = tuple[tuple[str, str], ...]
"""What a coefficient multiplies: columns, each with its feature; empty for the intercept."""
PRODUCT = " x "


@dataclass(frozen=True)
class Structure:
    """The columns behind the coefficients of a summary.

    ``terms`` has the factors of each coefficient. ``knots`` maps a column with knots to its places, from the lowest to
    the highest, each with the name of its feature. ``bases`` are names of cells whose effect is 0, since the others
    are against them.
    """

    terms: tuple[Factors, ...]
    knots: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    bases: frozenset[str] = frozenset()

    @classmethod
    def of_arrays(cls, names: Sequence[str], intercept: str | None) -> "Structure":
        """Return the structure of features that are columns by themselves."""
        return cls(tuple(() if name == intercept else ((name, name),) for name in names))

    def repeated(self, times: int) -> "Structure":
        """Return the same for the coefficients of several classes, one block after the other."""
        return Structure(self.terms * times, self.knots, self.bases)

    @property
    def slopes(self) -> list[int]:
        """Places of all coefficients but intercepts."""
        return [j for j, factors in enumerate(self.terms) if factors]

    def of_column(self, column: str) -> list[int]:
        """Places of a column's coefficients, products with other columns included."""
        return [j for j, factors in enumerate(self.terms) if any(name == column for name, _ in factors)]

    def of_term(self, text: str) -> list[int]:
        """Places of the coefficients of a product of columns, such as ``age x ward``."""
        return [j for j, factors in enumerate(self.terms) if factors and PRODUCT.join(c for c, _ in factors) == text]


class Spline(NamedTuple):
    """A piecewise linear effect: its places, and where the coefficient of each place is (None: the base, 0).

    ``group`` is the class, and ``partners`` the features that it is multiplied with.
    """

    group: str
    partners: Factors
    places: tuple[float, ...]
    coefficients: tuple[int | None, ...]

    def rows(self, x: Floats, count: int) -> Floats:
        """Return the effect at each x as a combination of ``count`` coefficients."""
        at = np.array(self.places)
        rows = np.zeros((len(x), count))
        for k, j in enumerate(self.coefficients):
            if j is not None:
                rows[:, j] = np.interp(x, at, np.eye(len(at))[k])
        return rows

    def bends(self, count: int) -> Floats:
        """Return the change of slope at each knot as a combination of ``count`` coefficients."""
        at = np.array(self.places)
        slopes = np.diff(self.rows(at, count), axis=0) / np.diff(at)[:, None]
        return np.asarray(np.diff(slopes, axis=0))


def splines_of(structure: Structure, groups: Sequence[str], column: str) -> list[Spline]:
    """Return a column's piecewise linear effects: of each class, by itself first, then times other features."""
    if column not in structure.knots:
        if not structure.of_column(column):
            raise Unsupported(f"there is no column called {column}")
        raise Unsupported(f"{column} has no knots: only columns with knots in the schema have a curve")
    names, places = zip(*structure.knots[column], strict=True)
    found: dict[tuple[str, Factors], dict[str, int]] = {}
    for j in structure.of_column(column):
        inner = dict(structure.terms[j])
        partners = tuple(factor for factor in structure.terms[j] if factor[0] != column)
        if inner[column] in names:  # not a flag of missing values
            found.setdefault((groups[j], partners), {})[inner[column]] = j
    made = [Spline(*key, places, tuple(map(at.get, names))) for key, at in found.items()]
    return sorted(made, key=lambda spline: len(spline.partners))
