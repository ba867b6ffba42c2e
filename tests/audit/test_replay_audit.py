"""``audit.replay``: a verdict with findings for planted defects, and neighbors of every nasty kind.

The deep comparison behind replay.
"""

import threading
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from discreet import DPLogisticRegression, audit
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian
from discreet.audit.replay_pair import differences
from discreet.budget import Neighbors
from discreet.curator import PrivateData, engines, noise, session
from discreet.curator.lattice import COEFFICIENT_LIMIT, unit_for
from discreet.curator.records import admission
from discreet.testing import neighbor_pairs
from tests.covering import covering
from tests.testing.small_fits import bounds_of, fit_of, table

RELATIONS = ("replace_one", "zero_out", "add_remove")


@pytest.fixture(autouse=True, scope="module")
def _cheap_and_self_tested():
    for name in ("logistic", "softmax"):
        fit_of(name)(*table(name))
    return


def audited(relation="replace_one", name="logistic", kind="gd", fit=None, **settings):
    data = table(name, n=8)
    return audit.replay(
        fit or fit_of(name, kind, relation), *data, bounds=bounds_of(name), neighbors=relation, **settings
    )


@covering(("kind", ["gd", "sgd"]), ("relation", RELATIONS))
def test_honest_fits_are_not_refuted(relation, kind):
    found = audited(relation, kind=kind, sampled=kind == "sgd")
    assert found.findings == ()
    assert found.verdict == "NOT REFUTED"
    assert (found.level, found.bound, found.confidence) == ("replay", None, 1.0)
    assert found.runs >= 20
    assert (found.claimed, found.delta) == (pytest.approx(2.0), 1e-5)
    assert "without statistics" in str(found)


def no_clip(monkeypatch):
    def limits(reach, shares, bound):
        return np.where(reach > 0, COEFFICIENT_LIMIT, 0).astype(np.int32)

    monkeypatch.setattr(engines, "coefficient_limits", limits)


def half_the_noise(monkeypatch):
    monkeypatch.setattr(session, "unit_for", lambda z, *more: unit_for(z / 2, *more))


def noise_from_memory(monkeypatch):
    memory, honest = {}, noise.rounded_gaussian
    monkeypatch.setattr(
        noise, "rounded_gaussian", lambda count, m, entropy: memory.setdefault((count, m), honest(count, m, entropy))
    )


def n_from_the_data(monkeypatch):
    monkeypatch.setattr(PrivateData, "public_n", lambda self, neighbors: len(self._PrivateData__rows.y))


def refuses_missing_cells(monkeypatch):
    honest = admission.numbers

    def checked(values):
        array = honest(values)
        if not np.isfinite(array).all():
            raise ValueError("Input X contains NaN.")
        return array

    monkeypatch.setattr(admission, "numbers", checked)


def warns_of_missing_cells(monkeypatch):
    honest = admission.admit

    def warned(X, *rest, **words):
        if not np.isfinite(X).all():
            warnings.warn("some records are incomplete", stacklevel=2)
        return honest(X, *rest, **words)

    monkeypatch.setattr(admission, "admit", warned)


def counts_on_the_model(monkeypatch):
    honest = DPLogisticRegression.fit

    def fit(self, X, y, groups=None):
        honest(self, X, y, groups=groups)
        self.largest_ = float(np.nanmax(X))
        return self

    monkeypatch.setattr(DPLogisticRegression, "fit", fit)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("plant", "relation", "kind"),
    [
        (no_clip, "replace_one", "sensitivity"),
        (no_clip, "add_remove", "sensitivity"),
        (half_the_noise, "zero_out", "price"),
        (noise_from_memory, "replace_one", "noise"),
        (n_from_the_data, "add_remove", "attribute"),
        (refuses_missing_cells, "replace_one", "raised"),
        (warns_of_missing_cells, "replace_one", "warned"),
        (counts_on_the_model, "replace_one", "attribute"),
    ],
)
def test_planted_defects_are_found(plant, relation, kind, monkeypatch):
    plant(monkeypatch)
    found = audited(relation)
    assert found.verdict == "REFUTED"
    assert any(f"{kind}:" in finding for finding in found.findings), found.findings[:3]
    assert len(set(found.findings)) == len(found.findings)


