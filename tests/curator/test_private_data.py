"""Declared facts that make no sense are refused with an example of ones that do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from discreet import DPLogisticRegression
from discreet.accounting import Plan, Release, price_plan
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.curator.private_data import PrivateData
from discreet.curator.records.admission import Scaling
from discreet.errors import DiscreetError, MissingBounds, PlanViolation, Unsupported
from discreet.ledger import Ledger
from discreet.losses import Huber, Logistic, Poisson, Softmax, Squared
from discreet.losses.base import derivative
from discreet.scale import limited
from discreet.solvers import GradientDescent
from tests.covering import covering


def test_n_is_read_only_where_it_is_public():
    data = PrivateData(np.ones((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1)))
    assert data.domain(Budget(1.0, 1e-6, "zero_out").neighbors, Logistic()).n == 3
    assert data.domain(Budget(1.0, 1e-6, "add_remove").neighbors, Logistic()).n is None
    wrong = PrivateData(np.ones((3, 1)), [0, 1, 0], Bounds(1.0, classes=(0, 1), n=4))
    with pytest.raises(DiscreetError, match="declared n"):
        wrong.public_n(Budget(1.0).neighbors)


def test_no_records_are_refused_only_where_n_is_public():
    empty = PrivateData(np.empty((0, 2)), [], Bounds(1.0, classes=(0, 1)))
    with pytest.raises(DiscreetError, match="0 sample"):
        empty.public_n(Budget(1.0).neighbors)
    assert empty.public_n(Budget(1.0, neighbors="add_remove").neighbors) is None


def opened(n, relation="add_remove", groups=None, ledger=False, X=None):
    X = np.zeros((n, 2)) if X is None else X
    data = PrivateData(X, np.zeros(n), Bounds(1.0, classes=(0, 1)), groups=groups, ledger=ledger, dataset="a")
    priced = price_plan(Plan([Release("noisy_gradient", 1, clip=0.5)]), Budget(1.0, 1e-6, relation))
    return data.open(priced, Logistic())


@covering(
    (("relation", "persons"), [("add_remove", False), ("add_remove", True), ("replace_one", True)]),
    ("limit", ["folder", "memory"]),
)
def test_a_limit_that_is_no_use_is_refused_before_the_charge_whatever_a_private_number(
    tmp_path, monkeypatch, limit, relation, persons
):
    """An error for large tables alone would tell how many rows there are."""
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("a", 5.0, 1e-5, neighbors=relation, unit="person" if persons else "record")
    monkeypatch.setenv("DISCREET_SCRATCH", str(tmp_path / "missing" if limit == "folder" else tmp_path))
    monkeypatch.setenv("DISCREET_MEMORY", "100KB" if limit == "folder" else "much")
    said = set()
    for n in (1, 10, 5000):  # the last are more than the memory holds
        with pytest.raises(Unsupported) as refusal:
            opened(n, relation, np.zeros(n) if persons else None, ledger)
        said.add(str(refusal.value))
    assert len(said) == 1
    assert ledger.spent("a").fits == 0


def test_a_folder_without_room_is_refused_before_the_charge_where_the_number_of_rows_is_public(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.grant("a", 5.0, 1e-5)
    with limited(memory=100_000, folder=tmp_path / "missing"):
        opened(10, "replace_one", ledger=ledger)  # needs none
        with pytest.raises(Unsupported, match="DISCREET_SCRATCH"):
            opened(5000, "replace_one", ledger=ledger)
    monkeypatch.setattr("discreet.curator.records.storage.free_disk", lambda folder: 1000)
    with limited(memory=100_000, folder=tmp_path), pytest.raises(Unsupported, match="DISCREET_SCRATCH"):
        opened(5000, "replace_one", ledger=ledger)
    assert ledger.spent("a").fits == 1


def test_memory_that_runs_out_does_not_tell_a_private_number(monkeypatch):
    def exhausted(*_, **__):
        np.empty((123_456_789_012, 100_000))

    for place in ("discreet.curator.records.admission.admit", "discreet.curator.queries.gradients._noisy_sum"):
        with monkeypatch.context() as patched:
            patched.setattr(place, exhausted)
            with pytest.raises(MemoryError) as told:
                opened(10).noisy_gradient(np.zeros(3), clip=0.5)
        assert "123456789012" not in str(told.value)
        assert told.value.__context__ is None


@pytest.mark.parametrize(("loss", "count"), [(Logistic(), 3), (Logistic(), 40), (Softmax(3), 2), (Softmax(3), 4)])
def test_a_loss_for_other_classes_than_are_declared_is_refused(loss, count):
    """The 40th of two classes would pull 79 times as much as a logistic slope is bounded by."""
    data = PrivateData(np.ones((2, 1)), np.zeros(2), Bounds(1.0, classes=tuple(range(count))), ledger=False)
    with pytest.raises(Unsupported, match="declare as many"):
        data.open(price_plan(Plan([Release("noisy_minimizer", 1)]), Budget(1.0, 1e-6)), loss)


RANGES = [(0.0, 3.0), (-3.0, 3.0), (-50.0, 1.0), (2.0, 9.0), (-9.0, -2.0), (0.0, 0.0), (1000.0, 1004.0)]


@pytest.mark.whole
@pytest.mark.parametrize("ends", RANGES, ids=str)
@pytest.mark.parametrize("loss", [Squared(), Huber(0.5), Poisson(1.0), Poisson(4.0)], ids=str)
def test_the_bound_on_slopes_holds_for_every_target_that_is_admitted(loss, ends):
    """One-shot solvers' sensitivities rest on it: a loss whose bound does not hold in a range refuses that range."""
    data = PrivateData(np.ones((2, 1)), np.ones(2), Bounds(1.0, target=ends), ledger=False)
    try:
        domain = data.domain(Budget(1.0).neighbors, loss)
    except MissingBounds:
        assert loss.log_link
        assert ends[0] < 0
        return
    assert domain.target_range is not None
    assert max(map(abs, domain.target_range)) <= domain.target_bound
    most = loss.lipschitz_for(domain.target_bound, 4.0)
    for target in np.linspace(*domain.target_range, 5):
        for margin in np.linspace(-4.0, 4.0, 33):
            assert abs(derivative(loss, margin, target)) <= most * (1 + 1e-12)


