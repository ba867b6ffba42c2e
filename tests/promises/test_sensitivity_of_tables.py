"""Fits of tables and private ranges on worst-case neighbors with frozen answers: nothing but paid answers may differ.

Neighbors are made as tables: one row (one person) of the nastiest cells, in any container.
"""

import csv
import datetime
import decimal
import io
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Bounds, DPLogisticRegression, DPRidge
from discreet.accounting.certificate import QUERY
from discreet.accounting.plan import Plan, Release
from discreet.budget import Budget
from discreet.curator.records.admission import grouping
from discreet.curator.tables import cells as cells_module
from discreet.curator.tables.stream import Tree, cells_per_record, joint_cells, quantile_range, size_of, split_counts
from discreet.models.table_model import TableModel
from discreet.schema.columns import Boolean, Category, Number, Ordinal, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from discreet.testing import Data, Pair, assert_fresh_noise, assert_replay, neighbor_pairs
from tests.covering import covering
from tests.curator.queries.counting import count_once
from tests.replaying import worst_ratio

# --- fits of tables ----------------------------------------------------------------------------------


RELATIONS = ("replace_one", "zero_out", "add_remove")
PAIRED = list(zip(RELATIONS, (False, True, False), strict=True))
"""Each relation, and declared or private ranges in turn."""
NAMES = ("age", "income", "city", "level", "smoker", "who", "y")


class Refuses:
    """A cell that raises, with its contents, whatever is done to it."""

    def __float__(self):
        raise RuntimeError("contents")

    def __eq__(self, other):
        raise RuntimeError("contents")

    def __hash__(self):
        raise RuntimeError("contents")

    def __str__(self):
        raise RuntimeError("contents")


def declared(private=False, person=False, target="classes", missing="middle"):
    fixed = Number((0, 5e3), knots=4, missing="flag")
    income = Number("private", within=(0, 1e6), missing=missing, knots=3) if private else fixed
    columns = {
        "age": Number((18, 90), knots=(40,)),
        "income": income,
        "city": Category(("A", "B")),
        "level": Ordinal(("low", "high")),
        "smoker": Boolean(missing="record"),
    }
    goal = Target("y", classes=("n", "p")) if target == "classes" else Target("income", range=(0, 5e3))
    if target == "range":
        del columns["income"]
    return Schema(columns, goal, person="who" if person else None, interactions=(("city", "smoker"),))


def rows(n=20, persons=None):
    """Ordinary rows; with persons, several a person and in no order."""
    rng = np.random.default_rng(3)
    return [
        [
            int(rng.integers(18, 90)),
            round(float(rng.uniform(1e3, 2e3)), 2),
            str(rng.choice(["A", "B", "C"])),
            str(rng.choice(["low", "high"])),
            str(rng.choice(["yes", "no"])),
            int(i % persons if persons else i),
            str(rng.choice(["n", "p"])),
        ]
        for i in range(n)
    ]


NULL = [None, None, None, None, None, None, None]
TEXTS = {
    "ends": ["90", "5000", "A", "high", "yes", None, "p"],
    "other ends": ["18", "0", "B", "low", "no", None, "n"],
    "far outside": ["1e300", "-1e300", "nowhere", "unheard of", "yes", None, "p"],
    "no numbers": ["x", "1e999", "\u00e9", "?", "yes", None, "n"],
    "nearly numbers": [" 7 ", "+3", "1_000", "low ", "YES", None, "p"],
    "blank": ["", "", "", "", "", None, ""],
    "label outside the set": ["90", "5000", "A", "high", "yes", None, "neither"],
    "long": ["9" * 5000, "0." + "0" * 5000 + "1", "A" * 5000, "high", "yes", None, "p"],
    "quotes": ['"', "a,b", "two\nlines", "'", "yes", None, "p"],
}
OBJECTS = {
    "objects": [10**400, decimal.Decimal("sNaN"), [1], {}, "yes", None, "p"],
    "times": [np.timedelta64(7, "s"), datetime.date(2000, 1, 1), pd.NaT, pd.NA, True, None, "n"],
    "arrays": [np.array([1.0]), np.array(7.0), np.array(["A", "B"]), (), "yes", None, "p"],
    "infinite": [math.inf, -math.inf, math.nan, math.inf, "yes", None, "p"],
    "refuses": [Refuses(), Refuses(), Refuses(), Refuses(), Refuses(), None, Refuses()],
    "bytes": [b"\xff", b"7", b"A", b"\xe9", b"yes", None, b"p"],
    "surrogates": ["\ud800", "\ud800", "\ud800", "\ud800", "yes", None, "p"],
}  # fmt: skip


