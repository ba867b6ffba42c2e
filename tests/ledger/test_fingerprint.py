"""Fingerprints: the same for the same records in any dress, and seen by nobody but the ledger's owner."""

import json
import zipfile
from contextlib import closing
from sqlite3 import connect

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, cross_val_score

from discreet import Bounds, DPLogisticRegression, Ledger
from discreet.curator.private_data import fingerprint_of
from discreet.errors import BudgetExceeded, LedgerError
from discreet.ledger.ledger import NOTICEABLE, SKETCH, Fingerprint
from discreet.models.persist import save
from discreet.solvers import GradientDescent
from tests.covering import covering

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


# --- one table, many dresses -----------------------------------------------------------------------


def table(n=300, p=4, seed=0):
    """Values that a float32 holds, with zeros among them."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)) * 64) / 64
    X[rng.random((n, p)) < 0.3] = 0.0
    return X


def of(X, key=KEY):
    return fingerprint_of(X, key)


def test_neither_order_nor_container_matters():
    X = table()
    rng = np.random.default_rng(1)
    expected = of(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    dresses = {
        "rows": X[rng.permutation(len(X))],
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "float32": X.astype(np.float32),
        "objects": X.astype(object),
        "lists": X.tolist(),
        "frame": frame,
        "frame of objects": frame.astype(object),
        "nullable frame": frame.astype("Float64"),
        "csr": sparse.csr_matrix(X),
        "csc": sparse.csc_array(X),
        "coo": sparse.coo_array(X),
        "sparse float32": sparse.csr_array(X.astype(np.float32)),
        "negative zeros": np.where(X == 0, -0.0, X),
        "a last column of zeros": np.column_stack([X, np.zeros(len(X))]),
        "with digits that a single does not hold": np.nextafter(X, 9.0) * (X != 0),
    }
    for name, dress in dresses.items():
        assert of(dress) == expected, name
    stored = sparse.csr_array(X)
    stored.data[:5] = 0.0  # zeros that are stored
    assert of(stored) == of(stored.toarray())


def test_the_key_matters_and_nothing_is_left_of_small_tables():
    X = table()
    mine, other = of(X), of(X, OTHER)
    assert mine.digest != other.digest
    assert not set(mine.sketch) & set(other.sketch)
    for rows in (0, 1, 2):
        assert len(of(X[:rows]).sketch) == rows
    assert of(np.zeros((3, 2))).sketch == of(np.zeros((1, 7))).sketch


def test_a_sketch_is_the_smallest_hashes_in_order_and_survives_storage():
    X = np.random.default_rng(3).normal(size=(5000, 3))
    found = of(X)
    assert len(found.sketch) == SKETCH == len(set(found.sketch))
    assert list(found.sketch) == sorted(found.sketch)
    assert found.rows == 5000
    assert Fingerprint.stored(*found.stores()) == found
    assert Fingerprint.stored(*Fingerprint("empty", ()).stores()) == Fingerprint("empty", ())
    # the smallest of 5,000 uniform 64-bit numbers: the 256th is near 256/5000 of the range
    assert found.sketch[-1] / 2**64 == pytest.approx(256 / 5000, rel=0.25)


@covering(("sizes", [(200, 150), (4000, 4000), (20000, 3000)]), ("shared", [0.0, 0.02, 0.3, 0.7, 1.0]))
def test_sketches_estimate_overlap_within_binomial_error(sizes, shared):
    rng = np.random.default_rng(4)
    large, small = (rng.normal(size=(size, 3)) for size in sizes)
    common = int(shared * len(small))
    small[:common] = large[:common]
    share = of(small).share_in(of(large))
    below = 256 if min(sizes) <= SKETCH else SKETCH * len(small) / max(sizes)  # rows of the small one in the sample
    spread = np.sqrt(max(shared * (1 - shared), 1e-4) / min(below, len(small)))
    assert abs(share - shared) <= (5 * spread if len(small) > SKETCH else 1e-9 + (len(large) > SKETCH) * 5 * spread)
    if shared == 1.0:
        assert share == 1.0
    if shared == 0.0:
        assert share == of(large).share_in(of(small)) == 0.0


# --- what the owner is told ------------------------------------------------------------------------


BOUNDS = Bounds(features=4.0, classes=(0, 1))


def records(n=240, p=3, seed=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).clip(-4, 4)
    return X, (X[:, 0] > 0).astype(int)


def model(ledger, dataset, **more):
    return DPLogisticRegression(
        epsilon=0.1,
        delta=1e-6,
        bounds=BOUNDS,
        solver=GradientDescent(n_steps=2),
        ledger=ledger,
        dataset=dataset,
        **more,
    )


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "budget.db")
    for name in ("first", "second"):
        made.grant(name, 5.0, 1e-5)
    return made


def told(ledger):
    return {(one.dataset, one.other): one.share for one in ledger.notices()}


@pytest.mark.parametrize(
    ("change", "share"),
    [
        (lambda X: X, 1.0),
        (lambda X: X[::-1], 1.0),
        (lambda X: X.astype(np.float32), 1.0),
        (lambda X: X[:60], 1.0),
        (lambda X: np.vstack([X, records(700, seed=9)[0]]), 1.0),
        (lambda X: np.vstack([X[:120], records(120, seed=9)[0]]), 0.5),
    ],
    ids=["copy", "shuffled", "float32", "subset", "superset", "half"],
)
def test_the_owner_is_told_of_records_under_another_name(ledger, change, share):
    X, y = records()
    model(ledger, "first").fit(X, y)
    assert told(ledger) == {}
    other = np.ascontiguousarray(change(X))
    model(ledger, "second").fit(other, np.arange(len(other)) % 2)
    found = told(ledger)
    assert set(found) == {("second", "first")}
    assert found["second", "first"] == pytest.approx(share, abs=0.15)
    assert "protected by neither" in str(ledger.notices()[0])


def test_unrelated_records_and_folds_of_the_same_make_no_notice(ledger):
    X, y = records()
    model(ledger, "second").fit(*records(seed=6))
    cross_val_score(model(ledger, "first"), X, y, cv=KFold(4, shuffle=True, random_state=0), error_score="raise")
    model(ledger, "first").fit(X, y)
    assert told(ledger) == {}
    assert ledger.account("first").charges == 5


def test_parts_that_overlap_make_a_notice_and_the_whole_makes_none(ledger):
    X, y = records()
    ledger.divide("first", ["north", "south"])
    model(ledger, "first").fit(X, y)
    model(ledger, "north").fit(X[:120], y[:120])
    assert told(ledger) == {}
    model(ledger, "south").fit(X[100:], y[100:])
    assert set(told(ledger)) == {("south", "north")}
    assert told(ledger)["south", "north"] >= NOTICEABLE


def test_tables_whose_rows_do_not_tell_records_apart_are_compared_as_a_whole():
    """Of three columns of zeros and ones there are eight rows: all tables hold all of them."""
    rng = np.random.default_rng(8)
    one, two = (rng.integers(0, 2, (2000, 3)).astype(float) for _ in range(2))
    assert not of(one).tells
    assert of(one).share_in(of(two)) == of(two).share_in(of(one)) == 0.0
    assert of(one[::-1]).share_in(of(one)) == 1.0
    assert of(one[:1000]).share_in(of(one)) == 0.0  # the price of it
    named = np.column_stack([one, np.arange(2000)])
    assert of(named).tells
    assert of(one).share_in(of(named)) == of(named).share_in(of(one)) == 0.0


# --- who sees it -----------------------------------------------------------------------------------


def secrets_of(ledger):
    """All that is worked out from records, as it might be written: hex, decimal, JSON; and the key."""
    with closing(connect(ledger.address)) as connection:
        rows = connection.execute("SELECT digest, sketch FROM known").fetchall()
    assert rows
    key = ledger.key()
    words = [key.hex(), repr(key)[2:-1]]
    for digest, sketch in rows:
        _, *values = json.loads(sketch)  # without the number of rows: too short to look for
        words += [digest, digest[:16], sketch, *map(str, values[:20]), *(f"{value:016x}" for value in values[:20])]
    return words


def test_nobody_but_the_owner_sees_fingerprints_or_the_key(ledger, tmp_path, capsys, monkeypatch):
    from typer.testing import CliRunner

    from discreet.cli.app import app

    X, y = records()
    fitted = model(ledger, "first").fit(X, y, charge_id="one")
    again = model(ledger, "second", verbose=True).fit(X, y)
    shown = [repr(fitted), repr(ledger), repr(ledger.accounts()), repr(ledger.entries()), repr(ledger.spent("first"))]
    shown += [str(notice) for notice in ledger.notices()] + [repr(ledger.verify(again.certificate_, prices=True))]
    shown += [fitted.certificate_.to_json(), again.certificate_.to_json(), str(again.certificate_)]
    for one in (fitted, again):
        with zipfile.ZipFile(save(one, tmp_path / f"{id(one)}.discreet")) as saved:
            shown += [saved.read(name).decode("latin-1") for name in saved.namelist()]
    monkeypatch.setenv("DISCREET_LEDGER", ledger.address)
    for arguments in (
        ("show", "--json"),
        ("show",),
        ("history", "--json"),
        ("history",),
        ("verify", "--json", "--prices"),
        ("export", "-"),
    ):
        answer = CliRunner().invoke(app, ["budget", *arguments], prog_name="discreet")
        assert answer.exit_code == 0, answer.output
        shown.append(answer.output)
    with pytest.raises(BudgetExceeded) as refused:
        model(ledger, "first").set_params(epsilon=50.0).fit(X, y)
    with pytest.raises(LedgerError) as unknown:
        model(ledger, "third").fit(X, y)
    with pytest.raises(LedgerError) as otherwise:
        model(ledger, "second").fit(X, y, charge_id="one")
    shown += [str(error.value) for error in (refused, unknown, otherwise)]
    shown += list(capsys.readouterr())
    everything = "\n".join(shown)
    assert "first" in everything
    assert [word for word in secrets_of(ledger) if word in everything] == []
