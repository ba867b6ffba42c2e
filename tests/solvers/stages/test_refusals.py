"""A composition that cannot be run is refused before anything is charged: what is opened is answered."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from discreet import Bounds, DPLinearRegression, DPLogisticRegression
from discreet.curator import PrivateData
from discreet.default import Recipe
from discreet.errors import Unsupported
from discreet.solvers import (
    AdaptiveDescent,
    CoordinateDescent,
    ExponentialMechanism,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Preconditioned,
    Sandwich,
    StochasticGradientDescent,
    VarianceReducedDescent,
)
from tests.covering import covering

N = 400
INNER = {
    "gd": GradientDescent(n_steps=2),
    "sgd": StochasticGradientDescent(n_steps=2, sampling_probability=1.0),
    "svrg": VarianceReducedDescent(n_epochs=2, n_inner=2, sampling_probability=1.0),
    "agd": AdaptiveDescent(n_rounds=3),
    "cd": CoordinateDescent(n_inner=3),
    "gcd": GreedyCoordinateDescent(n_steps=2),
    "recipe": Recipe(n_steps=2, n_travel=2, n_newton=2),
    "recipe, declared": Recipe("declared", n_steps=2, n_newton=1),
    "objective": ObjectivePerturbation(regularization=0.2, clip=0.5, row_norm=1.0),
    "output": OutputPerturbation(regularization=0.2, clip=0.5, row_norm=1.0),
    "output, steps": OutputPerturbation(n_steps=3, clip=0.5, row_norm=1.0),
    "exponential": ExponentialMechanism(regularization=0.2, radius=3.0),
}
SAMPLED = {
    "sgd": StochasticGradientDescent(n_steps=2, sampling_probability=0.5),
    "svrg": VarianceReducedDescent(n_epochs=2, n_inner=2, sampling_probability=0.5),
}
"""Their prices take seconds each, so not every kind of table has them."""
AROUND = {
    "alone": lambda solver: solver,
    "whitened": partial(Preconditioned, coordinates="full"),
    "standardized": partial(Preconditioned, coordinates="diagonal"),
    "declared": partial(Preconditioned, coordinates="declared"),
    "sandwich": Sandwich,
    "sandwich, whitened": lambda solver: Sandwich(Preconditioned(solver)),
    "sandwich, declared": lambda solver: Sandwich(Preconditioned(solver, "declared")),
    "declared, standardized": lambda solver: Preconditioned(Preconditioned(solver, "diagonal"), "declared"),
    "standardized, whitened": lambda solver: Preconditioned(Preconditioned(solver), "diagonal"),
}
MODELS = {
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}),
    "softmax": (DPLogisticRegression, {"classes": (0, 1, 2)}),
    "linear": (DPLinearRegression, {"target": (-2.0, 2.0)}),
}
KINDS = {
    "plain": {},
    "private n": {"neighbors": "add_remove"},
    "persons": {},
    "pure": {"delta": 0.0},
    "sparse": {},
    "no intercept": {"fit_intercept": False},
    "start": {"start": (np.zeros(3), 0.0)},
    "moments": {"public_moments": (np.zeros(3), np.eye(3) / 3)},
}


def table(model):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (N, 3))
    score = X @ [1.0, -1.0, 0.5] + rng.normal(0, 0.3, N)
    return X, np.clip(score, -2, 2) if model == "linear" else np.digitize(score, [0.0, 0.5][: 1 + (model == "softmax")])


def answered(monkeypatch, solver, model, kind):
    """Fit, and refuse a refusal after the records were opened."""
    opened, opening = [], PrivateData.open

    def spy(self, *args, **words):
        opened.append(opening(self, *args, **words))
        return opened[-1]

    monkeypatch.setattr(PrivateData, "open", spy)
    (made, facts), (X, y) = MODELS[model], table(model)
    X = sparse.csr_array(X) if kind == "sparse" else X
    try:
        settings = {"delta": 1e-6, "bounds": Bounds(1.0, **facts), "solver": solver()}
        fitted = made(300.0, **settings | KINDS[kind]).fit(
            X, y, groups=np.arange(N) // 2 if kind == "persons" else None
        )
    except Unsupported:
        assert not opened, "refused after the charge"
        return
    assert np.isfinite(fitted.coef_).all()


def a_third():
    """Every solver in every stage, with a kind of table and a model in turn."""
    names, kinds = list(MODELS), list(KINDS)
    for i, j in product(range(len(INNER)), range(len(AROUND))):
        inner, around, kind = list(INNER)[i], list(AROUND)[j], kinds[(i + j) % len(kinds)]
        model = names[(i + j) % 3]
        yield inner, around, "logistic" if (model, kind) == ("softmax", "start") else model, kind


@pytest.mark.few(12)
@pytest.mark.parametrize(("inner", "around", "model", "kind"), list(a_third()))
def test_what_is_opened_is_answered(monkeypatch, inner, around, model, kind):
    answered(monkeypatch, lambda: AROUND[around](INNER[inner]), model, kind)


@covering((("inner", "model"), [("sgd", "logistic"), ("svrg", "linear")]), ("around", AROUND))
def test_with_sampled_steps_too(monkeypatch, inner, model, around):
    answered(monkeypatch, lambda: AROUND[around](SAMPLED[inner]), model, "plain")