def frame(table):
    columns = {}
    for j, name in enumerate(NAMES):
        column = np.empty(len(table), dtype=object)
        for i, row in enumerate(table):
            column[i] = row[j]
        columns[name] = pd.Series(column, dtype=object)
    return pd.DataFrame(columns)


def texts(table):
    return [[None if cell is None else str(cell) for cell in row] for row in table]


def arrow(table, coded=False):
    columns = {name: pa.array([row[j] for row in texts(table)], pa.string()) for j, name in enumerate(NAMES)}
    return pa.table({name: column.dictionary_encode() if coded else column for name, column in columns.items()})


def as_csv(folder):
    def made(table):
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([NAMES, *texts(table)])
        path = folder / "t.csv"
        path.write_text(stream.getvalue(), newline="")
        return path

    return made


def as_parquet(folder):
    def made(table):
        path = folder / "t.parquet"
        pq.write_table(arrow(table), path, row_group_size=7)
        return path

    return made


def with_name(row, person):
    """The row as this person's; a row of nothing stays nobody's own."""
    return [person if name == "who" else cell for name, cell in zip(NAMES, row, strict=True)]


def neighbors(relation, odd, n=14):
    """Pairs of tables that differ in one record, first or last."""
    table = rows(n)
    for at in (0, n - 1):
        for name, row in odd.items():
            row = with_name(row, f"odd {at}")
            changed = [*table[:at], row, *table[at + 1 :]]
            if relation == "replace_one":
                yield Pair(f"row {at}: replaced by {name}", (table,), (changed,))
            elif relation == "zero_out":
                yield Pair(f"row {at}: {name}, blanked", (changed,), ([*table[:at], NULL, *table[at + 1 :]],))
            else:
                yield Pair(f"row {at}: {name}, added", (table,), ([*table[:at], row, *table[at:]],))
        ends = [[*table[:at], with_name(TEXTS[name], "odd"), *table[at + 1 :]] for name in ("ends", "other ends")]
        if relation == "replace_one":
            yield Pair(f"row {at}: one end for the other", (ends[0],), (ends[1],))


def person_neighbors(relation, odd, n=14):
    """Pairs of tables that differ in all rows of one person, and in how many they are."""
    table = rows(n, persons=6)
    for person in (0, 5):
        rest = [row for row in table if row[5] != person]
        for name, row in odd.items():
            for count in (1, 4):
                own = [with_name(row, person)] * count
                spread = [*own[:1], *rest, *own[1:]]  # not side by side
                if relation == "replace_one":
                    yield Pair(f"person {person}: {count} rows {name}", (table,), (spread,))
                elif relation == "zero_out":
                    blank = [with_name(NULL, person)] * count
                    yield Pair(f"person {person}: {count} rows {name}, blanked", (spread,), ([*rest, *blank],))
                else:
                    yield Pair(f"person {person}: {count} rows {name}, added", (rest,), (spread,))


def fit_of(schema, relation, made=frame, *, pure=False, solver=None, model=DPLogisticRegression):
    """A fit for replay: of a table in a container, by a new model each time."""
    solver = solver or GradientDescent(n_steps=2, clip=0.05, step_size=2.0)

    def fit(table, *_):
        estimator = model(2.0, 0.0 if pure else 1e-5, solver=solver, neighbors=relation, ledger=False)
        return TableModel(schema, estimator).fit(made(table))

    return fit


