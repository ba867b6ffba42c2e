"""Everything that a person outside can observe, at every entry, between hostile neighbors."""

import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli.app import app
from discreet.curator.private_data import PrivateData
from discreet.curator.records import admission
from discreet.errors import Unsupported
from tests.promises.surface.__main__ import app as surface_app
from tests.promises.surface.audit import surface
from tests.promises.surface.cases import CONTAINERS, ENTRIES, HOSTILE, case_of, differences
from tests.promises.surface.commands import NO_RECORDS, command_entries
from tests.promises.surface.containers import NotHeld
from tests.promises.surface.entries import python_entries
from tests.promises.surface.harness import count, workshop
from tests.promises.surface.observing import Observed, compared, masked
from tests.promises.surface.rows import ANSWER, MATRIX, matrix_cells, table_cells
from tests.promises.surface.services import service_entries
from tests.promises.surface.values import NUMBER, TEXT, VALUES
from tests.public_names import PACKAGES, callables, public


@pytest.fixture(scope="module")
def place():
    with workshop() as made:
        yield made


# --- nothing is left out ------------------------------------------------------------------------------

DECLARED = {
    *(
        *("bounds", "candidates", "class_weight", "classes", "clips", "coordinates", "deep", "estimator"),
        *("input_features", "ledger"),
    ),
    *("loss", "model", "models", "offsets", "penalty", "points", "sample_weight", "smoothness", "solver"),
    *("steps", "target"),
}
"""Parameters of any type that hold what is declared or released, and never records."""

ADDITIVE = ("DPAdditiveClassifier", "DPAdditiveRegressor")
SHOWS_ROWS = "scikit-learn's own methods, on rows that the caller may see: they follow its contract"
EXEMPT = {
    **{
        f"{name}.{method}": SHOWS_ROWS
        for name in public()
        if name.startswith("DP")
        for method in (
            "predict",
            "decision_function",
            "predict_interval",
            "predict_proba",
            "predict_log_proba",
            "score",
        )
    },
    "Neighbors": "an enumeration of words",
    "Schema.from_formula": "takes a text and what is declared of columns: no record reaches it",
    **{f"{name}.explain": "shows one row that the caller gives, as predict does" for name in ("TableModel", *ADDITIVE)},
    **{f"{name}.plot_effects": "takes the names of columns" for name in ADDITIVE},
    "cluster": "takes an address, or a client that is connected: fits inside of it read the records",
    "TableModel.predict_interval": "reads rows as TableModel.predict does; tables as small as these have no effects",
    "PrivateData.recognize": "for the ledger's owner, after a charge: fits call it",
}


SYNTHETIC = ("discreet.audit", "discreet.datasets", "discreet.testing")
"""Packages that work on synthetic rows."""


