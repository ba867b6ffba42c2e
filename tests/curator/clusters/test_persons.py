"""Persons whose rows are in several parts of a cluster: the bits of memory, each row of each person once."""

import uuid
from dataclasses import replace
from decimal import Decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression, Schema, TableModel
from discreet.curator.clusters import persons, tasks
from discreet.errors import ClusterFailed
from discreet.ledger import Ledger
from discreet.schema import Number, Target
from discreet.solvers import StochasticGradientDescent
from discreet.testing import seeded
from tests.curator.clusters.parted import BINARY, N, X, bits, in_parts

RNG = np.random.default_rng(3)
NUMBERS = RNG.integers(0, N // 3, N)
NAMES = {
    "numbers": NUMBERS.astype(float),
    "texts": np.array([f"person {k}" for k in NUMBERS], dtype=object),
    "fixed texts": np.array([f"p{k}" for k in NUMBERS]),
    "mixed": np.array([[k, float(k), f"{k}", None][k % 4] for k in NUMBERS], dtype=object),
}
SGD = StochasticGradientDescent(n_steps=6, sampling_probability=0.25)


def fitted(names, parts=None, **settings):
    rows = (X, BINARY, names)
    if parts is not None:
        rows = tuple(in_parts(column, parts) for column in rows)
    with seeded(5):
        model = DPLogisticRegression(3.0, 1e-6, bounds=1.0, classes=(0, 1), **settings)
        return model.fit(*rows[:2], groups=rows[2])


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize(
    "settings", [{}, {"solver": SGD}, {"neighbors": "add_remove"}], ids=["auto", "sgd", "add_remove"]
)
def test_persons_have_the_bits_of_memory(client, parts, settings):
    names = NAMES["numbers"]
    found = fitted(names, parts, **settings)
    assert bits(found) == bits(fitted(names, **settings))
    assert found.certificate_.unit == "person"


@pytest.mark.parametrize("kind", NAMES)
def test_names_of_any_kind_have_the_bits_of_memory(client, kind):
    assert bits(fitted(NAMES[kind], 3, solver=SGD)) == bits(fitted(NAMES[kind], solver=SGD))


def frame_of():
    frame = pd.DataFrame(X, columns=list("abc")).assign(ill=BINARY, who=NAMES["texts"])
    frame.loc[::17, "who"] = None
    frame.loc[::19, "b"] = np.nan
    return frame


def schema_of(*, private):
    a = Number("private", within=(-4, 4)) if private else Number((-1, 1))
    return Schema({"a": a, "b": Number((-1, 1)), "c": Number((-1, 1))}, Target("ill", classes=(0, 1)), person="who")


def table_model(schema, table, ledger=None):
    words = {} if ledger is None else {"ledger": ledger, "dataset": "records"}
    with seeded(5):
        return TableModel(schema, DPLogisticRegression(3.0, 1e-6, **words)).fit(table).estimator_


@pytest.mark.parametrize("private", [False, True])
def test_tables_of_persons_their_ranges_and_checks_have_the_bits_of_memory(client, private):
    frame, schema = frame_of(), schema_of(private=private)
    expected, found = table_model(schema, frame), table_model(schema, dd.from_pandas(frame, npartitions=3, sort=False))
    assert bits(found) == bits(expected)
    for fact in ("checked", "estimated_ranges"):
        assert found.certificate_.assumed_public.get(fact) == expected.certificate_.assumed_public.get(fact)


def test_records_of_persons_are_recognized(client, monkeypatch):
    seen, ledger = [], Ledger(":memory:")
    ledger.grant("records", epsilon=100.0, delta=1e-3, neighbors="replace_one", unit="person")
    monkeypatch.setattr(ledger, "recognize", lambda dataset, found: seen.append(found))
    for parts in (None, 3):
        fitted(NAMES["numbers"], parts, ledger=ledger, dataset="records")
    assert seen[0] == seen[1]
    assert ledger.spent("records").fits == 2


def test_pieces_of_different_readings_end_the_fit(client, monkeypatch):
    """Planted: a part is read again, with other rows, for one of the new parts only."""
    honest = persons.piece_of

    def changed(pieces, part):
        piece = honest(pieces, part)
        return piece if part else replace(piece, source=bytes(16))

    monkeypatch.setattr(persons, "piece_of", changed)
    with pytest.raises(ClusterFailed, match="not what it was"):
        fitted(NAMES["numbers"], 3, neighbors="add_remove")


def test_pieces_that_come_in_any_order_are_counted_once():
    rows = tasks.ArrayRows(3, (0, 1), beside=("groups",))
    dealing, finish = persons.Dealing(2, b"0123456789abcdef"), persons.CountPersons()
    given = [(X[k::2], BINARY[k::2], NUMBERS[k::2]) for k in range(2)]
    hands = [persons.deal(k, rows, dealing, persons.NoColumns(), *part) for k, part in enumerate(given)]
    pieces = [(0, hand[0]) for hand in hands]
    (expected,) = persons.gather_addressed(0, pieces, finish=finish, parts=2)
    (found,) = persons.gather_addressed(0, [*pieces[::-1], pieces[0]], finish=finish, parts=2)
    assert found == expected
    (lost,) = persons.gather_addressed(0, pieces[1:], finish=finish, parts=2)
    assert isinstance(lost, tasks.Failed)
    failed = tasks.Failed("why")
    assert persons.gather_addressed(0, [*pieces, (0, failed)], finish=finish, parts=2) == [failed]
    assert persons.addressed(failed, parts=2) == [(0, failed), (1, failed)]


def test_equal_names_go_to_one_part():
    dealing = persons.Dealing(1 << 20, bytes(range(16)))
    who = uuid.uuid4()
    equal = [[1, 1.0, True, Decimal(1), np.int8(1), np.float32(1), 1 + 0j], ["x", np.str_("x")], [0.0, -0.0, 0]]
    equal += [[None, np.nan, pd.NA, pd.NaT], [who, uuid.UUID(str(who))]]
    for names in equal:
        column = np.empty(len(names), dtype=object)
        column[:] = names
        assert len(set(dealing.targets(column).tolist())) == 1, names
    numbers = dealing.targets(np.arange(5000.0))
    assert numbers.tolist() == dealing.targets(np.arange(5000)).tolist()
    assert len(set(numbers.tolist())) > 4900
    assert dealing.targets(np.array(["x"])) == dealing.targets(np.array(["x"], dtype=object))


LARGE = 2**53 + 1


@pytest.mark.parametrize(
    "parts",
    [
        (np.array([LARGE, LARGE]), np.array([LARGE, np.nan])),
        (np.array([10**12, 10**12], "M8[us]"), np.array([10**15], "M8[ns]")),
    ],
    ids=["whole numbers and doubles", "units of time"],
)
def test_a_person_is_one_however_parts_store_names(parts):
    """A missing name makes doubles of one part's whole numbers: the person must not become two units."""
    dealing = persons.Dealing(len(parts), b"\1" * 16)

    class Stored:
        def stream(self, names):
            return names

        def names(self, stream):
            return stream

    hands = [persons.deal(i, Stored(), dealing, lambda _: ({}, None, 0), names) for i, names in enumerate(parts)]
    units = [persons.gather(k, lambda gathered: len(gathered.starts) - 1, *(hand[k] for hand in hands)) for k in (0, 1)]
    assert sum(units) == 1 + any(names.dtype.kind == "f" and np.isnan(names).any() for names in parts)


def test_a_person_of_a_frame_is_one_in_every_part():
    whole, doubles = (
        pd.DataFrame({"a": 0.1, "b": 0.1, "c": 0.1, "ill": 0, "who": column})
        for column in (pd.Series([LARGE, LARGE]), pd.Series([LARGE, None], dtype="float64"))
    )
    rows = tasks.TableRows(schema_of(private=False), checks=False)
    first, second = (rows.names(rows.stream(part)).tolist() for part in (whole, doubles))
    assert first == [first[0]] * 2 == [second[0]] * 2
    assert second[1] is None
