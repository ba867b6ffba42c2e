"""A map of records that is made of released values, and records through it, onto a new lattice (``Curator.recode``).

    z = matrix^T shrink( (x - center) / scale, constant ),        t = f (y - target_center) / target_scale

``shrink`` multiplies a row that is longer than ``row_norm`` by f = row_norm / length, its constant with it, so that a
linear predictor of z has the sign of a linear predictor of x; a numeric target is multiplied by the same f, which makes
a record with far-out features count less instead of pulling more. x is always the record as it was admitted.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from discreet.bounds import Domain
from discreet.curator.kernels.encode import LARGEST, recode_rows, recode_sparse_rows
from discreet.curator.kernels.kernel import LANES, ROWS, Workers
from discreet.curator.lattice import Grid
from discreet.curator.records.admission import Records
from discreet.errors import PlanViolation, Unsupported
from discreet.typing import Array, Floats, Integers

Numbers = tuple[float, float]
Compressed = tuple[Integers, NDArray[np.int32], Array]

GRID_STEP = 2.0**-14
"""How far the rounding of admitted records may put a feature beyond its range."""
LEAST_CHANGE = 0.1
"""How much of a map's smallest direction steps of the grid may change (``Recoding.on_grid``)."""
_MOST_BITS, _FEWER_BITS = 14, 11
"""Where a person's rows share a bound, or n is private and so the bound smaller, second moments need the room."""