def takes_anything(function: Any) -> set[str]:
    """The parameters through which records could come in."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    loose = (Any, object, "Any", "object", inspect.Parameter.empty)
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {one.name for one in parameters if one.annotation in loose and one.kind not in kinds} - {"self", "cls"}


def ways_in():
    """Every public name, and method of one, that could be handed records."""
    for name, thing in callables(*(package for package in PACKAGES if package not in SYNTHETIC)).items():
        if takes_anything(thing) - DECLARED:
            yield name
        for method, function in inspect.getmembers(thing, callable) if inspect.isclass(thing) else ():
            ours = str(getattr(function, "__module__", "")).startswith(("discreet", "sklearn"))
            if ours and not method.startswith(("_", "set_")) and takes_anything(function) - DECLARED:
                yield f"{name}.{method}"


def test_every_public_way_in_has_a_case():
    """A new function that takes records needs an entry in ``tests/promises/surface/entries.py``, or a reason here."""
    covered = {name for entry in python_entries() for name in entry.covers}
    found = set(ways_in())
    assert {"DPRidge.fit", "private_score", "PrivateData", "TableModel.fit"} <= found
    assert found - covered - set(EXEMPT) == set()


def commands(group=app, path=()):
    for command in group.registered_commands:
        yield " ".join((*path, command.name or command.callback.__name__))
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, (*path, inner.name))


def test_every_command_has_a_case():
    """A new command needs an entry in ``commands.py``, or a reason there why no record reaches it."""
    covered = {name for entry in (*command_entries(), *service_entries()) for name in entry.covers}
    assert covered & set(NO_RECORDS) == set()
    assert set(commands()) == covered | set(NO_RECORDS)


def test_what_is_declared_to_show_records_says_why():
    kinds = {"result", "stdout", "stderr", "contents"}
    for entry in ENTRIES.values():
        assert set(entry.shows) <= kinds
        assert all(len(reason) > 20 for reason in entry.shows.values())
    private = ("fit", "quote", "private_score", "open", "--private", "tune", "schema", "--dry-run")
    assert not any(entry.shows for name, entry in ENTRIES.items() if name.endswith(private))


def test_the_product_is_large():
    assert len(ENTRIES) >= 20
    assert len(CONTAINERS) >= 12
    assert len(HOSTILE) == len(VALUES) >= 40
    assert count(tuple(ENTRIES.values()), tuple(CONTAINERS.values()), VALUES) > 9600


@pytest.mark.parametrize("name", ["numpy object", "pandas object", "list of lists", "list of tuples"])
def test_untyped_containers_hold_every_value(name, tmp_path):
    for value in VALUES:
        cells = matrix_cells().with_record(3, {**matrix_cells().record(3), "a": value.make()})
        CONTAINERS[name].table(cells, list(MATRIX), tmp_path)


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_can_hold_a_table(name, tmp_path):
    held = 0
    for cells in (matrix_cells(), table_cells()):
        try:
            CONTAINERS[name].table(cells, [name for name in cells.columns if name != "who"], tmp_path)
        except NotHeld:
            continue
        held += 1
    assert held


SERVED = {name: "CSV" for name, entry in ENTRIES.items() if entry.files} | {
    name: "list of lists" for name, entry in ENTRIES.items() if not entry.files
}
SERVED |= {name: "pandas object" for name in ENTRIES if name.startswith(("make_", "SchemaEncoder"))}
SERVED["DPLogisticRegression.fit, named bounds"] = "pandas object"
SERVED["TableModel.fit, declared rows"] = "pyarrow RecordBatchReader"


@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name in ENTRIES if ENTRIES[name].every < 10])
def test_every_entry_is_served_somewhere(name, place):
    """An entry that refuses everything would never tell neighbors apart."""
    outcome = place.run(case_of(name, SERVED[name], "sentinel number", ENTRIES[name].features[0]))
    assert outcome.served
    assert list(map(str, outcome.differences)) == []


# --- neighbors look alike -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_cases", [250, pytest.param(1400, marks=pytest.mark.thorough)])
def test_neighbors_look_alike_from_python(n_cases):
    found = surface(n_cases=n_cases, seed=1)
    assert len(found.outcomes) > n_cases // 4
    assert list(map(str, found.differences)) == []


@pytest.mark.parametrize("n_cases", [40, pytest.param(240, marks=pytest.mark.thorough)])
def test_neighbors_look_alike_on_the_command_line(n_cases, request):
    if n_cases < 100:  # with it, in the many
        request.getfixturevalue("no_forecast")
    entries = tuple(entry for entry in command_entries() if entry.every < 10)
    found = surface(entries, n_cases=n_cases, seed=2)
    assert len(found.outcomes) > n_cases // 4
    assert list(map(str, found.differences)) == []


# --- planted leaks ------------------------------------------------------------------------------------


def a_value_in_an_error(monkeypatch):
    honest = PrivateData.check

    def check(self, *asked, **words):
        honest(self, *asked, **words)
        raise Unsupported(f"no model today, and the last target is {self._PrivateData__rows.y[-1]!r}")

    monkeypatch.setattr(PrivateData, "check", check)


def a_warning_on_a_value(monkeypatch):
    honest = admission.admit

    def admit(X, *rest, **words):
        if not np.isfinite(admission.numbers(X)).all():
            warnings.warn("some records are incomplete", stacklevel=2)
        return honest(X, *rest, **words)

    monkeypatch.setattr(admission, "admit", admit)


def a_size_in_a_file_name(monkeypatch):
    from discreet import TableModel
    from discreet.cli import fit

    honest, show, sizes = TableModel.fit, fit._show, []

    def counted(model, source, **words):
        sizes.append(source.count())
        return honest(model, source, **words)

    def shown(model, out, *rest):
        (out / f"rows-{sizes[-1]}").touch()
        return show(model, out, *rest)

    monkeypatch.setattr(TableModel, "fit", counted)
    monkeypatch.setattr(fit, "_show", shown)


def an_early_exception(monkeypatch):
    honest = PrivateData.check

    def check(self, *asked, **words):
        honest(self, *asked, **words)
        if not np.isfinite(admission.numbers(self._PrivateData__rows.X)).all():
            raise Unsupported("some records are incomplete: leave them out")

    monkeypatch.setattr(PrivateData, "check", check)


def an_unpriced_n(monkeypatch):
    monkeypatch.setattr(PrivateData, "public_n", lambda self, neighbors: len(self._PrivateData__rows.y))


def names_as_doubles(monkeypatch):
    monkeypatch.setattr(admission, "names_of", np.asarray)


NUMBERED = "DPLogisticRegression.fit, numbered persons"
PLANTED = [
    (a_value_in_an_error, ("DPRidge.fit", "list of lists", "sentinel text", "label", 39), {"raised"}),
    (a_warning_on_a_value, ("DPRidge.fit", "numpy float64", "NaN", "b", 20), {"warned"}),
    (a_size_in_a_file_name, ("discreet fit", "CSV", "sentinel text", "color", 20, "add_remove"), {"files"}),
    (an_early_exception, ("DPLogisticRegression.fit", "numpy float64", "NaN", "a", 0), {"raised", "charges"}),
    (names_as_doubles, (NUMBERED, "pandas Int64", "None", "who", 20), {"charges", "result"}),
    (names_as_doubles, (NUMBERED, "polars int64", "None", "who", 20), {"charges", "result"}),
    (an_unpriced_n, ("DPRidge.fit", "numpy float64", "1e308", "c", 39, "add_remove"), {"charges", "result"}),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("plant", "example", "kinds"), PLANTED)
def test_planted_leaks_are_caught(plant, example, kinds, monkeypatch):
    with workshop() as fresh:
        assert differences(fresh, case_of(*example)) == ()  # and nothing without the leak
    plant(monkeypatch)
    with workshop() as fresh:
        found = differences(fresh, case_of(*example))
    assert kinds <= {one.kind for one in found}, [str(one) for one in found]


def test_a_record_that_is_read_before_the_charge_is_caught(monkeypatch, place):
    example = case_of("DPRidge.fit", "numpy object", "tripwire", "a", 20)
    assert {one.kind for one in differences(place, example)} == set()
    honest = PrivateData.check

    def check(self, *asked, **words):
        [str(cell) for cell in self._PrivateData__rows.X.ravel()]
        honest(self, *asked, **words)

    monkeypatch.setattr(PrivateData, "check", check)
    with workshop() as fresh:
        assert {one.kind for one in differences(fresh, example)} == {"early"}


def test_pages_that_are_read_before_the_charge_are_caught(monkeypatch):
    """The account is spent: nobody may notice that the table cannot be read."""
    from discreet.curator.tables.stream import TableStream

    example = case_of("discreet fit", "Parquet", "unreadable pages", "age", purse="broke")
    with workshop() as fresh:
        assert differences(fresh, example) == ()
    honest = TableStream.__init__

    def eager(self, source, schema, **options):
        honest(self, source, schema, **options)
        list(source.batches(self._needed))

    monkeypatch.setattr(TableStream, "__init__", eager)
    with workshop() as fresh:
        assert "stderr" in {one.kind for one in differences(fresh, example)}


@pytest.mark.parametrize("where", ["repr", "pickle", "file", "log"])
def test_a_value_that_hides_is_found(where, monkeypatch):
    """In what a result shows of itself, in its pickle, in a saved file, in a log."""
    import logging

    from discreet.models.base import DPLinearModel

    honest = DPLinearModel.fit

    def fit(self, X, *rest, **words):
        honest(self, X, *rest, **words)
        largest = float(np.nanmax(admission.numbers(X)))
        if where == "pickle":
            self.largest_ = largest
        elif where == "log":
            logging.getLogger("discreet").debug("largest %s", largest)
        elif where == "file":
            self.feature_names_in_ = np.array([f"{largest}", "b", "c"], dtype=object)
        else:
            self.dataset = f"{largest}"
        return self

    monkeypatch.setattr(DPLinearModel, "fit", fit)
    entry = "save and load" if where == "file" else "DPLogisticRegression.fit"
    with workshop() as fresh:
        found = differences(fresh, case_of(entry, "numpy float64", "sentinel number", "a", 20))
    kinds = {"repr": "result", "pickle": "result", "file": "contents", "log": "logged"}
    assert any(one.kind == kinds[where] and "a value of the record" in one.what for one in found)


@pytest.mark.parametrize(
    ("content", "is_found"),
    [
        (b"[40, 13056248151688095497, 14815166750836740054]1630377budget.db980c0f6481516c90339a2e15", False),
        (b'{"label": "48151623.42"}budget.db980c0f6e4f26c90339a2e15', True),
        (b"48151623.42", True),
        (b"budget.db980c0f6e4f26c90339 zq7sentinel41x", True),
    ],
)
def test_digits_of_a_hash_are_no_value_of_a_record(content, is_found):
    """A keyed hash of rows is random: it holds a sentinel's digits by chance, and tells nothing."""
    found = list(compared(Observed(), Observed(result=None, files={"ledger/budget.db": content})))
    assert any("a value of the record" in what for _, what in found) == is_found


