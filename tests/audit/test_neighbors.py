"""Neighbors really differ in one record or person, and in nothing else."""

import numpy as np
import pytest

from discreet.testing import neighbor_pairs
from tests.covering import covering
from tests.testing.small_fits import bounds_of, table


def dense(X):
    if hasattr(X, "toarray"):
        return X.toarray()
    return X.to_numpy(dtype=float) if hasattr(X, "iloc") else np.asarray(X)


def records(data):
    """Each record as bytes, so that NaN equals NaN."""
    X = np.column_stack([dense(data.X).astype(float), np.asarray(data.y, dtype=float)])
    return [row.tobytes() for row in X]


def persons(data):
    found = {}
    for name, record in zip(data.groups.tolist(), records(data), strict=True):
        found.setdefault(name, []).append(record)
    return {name: sorted(rows) for name, rows in found.items()}


@covering(
    ("name", ["softmax", "ridge"]), ("relation", ["replace_one", "zero_out"]), ("engine", ["dense", "sparse", "frame"])
)
def test_one_record_differs(name, relation, engine):
    X, y, _ = table(name, "dense" if engine == "frame" else engine)
    if engine == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=list("abc"))
    seen = set()
    for pair in neighbor_pairs(X, y, relation=relation, bounds=bounds_of(name)):
        one, other = records(pair.data), records(pair.neighbor)
        differing = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        assert differing in ([0], [len(y) - 1], []), pair.name
        assert type(pair.data.X) is type(pair.neighbor.X) is type(X)
        seen.update(differing)
        if relation == "zero_out" and differing:
            assert np.isnan(dense(pair.neighbor.X)[differing[0]]).all()
    assert seen == {0, len(y) - 1}


@covering(("engine", ["dense", "sparse"]), ("sampled", [False, True]))
def test_one_record_comes_or_goes(engine, sampled):
    X, y, _ = table("softmax", engine)
    pairs = list(neighbor_pairs(X, y, relation="add_remove", bounds=bounds_of("softmax"), sampled=sampled))
    for pair in pairs:
        shorter, longer = sorted((records(pair.data), records(pair.neighbor)), key=len)
        assert len(longer) == len(shorter) + 1
        if sampled:
            assert longer[:-1] == shorter
        else:
            assert any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    assert any("only member" in pair.name for pair in pairs)


@covering(
    ("relation", ["replace_one", "zero_out", "add_remove"]),
    ("names", [np.arange, lambda n: np.array([f"p{i:02}" for i in range(n)])]),
)
def test_one_person_differs(relation, names):
    X, y, groups = table("logistic", groups=True)
    labels = names(groups.max() + 1)[groups]
    for pair in neighbor_pairs(X, y, labels, relation=relation, bounds=bounds_of("logistic"), sampled=True):
        one, other = persons(pair.data), persons(pair.neighbor)
        changed = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        assert len(changed) <= 1, pair.name
        if relation == "add_remove":
            assert set(one) ^ set(other) == set(changed) == {max(one.keys() | other.keys())}
        else:
            assert set(one) == set(other)


def test_sparse_rows_have_repeated_entries():
    X, y, _ = table("logistic", "sparse")
    parted = [pair for pair in neighbor_pairs(X, y, bounds=bounds_of("logistic")) if "in parts" in pair.name]
    assert parted
    assert not any(pair.neighbor.X.has_canonical_format for pair in parted)
