"""Maps, losses and targets that a recoding refuses: in words, before records are read, and with nothing changed."""

import numpy as np
import pytest

from discreet.curator.records.recoding import Recoding, recoded
from discreet.errors import DiscreetError, PlanViolation, Unsupported
from discreet.losses import Squared
from tests.curator.records.test_recoding import a_table
from tests.solvers.whitened.cases import opened, records_of

TWO, ONES = np.zeros(2), np.ones(2)


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
