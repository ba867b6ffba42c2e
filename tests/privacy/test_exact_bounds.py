"""No record, whatever is in it, contributes more than B: counted in Python integers on the curator's own path."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.equivalence.reference import LOSSES, PURE, ZERO_OUT, bounds_for, measure, size

EDGES = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -5e-324, 1e-170, 0.0, -0.0, 1.0, -1.0, 2.0**53 + 2, 0.1]
cells = st.one_of(st.sampled_from(EDGES), st.floats(width=64), st.floats(-2, 2))
labels = st.one_of(st.sampled_from([0, 1, 2, -1, 50, np.nan, np.inf, 1e308]), st.floats(0, 3))
weights = st.lists(st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e-300, 1e300, -1e300])), min_size=1, max_size=5)
clips = st.sampled_from([1e-30, 1e-3, 0.3, 1.0, 7.0, 1e9])
ranges = st.sampled_from([1.0, 1e-12, 255.0, 1e300, [(-1, 1), (0, 1e6), (-1e-9, 0), (0, 0)]])
norms = st.sampled_from([None, 1.0, 1e-3, 0.37, 100.0])
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
bounded = settings(max_examples=60, deadline=None)


def table(rows, sparse):
    X = np.array(rows, dtype=np.float64)
    return sp.csr_matrix(X) if sparse else X


@each_loss
@bounded
@given(
    row=st.lists(cells, min_size=4, max_size=4), label=labels, w=weights, clip=clips, features=ranges,
    longest=norms, sparse=st.booleans(), pure=st.booleans(), intercept=st.booleans(),
)  # fmt: skip
def test_one_record_contributes_at_most_b(loss, row, label, w, clip, features, longest, sparse, pure, intercept):
    bounds = bounds_for(loss, features, row_norm=longest)
    budget = PURE if pure else ZERO_OUT
    one = measure(table([row], sparse), [label], bounds, loss, w=w, clip=clip, budget=budget, fit_intercept=intercept)
    assert one.norm == ("l1" if pure else "l2")
    assert size(one) <= 1


@pytest.mark.few(1)
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[5]], ids=["Logistic", "Squared", "Softmax"])
@bounded
@given(row=st.lists(cells, min_size=4, max_size=4), label=labels, w=weights, features=ranges, sparse=st.booleans(),
       longest=norms, pure=st.booleans())  # fmt: skip
def test_also_where_one_scale_serves_all_features(loss, row, label, w, features, sparse, longest, pure):
    bounds = bounds_for(loss, features, row_norm=longest, scale="global")
    one = measure(table([row], sparse), [label], bounds, loss, w=w, budget=PURE if pure else ZERO_OUT)
    assert size(one) <= 1


@each_loss
@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=7), label=labels, w=weights,
       sparse=st.booleans(), pure=st.booleans())  # fmt: skip
def test_all_rows_of_a_person_contribute_at_most_b(loss, rows, label, w, sparse, pure):
    budget = PURE if pure else ZERO_OUT
    groups = ["Ann"] * len(rows)
    y = [label] * len(rows)
    person = measure(table(rows, sparse), y, bounds_for(loss), loss, w=w, clip=1e-3, budget=budget, groups=groups)
    assert size(person) <= 1


@pytest.mark.parametrize(
    "groups",
    [[7, 7.0, np.float64(7), np.int64(7)], np.array([7, 7.0, np.int64(7), 7], dtype=object), [None] * 4, [np.nan] * 4],
    ids=["list", "objects", "None", "NaN"],
)
def test_equal_names_are_one_person_whatever_their_type(groups):
    person = measure(np.ones((4, 2)), [1] * 4, bounds_for(LOSSES[0]), LOSSES[0], clip=1e-3, groups=groups)
    assert size(person) <= 1


@each_loss
def test_the_bound_is_reached_so_that_the_tests_above_have_teeth(loss):
    """A clip far below every gradient: contributions lie just under B, never above."""
    label = 0 if loss.task == "classification" else 3
    near = measure(np.array([[0.9, -1.0, 0.2]]), [label], bounds_for(loss), loss, clip=1e-6)
    assert 0.999 < size(near) <= 1


@pytest.mark.parametrize("columns", [2**20, 2**21 + 5, 2**22, 2**22 + 3])
def test_the_norm_of_a_very_wide_record_does_not_wrap(columns):
    """2^22 columns of 2^21 have a squared norm of 2^64: a 64-bit sum wraps, and the clip with it. Refusing is fine."""
    X = sp.csr_matrix((np.ones(columns), np.arange(columns), np.array([0, columns])), shape=(1, columns))
    try:
        wide = measure(X, [1], bounds_for(LOSSES[0], scale="global"), LOSSES[0], clip=1.0)
    except ValueError as refusal:
        assert "column" in str(refusal) or "feature" in str(refusal)  # noqa: PT017
        return
    values = wide.exact.ravel().astype(np.float64)  # a float sum will do: the defect was a factor of 1024
    assert np.sqrt(np.sum(values**2)) <= wide.unit.bound * (1 + 1e-9)
