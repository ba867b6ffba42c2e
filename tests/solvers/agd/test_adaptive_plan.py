"""A curator under a filter: no order of questions gets more out of it than its certificate says."""

import copy
import math
import pickle
import threading
from contextlib import nullcontext, suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Bounds, Budget
from discreet.accounting import AdaptivePlan, Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.noise import use_entropy
from discreet.curator.queries.choices import ValueQuery
from discreet.curator.queries.gradients import GradientQuery
from discreet.errors import AccountingError, BudgetExceeded, PlanViolation, Unsupported
from discreet.losses import Logistic
from tests.covering import covering
from tests.replaying import window
from tests.solvers.agd.cases import (
    CHOICE,
    GRADIENT,
    NOISY_MAX,
    RELATIONS,
    CountingEntropy,
    ask_choice,
    ask_gradient,
    audit,
    budget_left,
    filter_of,
    opened,
    small_table,
)

SHARES = [0.5, 1.0, 1 / 3, 0.01, 1e-6, 2.0, 1e300, "left", "above", 1e-30, 5e-324, math.nan, 0.0, -1.0, math.inf]
action = st.tuples(
    st.sampled_from([ask_gradient, ask_choice]), st.sampled_from(SHARES), st.sampled_from([1e-6, 0.3, 1.0, 7.0, 1e9])
)


def rho_for(share, left):
    if share == "left":
        return float(left)
    if share == "above":
        return math.nextafter(float(left), math.inf)
    return share if share < 1e-20 or not share < 1e200 else share * float(left)


def drive(curator, actions, entropy, seen):
    """Ask all of it; check the books after each question. Errors of other kinds than ours fail the test."""
    books, failed = filter_of(curator), set()
    for ask, share, clip in actions:
        rho = rho_for(share, books.left)
        before = books.spent, len(books.trace), len(seen), entropy.asked
        try:
            ask(curator, rho, clip)
            assert books.spent - before[0] >= Fraction(rho)
            assert books.trace[-1].answered
        except BudgetExceeded:
            assert (books.spent, len(seen), entropy.asked) == (before[0], *before[2:])
            assert len(books.trace) == before[1] + 1
            assert not books.trace[-1].answered
            assert Fraction(rho) > 0
        except PlanViolation as error:
            if "finite rho" in str(error):
                assert (books.spent, len(books.trace), len(seen), entropy.asked) == before
            else:  # a rho so small that its noise is no double: paid for, and nothing read
                assert "relative_noise" in str(error)  # noqa: PT017
                assert len(seen) == before[2]
                failed.add(len(books.trace) - 1)
        except Unsupported as error:  # more noise than the lattice holds: paid for, and nothing read
            assert "lattice" in str(error)  # noqa: PT017
            assert len(seen) == before[2]
            failed.add(len(books.trace) - 1)
        assert books.spent + books.left == books.total
        assert books.left >= 0
    return failed


@pytest.mark.few(1)
@pytest.mark.parametrize("choice", [CHOICE, NOISY_MAX])
@given(actions=st.lists(action, max_size=10), relation=st.sampled_from(RELATIONS), epsilon=st.sampled_from([0.1, 3.0]))
@settings(max_examples=40)
def test_whatever_is_asked_the_books_are_right(actions, relation, epsilon, choice):
    with use_entropy(CountingEntropy(1)) as entropy, window() as seen:
        curator = opened(Budget(epsilon, 1e-6, relation), (GRADIENT, choice))
        failed = drive(curator, actions, entropy, seen)
    audit(curator, seen, choice.mechanism, failed)


@given(
    epsilon=st.floats(0.01, 100.0), exponent=st.floats(-12.0, -2.0), papers=st.booleans(),
    relation=st.sampled_from(RELATIONS),
)  # fmt: skip
@settings(max_examples=60)
def test_the_filter_never_allows_more_than_the_event_says(epsilon, exponent, papers, relation):
    budget = Budget(epsilon, 10.0**exponent, relation)
    plan = AdaptivePlan((GRADIENT,), papers_total=papers)
    X, y = small_table()
    curator = PrivateData(X, y, Bounds(1.0, classes=(-1, 1))).open(price_plan(plan, budget), Logistic())
    (event,) = plan.events(curator.noise_multiplier, pure=False)
    assert Fraction(plan.total(budget)) >= filter_of(curator).total
    assert Fraction(event.rho) >= filter_of(curator).total
    assert event.rho <= plan.total(budget) * (1 + 1e-14)
    assert curator.certificate(model="test", solver={}).verify().epsilon <= epsilon * (1 + 1e-12)


