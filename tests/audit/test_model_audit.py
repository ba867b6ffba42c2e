"""``audit.model``: anything that can be called, its bound on honest mechanisms, and on broken ones."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet import Bounds, DPLogisticRegression, audit
from discreet.accounting.events import Gaussian, Laplace, PureDP
from discreet.accounting.pricing import remembered_prices
from discreet.curator.lattice import noise
from discreet.curator.lattice.entropy import use_entropy
from discreet.solvers import ExponentialMechanism, GradientDescent
from tests.audit.laws import NEVER, Drawn, accuracy_of, most_exceptions, mu_of, power

ROWS = np.zeros((4, 1)), np.zeros(4)
OTHER = np.array([[1.0], [0], [0], [0]]), np.zeros(4)
EPSILON, DELTA = 1.0, 1e-5
MU = mu_of(EPSILON, DELTA)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def mean(rng, kind, scale, width=1):
    """The sum of a column in [0, 1], ``width`` times, with noise."""
    draw = {"normal": rng.normal, "laplace": rng.laplace}[kind]
    return lambda X, y: np.full(width, X.sum() / math.sqrt(width)) + draw(scale=scale, size=width)


def response(rng, epsilon):
    rate = 1 / (1 + math.exp(-epsilon))
    return lambda X, y: float((X.sum() > 0) == (rng.random() < rate))


HONEST = {
    "gaussian": (lambda rng: mean(rng, "normal", 1 / MU), DELTA, (Gaussian(1 / MU),)),
    "gaussian, no events": (lambda rng: mean(rng, "normal", 1 / MU), DELTA, None),
    "laplace": (lambda rng: mean(rng, "laplace", 1.0), 0.0, None),
    "randomized response": (lambda rng: response(rng, EPSILON), 0.0, None),
    "constant": (lambda rng: lambda X, y: 3.0, 0.0, None),
    "wide": (lambda rng: mean(rng, "normal", 1 / MU, 200), DELTA, (Gaussian(1 / MU),)),
}


@pytest.mark.few(2)
@pytest.mark.statistical
@pytest.mark.parametrize("name", HONEST)
def test_honest_functions_are_refuted_no_more_often_than_the_confidence_says(name, rng):
    make, delta, events = HONEST[name]
    repetitions = 20 if name == "wide" else 40
    fit, settings = make(rng), {"runs": 400, "confidence": 0.9, "events": events}
    found = [audit.model(fit, ROWS, OTHER, epsilon=EPSILON, delta=delta, **settings) for _ in range(repetitions)]
    assert sum(one.refuted for one in found) <= most_exceptions(repetitions, 0.1)
    assert {one.runs for one in found} == {200}


@pytest.mark.parametrize("event", [Laplace(1.0), PureDP(1.0)])
def test_honest_pure_releases_with_events(event, rng):
    fit = mean(rng, "laplace", 1.0) if isinstance(event, Laplace) else response(rng, 1.0)
    assert not audit.model(fit, ROWS, OTHER, epsilon=1.0, delta=1e-5, events=(event,), runs=4000).refuted


def test_a_pure_claim_with_events(rng):
    fit = mean(rng, "laplace", 1.0)
    assert not audit.model(fit, ROWS, OTHER, epsilon=1.0, events=(Laplace(1.0),), runs=400).refuted


@pytest.mark.thorough
def test_an_honest_choice_among_candidates():
    """A real fit with its own certificate: one choice of bounded range, priced as pure."""
    solver = ExponentialMechanism(candidates=[[-3.0], [3.0]], loss_bound=0.7)
    bounds = Bounds(1.0, classes=(0, 1))

    def fit(X, y, groups=None):
        settings = {"bounds": bounds, "solver": solver, "fit_intercept": False, "ledger": False}
        return DPLogisticRegression(1.0, 1e-5, penalty=None, alpha=0.0, **settings).fit(X, y)

    X, y = np.ones((1, 1)), np.array([1])
    events = fit(X, y).certificate_.events
    with use_entropy(Drawn(0)):
        found = audit.model(fit, (X, y), (X, 1 - y), epsilon=1.0, delta=1e-5, events=events, runs=600)
    assert not found.refuted


@pytest.mark.parametrize(
    ("fit", "delta", "events"),
    [
        (lambda rng: mean(rng, "normal", 0.5 / MU), DELTA, (Gaussian(1 / MU),)),
        (lambda rng: mean(rng, "normal", 0.2 / MU), DELTA, None),
        (lambda rng: mean(rng, "laplace", 0.2), 0.0, None),
        (lambda rng: response(rng, 3.0), 0.0, None),
        (lambda rng: lambda X, y: X.sum(), 0.0, None),  # no noise at all
        (lambda rng: lambda X, y: np.append(rng.normal(size=5), 1e-12 * X.sum()), 0.0, None),  # one cell without
        (lambda rng: lambda X, y: (1 + 9 * X.sum()) * rng.normal(), DELTA, None),  # another spread, the same mean
    ],
)
def test_broken_functions_are_refuted(fit, delta, events, rng):
    found = audit.model(fit(rng), ROWS, OTHER, epsilon=EPSILON, delta=delta, events=events, runs=4000, confidence=0.999)
    assert found.refuted
    assert found.verdict == "REFUTED"


@pytest.mark.statistical
def test_half_the_noise_is_refuted_beyond_doubt():
    """By the operating system's noise: the best threshold is known, learning it takes little away."""
    mu = mu_of(4.0, DELTA)
    assert power(mu, accuracy_of(2 * mu) - 0.02, 2000, 0.999) > 1 - NEVER
    rng = np.random.default_rng()
    fit, events = mean(rng, "normal", 0.5 / mu), (Gaussian(1 / mu),)
    assert audit.model(fit, ROWS, OTHER, epsilon=4.0, delta=DELTA, events=events, runs=2000, confidence=0.999).refuted


