"""Maps, losses and targets that a recoding refuses: in words, before records are read, and with nothing changed."""

import numpy as np
import pytest

from discreet import Bounds
from discreet.curator.records.recoding import Recoding, recoded
from discreet.errors import DiscreetError, PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Squared
from tests.covering import covering
from tests.curator.records.test_recoding import a_table
from tests.solvers.whitened.cases import opened, records_of

TWO, ONES = np.zeros(2), np.ones(2)


@covering(
    ("where", ["center", "scale", "constant", "matrix", "target_center", "target_scale"]),
    ("bad", [np.nan, np.inf, -np.inf]),
)
def test_numbers_that_are_not_finite_are_refused(where, bad, monkeypatch):
    value = {"center": np.array([0, bad]), "scale": np.array([bad, 1.0]), "matrix": np.array([1.0, bad, 1.0])}
    facts = {"center": TWO, "scale": ONES, where: value.get(where, bad)}
    with pytest.raises(PlanViolation, match="finite"):
        Recoding(**facts).check(records_of(*a_table(4, p=2))[1], sparse=False)


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_scales_are_positive(scale):
    domain = records_of(*a_table(4, p=2))[1]
    for facts in ({"scale": np.array([1.0, scale])}, {"scale": ONES, "target_scale": scale}):
        with pytest.raises(PlanViolation, match="scales above 0"):
            Recoding(TWO, **facts).check(domain, sparse=False)


@pytest.mark.parametrize("facts", [{"row_norm": 0.0}, {"row_norm": -1.0}, {"row_norm": np.nan}, {"reach": 0.0},
                                   {"reach": np.inf}, {"reach": np.nan}])  # fmt: skip
def test_lengths_are_positive(facts):
    with pytest.raises(PlanViolation, match="row_norm and reach"):
        Recoding(TWO, ONES, **facts).check(records_of(*a_table(4, p=2))[1], sparse=False)


@pytest.mark.parametrize(
    ("recoding", "match"),
    [
        (Recoding(np.zeros(3), ONES), "each of 2 features"),
        (Recoding(TWO, np.ones((2, 1))), "each of 2 features"),
        (Recoding(TWO, ONES, matrix=np.eye(2)), "each of 3 columns"),
        (Recoding(TWO, ONES, matrix=np.ones((3, 2, 2))), "each of 3 columns"),
        (Recoding(TWO, ONES, matrix=np.ones(4)), "each of 3 columns"),
    ],
)
def test_shapes_are_checked(recoding, match):
    with pytest.raises(PlanViolation, match=match):
        recoding.check(records_of(*a_table(4, p=2))[1], sparse=False)


def test_a_matrix_without_dimensions_is_refused_like_any_other():
    with pytest.raises(PlanViolation, match="each of 3 columns"):
        Recoding(TWO, ONES, matrix=np.array(2.0)).check(records_of(*a_table(4, p=2))[1], sparse=False)


def test_sparse_records_are_not_filled():
    domain = records_of(*a_table(4, p=2))[1]
    for facts in ({"center": np.array([0.0, 0.1])}, {"center": TWO, "matrix": np.eye(3)}):
        with pytest.raises(Unsupported, match="sparse records"):
            Recoding(scale=ONES, **facts).check(domain, sparse=True)


def test_without_an_intercept_nothing_is_centered():
    domain = records_of(*a_table(4, p=2), intercept=False)[1]
    for recoding in (Recoding(np.array([0.1, 0.0]), ONES), Recoding(TWO, ONES, target_center=0.1)):
        with pytest.raises(Unsupported, match="fit_intercept=True"):
            recoding.check(domain, sparse=False)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("scale", [1e-6, 1e-300, 5e-324])
def test_images_beyond_the_lattice_are_refused(scale):
    X, y = a_table(6, p=2)
    records, domain = records_of(X, y)
    with pytest.raises(Unsupported, match="too large for the lattice"):
        recoded(records, Recoding(TWO, np.array([1.0, scale])), domain, numeric_target=False)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("size", [1e10, 1e200, 1e308])
def test_a_huge_matrix_is_refused_in_words(size):
    X, y = a_table(6, p=2)
    records, domain = records_of(X, y)
    with pytest.raises(Unsupported, match="too large for the lattice"):
        recoded(records, Recoding(TWO, ONES, matrix=np.full((3, 3), size)), domain, numeric_target=False)


def test_a_refused_map_changes_nothing_and_is_refused_before_records_are_read():
    X, y = a_table(12, p=2)
    curator = opened(X, y, ["noisy_mean"], loss=Squared(), intercept=True)
    session = curator._session
    before = (session.engine, session.domain, curator.domain, curator.loss)

    class Unread:
        """Records that must not be looked at; how they are stored is a fact of their container."""

        is_sparse = is_grouped = False

        def __getattr__(self, name):
            raise AssertionError(f"read {name}")

    session.admitted = Unread()
    for recoding in (
        Recoding(np.zeros(3), ONES),
        Recoding(TWO, np.array([1.0, np.nan])),
        Recoding(TWO, ONES, matrix=np.eye(7)),
        Recoding(TWO, np.array([1.0, 1e-9])),
    ):
        with pytest.raises(DiscreetError):
            curator.recode(recoding, loss=Squared())
        assert (session.engine, session.domain, curator.domain, curator.loss) == before


def test_target_moments_are_of_admitted_records():
    curator = opened(*a_table(12, p=2), ["noisy_target_moments"], loss=Squared(), intercept=True)
    curator.recode(Recoding(TWO, ONES))
    with pytest.raises(PlanViolation, match="before records are recoded"):
        curator.noisy_target_moments(n=12)


def test_a_loss_is_rescaled_but_not_replaced():
    X, y = a_table(12, p=2)
    curator = opened(X, y, ["noisy_mean"], loss=Huber(0.5), intercept=True)
    for other in (Squared(), Logistic()):
        with pytest.raises(PlanViolation, match="another"):
            curator.recode(Recoding(TWO, ONES), loss=other)
    assert curator.loss == Huber(0.5)
    curator.recode(Recoding(TWO, ONES, target_scale=0.5), loss=Huber(1.0))
    assert curator.loss == Huber(1.0)
    curator.recode(Recoding(TWO, ONES))
    assert curator.loss == Huber(1.0)


@covering(
    ("facts", [{"target_center": 0.1}, {"target_scale": 2.0}]), ("loss", [Logistic(), SmoothedHinge(0.5), Poisson(2.0)])
)
def test_targets_move_only_where_the_loss_sees_residuals(loss, facts):
    bounds = Bounds(1.0, target=(0.0, 4.0)) if loss.task == "regression" else None
    curator = opened(*a_table(12, p=2), ["noisy_mean"], loss=loss, intercept=True, bounds=bounds)
    before = curator._session.engine
    with pytest.raises(Unsupported, match=r"losses of residuals \(squared, Huber\)"):
        curator.recode(Recoding(TWO, ONES, **facts))
    assert curator._session.engine is before
    curator.recode(Recoding(TWO, ONES))