@dataclass(frozen=True)
class Recoding:
    """A map of records, made of public and released values only.

    Parameters
    ----------
    center, scale : array
        One number per feature, in training coordinates; without an intercept there is no center.
    constant : float, default=1.0
        What the intercept's constant feature becomes.
    row_norm : float, default=inf
        Longer rows are shrunk onto this.
    matrix : array or None, default=None
        (p, q); one number per column for a diagonal; None for none. p counts the intercept.
    reach : float or None, default=None
        Rows longer than this after the matrix are shrunk too. None: what ``row_norm`` and the matrix imply.
    drop_longer : bool, default=False
        Rows longer than ``reach`` become null records instead: no row is shown with features that it does not have.
    target_center, target_scale : float, default=0.0 and 1.0
        For numeric targets.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.curator import Recoding
    >>> Recoding(np.zeros(2), np.ones(2)).coefficients(np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """

    center: Floats = field(repr=False)
    scale: Floats = field(repr=False)
    constant: float = 1.0
    row_norm: float = math.inf
    matrix: Floats | None = field(default=None, repr=False)
    reach: float | None = None
    drop_longer: bool = False
    target_center: float = 0.0
    target_scale: float = 1.0

    def check(self, domain: Domain, *, sparse: bool) -> None:
        """Refuse a map that does not fit these records, before they are read."""
        p, features = domain.n_features, domain.n_features - domain.intercept
        if self.center.shape != (features,) or self.scale.shape != (features,):
            raise PlanViolation(f"a recoding needs a center and a scale for each of {features} features")
        values = (self.constant, self.target_center, self.target_scale, *self.center, *self.scale)
        if not np.isfinite(values).all() or not (self.scale > 0).all() or not self.target_scale > 0:
            raise PlanViolation("a recoding needs finite numbers, and scales above 0")
        if not self.row_norm > 0 or (self.reach is not None and not 0 < self.reach < math.inf):
            raise PlanViolation("row_norm and reach bound lengths: give positive numbers")
        if not domain.intercept and (self.center.any() or self.target_center):
            raise Unsupported("without an intercept nothing can be centered: set fit_intercept=True")
        if self.matrix is not None and (self.matrix.ndim not in (1, 2) or self.matrix.shape[0] != p):
            raise PlanViolation(f"the matrix of a recoding needs a row for each of {p} columns")
        if self.matrix is not None and not np.isfinite(self.matrix).all():
            raise PlanViolation("the matrix of a recoding must be finite")
        if sparse and (self.drop_longer or self.center.any() or (self.matrix is not None and self.matrix.ndim == 2)):
            raise Unsupported(
                "sparse records are recoded by scales and a diagonal only: a center or a matrix fills them"
            )

    def domain(self, admitted: Domain) -> Domain:
        """Return what is public of the recoded records: bounds on each |z_j| and on ||z|| among it."""
        features = len(self.center)
        entries = np.full(admitted.n_features, abs(self.constant))
        low, high = -admitted.feature_bounds[:features], admitted.feature_bounds[:features]
        if admitted.places is not None:
            low, high = admitted.places.T
        farthest = np.maximum(np.abs(low - self.center), np.abs(high - self.center))
        entries[:features] = (farthest + GRID_STEP) / self.scale
        length = min(self.row_norm, float(np.linalg.norm(entries)))
        entries = np.minimum(entries, length)
        if self.matrix is not None and self.matrix.ndim == 1:
            entries = entries * np.abs(self.matrix)
            length = min(length * float(np.abs(self.matrix).max()), float(np.linalg.norm(entries)))
        elif self.matrix is not None:
            entries = length * np.linalg.norm(self.matrix, axis=0)
            length *= float(np.linalg.norm(self.matrix))  # above the spectral norm, and cheap
        length = length if self.reach is None else min(length, self.reach)
        lowest = (-admitted.target_bound - self.target_center) / self.target_scale
        highest = (admitted.target_bound - self.target_center) / self.target_scale
        return replace(
            admitted,
            feature_bounds=np.minimum(entries, length),
            row_norm=length,
            intercept=False,
            target_bound=max(abs(lowest), abs(highest)),
            ranges=None,
            target_range=None,
            start=None if admitted.start is None else self.recoded(admitted.start),
            moments=None,
        )

    def coefficients(self, w: Floats) -> Floats:
        """Map a linear predictor of recoded records, (q,) or (q, K), to one of admitted records and targets."""
        if self.matrix is not None:
            w = (self.matrix * w.T).T if self.matrix.ndim == 1 else self.matrix @ w
        features = len(self.center)
        slopes = (w[:features].T / self.scale * self.target_scale).T
        if len(w) == features:
            return slopes
        last = self.constant * self.target_scale * w[features] - self.center @ slopes + self.target_center
        return np.concatenate([slopes, last[None] if w.ndim == 2 else [last]])

    def recoded(self, w: Floats) -> Floats | None:
        """Invert ``coefficients``; None where the map cannot be inverted: it then recodes no model."""
        features = len(self.center)
        inside = (w[:features].T * self.scale / self.target_scale).T
        if len(w) > features:
            if self.constant == 0:
                return None
            last = (w[features] + self.center @ w[:features] - self.target_center) / (self.constant * self.target_scale)
            inside = np.concatenate([inside, last[None] if w.ndim == 2 else [last]])
        if self.matrix is None:
            return np.asarray(inside)
        if self.matrix.ndim == 1:
            return np.asarray((inside.T / self.matrix).T) if self.matrix.all() else None
        square = self.matrix.shape[0] == self.matrix.shape[1]
        return np.asarray(np.linalg.solve(self.matrix, inside)) if square else None

    def on_grid(self, admitted: Domain) -> "Recoding":
        """Return the map with whole numbers of grid steps in the place of what it makes of a feature's 1, and of 0.

        Images of cells are then not rounded at all: rounding, which is alike in all rows with the same cells, would be
        an error of the model. A map with a direction that steps of the grid would change much stays as it is.
        """
        if self.matrix is None or self.matrix.ndim == 1:
            return self
        features, step = len(self.center), 1.0 / placement(self, admitted, grouped=admitted.grouped).grid.one
        slopes = self.matrix[:features] / self.scale[:, np.newaxis]
        offset = self.constant * self.matrix[features:] - self.center @ slopes
        exact, shifted = (np.rint(part / step) * step for part in (slopes, offset))
        last = (shifted + self.center @ exact) / self.constant if len(offset) else offset
        matrix = np.concatenate([exact * self.scale[:, np.newaxis], last])
        changed = np.linalg.norm(np.concatenate([exact - slopes, shifted - offset]))
        least = np.linalg.norm(np.concatenate([slopes, offset]), -2)
        return replace(self, matrix=matrix) if changed < LEAST_CHANGE * least else self


