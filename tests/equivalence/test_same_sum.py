"""One set of records has one integer sum: order, threads, tiles, sampling and storage do not matter, bit for bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.curator.engines import threads
from tests.equivalence.reference import LOSSES, bounds_for, engine_for, query_for, records_of

N, P = 1000, 7
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


@pytest.fixture(autouse=True)
def _split_even_small_sums(monkeypatch):
    monkeypatch.setattr(threads, "_LEAST_WORK", 1)


def draw(loss, seed=0, n=N):
    """A table with clipped, null, empty and ordinary rows, its targets, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * rng.choice([0.0, 0.1, 1.0, 30.0], size=(n, P))
    X[::97, 2] = np.nan
    X[::89] = 0.0
    y = rng.integers(0, loss.n_outputs, n) if loss.n_outputs > 1 else rng.choice([-1.0, 1.0], n)
    y = np.abs(y) if type(loss).__name__ == "Poisson" else y.astype(float)
    y[::101] = np.nan
    return X, y, rng.standard_normal((P + 1) * loss.n_outputs)


def total(X, y, loss, w, *, groups=None, units=None, use_l1=False, clip=0.3, **options):
    records = records_of(X, y, bounds_for(loss), groups)
    query = query_for(records, loss, w, units=units, use_l1=use_l1, clip=clip)
    return query.over(engine_for(records, **options))


@each_loss
@pytest.mark.parametrize("use_l1", [False, True], ids=["l2", "l1"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.coo_array], ids=["dense", "csr", "coo"])
def test_order_and_storage_and_sampling_all(loss, use_l1, storage):
    X, y, w = draw(loss)
    first = total(X, y, loss, w, use_l1=use_l1, threads=1)
    order = np.random.default_rng(1).permutation(N)
    assert first.any()
    for units in (None, np.arange(N)):
        other = total(storage(X[order]), y[order], loss, w, use_l1=use_l1, units=units, threads=2)
        assert (other == first).all()


@each_loss
def test_threads_and_tiles(loss):
    X, y, w = draw(loss)
    first = total(X, y, loss, w, threads=1, tile_rows=64)
    for count in (1, 2, 3):
        for rows in (64, 128, 1024, 37, 1):
            assert (total(X, y, loss, w, threads=count, tile_rows=rows) == first).all()
        assert (total(sp.csr_matrix(X), y, loss, w, threads=count) == first).all()


@each_loss
@pytest.mark.parametrize("use_l1", [False, True], ids=["l2", "l1"])
def test_persons_too(loss, use_l1):
    X, y, w = draw(loss)
    rng = np.random.default_rng(2)
    groups = rng.integers(0, 300, N)
    first = total(X, y, loss, w, groups=groups, use_l1=use_l1, threads=1)
    order = rng.permutation(N)
    persons = len(np.unique(groups))
    for table in (X[order], sp.csr_matrix(X[order])):
        for units in (None, np.arange(persons)):
            moved = total(table, y[order], loss, w, groups=groups[order], units=units, use_l1=use_l1, threads=3)
            assert (moved == first).all()


@each_loss
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_one_more_record_adds_exactly_its_own_vector(loss, storage):
    X, y, w = draw(loss, n=130)
    whole = total(storage(X), y, loss, w)
    for i in (0, 1, 97, 64, 129):
        rest = np.delete(np.arange(130), i)
        without = total(storage(X[rest]), y[rest], loss, w)
        alone = total(storage(X[[i]]), y[[i]], loss, w)
        assert (whole - without == alone).all()


@each_loss
def test_a_sample_is_the_sum_of_its_records(loss):
    X, y, w = draw(loss)
    chosen = np.flatnonzero(np.random.default_rng(3).random(N) < 0.2)
    sample = total(X, y, loss, w, units=chosen, threads=2)
    assert (sample == total(X[chosen], y[chosen], loss, w)).all()
    assert (sample == total(sp.csr_matrix(X), y, loss, w, units=chosen, threads=3)).all()
    assert not total(X, y, loss, w, units=np.arange(0)).any()


@pytest.mark.parametrize(
    "storage", [sp.coo_matrix, sp.csc_matrix, sp.lil_matrix, sp.dok_array, sp.bsr_array, sp.dia_matrix]
)
@pytest.mark.parametrize("grouped", [False, True], ids=["records", "persons"])
def test_every_sparse_format_is_admitted(storage, grouped):
    loss = LOSSES[0]
    X, y, w = draw(loss, n=60)
    X = np.nan_to_num(X)
    groups = np.arange(60) // 3 if grouped else None
    assert (total(storage(X), y, loss, w, groups=groups) == total(X, y, loss, w, groups=groups)).all()


def test_the_environment_chooses_the_number_of_threads(monkeypatch):
    for wanted in (1, 2, 3):
        monkeypatch.setenv(threads.VARIABLE, str(wanted))
        assert threads.thread_count() == wanted
    for junk in ("0", "-1", "x", ""):
        monkeypatch.setenv(threads.VARIABLE, junk)
        assert threads.thread_count() >= 1
