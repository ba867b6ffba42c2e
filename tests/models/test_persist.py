"""Saved models: what comes back is what went in, and nothing but a saved model is read."""

import hashlib
import io
import json
import math
import os
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import (
    Bounds,
    Budget,
    DiscreetError,
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.errors import Unsupported
from discreet.models.persist import UnreadableModel, _array_bytes, _fields, load
from discreet.penalties import L1, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
from discreet.solvers import GradientDescent, StochasticGradientDescent
from tests.accounting.test_certificate import places
from tests.covering import covering

GD = GradientDescent(n_steps=3)
MODELS = {
    "logistic": DPLogisticRegression(1.0, bounds=1.0, classes=("no", "yes"), solver=GD),
    "softmax": DPLogisticRegression(1.0, bounds=Bounds([(-1, 1)] * 3, classes=("no", "yes", "?")), solver=GD),
    "limit": DPLogisticRegression(math.inf, bounds=1.0, classes=["no", "yes"], penalty=L1(0.1), solver=GD),
    "box": DPLogisticRegression(2, delta=0.0, bounds=1, classes=("no", "yes"), penalty=Box(-math.inf, 1), solver=GD),
    "ball": DPLinearSVC(bounds=1.0, classes=np.array(["no", "yes"]), penalty=L2Ball(2.0), width=0.1, solver=GD),
    "groups": DPLinearSVC(bounds=1.0, classes=("no", "yes"), penalty=GroupL2(0.1, ((0, 1), (2,))), solver=GD),
    "none": DPLinearSVC(bounds=1.0, classes=("no", "yes"), penalty=NoPenalty(), solver=GD),
    "net": DPLogisticRegression(bounds=1.0, classes=("no", "yes"), penalty=ElasticNet(0.1, 0.2), solver=GD),
    "linear": DPLinearRegression(bounds=[(-1, 1), (-2, 2), (0, 1)], target=(0, 1), solver=GD),
    "ridge": DPRidge(bounds={"a": (-1, 1), "b": (-1, 1), "c": (-1, 1)}, target=(0, 1), solver="gd"),
    "huber": DPHuberRegressor(bounds=1.0, target=(0, 1), solver=GD, neighbors="zero_out", fit_intercept=False),
    "poisson": DPPoissonRegressor(
        np.float64(1.5),
        bounds=Bounds(1.0, target=(0, 5), row_norm=1.5, scale="global"),
        solver=StochasticGradientDescent(n_steps=3, batch_size=40, radius=2.0),
    ),
}


def fitted(name, table):
    model = MODELS[name]
    X = pd.DataFrame(table.X, columns=["a", "b", "c"]) if name == "ridge" else table.X
    y = np.where(table.signs > 0, "yes", "no") if hasattr(model, "classes") else (table.signs > 0).astype(float)
    return model.fit(X, y), X


@pytest.fixture
def saved(small_table, tmp_path):
    model, _ = fitted("logistic", small_table)
    return model, model.save(tmp_path / "model.discreet")


def same(value):
    """A parameter up to the container that JSON cannot know."""
    return tuple(value.tolist()) if isinstance(value, np.ndarray) else value


@pytest.mark.few(6)
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, small_table, tmp_path):
    model, X = fitted(name, small_table)
    path = model.save(tmp_path / "model.discreet")
    again = discreet.load(path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    assert again.coef_.shape == model.coef_.shape
    assert np.ndim(again.intercept_) == np.ndim(model.intercept_)
    assert again.certificate_ == model.certificate_
    assert again.certificate_.to_json() == model.certificate_.to_json()
    again.certificate_.verify()
    assert {key: same(value) for key, value in again.get_params().items()} == {
        key: same(value) for key, value in model.get_params().items()
    }
    assert again.n_features_in_ == 3
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    assert set(vars(again)) == set(vars(model))


# --------------------------------------------------------------------------------------------------- writing


def test_what_follows_from_other_fields_is_not_stored():
    """Reading calls the class with what was stored: a paid model whose solver has such a field could not be read."""
    budget = Budget(1.0, 1e-6, "zero_out")
    assert Budget(**_fields(budget)) == budget


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    model, path = saved
    before = path.read_bytes()

    def broken(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="no space"):
        model.save(path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == [path.name]


# ------------------------------------------------------------------------------------------------- tampering


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(name, content)
    return path


def with_body(path, **changes):
    """A forged header with a correct checksum."""
    parts = members(path)
    body = json.loads(parts["header.json"])["body"] | changes
    total = hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    return write(path, parts | {"header.json": json.dumps({"body": body, "sha256": total})})


def test_every_changed_byte_is_found_or_harmless(saved):
    """Flip one byte anywhere: the file is refused, or it is the zip's own idle metadata and the model is the same."""
    model, path = saved
    content = path.read_bytes()
    expected = model.certificate_.to_json()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1 + position % 255
        path.write_bytes(damaged)
        try:
            again = load(path)
        except DiscreetError:
            continue
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.intercept_, model.intercept_)
        assert again.certificate_.to_json() == expected
        assert again.get_params() == model.get_params()


def flipped(content):
    return content[:-1] + bytes([content[-1] ^ 1])


CLAIM = b'\\"epsilon\\": 1.0', b'\\"epsilon\\": 0.1'
OTHER = {
    "a changed array": (lambda parts: parts | {"coef.npy": flipped(parts["coef.npy"])}, "changed or damaged"),
    "a changed intercept": (lambda parts: parts | {"intercept.npy": flipped(parts["intercept.npy"])}, "changed"),
    "a changed claim": (
        lambda parts: parts | {"header.json": parts["header.json"].replace(*CLAIM)},
        "changed or damaged",
    ),
    "a doubled member": (lambda parts: [*parts.items(), ("coef.npy", parts["coef.npy"])], "other parts"),
    **{
        f"{name} missing": (lambda parts, name=name: {k: v for k, v in parts.items() if k != name}, "other parts")
        for name in ("header.json", "coef.npy", "intercept.npy")
    },
    **{
        f"{name} added": (lambda parts, name=name: parts | {name: b"x"}, "other parts")
        for name in ("extra.npy", "../../evil", "/etc/passwd", "header.json/", "pickle.pkl")
    },
    **{
        f"header {header[:20]!r}": (lambda parts, header=header: parts | {"header.json": header}, None)
        for header in (b"", b"[]", b"{}", b'{"body": 1, "sha256": 2}', b"\xff\xfe", b"null", b"[" * 100_000)
    },
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", OTHER)
def test_archives_with_other_parts_are_refused(saved, case):
    _, path = saved
    change, message = OTHER[case]
    parts = members(path)
    assert CLAIM[0] in parts["header.json"]
    write(path, change(parts))
    with pytest.raises(UnreadableModel, match=message):
        load(path)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"format": version}, "another format") for version in (0, 2)),
        *(({"model": name}, None) for name in ("DPLinearModel", "os.system")),
        ({"n_features": 4}, None),
        ({"feature_names": ["a"]}, None),
        ({"classes": {"dtype": "<U1", "labels": ["a", "b", "c"]}}, None),
        ({"classes": {"dtype": "<M8[D]", "labels": ["a", "b"]}}, None),
        ({"params": {"epsilon": 1.0, "surprise": 2}}, None),
        ({"params": {"solver": {"type": "Popen", "fields": {"args": "ls"}}}}, None),
        ({"certificate": "{}"}, None),
        ({"surprise": 1}, None),
    ],
    ids=str,
)
def test_forged_headers_are_refused(saved, changes, message):
    _, path = saved
    with_body(path, **changes)
    with pytest.raises(UnreadableModel, match=message):
        load(path)


