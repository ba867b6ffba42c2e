"""What the tests of the one-shot mechanisms share: small fits, opened curators, a window on releases."""

import math

import numpy as np
from scipy import sparse

from discreet import (
    Bounds,
    Budget,
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.curator.noise import use_entropy
from discreet.solvers import ExponentialMechanism
from discreet.testing import Data
from tests.entropy import Buffered

RELATIONS = ("replace_one", "zero_out", "add_remove")
N, P = 12, 3
DELTA = 1e-5
MODELS = {
    "logistic": DPLogisticRegression,
    "softmax": DPLogisticRegression,
    "svc": DPLinearSVC,
    "huber": DPHuberRegressor,
    "poisson": DPPoissonRegressor,
    "ridge": DPRidge,
    "linear": DPLinearRegression,
}
CLASSES = {"logistic": (0, 1), "svc": (0, 1), "softmax": (0, 1, 2)}


def bounds_of(name, n=None):
    """Unlike ranges, so that scaling matters; n only where the relation hides it and the solver needs it."""
    features = [(-1.0, 1.0), (0.0, 10.0), (-5.0, 3.0)]
    if name in CLASSES:
        return Bounds(features, classes=CLASSES[name], n=n)
    return Bounds(features, target=(0.0, 4.0), n=n)


def table(name, engine="dense", groups=False, n=N):
    """Records of which the last is the only member of the third class."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, P)) * [1.0, 5.0, 4.0] + [0.0, 5.0, -1.0]
    score = X[:, 0] - 0.2 * X[:, 2] + rng.normal(0, 0.3, n)
    if name in CLASSES:
        y = (score > 0).astype(float)
        y[-1] = CLASSES[name][-1]
    else:
        y = np.clip(2.0 + score, 0, 4)
    if engine == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    return Data(X, y, np.arange(n) // 3 if groups else None)


def settings_of(name):
    """Quiet settings: a Poisson limit whose curvature stays small."""
    return {"limit": 1.5} if name == "poisson" else {}


def fit_of(name, solver, relation="replace_one", delta=DELTA, epsilon=2.0, **settings):
    """A fit for replay: a new estimator each time. ``declared_n`` tells n where it is private."""
    bounds = settings.pop("bounds", None) or bounds_of(name, settings.pop("declared_n", None))
    given = {"bounds": bounds, "neighbors": relation, "solver": solver, **settings_of(name), **settings}

    def fit(X, y, groups=None):
        return MODELS[name](epsilon, delta, **given).fit(X, y, groups=groups)

    return fit


def candidates_of(name, count=4, **settings):
    """Points to choose among: zero and some directions."""
    shape = (P + 1, 3) if name == "softmax" else (P + 1,)
    points = np.random.default_rng(2).normal(0, 0.5, (count, *shape))
    points[0] = 0.0
    return ExponentialMechanism(candidates=points, **settings)


def opened(X, y, loss, plan, budget=None, *, groups=None, intercept=False, bounds=None):
    """A curator for this plan (or these releases); features within +-1, targets within +-1."""
    budget = Budget(math.inf, DELTA, "zero_out") if budget is None else budget
    if bounds is None:
        facts = {"classes": (-1, 1)} if loss.task == "classification" else {"target": (-1.0, 1.0)}
        bounds = Bounds(1.0, **facts)
    data = PrivateData(X, y, bounds, groups=groups, fit_intercept=intercept)
    return data.open(price_plan(plan if isinstance(plan, Plan) else Plan(plan), budget), loss)


def inside(problem, loss, domain):
    """The two releases of objective perturbation."""
    perturbation = problem.perturbation_for(loss, domain)
    return (
        Release("perturb_objective", 1, mechanism="objective", perturbation=perturbation),
        Release("perturbed_minimizer", 1, relative_noise=16.0),
    )


def domain_of(X, y, loss, relation="zero_out", *, intercept=False, bounds=None):
    """What a plan sees of a table."""
    if bounds is None:
        facts = {"classes": (-1, 1)} if loss.task == "classification" else {"target": (-1.0, 1.0)}
        bounds = Bounds(1.0, **facts)
    return PrivateData(X, y, bounds, fit_intercept=intercept).domain(Budget(1.0, neighbors=relation).neighbors, loss)


def stream(seed):
    """``discreet.testing.seeded``, fast for many small draws."""
    return use_entropy(Buffered(seed))
