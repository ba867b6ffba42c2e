"""The curator reads its own copy: what others do to X, y or groups meanwhile changes nothing, or is refused."""

import threading
from contextlib import suppress
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.curator.private_data import PrivateData
from discreet.curator.session import observe
from discreet.errors import DiscreetError
from discreet.losses import Logistic
from tests.promises.reference import ZERO_OUT, bounds_for, measure, records_of, size

PLAN = Plan([Release("noisy_gradient", 1, clip=1.0)])


def answer(X, y, groups, spoil):
    with use_entropy(SeededEntropy(2)):
        curator = PrivateData(X, y, bounds_for(Logistic()), groups=groups).open(price_plan(PLAN, ZERO_OUT), Logistic())
    spoil()
    return curator.noisy_gradient(np.array([0.3, -0.2, 0.1]), clip=1.0)


TABLES = {
    "array": lambda: np.array([[0.5, -0.5], [0.1, 0.2], [0.9, 0.0]]),
    "grid already": lambda: np.array([[1, -1], [0, 1], [1, 1]], dtype=np.int16),
    "frame": lambda: pd.DataFrame({"a": [0.5, 0.1, 0.9], "b": [1.0, 0.0, 0.3]}),
    "sparse": lambda: sp.csr_matrix(np.array([[0.5, -0.5], [0.1, 0.2], [0.9, 0.4]])),
}


def ruin(X):
    if sp.issparse(X):
        X.data[:], X.indices[:] = 77.0, 0
    elif hasattr(X, "iloc"):
        X.iloc[:, :] = 77.0
    else:
        X[:] = 77


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("grouped", [False, True], ids=["records", "persons"])
def test_changes_after_opening_change_nothing(name, grouped):
    def parts():
        return TABLES[name](), np.array([0, 1, 1]), np.array([0, 0, 1]) if grouped else None

    X, y, groups = parts()

    def spoil():
        ruin(X)
        y[:] = 0
        if grouped:
            groups[:] = 5

    assert (answer(X, y, groups, spoil) == answer(*parts(), lambda: None)).all()


@pytest.mark.parametrize("length", [0, 2, 4, 500])
def test_targets_that_grow_or_shrink_before_opening_are_refused_or_do_not_count(length):
    """Otherwise rows that do not exist would be read."""
    y = [0, 1, 1]
    data = PrivateData(np.ones((3, 2)), y, bounds_for(Logistic()))
    y[:] = [1] * length
    seen = []
    with suppress(DiscreetError), observe(lambda measurement: seen.append(measurement) or measurement.noisy):
        data.open(price_plan(PLAN, ZERO_OUT), Logistic()).noisy_gradient(np.zeros(3), clip=1.0)
    before = measure(np.ones((3, 2)), [0, 1, 1], bounds_for(Logistic()), Logistic(), clip=1.0)
    assert all(after.exact.tolist() == before.exact.tolist() for after in seen)


@pytest.mark.parametrize("kind", ["sparse", "frame"])
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_a_table_that_lost_rows_before_opening_is_refused(kind):
    X = sp.csr_matrix(np.ones((3, 2))) if kind == "sparse" else pd.DataFrame(np.ones((3, 2)))
    data = PrivateData(X, [0, 1, 1], bounds_for(Logistic()))
    if kind == "sparse":
        X.resize((1, 2))
    else:
        X.drop(index=[0, 1], inplace=True)
    with pytest.raises(DiscreetError):
        data.open(price_plan(PLAN, ZERO_OUT), Logistic())


@pytest.mark.parametrize("column", [10**6, 2, -1])
def test_a_sparse_index_outside_the_matrix_is_refused(column):
    X = sp.csr_matrix((np.ones(1), np.array([0]), np.array([0, 1])), shape=(1, 2))
    X.indices[0] = column
    with pytest.raises(DiscreetError, match="malformed"):
        measure(X, [1], bounds_for(Logistic()), Logistic())


def test_changes_while_it_is_read_cannot_lengthen_a_contribution():
    X = np.ones((1, 50))
    stop = threading.Event()

    def flicker():
        for value in cycle([np.nan, 1e308, -1.0, 0.25, np.inf]):
            X[:] = value
            if stop.is_set():
                return

    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        for _ in range(100):
            assert size(measure(X, [1], bounds_for(Logistic()), Logistic(), clip=1e-3)) <= 1
    finally:
        stop.set()
        thread.join()


def test_the_copy_does_not_print_itself():
    """Tracebacks with locals print what they find."""
    records = records_of(np.array([[0.7371, -0.25]]), [1.0], bounds_for(Logistic()))
    assert str(int(records.rows[0, 0])) not in repr(records)
