"""Records through a map, onto a new lattice: how ``Curator.recode`` does it. The proof is there."""

import math
from dataclasses import replace

import numpy as np

from discreet.bounds import Domain
from discreet.curator.engines.threads import Workers
from discreet.curator.kernels.recode import LARGEST, recode_rows, recode_sparse_rows
from discreet.curator.lattice.lattice import Grid
from discreet.curator.records.admission import Records
from discreet.curator.records.recoding import Recoding
from discreet.errors import Unsupported

_MOST_BITS, _FEWER_BITS = 14, 11
"""Where a person's rows share a bound, or n is private and so the bound smaller, second moments need the room."""


def recoded(records: Records, recoding: Recoding, admitted: Domain, *, numeric_target: bool) -> Records:
    """The records through the map, rounded to as many fractional bits as 16-bit integers hold."""
    recoding.check(admitted, sparse=records.sparse is not None)
    seen = recoding.domain(admitted)
    largest = float(seen.feature_bounds.max(initial=0.0))
    if not largest <= LARGEST:
        raise Unsupported("the recoded features are too large for the lattice: use larger scales, or a reach")
    most = _MOST_BITS if records.shares is None and admitted.neighbors.n_is_public else _FEWER_BITS
    bits = most if largest == 0 else min(most, math.floor(math.log2(LARGEST / largest)))
    grid = Grid(bits, np.int16)
    longest = math.floor(seen.row_norm * grid.one)
    n = records.n_rows
    norms, sums, factors = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    limits = (recoding.constant, recoding.row_norm)
    onto = (float(grid.one), longest)
    unit, inverse = 1.0 / records.grid.one, 1.0 / recoding.scale
    rows, sparse = records.rows, records.sparse
    if sparse is not None:
        indptr, indices, data = sparse
        diagonal = np.ones(admitted.n_features) if recoding.matrix is None else recoding.matrix
        out = np.empty(data.size, dtype=grid.dtype)
        recode_sparse_rows(
            indptr, indices, data, records.norms, unit, inverse, *limits, diagonal, *onto, out, norms, sums, factors
        )
        new_rows, new_sparse = None, (indptr, indices, out)
    else:
        assert rows is not None
        matrix = np.empty((0, 0)) if recoding.matrix is None else recoding.matrix
        matrix = np.ascontiguousarray(np.diag(matrix) if matrix.ndim == 1 else matrix)
        new_rows, new_sparse = np.empty((n, seen.n_features), dtype=grid.dtype), None

        def part(first: int, last: int) -> None:
            cut = slice(first, last)
            recode_rows(
                rows[cut], records.norms[cut], unit, recoding.center, inverse, *limits, matrix, *onto,
                new_rows[cut], norms[cut], sums[cut], factors[cut],
            )  # fmt: skip

        Workers().each(part, n, n * (matrix.size or seen.n_features))
    targets = records.targets
    if numeric_target:
        targets = (targets - recoding.target_center) / recoding.target_scale * factors
    return replace(
        records, rows=new_rows, sparse=new_sparse, targets=targets, norms=norms, sums=sums,
        n_columns=seen.n_features, grid=grid,
    )  # fmt: skip