WRONG = (None, True, 5, "x", [], [[]], {"a": 1}, {"type": "tuple", "items": [{}]})
MAY_BE = [("bounds", 5), ("penalty", None), ("dataset", "x"), ("fields", {})]
MAY_BE += [(name, 5) for name in ("clip", "relative_clip", "radius", "step_size")]
"""Values of another type than what stands there that could have been written as well."""


def test_a_value_of_another_type_is_refused_wherever_it_stands(saved):
    """Each place of the header, with a correct checksum, holds what could have been written, or the file is refused."""
    _, path = saved
    whole, accepted = path.read_bytes(), []
    body = json.loads(members(path)["header.json"])["body"]
    for at in places(body):
        for value in WRONG:
            within = wrong = json.loads(json.dumps(body))
            for key in at[:-1]:
                within = within[key]
            kinds = [float if type(item) is int else type(item) for item in (within[at[-1]], value)]
            if (kinds[0] is kinds[1] and type(value) is not dict) or (at[-1], value) in MAY_BE:
                continue
            within[at[-1]] = value
            path.write_bytes(whole)
            with_body(path, **wrong)
            try:
                load(path)
                accepted.append((at, value))
            except UnreadableModel:
                pass
    assert accepted == []


class Marker:
    """An object whose unpickling would be seen."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


@pytest.mark.parametrize("kind", ["object array", "pickle", "huge", "float32"])
def test_arrays_of_another_kind_are_refused(saved, kind, tmp_path, monkeypatch):
    """Even with correct checksums: no pickle is read, nothing is allocated on a file's word."""
    monkeypatch.chdir(tmp_path)
    _, path = saved
    stream = io.BytesIO()
    if kind == "object array":
        np.save(stream, np.array([[Marker()] * 3]), allow_pickle=True)
    elif kind == "pickle":
        stream.write(pickle.dumps(Marker()))
    elif kind == "huge":
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 3)})
    else:
        np.save(stream, np.zeros((1, 3), dtype=np.float32))
    content = stream.getvalue()
    sums = json.loads(members(path)["header.json"])["body"]["sha256"] | {
        "coef.npy": hashlib.sha256(content).hexdigest()
    }
    with_body(path, sha256=sums)
    write(path, members(path) | {"coef.npy": content})
    with pytest.raises(UnreadableModel):
        load(path)
    assert not (tmp_path / "unpickled").exists()


