"""What a plan prices is what the curator does: no discount for a sample that is not drawn, no sum sold as a choice."""

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData
from discreet.errors import PlanViolation
from discreet.losses import Squared

UNSAMPLED = (
    "noisy_count",
    "noisy_coordinate_gradient",
    "noisy_share_within",
    "noisy_squared_norms",
    "select_coordinate",
)


def opened(release, budget=None):
    data = PrivateData(np.zeros((4, 2)), np.zeros(4), Bounds(1.0, target=(-1, 1)))
    return data.open(price_plan(Plan([release]), budget or Budget(1.0, 1e-6, "add_remove")), Squared())


@pytest.mark.parametrize("query", UNSAMPLED)
def test_a_query_that_does_not_sample_is_not_priced_as_sampled(query):
    mechanism = "exponential" if query.startswith("select_") else "additive"
    with pytest.raises(PlanViolation, match="sampling probability"):
        opened(Release(query, 1, sampling_probability=0.25, mechanism=mechanism))


@pytest.mark.parametrize("query", ["noisy_gradient", *UNSAMPLED[:-1]])
@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip", "noisy_max"])
def test_a_sum_is_not_priced_as_a_choice(query, mechanism):
    """A choice of bounded range costs a quarter of a Gaussian sum at the same multiplier."""
    with pytest.raises(PlanViolation, match="is answered by"):
        opened(Release(query, 1, mechanism=mechanism))


@pytest.mark.parametrize("mechanism", ["additive", "laplace"])
def test_a_choice_is_not_priced_as_a_sum(mechanism):
    with pytest.raises(PlanViolation, match="is answered by"):
        opened(Release("select_coordinate", 1, mechanism=mechanism))


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