def check(fit, pairs, relation, near=0.9):
    assert near < worst_ratio(fit, pairs, relation) <= 1.0


@pytest.mark.few(1)
@pytest.mark.parametrize(("relation", "private"), PAIRED)
def test_cells_of_any_kind(relation, private):
    check(fit_of(declared(private), relation), neighbors(relation, {**TEXTS, **OBJECTS}), relation)


@pytest.mark.thorough
@pytest.mark.parametrize(("relation", "private"), PAIRED)
def test_persons_of_any_kind(relation, private):
    pairs = person_neighbors(relation, {**TEXTS, **OBJECTS})
    check(fit_of(declared(private, person=True), relation), pairs, relation, 0.5)


CONTAINERS = {
    "arrow": lambda folder: arrow,
    "codes": lambda folder: lambda table: arrow(table, coded=True),
    "csv": as_csv,
    "parquet": as_parquet,
}


@covering(("container", CONTAINERS), ("person", [False, True]), (("relation", "private"), PAIRED))
def test_files_and_tables(container, person, private, relation, tmp_path):
    pairs = list((person_neighbors if person else neighbors)(relation, TEXTS))[:: 7 if person else 4]
    check(fit_of(declared(private, person), relation, CONTAINERS[container](tmp_path)), pairs, relation, 0.4)


@pytest.mark.parametrize(("relation", "private"), PAIRED)
def test_pure_budgets(relation, private):
    check(fit_of(declared(private), relation, pure=True), list(neighbors(relation, TEXTS))[::3], relation, 0.5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_numbers_to_predict(relation):
    fit = fit_of(declared(target="range"), relation, model=DPRidge)
    check(fit, list(neighbors(relation, {**TEXTS, **OBJECTS}))[::2], relation, 0.5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_settings_that_nobody_chose(relation):
    """The rules behind "auto" read no cell, ranges to buy or not."""
    for private in (False, True):
        pairs = list(neighbors(relation, {**TEXTS, **OBJECTS}))[::9]
        check(fit_of(declared(private), relation, solver="auto"), pairs, relation, 0.0)


@pytest.mark.parametrize("missing", [0, "record", "flag"])
def test_bought_ranges_and_missing_values(missing):
    pairs = list(neighbors("replace_one", TEXTS))[::4]
    check(fit_of(declared(True, missing=missing), "replace_one"), pairs, "replace_one")


def test_lines_that_are_no_rows(tmp_path):
    """A ragged line is one null record, whatever it says."""
    table = rows()

    def made(lines):
        path = tmp_path / "t.csv"
        path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
        return path

    lines = [",".join(map(str, row)) for row in table]
    for relation in ("replace_one", "zero_out"):
        for at in (0, 19):
            for bad in ("x", "," * 20, "\0", "\u00ff\u00fe", "'", ";;;;", "   "):
                pair = Pair(f"line {at}: {bad!r}", (lines,), ([*lines[:at], bad, *lines[at + 1 :]],))
                worst_ratio(fit_of(declared(True), relation, made), [pair], relation)


@pytest.mark.parametrize("private", [False, True])
def test_the_only_record_removed(private):
    """Where n is private, an empty table is a neighbor like any other."""
    fit = fit_of(declared(private), "add_remove")
    assert_replay(fit, (rows(1),), ([],), "add_remove")


def test_noise_is_fresh():
    assert_fresh_noise(fit_of(declared(True, person=True), "replace_one"), (rows(20, 6),), runs=2)


# -------------------------------------------------------------------------------------- what this would have found


def test_a_type_that_is_guessed_from_all_rows_is_found(monkeypatch):
    """A column with one text in it read as texts, none of which are numbers then."""

    def guessed(column, missing):
        found = [cells_module.number_of(cell, missing) for cell in column]
        return np.full(len(found), np.nan) if any(isinstance(cell, str) for cell in column) else np.array(found)

    monkeypatch.setattr(cells_module, "numbers", guessed)
    with pytest.raises(AssertionError):
        check(fit_of(declared(), "replace_one"), list(neighbors("replace_one", TEXTS)), "replace_one")


def test_a_range_that_is_measured_is_found():
    """The largest income there is, as a range."""

    def fit(table, *_):
        known = [row[1] for row in table if isinstance(row[1], float)]
        schema = Schema({"income": Number((0.0, max(known)))}, Target("y", classes=("n", "p")))
        return fit_of(schema, "replace_one")(table)

    table = rows()
    other = [with_name([20, 4000.0, "A", "low", "no", None, "n"], 0), *table[1:]]
    with pytest.raises(AssertionError):
        assert_replay(fit, (table,), (other,), "replace_one")


# --- private ranges ----------------------------------------------------------------------------------


TREES = (Tree(-1.0, 1.0, 4), Tree(0.0, 1e7, 5), Tree(1900.0, 2100.0, 3))
BOUNDS = Bounds([(tree.low, tree.high) for tree in TREES], classes=(0, 1))


def ranges_table(persons, n=12):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(tree.low, tree.high, n) for tree in TREES])
    return X, rng.integers(0, 2, n), np.arange(n) // 2 if persons else None