@dataclass(frozen=True, repr=False)
class Placement:
    """A recoding of some kind of records, with the grid that its images are rounded to: the same for every part."""

    recoding: Recoding
    grid: Grid
    n_columns: int
    longest: int
    numeric_target: bool

    def of(self, records: Records, *, threads: int | None = None) -> Records:
        """Return the records through the map; each row's image depends on that row and on the map alone."""
        n, storage, recoding = records.n_rows, records.storage, self.recoding
        norms, sums = storage.zeros(n, np.int64), storage.zeros(n, np.int64)
        factors = storage.zeros(n, np.float64)
        onto = (recoding.constant, recoding.row_norm), (float(self.grid.one), self.longest), (norms, sums, factors)
        if records.sparse is not None:
            rows, sparse = None, self._sparse(records, *onto)
        else:
            rows, sparse = self._dense(records, *onto, threads=threads), None
        targets = records.targets
        if self.numeric_target:
            moved = storage.zeros(n, np.float64)
            np.subtract(targets, recoding.target_center, out=moved)
            np.divide(moved, recoding.target_scale, out=moved)
            targets = np.multiply(moved, factors, out=moved)
        return replace(
            records, rows=rows, sparse=sparse, targets=targets, norms=norms, sums=sums,
            n_columns=self.n_columns, grid=self.grid,
        )  # fmt: skip

    def _sparse(self, records: Records, limits: Numbers, onto: Numbers, facts: tuple[Array, ...]) -> Compressed:
        assert records.sparse is not None
        indptr, indices, data = records.sparse
        matrix, inverse = self.recoding.matrix, 1.0 / self.recoding.scale
        diagonal = np.ones(records.n_columns) if matrix is None else matrix
        out = np.zeros(data.size, dtype=self.grid.dtype)
        unit = 1.0 / records.grid.one
        recode_sparse_rows(
            indptr, indices, data, records.norms, unit, inverse, *limits, diagonal, *onto, out, *facts
        )  # fmt: skip
        return indptr, indices, out

    def _dense(
        self, records: Records, limits: Numbers, onto: Numbers, facts: tuple[Array, ...], *, threads: int | None
    ) -> Array:
        rows, recoding = records.rows, self.recoding
        assert rows is not None
        matrix = np.empty((0, 0)) if recoding.matrix is None else recoding.matrix
        matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
        matrix = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % LANES)))
        out = records.storage.zeros((records.n_rows, self.n_columns), self.grid.dtype)
        unit, inverse = 1.0 / records.grid.one, 1.0 / recoding.scale

        def part(first: int, last: int) -> None:
            cut = slice(first, last)
            recode_rows(
                rows[cut], records.norms[cut], unit, recoding.center, inverse, *limits, matrix, *onto,
                recoding.drop_longer, *(np.zeros((ROWS, table.shape[1])) for table in (rows, matrix)), np.empty(ROWS),
                out[cut], *(fact[cut] for fact in facts),
            )  # fmt: skip

        Workers(threads).each(part, records.n_rows, records.n_rows * (matrix.size or self.n_columns))
        return out


def placement(
    recoding: Recoding, admitted: Domain, *, grouped: bool, sparse: bool = False, numeric_target: bool = False
) -> Placement:
    """Check a recoding against what is public of the records, and round to as many bits as 16-bit integers hold."""
    recoding.check(admitted, sparse=sparse)
    seen = recoding.domain(admitted)
    largest = float(seen.feature_bounds.max(initial=0.0))
    if not largest <= LARGEST:
        raise Unsupported("the recoded features are too large for the lattice: use larger scales, or a reach")
    most = _FEWER_BITS if grouped or not admitted.neighbors.n_is_public else _MOST_BITS
    bits = most if largest == 0 else min(most, math.floor(math.log2(LARGEST / largest)))
    grid = Grid(bits, np.int16)
    return Placement(recoding, grid, seen.n_features, math.floor(seen.row_norm * grid.one), numeric_target)


def recoded(records: Records, recoding: Recoding, admitted: Domain, *, numeric_target: bool) -> Records:
    """Return the records through the map, onto a new grid."""
    sparse, grouped = records.sparse is not None, records.shares is not None
    return placement(recoding, admitted, sparse=sparse, grouped=grouped, numeric_target=numeric_target).of(records)