@covering(("papers", [False, True]), (("epsilon", "delta"), [(0.001, 1e-12), (0.01, 1e-100), (1e-6, 1e-5), (1.0, 0.9)]))
def test_a_budget_that_cannot_be_certified_is_refused_before_the_first_answer(epsilon, delta, papers):
    """A run must not find out at its end that its certificate cannot be had, or is below its claim."""
    X, y = small_table()
    plan = AdaptivePlan((GRADIENT,), papers_total=papers)
    try:
        data = PrivateData(X, y, Bounds(1.0, classes=(-1, 1)))
        curator = data.open(price_plan(plan, Budget(epsilon, delta, "zero_out")), Logistic())
    except (Unsupported, AccountingError):
        return
    assert curator.certificate(model="test", solver={}).verify().epsilon <= epsilon * (1 + 1e-12)


def test_a_refused_question_reads_nothing_and_draws_nothing(monkeypatch):
    with use_entropy(CountingEntropy(1)) as entropy, window() as seen:
        curator = opened()
        left = float(budget_left(curator))
        read = []
        for question in (GradientQuery, ValueQuery):
            monkeypatch.setattr(question, "over", lambda query, engine: read.append(query))
        for ask in (ask_gradient, ask_choice):
            with pytest.raises(BudgetExceeded, match="nothing was asked of the data"):
                ask(curator, math.nextafter(left, math.inf))
    assert not seen
    assert not read
    assert entropy.asked == 0
    assert [charge.answered for charge in filter_of(curator).trace] == [False, False]


def test_rho_has_no_place_in_a_fixed_plan():
    X, y = small_table()
    data = PrivateData(X, y, Bounds(1.0, classes=(-1, 1)))
    fixed = Plan([Release("noisy_gradient", 1), Release("select_candidate", 1, mechanism="exponential")])
    curator = data.open(price_plan(fixed, Budget(1.0, 1e-6)), Logistic())
    for ask in (ask_gradient, ask_choice):
        with pytest.raises(PlanViolation, match="adaptive"):
            ask(curator, 1e-4)
    ask_gradient(curator, None)
    ask_choice(curator, None)


def test_other_queries_cannot_be_had_under_a_filter():
    """They take no rho, and the plan fixes none, so they cannot be charged; nothing of them may be answered."""
    queries = (
        Release("noisy_gradient_change", 0),
        Release("noisy_coordinate_gradient", 0),
        Release("noisy_squared_norms", 0),
        Release("noisy_share_within", 0),
        Release("select_coordinate", 0, mechanism="exponential"),
    )
    with window() as seen:
        curator = opened(queries=queries)
        w = np.zeros(2)
        asked = [
            lambda: curator.noisy_gradient_change(w, w + 1, clip=1.0),
            lambda: curator.noisy_coordinate_gradient(w, 0, clips=1.0),
            lambda: curator.noisy_squared_norms(clip=1.0),
            lambda: curator.noisy_share_within(w, 0, clip=1.0),
            lambda: curator.select_coordinate(w, clips=np.ones(2), smoothness=np.ones(2), n=8),
        ]
        for ask in asked:
            with pytest.raises(PlanViolation, match="rho"):
                ask()
    assert not seen


@pytest.mark.parametrize("query", [Release("noisy_gradient", 0, mechanism="laplace")])
def test_laplace_answers_are_refused_before_they_are_charged(query):
    try:
        curator = opened(queries=(query,))
    except (PlanViolation, Unsupported):
        return
    with pytest.raises(PlanViolation, match="Gaussian"):
        ask_gradient(curator, 1e-4)
    assert not any(charge.answered for charge in filter_of(curator).trace)


class Slow(float):
    """A rho whose check waits until another thread stands at the same place."""

    meeting = None

    def __gt__(self, other):
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait(timeout=0.3)
        return float(self) > other

    __hash__ = float.__hash__


def raced(curator, share=0.7):
    """How many of two simultaneous questions, each for most of the budget, were answered."""
    ask_choice(curator, 1e-9)  # whatever compiles on first use has compiled
    Slow.meeting = threading.Barrier(2)
    rho, answers = Slow(share * float(budget_left(curator))), []

    def run(ask):
        with suppress(BudgetExceeded):
            answers.append(ask(curator, rho))

    threads = [threading.Thread(target=run, args=(ask,)) for ask in (ask_gradient, ask_choice)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers)


def test_two_threads_do_not_overspend():
    curator = opened()
    assert raced(curator) == 1
    assert budget_left(curator) >= 0


def test_without_the_lock_they_would():
    """The negative control: the race is real."""
    curator = opened()
    curator._session.lock = nullcontext()
    assert raced(curator) == 2


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_a_filter_is_not_doubled(duplicate):
    curator = opened()
    try:
        other = duplicate(curator)
    except (TypeError, pickle.PicklingError):
        return
    left = float(budget_left(curator))
    ask_gradient(other, 0.7 * left)  # a shallow copy shares the session, and with it the filter
    with pytest.raises(BudgetExceeded):
        ask_gradient(curator, 0.7 * left)
