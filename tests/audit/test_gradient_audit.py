"""``audit.gradient``: its bound on honest releases, and what it refutes in the real code with a bug planted."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from discreet import audit
from discreet.accounting import gaussian
from discreet.audit import guessing
from discreet.budget import Neighbors
from tests.audit.laws import NEVER, accuracy_of, most_exceptions, mu_of

EPSILON, DELTA = 1.0, 1e-6
MU = mu_of(EPSILON, DELTA)
RELATIONS = list(map(str, Neighbors))


@pytest.fixture(autouse=True, scope="module")
def _self_tested():
    """The curator's own self-test has run: what is planted below must be found by the audit alone."""
    for relation in RELATIONS:
        audit.gradient(neighbors=relation, runs=20)
    return


def stand_in(rng):
    """Releases of the announced law, drawn by numpy: many audits at once."""

    def releases(side, count, mechanism, single):
        signs = np.where(side.y[-guessing.CANARIES :] == 1, -1.0, 1.0) * np.isfinite(side.X[-1, -1])
        exact = guessing.CLIP * (signs if len(side.X) >= guessing.CANARIES else np.zeros(guessing.CANARIES))
        sampled = rng.random((count, guessing.CANARIES)) < (float(guessing.SAMPLING) if mechanism == "sampled" else 1.0)
        scale = guessing.CLIP * single.budget.neighbors.sum_factor * single.noise_multiplier
        draw = rng.laplace if mechanism == "laplace" else rng.normal
        return exact * sampled + draw(scale=scale, size=(count, guessing.CANARIES))

    return releases


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_is_refuted_no_more_often_than_the_confidence_says(relation, monkeypatch):
    """200 audits at the true epsilon, of 10^5 runs a side."""
    repetitions, confidence = 200 if relation == "replace_one" else 50, 0.9
    monkeypatch.setattr(guessing, "_releases", stand_in(np.random.default_rng(1)))
    found = [audit.gradient(neighbors=relation, confidence=confidence) for _ in range(repetitions)]
    refuted = sum(one.refuted for one in found)
    assert refuted <= most_exceptions(repetitions, 1 - confidence)
    assert np.median([one.bound for one in found]) > 0.9
    assert refuted == sum(one.bound > EPSILON for one in found)


@pytest.mark.statistical
@pytest.mark.parametrize(("mechanism", "runs"), [("laplace", 20_000), ("sampled", 2_000)])
def test_other_mechanisms_are_refuted_no_more_often(mechanism, runs, monkeypatch):
    """Samples by their accuracy: its bound is compared with the distance itself, which takes no time."""
    repetitions, confidence = 200, 0.9
    monkeypatch.setattr(guessing, "_releases", stand_in(np.random.default_rng(2)))
    if mechanism == "sampled":
        monkeypatch.setattr(guessing, "accuracy_epsilon", lambda accuracy, events, delta, relation: accuracy)
    found = [audit.gradient(mechanism=mechanism, runs=runs, confidence=confidence) for _ in range(repetitions)]
    if mechanism == "sampled":
        z, q = found[0].settings["noise_multiplier"], float(guessing.SAMPLING)
        most = (1 + q * (2 * accuracy_of(1 / z) - 1)) / 2
        refuted = sum(one.bound > most for one in found)
        assert refuted > 0  # the guess is the best there is: its bound is tight
    else:
        refuted = sum(one.refuted for one in found)
    assert refuted <= most_exceptions(repetitions, 1 - confidence)


@pytest.mark.statistical
def test_the_bound_comes_near_the_claim():
    """Right guesses are binomial, so that the bound's own law is known: above 0.9 mostly, and always near."""
    runs, confidence = 100_000, 0.99
    found = audit.gradient(EPSILON, DELTA, runs=runs, confidence=confidence)

    def bound(right):
        accuracy = guessing.least_accuracy(int(right), 2 * runs, confidence)
        return gaussian.epsilon_of(2 * float(norm.ppf(accuracy)), DELTA)

    law = binom(2 * runs, accuracy_of(MU))
    assert bound(law.ppf(NEVER / 2)) <= found.bound <= bound(law.isf(NEVER / 2))
    assert bound(law.ppf(0.1)) > 0.90
    assert found.runs == runs
    assert found.data == "synthetic"
