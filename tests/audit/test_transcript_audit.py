"""``audit.transcript``: the law of its score on honest fits, and what it refutes in the code with a bug planted."""

import numpy as np
import pytest
from scipy import stats

from discreet import Neighbors, audit
from discreet.audit.guessing import neighbors_of, solver_cases
from discreet.curator import noise, session
from tests.audit.laws import NEVER, accuracy_of, most_exceptions, mu_of, power
from tests.covering import covering

NAMED = {subject.name: subject for subject in solver_cases()}
EPSILON, DELTA = 8.0, 1e-5
MU = mu_of(EPSILON, DELTA)
REPLACE = Neighbors.REPLACE_ONE


@pytest.fixture(autouse=True, scope="module")
def _self_tested():
    """The curator's own tests have run: what is planted below must be found by the audit alone."""
    for name in ("gd", "recipe", "cd"):
        NAMED[name].fit(EPSILON, DELTA, REPLACE)(*neighbors_of(REPLACE)[0])
    return


def audited(subject, relation=REPLACE, *, runs, confidence=0.99, epsilon=EPSILON):
    fit = (NAMED[subject] if isinstance(subject, str) else subject).fit(epsilon, DELTA, relation)
    return audit.transcript(fit, *neighbors_of(relation), runs=runs, confidence=confidence)


@pytest.fixture
def noise_of(monkeypatch):
    """Let the noise be this share of what the claim asks for."""

    def plant(share):
        honest = session.unit_for
        monkeypatch.setattr(session, "unit_for", lambda z, *more: honest(share * z, *more))

    return plant


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "relation"), [("gd", "replace_one"), ("cd", "zero_out"), ("recipe", "zero_out"), ("output", "replace_one")]
)
def test_the_score_has_the_law_of_gaussian_dp(name, relation):
    """N(mu^2 / 2, mu^2) where the canary contributes the whole sensitivity to every answer, and less elsewhere."""
    runs = 100
    found = audited(name, Neighbors(relation), runs=runs, confidence=1 - NEVER)
    assert found.claimed == pytest.approx(EPSILON)
    scores = np.concatenate([found.sides.inside, -np.array(found.sides.without)])
    mean = (scores.mean() - MU * MU / 2) / (MU / np.sqrt(len(scores)))
    spread = (len(scores) - 1) * scores.var(ddof=1) / MU**2
    law, reach = stats.chi2(len(scores) - 1), stats.norm.isf(NEVER / 2)
    assert mean < reach
    assert spread < law.isf(NEVER / 2)
    if name in ("gd", "cd"):
        assert mean > -reach
        assert spread > law.ppf(NEVER / 2)
    assert not found.refuted


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["gd", "cd"])
def test_honest_fits_are_refuted_no_more_often(name):
    repetitions, confidence = 20, 0.8
    refuted = sum(audited(name, runs=8, confidence=confidence).refuted for _ in range(repetitions))
    assert refuted <= most_exceptions(repetitions, 1 - confidence)


def test_equal_data_sets_tell_nothing():
    """Every score is 0: half of the guesses are right."""
    data, _ = neighbors_of(REPLACE)
    for runs in (1, 7, 20):
        found = audit.transcript(NAMED["gd"].fit(EPSILON, DELTA, REPLACE), data, data, runs=runs)
        assert found.bound == 0.0
        assert set(found.sides.inside) == {0.0}


@pytest.mark.few(1)
@pytest.mark.statistical
@covering(("planted", ["in the lattice", "in the sampler"]), ("name", ["gd", "cd"]))
def test_half_the_noise_is_refuted(name, planted, noise_of, monkeypatch):
    """Announced or not: at twice the mu, 110 runs a side are enough."""
    assert power(MU, accuracy_of(2 * MU), 220, 0.99) > 1 - NEVER
    if planted == "in the lattice":
        noise_of(0.5)
    else:
        honest = noise.rounded_gaussian
        monkeypatch.setattr(noise, "rounded_gaussian", lambda count, m, entropy: honest(count, m, entropy) // 2)
    assert audited(name, runs=110).refuted


@pytest.mark.few(1)
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "runs"), [("gcd", 30), ("agd", 20)])
def test_mixtures_with_a_hundredth_of_the_noise_are_refuted(name, runs, noise_of):
    """By Pinsker's inequality: every guess is right, the distance is near 1, and rho near 2."""
    noise_of(0.01)
    assert audited(name, runs=runs, epsilon=2.0).refuted
