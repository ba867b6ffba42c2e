"""Streams are admitted as arrays are, in whatever pieces and order their blocks stand."""

import json
import math

import numpy as np
import pytest

from discreet import Certificate, DPLogisticRegression
from discreet.accounting import Plan, Release, price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator import PrivateData, Problem
from discreet.curator.records import admission, stream
from discreet.curator.records.stream import Block, RecordStream, admit_stream
from discreet.errors import Unsupported
from discreet.losses import Logistic
from tests.covering import covering
from tests.replaying import window

N, P = 61, 5


class Blocks(RecordStream):
    """Rows in blocks of some size, column by column or row by row."""

    def __init__(self, X, y, size, order):
        self.columns = [f"x{j}" for j in range(P)]
        self.shape, self._X, self._y, self._size, self._order = X.shape, X, y, size, order

    def blocks(self):
        for first in range(0, len(self._y), self._size):
            part = slice(first, first + self._size)
            yield Block(np.array(self._X[part], order=self._order), self._y[part])

    def persons(self):
        raise NotImplementedError


@covering(("size", [1, 20, N]), ("order", ["C", "F"]), ("values", [1, 37, 10**6]))
def test_pieces_and_orders_give_the_integers_of_arrays(values, order, size, monkeypatch):
    monkeypatch.setattr(stream, "TURNED_VALUES", values)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, P)) * 2, rng.integers(0, 2, N).astype(float)
    X[3, 1], X[40, 4], y[7] = np.nan, np.inf, np.nan
    bounds = Bounds(features=[(-1.0, 1.0)] * P, row_norm=1.5, classes=(0, 1))
    scaling, targets = admission.scaling_for(bounds, P, None, True), admission.TargetScaling(signed=True)
    expected = admission.admit(X, targets.placed(y)[0], scaling, None)
    seen = np.full((N, P), -7.0)

    def watch(first, last, features):
        seen[first:last] = features

    found = admit_stream(Blocks(X, y, size, order), targets, scaling, watch)
    for name in ("rows", "targets", "norms"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(seen, X)


@pytest.mark.parametrize("position", [-1.0, 0.5, 2.0, 40.0, 1e300, np.inf, np.nan])
def test_a_position_of_no_class_makes_its_record_null(position):
    """A loss's slope is bounded for declared classes alone: one minimizer must not feel a label of 40."""
    X, at = np.ones((4, P)), []
    for label in (position, np.nan):
        data = PrivateData(Blocks(X, np.array([label, 0.0, 1.0, 1.0]), 3, "C"), None, Bounds(1.0, classes=(0, 1)))
        priced = price_plan(Plan([Release("noisy_minimizer", 1)]), Budget(1.0, 1e-6, "zero_out"))
        with window() as seen:
            data.open(priced, Logistic()).noisy_minimizer(Problem(regularization=1.0, n=4))
        at.append(seen[0].exact)
    np.testing.assert_array_equal(*at)


FORMS = ([], {}, [[], {}], {"a": []}, (), None, True, "text", -1.5, math.inf, {"a": {"b": [1, None]}}, np.int64(3))
BAD_FORMS = (math.nan, [math.nan], {"a": {1, 2}}, 10**400, np.zeros(2), object(), b"x", 1j)
TAKEN = ("n", "unit", "classes", "features", "kept", "noisy_checks")


def streamed(facts):
    rng = np.random.default_rng(0)
    rows = Blocks(rng.normal(size=(N, P)), rng.integers(0, 2, N).astype(float), 20, "C")
    rows.facts = facts
    return DPLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0, classes=(0, 1)), ledger=False).fit(rows).certificate_


@pytest.mark.parametrize("fact", FORMS, ids=repr)
def test_certificates_with_facts_of_any_form_are_read_back(fact):
    certificate = streamed({"site": fact})
    assert Certificate.from_json(certificate.to_json()).to_json() == certificate.to_json()


@pytest.mark.parametrize(
    "facts",
    [*({"site": form} for form in BAD_FORMS), *({name: 5} for name in TAKEN)],
    ids=[*(type(form).__name__ for form in BAD_FORMS), *TAKEN],  # an object's own text differs from process to process
)
def test_facts_that_no_certificate_could_hold_are_refused_before_a_row_is_read(facts, monkeypatch):
    monkeypatch.setattr(Blocks, "blocks", lambda self: pytest.fail("a row was read"))
    with pytest.raises(Unsupported, match="a stream's facts"):
        streamed(facts)


@pytest.mark.parametrize("fact", [10**5000, json.loads("[" * 700 + "]" * 700)], ids=["long", "deep"])
def test_facts_that_json_does_not_write_or_read_are_refused_before_a_row_is_read(fact, monkeypatch):
    monkeypatch.setattr(Blocks, "blocks", lambda self: pytest.fail("a row was read"))
    with pytest.raises(Unsupported, match="a stream's facts must be plain JSON"):
        streamed({"site": fact})