def opposite_persons():
    """A person whose five rows are low, and one whose two rows are high: they share no cell."""
    X, y, groups = ranges_table(True)
    low, high = BOUNDS.ranges(len(TREES))
    sides = []
    for row, count in ((low, 5), (high, 2)):
        rest = groups != groups[-1]
        rows, persons = np.tile(row, (count, 1)), np.full(count, groups[-1])
        sides.append(
            Data(np.vstack([X[rest], rows]), np.append(y[rest], [0] * count), np.append(groups[rest], persons))
        )
    return Pair("low for high", *sides)


def ranges_of(relation="replace_one", *, pure=False, step=5, noise_multiplier=0.01):
    """What a fit does with private ranges: rows become cells as they are read."""
    budget = Budget(1.0, 0.0 if pure else 1e-6, relation)

    def fit(X, y, groups=None):
        share, n = np.ones(len(X), dtype=np.int64), len(X)
        if groups is not None:
            order, starts, share = grouping(groups, len(X))
            X, n = X[order], len(starts) - 1
        pieces = [slice(first, first + step) for first in range(0, len(X), step)]
        found = count_once(
            Plan([Release(QUERY, 1)]),
            budget,
            noise_multiplier,
            (joint_cells(TREES, X[piece]) for piece in pieces),
            size_of(TREES),
            cells_per_record(TREES),
            n=n if budget.neighbors.n_is_public else None,
            shares=(share[piece] for piece in pieces),
        )
        public = n if budget.neighbors.n_is_public else None
        parts = zip(TREES, split_counts(TREES, found.counts), strict=True)
        return [quantile_range(tree, part, found.noise_std, public) for tree, part in parts]

    return fit


@pytest.mark.parametrize("persons", [False, True], ids=["records", "persons"])
@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_private_ranges_replay(relation, pure, persons):
    pairs = list(neighbor_pairs(*ranges_table(persons), relation=relation, bounds=BOUNDS))
    assert len(pairs) >= 17
    if persons and relation == "replace_one":
        pairs.append(opposite_persons())
    assert 0.999 < worst_ratio(ranges_of(relation, pure=pure), pairs, relation) <= 1.0


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
def test_the_only_record_removed_from_counts(pure):
    X, y, _ = ranges_table(False, n=1)
    assert_replay(ranges_of("add_remove", pure=pure), (X, y), (X[:0], y[:0]), "add_remove")


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "laplace"])
def test_noise_of_ranges_is_never_used_twice(pure):
    """With so much of it that no two of its integers are equal by chance."""
    fit = ranges_of(pure=pure, noise_multiplier=1e4)
    assert assert_fresh_noise(fit, ranges_table(False), runs=3).releases == 3