def with_arrays(path, **contents):
    """Other arrays, with correct checksums."""
    arrays = {f"{name}.npy": content for name, content in contents.items()}
    sums = json.loads(members(path)["header.json"])["body"]["sha256"]
    with_body(path, sha256=sums | {name: hashlib.sha256(content).hexdigest() for name, content in arrays.items()})
    return write(path, members(path) | arrays)


def npy(header, content=bytes(24)):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@covering(("value", [math.nan, math.inf, -math.inf]), ("name", ["coef", "intercept", "coef_noise", "intercept_noise"]))
def test_numbers_that_are_not_finite_are_refused(saved, name, value):
    model, path = saved
    changed = np.array(getattr(model, f"{name}_"), dtype=float)
    changed.flat[-1] = value
    with_arrays(path, **{name: _array_bytes(changed)})
    with pytest.raises(UnreadableModel, match="finite"):
        load(path)
    setattr(model, f"{name}_", changed)
    with pytest.raises(Unsupported, match="finite"):
        model.save(path)


# ------------------------------------------------------------------------------------- what a file may make us allocate

MANY = 200_000
FORGED = {
    "a wide type": {"classes": {"dtype": "<U500000000", "labels": ["no", "yes"]}},
    "a wide type, many labels": {"classes": {"dtype": "<U99999", "labels": [str(i) for i in range(10_000)]}},
    "one long label among many": {"classes": {"dtype": "<U100000", "labels": ["x" * 100_000, *map(str, range(MANY))]}},
    "a type without a width": {"classes": {"dtype": "<U", "labels": ["x" * 100_000, *map(str, range(MANY))]}},
    "an array in a type": {"classes": {"dtype": "(20000,20000)f8", "labels": [0, 1]}},
    "a structure": {"classes": {"dtype": "f8," * 20_000, "labels": [0, 1]}},
    "bytes": {"classes": {"dtype": "|S999999999", "labels": ["a", "b"]}},
    "a width of many digits": {"classes": {"dtype": "<U" + "9" * 4000, "labels": ["a", "b"]}},
    "a type that is no text": {"classes": {"dtype": 5, "labels": ["a", "b"]}},
    "labels that are no list": {"classes": {"dtype": "<U1", "labels": {"a": 1}}},
    "many features": {"n_features": 1 << 40},
    "a number of many digits": {"n_features": 10**4000},
    "a negative number": {"n_features": -3},
    "half a feature": {"n_features": 3.0},
    "many names": {"feature_names": [""] * MANY},
    "a nested parameter": {"params": {"epsilon": json.loads("[" * 400 + "]" * 400)}},
    "a nested setting": {"params": {"bounds": json.loads('{"type": "tuple", "items": [' * 300 + "]}" * 300)}},
    "a certificate of brackets": {"certificate": "[" * 300_000},
    "a certificate of digits": {"certificate": "9" * 300_000},
}
ARRAYS = {
    "signs": npy(b"-" * 9000 + b"1"),
    "brackets": npy(b"(" * 9000),
    "sums": npy(b"1" + b"+1" * 4500),
    "a long header": npy(b" " * 65_000),
    "a wide type": npy(b"{'descr': '<U500000000', 'fortran_order': False, 'shape': (1, 3), }\n"),
    "a large shape": npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 99999999999), }\n"),
    "by columns": npy(b"{'descr': '<f8', 'fortran_order': True, 'shape': (1, 3), }\n"),
    "nothing": b"",
    "a start": b"\x93NUMPY\x01\x00",
    "another version": b"\x93NUMPY\x03\x00" + struct.pack("<I", 1 << 31),
}
LIMITED = """
import resource, sys, time
from discreet.models.persist import UnreadableModel, load
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
for path in sys.argv[1:]:
    start = time.perf_counter()
    try:
        load(path)
        print(path, "was read")
    except UnreadableModel:
        pass
    except BaseException as error:
        print(path, type(error).__name__)
    if time.perf_counter() - start > 10:
        print(path, "took long")
"""


on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits of memory are set in the way of Linux"
)


def check_limited(paths):
    """Each file is refused under a limit of 400 MB, soon, and none runs out of memory."""
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, paths)], capture_output=True, text=True, check=True
    )
    assert found.stdout == ""


@pytest.mark.thorough
@on_linux
def test_nothing_is_allocated_for_any_forged_file(saved, tmp_path):
    """Their checksums are correct."""
    _, path = saved
    whole, paths = path.read_bytes(), []
    for name, changes in FORGED.items():
        path.write_bytes(whole)
        paths.append(with_body(path, **changes).rename(tmp_path / name.replace(" ", "-")))
    for name, content in ARRAYS.items():
        path.write_bytes(whole)
        paths.append(with_arrays(path, coef=content).rename(tmp_path / f"array-{name.replace(' ', '-')}"))
    path.write_bytes(whole)
    paths.append(write(tmp_path / "bomb", dict.fromkeys(members(path), bytes(1 << 28)), zipfile.ZIP_DEFLATED))
    check_limited(paths)
