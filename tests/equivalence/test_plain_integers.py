"""Compiled kernels against unbounded Python integers: the private copy, the clip and the sum, bit for bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.curator.kernels.clip import bound_vector
from discreet.curator.records import admission
from tests.equivalence.reference import LOSSES, bounds_for, contribution, encode_row, engine_for, query_for, records_of

EDGES = [np.nan, np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, -1.0, 0.5 / 16384, 1.5 / 16384, -2.5 / 16384]
cells = st.one_of(st.sampled_from(EDGES), st.floats(-1.5, 1.5), st.floats(width=64))
rows = st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=5)


def plain_total(X, y, bounds, groups, query, intercept):
    """The whole path from floats to the sum, in Python."""
    scaling = admission.scaling_for(bounds, X.shape[1], None, intercept)
    total = np.zeros(query.weights.integers.shape, dtype=object)
    for row, target, name in zip(X.tolist(), y, groups, strict=True):
        integers = encode_row(row, np.isfinite(target), scaling)
        total += np.array(contribution(integers, target, list(groups).count(name), query, scaling.grid), dtype=object)
    return total.tolist()


def check(loss, table, w, bounds, use_l1, clip, persons, intercept):
    X = np.array(table, dtype=np.float64)
    y = np.resize([1.0, 0.0, np.nan, 1.0], len(X)) * (2 if loss.n_outputs > 1 else 1)
    groups = np.arange(len(X)) // (2 if persons else 1)
    for stored in (X, sp.csr_matrix(X)):
        records = records_of(stored, y, bounds, groups if persons else None, intercept)
        query = query_for(records, loss, w, clip=clip, use_l1=use_l1)
        compiled = query.over(engine_for(records, threads=1)).tolist()
        assert compiled == plain_total(X, y, bounds, groups, query, intercept)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@settings(max_examples=40, deadline=None)
@given(
    table=rows, w=st.lists(st.floats(-5, 5), min_size=1, max_size=4), use_l1=st.booleans(), persons=st.booleans(),
    clip=st.sampled_from([1e-5, 0.3, 100.0]), longest=st.sampled_from([None, 1.0, 0.05]), intercept=st.booleans(),
)  # fmt: skip
def test_the_compiled_sum_is_the_plain_sum(loss, table, w, use_l1, persons, clip, longest, intercept):
    check(loss, table, w, bounds_for(loss, row_norm=longest), use_l1, clip, persons, intercept)


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(table=rows, w=st.lists(st.floats(-5, 5), min_size=1, max_size=4), softmax=st.booleans())
def test_also_on_the_fine_grid(table, w, softmax):
    loss = LOSSES[5 if softmax else 0]
    features = [(-1.0, 1.0), (0.0, 1e-3), (-1e5, 2.0)]
    check(loss, table, w, bounds_for(loss, features, scale="global", row_norm=0.8), False, 0.3, False, True)


@settings(max_examples=300, deadline=None)
@given(
    values=st.lists(st.one_of(st.floats(width=64), st.floats(-1e9, 1e9)), min_size=2, max_size=12),
    limit=st.one_of(st.integers(0, 2**30), st.integers(0, 5)), use_l1=st.booleans(),
)  # fmt: skip
def test_the_clip_of_a_vector_holds_for_every_bit_pattern(values, limit, use_l1):
    out = np.empty(len(values), dtype=np.int64)
    bound_vector(np.array(values), limit, use_l1, out)
    integers = [int(v) for v in out]
    assert (sum(map(abs, integers)) if use_l1 else sum(v * v for v in integers)) <= (limit if use_l1 else limit**2)
    assert all(c == 0 or (c > 0) == (v > 0) for c, v in zip(integers, values, strict=True))
