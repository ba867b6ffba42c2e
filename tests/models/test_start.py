"""``start``: a public point that steps start from, in the user's own units."""

import numpy as np
import pytest

from discreet import DPLogisticRegression
from discreet.curator import Recoding
from discreet.default import Recipe, Shares
from discreet.solvers import (
    AdaptiveDescent,
    CoordinateDescent,
    GradientDescent,
    GreedyCoordinateDescent,
    Preconditioned,
    StochasticGradientDescent,
    VarianceReducedDescent,
)
from tests.covering import covering

RANGES = [(-2.0, 2.0), (10.0, 14.0), (-0.5, 0.5)]
SOLVERS = [
    GradientDescent(n_steps=3),
    StochasticGradientDescent(n_steps=3, sampling_probability=1.0),
    VarianceReducedDescent(n_epochs=2, n_inner=2),
    CoordinateDescent(n_outer=1, n_inner=6),
    GreedyCoordinateDescent(n_steps=3),
    Preconditioned(GradientDescent(n_steps=3), "diagonal"),
    Preconditioned(GradientDescent(n_steps=3), floor=1e-9),
    Recipe(n_steps=3, shares=Shares(target=0.0)),  # clips always; with shares of classes it starts at their constant
    Preconditioned(GradientDescent(n_steps=3), "declared"),  # shrinks rows always: its optimum is another one
]


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    low, high = np.array(RANGES).T
    X = rng.uniform(low, high, (n, 3))
    margins = X @ [0.8, -0.3, 2.0] + 3.0
    return X, margins, (rng.random(n) < 1 / (1 + np.exp(-margins))).astype(int)


def classifier(**words):
    settings = {"bounds": RANGES, "classes": (0, 1), "penalty": None, "neighbors": "zero_out", "ledger": False}
    return DPLogisticRegression(**settings | words)


@pytest.fixture(scope="module")
def optimum():
    X, _, y = table()
    found = classifier(epsilon=np.inf, solver=GradientDescent(n_steps=20_000, momentum="nesterov", restart=True))
    return found.fit(X, y)


@pytest.mark.parametrize("solver", [*SOLVERS[:-2], AdaptiveDescent()], ids=lambda one: type(one).__name__)
def test_a_start_at_the_optimum_stays_there_without_noise(solver, optimum):
    X, _, y = table()
    start = (optimum.coef_, optimum.intercept_)
    again = classifier(epsilon=np.inf, solver=solver, start=start).fit(X, y)
    assert again.coef_ == pytest.approx(optimum.coef_, abs=2e-4)
    assert again.intercept_ == pytest.approx(optimum.intercept_, abs=2e-3)


@covering(("matrix", ["none", "diagonal", "full"]), ("outputs", [1, 3]))
def test_a_recoding_maps_a_start_and_back_exactly(outputs, matrix):
    rng = np.random.default_rng(1)
    made = {"none": None, "diagonal": rng.uniform(1, 2, 5), "full": rng.normal(size=(5, 5))}[matrix]
    scale = (0.0, 1.0) if outputs > 1 else (0.3, 0.7)
    recoding = Recoding(rng.normal(size=4), rng.uniform(1, 2, 4), 0.4, 1.0, made, None, *scale)
    w = rng.normal(size=5 if outputs == 1 else (5, outputs))
    back = recoding.recoded(w)
    assert back is not None
    assert recoding.coefficients(back) == pytest.approx(w, abs=1e-12)