@pytest.mark.whole
@pytest.mark.parametrize("word", [2, -1, 1, 0, 1.0, "yes", None, [True], np.array([True])], ids=str)
def test_an_intercept_is_there_or_not(word):
    X, y, facts = np.ones((30, 2)), [0, 1] * 15, Bounds(1.0, classes=(0, 1))
    ledger = Ledger(":memory:")
    ledger.grant("census", 10.0, 1e-5)
    with pytest.raises(Unsupported, match="fit_intercept must be True or False"):
        PrivateData(X, y, facts, fit_intercept=word, ledger=ledger, dataset="census")
    model = DPLogisticRegression(5.0, 1e-6, bounds=facts, fit_intercept=word, ledger=ledger, dataset="census")
    for solver in ("gd", "auto", GradientDescent(n_steps=2)):
        with pytest.raises(Unsupported, match="fit_intercept must be True or False"):
            model.set_params(solver=solver).fit(X, y)
    assert ledger.spent("census").summed_epsilon == 0


def _opened(data):
    return data.open(price_plan(Plan([Release("noisy_gradient", 1)]), Budget(1.0, 1e-6)), Logistic())


@pytest.mark.parametrize("stored", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_records_of_another_width_than_the_domain_are_not_opened(stored, monkeypatch):
    data = PrivateData(stored(np.ones((30, 2))), [0, 1] * 15, Bounds(1.0, classes=(0, 1)))
    width = property(lambda scaling: len(scaling.scale) + 2)
    monkeypatch.setattr(Scaling, "width", width)
    with pytest.raises(PlanViolation, match="other columns than their domain"):
        _opened(data)


def test_arrays_that_do_not_fit_each_other_are_no_records():
    data = PrivateData(np.ones((30, 2)), [0, 1] * 15, Bounds(1.0, classes=(0, 1)))
    records = _opened(data)._session.engine.records
    for wrong in (
        {"rows": records.rows[:, :2]}, {"rows": records.rows[1:]}, {"norms": records.norms[1:]},
        {"sums": records.sums[1:]}, {"rows": None}, {"n_columns": 4}, {"shares": records.norms[1:]},
    ):  # fmt: skip
        with pytest.raises(PlanViolation, match="as long or as wide"):
            replace(records, **wrong)