# --- the neighbors ------------------------------------------------------------------------------------


def pairs_of(relation, name="softmax", **settings):
    data = table(name, n=8)
    return list(neighbor_pairs(*data, relation=relation, bounds=bounds_of(name), **settings)), data


def changed(pair):
    """The rows of either side that the other does not have, with their targets."""
    sides = [
        [np.append(row, target) for row, target in zip(np.asarray(side.X), side.y, strict=True)]
        for side in (pair.data, pair.neighbor)
    ]
    known = [{row.tobytes() for row in side} for side in sides]
    return [row for side, other in zip(sides, known[::-1], strict=True) for row in side if row.tobytes() not in other]


KINDS = {
    "missing": lambda row, bounds: np.isnan(row[:-1]).all(),
    "one cell missing": lambda row, bounds: np.isnan(row[:-1]).sum() == 1,
    "infinite": lambda row, bounds: np.isposinf(row[:-1]).all(),
    "minus infinite": lambda row, bounds: np.isneginf(row[:-1]).all(),
    "1e308": lambda row, bounds: np.isfinite(row[:-1]).all() and (row[:-1] > 1e308).all(),
    "-1e308": lambda row, bounds: np.isfinite(row[:-1]).all() and (row[:-1] < -1e308).all(),
    "a huge norm": lambda row, bounds: 1e6 < np.linalg.norm(np.minimum(row[:-1], 1e100)) < 1e30,
    "label outside the set": lambda row, bounds: np.isfinite(row[-1]) and row[-1] not in bounds.classes,
    "missing label": lambda row, bounds: np.isnan(row[-1]),
    "infinite label": lambda row, bounds: np.isinf(row[-1]),
    "zeros": lambda row, bounds: not row[:-1].any(),
}


@covering(("kind", KINDS), ("relation", RELATIONS))
def test_every_nasty_record_is_tried(kind, relation):
    pairs, _ = pairs_of(relation)
    with np.errstate(all="ignore"):
        assert any(KINDS[kind](row, bounds_of("softmax")) for pair in pairs for row in changed(pair))


@dataclass(frozen=True)
class Inner:
    values: np.ndarray
    name: str = "a"


class Slotted:
    __slots__ = ("__secret", "shown")

    def __init__(self, secret):
        self.__secret, self.shown = secret, 1


def closure(value):
    return lambda: value


def paths(first, second):
    return [path for path, _ in differences(first, second)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"a": [1, (2.0, np.nan)], "b": {"c": np.array([np.nan, 1.0])}},
        lambda: Inner(np.arange(3)),
        lambda: Slotted(np.arange(3)),
        lambda: closure([1, 2]),
        lambda: np.array([{"a": 1}, None], dtype=object),
        lambda: (np.float32(1.5), {1, 2}, "text", b"x", None, True, 1j),
    ],
)
def test_equal_things(make):
    assert paths(make(), make()) == []


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, "a[1]"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ""),
        (0.0, -0.0, ""),
        (1, 1.0, ""),
        ([1], [1, 2], ""),
        (np.zeros(2), -np.zeros(2), ""),
        (np.zeros(2), np.zeros(2, dtype=np.float32), ""),
        (Inner(np.arange(3)), Inner(np.arange(3) + 1), "values"),
        (Slotted(1), Slotted(2), "_Slotted__secret"),
        (closure(1), closure(2), "closure[0]"),
        (np.array([[1], None], dtype=object), np.array([[2], None], dtype=object), "[0][0]"),
        (threading.Lock(), threading.Lock(), ""),
    ],
)
def test_different_things(first, second, path):
    assert paths(first, second) == [path]


def test_the_date_of_a_certificate_is_left_out():
    claim = {"epsilon": 1.0, "delta": 1e-6, "neighbors": Neighbors.ZERO_OUT, "events": (Gaussian(10.0),)}
    one = Certificate(**claim, created="2020-01-01")
    assert paths(one, replace(one, created="2021-01-01")) == []
    assert paths(one, replace(one, notes=("clipped 3 records",))) == ["notes"]
