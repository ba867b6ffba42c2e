"""What a recipe plans is what it asks and what it pays for: shares, events, epsilon, the order of its noises."""

from itertools import groupby

import numpy as np
import pytest

from discreet import Budget
from discreet.curator import Curator
from discreet.default import Recipe, Shares
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
from discreet.penalties import L1, L2, Box, GroupL2, NoPenalty
from tests.covering import covering
from tests.default.cases import RECIPES, run
from tests.solvers.whitened.cases import RELATIONS, answers_left
from tests.solvers.whitened.test_price import problem

LOSSES = {
    "logistic": Logistic(),
    "softmax": Softmax(3),
    "hinge": SmoothedHinge(0.5),
    "squared": Squared(),
    "huber": Huber(0.3),
    "poisson": Poisson(2.0),
}
EACH = pytest.mark.parametrize("kind", RECIPES)


@covering(("intercept", [True, False]), ("relation", RELATIONS), ("loss", LOSSES), ("kind", RECIPES))
def test_every_planned_answer_is_asked_and_none_else(kind, loss, relation, intercept):
    curator, plan, seen, solution = run(RECIPES[kind], LOSSES[loss], relation, intercept=intercept)
    assert set(answers_left(curator).values()) == {0}
    planned = sorted(release.query for release in plan.releases for _ in range(release.count))
    assert sorted(measurement.query for measurement in seen) == planned
    assert np.isfinite(solution.coefficients).all()
    for release in plan.releases:
        with pytest.raises(PlanViolation, match="no \\(further\\)"):
            curator._session.spend(release.query, release.clip or 1.0)


REFUSED = {
    "sparse records": (Recipe(), Logistic(), NoPenalty(), "sparse", "gd"),
    "sparse records, declared": (Recipe("declared"), Squared(), NoPenalty(), "sparse", "gd"),
    "all of the budget": (Recipe(shares=Shares(moment=0.9)), Logistic(), NoPenalty(), "dense", "below 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_does_not_serve_is_refused_before_anything_is_released(case):
    solver, loss, penalty, stored, remedy = REFUSED[case]
    data = problem(loss, stored=stored)
    with pytest.raises(Unsupported, match=remedy):
        solver.plan(data.domain(Budget(1.0).neighbors, loss), loss, penalty)


@pytest.mark.parametrize("penalty", [NoPenalty(), L2(0.1), L1(0.1), Box(-1.0, 1.0), GroupL2(0.1, ((0, 1),))], ids=str)
@EACH
def test_penalties_do_not_change_the_price(kind, penalty):
    loss = Logistic()
    domain = problem(loss).domain(Budget(1.0).neighbors, loss)
    assert RECIPES[kind].plan(domain, loss, penalty) == RECIPES[kind].plan(domain, loss, NoPenalty())


@covering(("relation", RELATIONS), ("kind", RECIPES))
def test_a_plan_keeps_the_order_of_the_run(kind, relation):
    """As entries of one query are answered in the order of the plan, the run asks in that order too."""
    _, plan, seen, _ = run(RECIPES[kind], Logistic(), relation)
    asked = [query for query, _ in groupby(m.query for m in seen) if query != "noisy_count"]
    planned = [query for query, _ in groupby(r.query for r in plan.releases) if query != "noisy_count"]
    assert asked == planned


@pytest.mark.parametrize(
    ("kind", "loss", "recodings"),
    [
        ("clipped", Logistic(), 3),  # second moment, steps, calibration
        ("newton", Logistic(), 3),
        ("weighted", Logistic(), 4),  # and the bound on their Hessian
        ("clipped", Squared(), 3),
        ("newton", Squared(), 4),  # and rows that are not shrunk
        ("declared", Logistic(), 2),
    ],
)
def test_records_are_recoded_few_times_and_kept_at_most_twice(monkeypatch, kind, loss, recodings):
    """Where ranges hold 0, means, squares and the shares of two classes are asked of records as they are."""
    kept, recode = [], Curator.recode

    def spy(self, *args, once=False, **words):
        kept.append(not once)
        return recode(self, *args, once=once, **words)

    monkeypatch.setattr(Curator, "recode", spy)
    run(RECIPES[kind], loss)
    assert len(kept) == recodings
    assert sum(kept) <= 2
