"""What a plan prices is what the curator does: no discount for a sample that is not drawn, no sum sold as a choice."""

from itertools import product

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.plan import MECHANISMS, Perturbation, Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.errors import PlanViolation, Unsupported
from discreet.losses import Squared
from tests.registry import NO_SUMS, QUERIES, RELATIONS, WIDTH
from tests.replaying import window

ANSWERED = {
    "select_": ("exponential", "permute_and_flip", "noisy_max"),
    "sample_": ("additive", "exponential"),
    "perturb_": ("objective",),
}
"""How queries are answered that are no sums under noise of their own."""


def opened(release, budget=None):
    data = PrivateData(np.zeros((4, 2)), np.zeros(4), Bounds(1.0, target=(-1, 1)))
    return data.open(price_plan(Plan([release]), budget or Budget(1.0, 1e-6, "add_remove")), Squared())


@pytest.mark.parametrize("query", [*QUERIES, *NO_SUMS, "perturb_objective"])
def test_a_release_is_priced_as_it_is_answered(query):
    """A choice of bounded range costs a quarter of a Gaussian sum at the same multiplier, a sample less than all."""
    answered = next((some for start, some in ANSWERED.items() if query.startswith(start)), ("additive", "laplace"))
    given = {mechanism: Perturbation(1.0) if mechanism == "objective" else None for mechanism in MECHANISMS}
    for mechanism in set(MECHANISMS) - set(answered):
        with pytest.raises((PlanViolation, Unsupported)):
            opened(Release(query, 1, mechanism=mechanism, perturbation=given[mechanism]))
    if query not in ("noisy_gradient", "noisy_gradient_change"):
        with pytest.raises((PlanViolation, Unsupported), match="sampl"):
            opened(Release(query, 1, 0.25, mechanism=answered[0], perturbation=given[answered[0]]))


def test_a_vector_is_not_priced_as_a_scalar_laplace_answer():
    with pytest.raises(PlanViolation, match="dimension"):
        opened(Release("noisy_gradient", 1, mechanism="laplace", dimension=1))
    opened(Release("noisy_gradient", 1, mechanism="laplace"))
    opened(Release("noisy_gradient", 1, dimension=1), Budget(1.0, 0.0, "zero_out"))


def test_a_sampled_gradient_and_plain_plans_are_answered():
    opened(Release("noisy_gradient", 1, sampling_probability=0.25))
    opened(Release("noisy_count", 1))
    opened(Release("select_coordinate", 1, mechanism="permute_and_flip"))


@pytest.mark.parametrize("smoothness", [0.0, -1.0, 1e-200, np.inf, np.nan])
def test_a_selection_refuses_a_smoothness_it_cannot_scale(smoothness):
    curator = opened(Release("select_coordinate", 1, mechanism="exponential"))
    with pytest.raises(PlanViolation, match="smoothness"):
        curator.select_coordinate(np.zeros(3), clips=np.ones(3), smoothness=np.array([1.0, smoothness, 1.0]), n=4)


# --------------------------------------------------------------------------- the norm of the noise is that of the bound

NOISES = {"gaussian": ("additive", 1e-6), "laplace": ("laplace", 1e-6), "pure": ("additive", 0.0)}


def moved(query, noise, relation):
    """How far a record moves the sum, in the norm of the noise that was drawn, over what the price knows of."""
    (mechanism, delta), at = NOISES[noise], []
    other = {"replace_one": -1.0, "zero_out": np.nan}.get(relation)
    tables = [np.ones((4, WIDTH)), np.ones((3 if other is None else 4, WIDTH))]
    if other is not None:
        tables[1][0] = other
    for X in tables:
        data = PrivateData(X, np.ones(len(X)), Bounds(1.0, target=(-1, 1)), fit_intercept=False)
        priced = price_plan(Plan([Release(query, 1, mechanism=mechanism)]), Budget(1.0, delta, relation))
        with window() as seen:
            QUERIES[query](data.open(priced, Squared()), np.zeros(WIDTH))
        at.append(seen[0])
    apart = (at[0].exact - at[1].exact).astype(float).ravel()
    size = np.abs(apart).sum() if at[0].norm == "l1" else np.linalg.norm(apart)
    return size / (float(at[0].factor) * at[0].unit.bound), at[0].norm


def combinations():
    """Every query with every noise and relation; in ``make test`` a query has the relations in turn, one per noise."""
    for (at, query), (turn, noise), (place, relation) in product(*map(enumerate, (QUERIES, NOISES, RELATIONS))):
        marks = () if (at + turn + place) % len(RELATIONS) == 0 else pytest.mark.thorough
        yield pytest.param(query, relation, noise, marks=marks, id=f"{query}-{relation}-{noise}")


@pytest.mark.whole
@pytest.mark.parametrize(("query", "relation", "noise"), [*combinations()])
def test_a_sum_is_bounded_in_the_norm_that_its_noise_is_priced_by(query, relation, noise):
    """Rows with all entries alike: of all rows of one L2 norm they have the largest L1 norm."""
    try:
        ratio, norm = moved(query, noise, relation)
    except (PlanViolation, Unsupported):  # what is not answered releases nothing
        private_n = relation == "add_remove"
        assert noise != "gaussian" or (query, private_n) in {("noisy_count", False), ("noisy_descent", True)}
        return
    assert ratio <= 1 + 1e-12
    assert norm == ("l2" if noise == "gaussian" else "l1") or query in ("noisy_minimizer", "noisy_descent")
