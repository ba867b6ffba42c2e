"""The filter alone: whatever is asked of it, and in whatever order, the sum stays within the total, exactly."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.plan import Charge, Filter
from discreet.errors import BudgetExceeded, PlanViolation
from tests.covering import covering

UNIT = Fraction(1, 2**120)

totals = st.floats(min_value=5e-324, max_value=1e6, allow_subnormal=True)
absolute = st.floats(min_value=5e-324, max_value=1.7e308, allow_subnormal=True)
relative = st.sampled_from(["left", "above", "below", "half", "third", "tiny", "denormal", "double"])
requests = st.lists(st.one_of(absolute, relative), max_size=40)


def amount(request, left):
    """An adversary's rho: it knows what is left."""
    if isinstance(request, float):
        return request
    now = float(left)
    return {
        "left": now,
        "above": math.nextafter(now, math.inf),
        "below": math.nextafter(now, 0.0),
        "half": now / 2,
        "third": now / 3,
        "tiny": 1e-30,
        "denormal": 5e-324,
        "double": 2 * now,
    }[request]


@given(total=totals, asked=requests)
def test_no_sequence_passes_the_total(total, asked):
    budget = Filter(total)
    assert budget.total <= Fraction(total) < budget.total + UNIT
    expected, trace = Fraction(0), []
    for request in asked:
        rho = amount(request, budget.left)
        if rho == 0:
            continue
        cost = math.ceil(Fraction(rho) / UNIT) * UNIT
        fits = expected + cost <= budget.total
        assert budget.affords(rho) is fits
        trace.append(Charge("q", rho, 0, fits))
        if fits:
            budget.charge("q", rho)
            expected += cost
        else:
            with pytest.raises(BudgetExceeded, match="nothing was asked"):
                budget.charge("q", rho)
        assert budget.spent == expected
        assert budget.spent + budget.left == budget.total
        assert budget.left >= 0
    assert list(budget.trace) == trace
    assert sum(Fraction(c.rho) for c in budget.trace if c.answered) <= budget.spent


@given(total=st.floats(1e-20, 100.0), parts=st.integers(1, 60))
def test_equal_parts_of_the_total_never_add_up_to_more(total, parts):
    budget, answered = Filter(total), 0
    for _ in range(parts + 2):
        if budget.affords(total / parts):
            budget.charge("q", total / parts)
            answered += 1
    assert parts - 1 <= answered <= parts
    assert budget.spent <= Fraction(total)


def test_all_of_it_can_be_spent_and_then_nothing():
    budget = Filter(0.25)
    budget.charge("q", 0.25)
    assert budget.left == 0
    for rho in (5e-324, 1e-300, 1e-30, 0.25):
        with pytest.raises(BudgetExceeded):
            budget.charge("q", rho)
    assert budget.spent == Fraction(1, 4)


def test_many_tiny_charges_are_each_rounded_up():
    budget = Filter(1.0)
    for _ in range(1000):
        budget.charge("q", 5e-324)
    assert budget.spent == 1000 * UNIT


@covering(("rho", [0.0, -0.0, -1e-300, -1.0, math.nan, math.inf, -math.inf]), ("total", [1.0, math.inf]))
def test_a_rho_that_is_none_is_refused_and_leaves_no_trace(rho, total):
    budget = Filter(total)
    with pytest.raises(PlanViolation, match="positive, finite rho"):
        budget.charge("q", rho)
    assert budget.trace == ()
    assert budget.spent == 0
