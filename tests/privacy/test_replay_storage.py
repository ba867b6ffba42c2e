"""Neighbors whose records lie in parts, on disk and recoded on the way: answers differ as those in memory may."""

import pytest

from discreet.curator.records import storage
from discreet.testing import Data, assert_replay, neighbor_pairs
from tests.replaying import worst_ratio
from tests.testing.small_fits import bounds_of, fit_of, prices_remembered, table

RELATIONS = ("replace_one", "zero_out", "add_remove")


@pytest.fixture(autouse=True, scope="module")
def _cheap_prices():
    with prices_remembered():
        yield


@pytest.fixture(params=["disk", "tight"])
def kept(request, monkeypatch, tmp_path):
    """Keep every table in parts of three rows: the removal of one record moves all parts behind it."""
    place = storage.OnDisk(tmp_path) if request.param == "disk" else storage.TIGHT_MEMORY
    asked = []
    for user in ("private_data", "records.admission", "records.stream"):
        monkeypatch.setattr(f"discreet.curator.{user}.storage_for", lambda *room: asked.append(room) or place)
    for user in ("private_data", "engines.parts"):
        monkeypatch.setattr(f"discreet.curator.{user}.rows_per_part", lambda columns: 3)
    yield place
    assert asked


@pytest.mark.few(6)
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [("logistic", "gd", {}), ("logistic", "gd", {"solver": "auto"}), ("softmax", "sgd", {}), ("ridge", "pure", {}),
     ("huber", "gd", {"solver": "auto"}), ("huber", "sgd", {})],
    ids=lambda value: "auto" if value == {"solver": "auto"} else None,
)  # fmt: skip
def test_fits_in_parts_replay(kept, name, kind, words, relation, persons):
    pairs = list(neighbor_pairs(
        *table(name, groups=persons), relation=relation, bounds=bounds_of(name), sampled=kind == "sgd"
    ))  # fmt: skip
    assert 0.4 < worst_ratio(fit_of(name, kind, relation, **words), pairs[:: 1 if not words else 3], relation) <= 1.0


@pytest.mark.parametrize("kind", ["gd", "sgd"])
def test_the_only_record_removed_from_parts(kept, kind):
    data = table("logistic", n=1)
    assert_replay(fit_of("logistic", kind, "add_remove"), data, Data(data.X[:0], data.y[:0]), "add_remove")
