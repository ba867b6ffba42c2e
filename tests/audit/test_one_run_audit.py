"""``audit.one_run``: the bound of Steinke, Nasr and Jagielski (2023), derived again, and on the real curator."""

import math

import mpmath
import numpy as np
import pytest

from discreet import audit
from discreet.audit.guessing import chance_of, least_epsilon
from discreet.budget import Neighbors
from discreet.curator import session
from tests.audit.laws import most_exceptions
from tests.covering import covering

RELATIONS = list(map(str, Neighbors))


def derived(right, guessed, canaries, epsilon, delta):
    """Theorem 5.2 term by term, in 40 digits: f(v) + 2 m delta max_i (f(v - i) - f(v)) / i, f the upper tail."""
    with mpmath.workdps(40):
        rate = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        terms = [mpmath.binomial(guessed, k) * rate**k * (1 - rate) ** (guessed - k) for k in range(guessed + 1)]

        def tail(least):
            return mpmath.fsum(terms[max(least, 0) :])

        steepest = max((tail(right - i) - tail(right)) / i for i in range(1, canaries + 1))
        return float(tail(right) + 2 * canaries * mpmath.mpf(delta) * steepest)


@covering(
    ("epsilon", [0.0, 0.7, 5.0]), ("delta", [0.0, 1e-6, 1e-2]), (("guessed", "canaries"), [(1, 1), (10, 30), (60, 100)])
)
def test_the_chance_is_that_of_the_theorem(guessed, canaries, delta, epsilon):
    for right in {0, 1, guessed // 2, guessed - 1, guessed}:
        expected = derived(right, guessed, canaries, epsilon, delta)
        assert chance_of(right, guessed, canaries, epsilon, delta) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("delta", [0.0, 2e-3])
def test_randomized_response_guesses_no_better(delta):
    """Each coin answered truly at e^epsilon / (1 + e^epsilon), or given away with a chance of delta."""
    rng, m, epsilon, draws = np.random.default_rng(3), 50, 1.0, 200_000
    rate = delta + (1 - delta) / (1 + math.exp(-epsilon))
    right = rng.binomial(m, rate, draws)
    for v in range(20, m + 1):
        seen, allowed = (right >= v).mean(), chance_of(v, m, m, epsilon, delta)
        assert seen <= allowed + 6 * math.sqrt(max(allowed, 1e-5) / draws)
        if delta == 0:
            assert seen >= allowed - 6 * math.sqrt(max(allowed, 1e-5) / draws)


def test_the_bound_is_refuted_and_a_little_more_is_not():
    for right in (120, 150, 199):
        bound = least_epsilon(right, 200, 1000, 1e-6, 0.99)
        assert chance_of(right, 200, 1000, bound, 1e-6) <= 0.01
        assert chance_of(right, 200, 1000, bound + 1e-6, 1e-6) > 0.01


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
def test_honest_releases_are_refuted_no_more_often(relation):
    repetitions, confidence = 12, 0.8
    found = [
        audit.one_run(4.0, 1e-6, neighbors=relation, canaries=100, confidence=confidence) for _ in range(repetitions)
    ]
    assert sum(one.refuted for one in found) <= most_exceptions(repetitions, 1 - confidence)
    assert max(one.bound for one in found) > 0.2
    assert all(one.settings["guessed"] == 20 for one in found)


@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_fifth_of_the_noise_is_refuted_by_one_release(relation, monkeypatch):
    """The 400 most extreme of 2000 are right in 92 %, and 316 right ones would do: nine deviations away."""
    honest = session.unit_for
    audit.one_run(canaries=10, neighbors=relation)  # the curator's own tests have run
    monkeypatch.setattr(session, "unit_for", lambda z, *more: honest(z / 5, *more))
    found = audit.one_run(1.0, 1e-6, neighbors=relation, canaries=2000)
    assert least_epsilon(322, 400, 2000, 1e-6, 0.99) > 1.0
    assert found.refuted
    assert found.runs == 1