NOT_FINITE = {
    "always": (lambda rng: lambda X, y: np.nan, False),
    "on one side": (lambda rng: lambda X, y: np.nan if X.sum() else rng.normal(), True),
    "on the other": (lambda rng: lambda X, y: rng.normal() if X.sum() else -np.inf, True),
    "by chance": (lambda rng: lambda X, y: [rng.normal(), np.inf if rng.random() < 0.5 else 0.0], False),
    "mostly on one side": (
        lambda rng: lambda X, y: [rng.normal(), np.inf if rng.random() < (0.9 if X.sum() else 0.1) else 0.0],
        True,
    ),
    "nothing": (lambda rng: lambda X, y: [], False),
    "huge": (lambda rng: lambda X, y: 1e300 * rng.normal(), False),
    "huge on one side": (lambda rng: lambda X, y: [rng.normal(), 1e300 * X.sum()], True),
}


@pytest.mark.parametrize("name", NOT_FINITE)
def test_outputs_that_are_not_finite(name, rng):
    make, refuted = NOT_FINITE[name]
    found = audit.model(make(rng), ROWS, OTHER, epsilon=EPSILON, runs=400)
    assert found.refuted is refuted
    assert math.isfinite(found.bound)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning:numpy")
def test_the_largest_numbers(rng):
    fit = lambda X, y: [1e308 * rng.choice([-1.0, 1.0]), X.sum()]  # noqa: E731
    assert audit.model(fit, ROWS, OTHER, epsilon=EPSILON, runs=400).refuted


@pytest.mark.parametrize("width", [1, 200])
@pytest.mark.parametrize("runs", [2, 3, 10, 400])
def test_few_runs_and_wide_outputs(width, runs, rng):
    found = audit.model(mean(rng, "normal", 5.0, width), ROWS, OTHER, epsilon=EPSILON, delta=1e-5, runs=runs)
    assert not found.refuted
    assert len(found.sides.without) == len(found.sides.inside) == found.runs


@pytest.mark.parametrize("runs", [0, 1])
def test_too_few_runs(runs, rng):
    from discreet.errors import DiscreetError

    with pytest.raises(DiscreetError, match="runs"):
        audit.model(mean(rng, "normal", 1.0), ROWS, OTHER, epsilon=EPSILON, runs=runs)


def test_a_shape_that_tells(rng):
    """A model with a row of coefficients for each class that it saw."""
    fit = lambda X, y: rng.normal(size=1 + int(X.sum()))  # noqa: E731
    assert audit.model(fit, ROWS, OTHER, epsilon=EPSILON, runs=400).refuted


def test_an_exception_that_tells(rng):
    def fit(X, y):
        if X.sum():
            raise ValueError("this solver needs samples of at least 2 classes")
        return rng.normal()

    assert audit.model(fit, ROWS, OTHER, epsilon=EPSILON, runs=400).refuted


def noisy_table(rng):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)
    other = X.copy()
    other[0] = 100.0

    def fit(X, y, model):
        return model.fit(X + rng.normal(scale=0.3, size=X.shape), y)

    return fit, (X, y), (other, y)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["last step", "regressor", "pipeline"])
def test_models_of_scikit_learn(kind, rng):
    """Noise on the table and a mean that one record moves: nothing private about it."""
    fit, data, neighbor = noisy_table(rng)

    def run(X, y):
        if kind == "regressor":
            return fit(X, y, LinearRegression())
        whole = fit(X, y, make_pipeline(StandardScaler(), LogisticRegression()))
        return whole if kind == "pipeline" else whole[-1]

    assert audit.model(run, data, neighbor, epsilon=1.0, runs=100).refuted


def small_fit(X, y, groups=None):
    solver = GradientDescent(n_steps=2, clip=0.25, step_size=1e-3)
    settings = {"bounds": Bounds(1.0, classes=(0, 1)), "solver": solver, "fit_intercept": False, "ledger": False}
    return DPLogisticRegression(1.0, 1e-5, penalty=None, alpha=0.0, **settings).fit(X, y)


def test_reused_noise_is_refuted(monkeypatch):
    """Every fit of a data set then ends at the same place: no two places are alike."""
    X, y = np.ones((2, 1)), np.array([1, 1])
    small_fit(X, y)
    memory = {}
    honest = noise.rounded_gaussian
    monkeypatch.setattr(
        noise, "rounded_gaussian", lambda count, m, entropy: memory.setdefault((count, m), honest(count, m, entropy))
    )
    with remembered_prices():
        assert audit.model(small_fit, (X, y), (X, np.array([0, 1])), epsilon=1.0, delta=1e-5, runs=100).refuted


def test_what_a_result_says(rng):
    seen = []
    found = audit.model(
        mean(rng, "normal", 1.0),
        ROWS,
        OTHER,
        epsilon=50.0,
        delta=1e-5,
        neighbors="zero_out",
        runs=20,
        subject="a mean",
        named="the survey",
        progress=lambda done, of: seen.append((done, of)),
    )
    assert seen == [(index + 1, 20) for index in range(20)]
    assert (found.level, found.subject, found.neighbors, found.data) == ("model", "a mean", "zero_out", "the survey")
    assert '"verdict": "NOT REFUTED"' in found.to_json()
    assert "no proof" in str(found)