# --- in processes of their own ------------------------------------------------------------------------

SCHEMA = """
[target]
column = "label"
classes = [0, 1]
[columns.a]
range = [0, 1]
[columns.b]
range = [0, 1]
[columns.c]
range = [0, 1]
"""


def ran(folder, line):
    """A fit by a shell's user: code, texts, files, and the ledger's history."""
    folder.mkdir()
    (folder / "schema.toml").write_text(SCHEMA)
    cells = matrix_cells()
    rows = zip(*(cells.columns[name] for name in (*MATRIX, ANSWER)), strict=True)
    lines = [",".join(map(str, row)).encode() for row in rows]
    lines[20] = line or lines[20]
    (folder / "table.csv").write_bytes(b"\n".join([",".join((*MATRIX, ANSWER)).encode(), *lines]))
    discreet.Ledger.create(folder / "budget.db").grant("people", 5.0, 1e-3)
    before = {path.name for path in folder.iterdir()}
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "fit", "table.csv", "--schema"]
    command += ["schema.toml", "--no-report", "--solver", "gd", "--ledger", "budget.db", "--dataset", "people"]
    environment = {**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])}
    done = subprocess.run(command, cwd=folder, capture_output=True, env=environment, timeout=300)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - before
    entries = [(one.kind, one.contents.get("events")) for one in discreet.Ledger(folder / "budget.db").entries()]
    return done, files, entries


