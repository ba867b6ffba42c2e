"""Folders of saved models: whole and their own, or refused; and nothing in them but what may be shown."""

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest

from discreet import DPLogisticRegression, DPRidge, Ledger
from discreet.models.persist import UnreadableModel, is_folder, new_folder
from discreet.models.table_model import TableModel
from discreet.schema.columns import Category, Number, Target
from discreet.schema.schema import Schema
from discreet.solvers import GradientDescent
from tests.covering import covering
from tests.curator.tables.shown import SECRET

SOLVER = GradientDescent(n_steps=1, clip=1.0)
FILES = ["certificate.json", "manifest.json", "model.discreet", "schema.toml"]


def frame(n=40):
    rng = np.random.default_rng(0)
    columns = {
        "b": rng.choice(["x", "y", SECRET], n),
        "a": rng.uniform(0, 9, n),
        "who": [f"{SECRET}{i % 7}" for i in range(n)],
    }
    return pd.DataFrame({**columns, "t": rng.choice(["n", "p", SECRET], n)})  # fmt: skip


def schema(**given):
    columns = {"b": Category(("x", "y")), "a": Number((0, 9.5))}
    return Schema(columns, Target("t", classes=("n", "p")), **given)


def fitted(given=None, **settings):
    return TableModel(given or schema(), DPLogisticRegression(1.0, 1e-5, solver=SOLVER, **settings)).fit(frame())


@pytest.fixture
def place(tmp_path):
    return fitted().save(tmp_path / "model")


def resum(place):
    """The manifest made to agree with whatever is there."""
    manifest = json.loads((place / "manifest.json").read_text())
    names = [path.name for path in place.iterdir() if path.name != "manifest.json"]
    manifest["sha256"] = {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in names}
    (place / "manifest.json").write_text(json.dumps(manifest))


@covering(("person", [None, "who"]), ("private", [False, True]))
def test_there_and_back(tmp_path, private, person):
    given = schema(person=person)
    if private:
        given = Schema({**given.columns, "a": Number("private", within=(0, 1e6))}, given.target, person=person)
    model = fitted(given)
    place = model.save(tmp_path / "deep" / "model")
    assert sorted(path.name for path in place.iterdir()) == FILES
    assert is_folder(place)
    again = TableModel.load(place)
    assert again.certificate_ == model.certificate_
    assert again.coefficients(units="original") == model.coefficients(units="original")
    assert again.predict_proba(frame()).tobytes() == model.predict_proba(frame()).tobytes()
    assert again.schema_ == model.schema_
    assert again.save(tmp_path / "copy").exists()


@pytest.mark.parametrize("name", FILES)
def test_a_changed_or_missing_file(place, name):
    raw = (place / name).read_bytes()
    for damaged in (raw[:-9], raw + b"x", b"", raw[:20] + b"?" + raw[21:]):
        (place / name).write_bytes(damaged)
        with pytest.raises(UnreadableModel):
            TableModel.load(place)
    (place / name).unlink()
    with pytest.raises(UnreadableModel):
        TableModel.load(place)


def test_an_added_file_or_folder(place):
    (place / "notes.txt").write_text("mine")
    with pytest.raises(UnreadableModel, match="added"):
        TableModel.load(place)
    (place / "notes.txt").unlink()
    (place / "sub").mkdir()
    with pytest.raises(UnreadableModel, match="added"):
        TableModel.load(place)


@pytest.mark.parametrize(
    "manifest",
    [
        *("", "[]", "5", "null", '{"format": 2, "sha256": {}}', '{"format": 1}', '{"format": 1, "sha256": 5}'),
        '{"format": 1, "sha256": {"schema.toml": 5}}',
    ],
)
def test_another_manifest(place, manifest):
    (place / "manifest.json").write_text(manifest)
    with pytest.raises(UnreadableModel):
        TableModel.load(place)


@pytest.mark.parametrize(
    "other",
    [
        Schema({"b": Category(("x", "y")), "a": Number((0, 9))}, Target("t", classes=("n", "p"))),
        Schema({"b": Category(("y", "x")), "a": Number((0, 9.5))}, Target("t", classes=("n", "p"))),
        Schema({"b": Category(("x", "y")), "a": Number((0, 9.5))}, Target("t", classes=("p", "n"))),
        Schema({"a": Number((0, 9.5)), "b": Category(("x", "y"))}, Target("t", classes=("n", "p"))),
        Schema({"b": Category(("x", "y"))}, Target("t", classes=("n", "p"))),
        Schema({"b": Category(("x", "y")), "a": Number("private", within=(0, 9.5))}, Target("t", classes=("n", "p"))),
        Schema({"b": Category(("x", "y")), "a": Number((0, 9.5))}, Target("t", range=(0, 1))),
    ],
    ids=["range", "labels", "classes", "order", "fewer", "private", "target"],
)
def test_a_swapped_schema(place, other):
    """Even where the sums were made to agree: a schema that names coefficients otherwise is not the model's."""
    (place / "schema.toml").write_text(other.to_toml())
    resum(place)
    with pytest.raises(UnreadableModel, match="schema"):
        TableModel.load(place)


@pytest.mark.parametrize("name", ["certificate.json", "model.discreet"])
def test_files_of_another_model(place, tmp_path, name):
    """Not even with sums that agree."""
    target = Target("a", range=(0, 9.5))
    ridge = TableModel(Schema({"b": Category(("x", "y"))}, target), DPRidge(2.0, 1e-5, solver=SOLVER)).fit(frame())
    others = [ridge, TableModel(schema(), DPLogisticRegression(3.0, 1e-5, solver=SOLVER)).fit(frame())]
    for i, other in enumerate(others):
        shutil.copy(other.save(tmp_path / f"other {i}") / name, place / name)
        with pytest.raises(UnreadableModel, match="changed"):
            TableModel.load(place)
        resum(place)
        with pytest.raises(UnreadableModel):
            TableModel.load(place)


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "m") as folder:  # noqa: PT012
        (folder / "x").write_text("")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_nothing_private_is_written(tmp_path):
    """No cell, no person, and not where the ledger is."""
    address = tmp_path / "Zzledger" / "book.db"
    address.parent.mkdir()
    Ledger.create(address).grant("d", 10.0, 1e-3, unit="person")
    place = fitted(schema(person="who"), ledger=address, dataset="d").save(tmp_path / "model")
    for path in place.iterdir():
        raw = path.read_bytes()
        for secret in (SECRET, "Zzledger", str(tmp_path)):
            assert secret.encode() not in raw, path.name
