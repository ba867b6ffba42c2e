"""A curator opens only where the kernels that its plan runs give their known answers, and asks for no others."""

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting.plan import Plan, Release
from discreet.accounting.priced_plan import price_plan
from discreet.curator import PrivateData, known_answers
from discreet.curator.known_answers import cipher, gradients, planned
from discreet.curator.lattice.entropy import chacha20_words
from discreet.curator.queries.gradients import GradientQuery
from discreet.errors import StaleKernels
from discreet.losses import Logistic

GAUSSIAN, PURE = Budget(1.0, 1e-6), Budget(1.0, 0.0)
FULL, SAMPLED = Release("noisy_gradient", 2, clip=1.0), Release("noisy_gradient", 2, 0.25, clip=1.0)


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """As in a process that has checked nothing yet."""
    monkeypatch.setattr(known_answers, "_passed", set())


def opened(release, budget):
    data = PrivateData(np.ones((5, 2)), [0, 1, 0, 1, 1], Bounds(1.0, classes=(0, 1)))
    return data.open(price_plan(Plan([release]), budget), Logistic())


def stale(monkeypatch, owner, name):
    """Make a function give an answer that is off by one."""
    honest = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args: honest(*args) + 1)


@pytest.mark.parametrize(
    ("sampler", "broken", "other"),
    [("rounded_gaussian", GAUSSIAN, PURE), ("discrete_laplace", PURE, GAUSSIAN)],
    ids=["gaussian", "laplace"],
)
def test_a_stale_sampler_stops_the_budgets_that_use_it(monkeypatch, sampler, broken, other):
    stale(monkeypatch, planned, sampler)
    with pytest.raises(StaleKernels, match="sampler fails its known answers"):
        opened(FULL, broken)
    opened(FULL, other)


@pytest.mark.parametrize(
    ("kernel", "broken", "other"),
    [("_over_rows", SAMPLED, FULL), ("_over_tiles", FULL, None)],
    ids=["sampled", "full"],
)
def test_a_stale_sum_stops_the_plans_that_use_it(monkeypatch, kernel, broken, other):
    stale(monkeypatch, GradientQuery, kernel)
    with pytest.raises(StaleKernels, match="disagrees with its source"):
        opened(broken, GAUSSIAN)
    if other is not None:
        opened(other, GAUSSIAN)


@pytest.mark.parametrize("mechanism", ["laplace", "noisy_max", "exponential"])
def test_what_is_not_additive_checks_the_laplace_sampler_too(monkeypatch, mechanism):
    stale(monkeypatch, planned, "discrete_laplace")
    plan = Plan([FULL, Release("select_coordinate", 1, mechanism=mechanism)])
    with pytest.raises(StaleKernels, match="Laplace"):
        planned.check_planned(plan, Logistic(), pure=False, sparse=False)


@pytest.mark.parametrize("sampled", [False, True])
def test_what_was_checked_is_not_checked_again(monkeypatch, sampled):
    gradients.check_kernels(Logistic(), sparse=False, sampled=sampled)
    stale(monkeypatch, GradientQuery, "_over_rows" if sampled else "_over_tiles")
    gradients.check_kernels(Logistic(), sparse=False, sampled=sampled)


def test_the_kernels_as_they_are_pass():
    opened(SAMPLED, GAUSSIAN)
    opened(FULL, PURE)


def stale_cipher(key, count, **words):
    """The published stream from its second block on."""
    return chacha20_words(key, count, **{**words, "first": words.get("first", 0) + 1})


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE])
def test_a_stale_cipher_stops_every_plan(monkeypatch, budget):
    monkeypatch.setattr(cipher, "chacha20_words", stale_cipher)
    with pytest.raises(StaleKernels, match="cipher fails its known answers"):
        opened(FULL, budget)


def test_a_stale_sampler_of_records_stops_plans_that_sample(monkeypatch):
    stale(monkeypatch, planned, "poisson_sample")
    with pytest.raises(StaleKernels, match="sampler of records fails its known answers"):
        opened(SAMPLED, GAUSSIAN)
    opened(FULL, GAUSSIAN)