@pytest.mark.thorough
@pytest.mark.parametrize("line", [f"Jos\xe9 {TEXT},{NUMBER},{'x' * 140_000},1".encode("latin-1"), b'1e400,inf,"\n",7'])
def test_neighbors_look_alike_to_a_shell(line, tmp_path):
    honest, files, entries = ran(tmp_path / "one", None)
    hostile, other_files, other_entries = ran(tmp_path / "other", line)
    assert (honest.returncode, honest.stderr) == (hostile.returncode, hostile.stderr) == (0, b"")
    assert (files, entries) == (other_files, other_entries)
    assert len(honest.stdout.splitlines()) == len(hostile.stdout.splitlines())
    for name in other_files - {"budget.db"}:
        content = masked((tmp_path / "other" / name).read_bytes())
        assert TEXT.encode() not in content
        assert b"481516" not in content


# --- the command --------------------------------------------------------------------------------------


def audited(*arguments):
    return CliRunner().invoke(surface_app, [*map(str, arguments)])


ONE = ("--entry", "DPRidge.quote", "--container", "numpy float64", "--value", "infinity")


def test_command(monkeypatch):
    result = audited(*ONE)
    assert result.exit_code == 0, result.output
    assert "DPRidge.quote" in result.stdout
    assert "NOT REFUTED: 2 cases of 2 combinations, 0 with a difference" in result.stdout
