"""What the promises are tested on: small cases of every solver, loss, penalty, query, metric and container.

The tests in ``tests/promises`` go through these tables. A name that the library registers and this file lacks fails
``tests/promises/test_registry.py``, so that whoever adds a solver adds a case here, and has it tested everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from discreet import Bounds
from discreet.curator import Curator, Edges, Problem
from discreet.default import Recipe, Shares
from discreet.losses import (
    Gamma,
    Huber,
    Logistic,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Softmax,
    Squared,
    Tweedie,
)
from discreet.models import DPClassifier, DPRegressor
from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
from discreet.solvers import (
    AdaptiveClip,
    AdaptiveDescent,
    CoordinateDescent,
    ExponentialMechanism,
    Geometry,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Preconditioned,
    StochasticGradientDescent,
    VarianceReducedDescent,
)
from discreet.testing import Data

RELATIONS = ("replace_one", "zero_out", "add_remove")
N, P = 12, 3
DELTA = 1e-5
FEATURES = [(-1.0, 1.0), (0.0, 10.0), (-5.0, 3.0)]
"""Unlike ranges, so that scaling matters."""
CLIP = 0.05
"""A clip that cuts every gradient off."""

LOSSES: dict[str, Any] = {
    "logistic": Logistic(),
    "smoothed_hinge": SmoothedHinge(0.5),
    "softmax": Softmax(3),
    "squared": Squared(),
    "huber": Huber(0.7),
    "quantile": Quantile(0.8, 0.3),
    "poisson": Poisson(1.5),
    "negative_binomial": NegativeBinomial(0.5, 1.5, 3.0),
    "gamma": Gamma(1.5),
    "tweedie": Tweedie(1.4, 1.5),
}
PENALTIES: dict[str, Any] = {
    "none": NoPenalty(),
    "l1": L1(0.02),
    "l2": L2(0.05),
    "elasticnet": ElasticNet(0.05, 0.5),
    "group_l2": GroupL2(0.05, ((0, 1), (2,))),
    "box": Box(-0.2, 0.3),
    "l2_ball": L2Ball(0.2),
}
METRICS = {
    "accuracy": "logistic",
    "auc": "logistic",
    "balanced_accuracy": "softmax",
    "brier": "softmax",
    "calibration": "logistic",
    "confusion": "softmax",
    "log_loss": "logistic",
    "mae": "ridge",
    "r2": "ridge",
    "rmse": "huber",
}
"""Metric -> a model that it scores (``tests/models/scored.py``)."""


@dataclass(frozen=True)
class Case:
    """A solver in few steps, and where it applies.

    ``near`` is how much of the sensitivity the worst neighbors must use, or they are too tame to test anything.
    """

    solver: Any
    losses: tuple[str, ...] = tuple(LOSSES)
    relations: tuple[str, ...] = RELATIONS
    penalty: Any = None
    near: float = 0.1
    pure: bool = False
    epsilon: float = 2.0
    declares_n: bool = False
    is_sampled: bool = False
    is_dense: bool = False
    has_sums: bool = True
    settings: dict[str, Any] = field(default_factory=dict)


CLASSES = ("logistic", "smoothed_hinge", "softmax")
ONE_OUTPUT = tuple(name for name in LOSSES if name != "softmax")
LIPSCHITZ = ("logistic", "smoothed_hinge", "huber", "quantile", "softmax")
PLAIN = ("logistic", "squared")
_TIGHT = Geometry(clip=CLIP)
_PUBLIC_MOMENTS = {"public_moments": (np.full(P, 0.1), 0.2 * np.eye(P) + 0.05)}
_STEPS = {"momentum": 0.7, "relative_step": 1.0, "relative_clip": 0.4, "radius": 100.0}
_BALL = {"radius": 2.0}


def _candidates(count: int = 4, **settings: Any) -> ExponentialMechanism:
    points = np.random.default_rng(2).normal(0, 0.5, (count, P + 1))
    points[0] = 0.0
    return ExponentialMechanism(candidates=points, **settings)


SOLVERS: dict[str, dict[str, Case]] = {
    "gd": {
        "steps": Case(GradientDescent(n_steps=3, clip=CLIP, step_size=2.0, momentum="nesterov"), near=0.4),
        "pure": Case(GradientDescent(n_steps=3, clip=CLIP, step_size=2.0), near=0.4, pure=True),
        "default": Case("gd", near=0.0),
        "declared": Case(Preconditioned(GradientDescent(3, **_STEPS), "declared"), losses=CLASSES),
        "standardized": Case(
            Preconditioned(GradientDescent(3, **_STEPS), "diagonal"), losses=("logistic", "softmax", "squared")
        ),
        "whitened": Case(
            Preconditioned(GradientDescent(3, **_STEPS)), losses=("logistic", "squared", "huber"), is_dense=True
        ),
        "shifted": Case(
            Preconditioned(GradientDescent(3, **_STEPS), "diagonal", shift_clip=2.0), losses=("squared", "huber")
        ),
        "started": Case(
            Preconditioned(GradientDescent(3, **_STEPS), "declared", start_share=0.2), losses=CLASSES, is_dense=True
        ),
        "public moments": Case(
            Preconditioned(GradientDescent(3, **_STEPS)), losses=PLAIN, is_dense=True, settings=_PUBLIC_MOMENTS
        ),
    },
    "sgd": {
        "steps": Case(
            StochasticGradientDescent(n_steps=3, sampling_probability=0.5, clip=CLIP, step_size=2.0),
            near=0.4,
            is_sampled=True,
        ),
        "default": Case("sgd", near=0.0, declares_n=True, is_sampled=True),
        "whitened": Case(
            Preconditioned(StochasticGradientDescent(n_steps=4, sampling_probability=0.5)),
            losses=PLAIN,
            near=0.0,
            is_sampled=True,
            is_dense=True,
        ),
    },
    "svrg": {
        "tight": Case(
            VarianceReducedDescent(n_epochs=2, n_inner=3, sampling_probability=0.5, clip=0.1, step_size=2.0),
            near=0.001,
            is_sampled=True,
        ),
        "mean": Case(
            VarianceReducedDescent(2, 3, sampling_probability=0.5, clip=0.1, average="uniform", radius=1.0),
            near=0.001,
            pure=True,
            is_sampled=True,
        ),
        "full": Case(VarianceReducedDescent(n_epochs=1, n_inner=3, clip=0.1, step_size=2.0), near=0.001),
        "standardized": Case(
            Preconditioned(VarianceReducedDescent(n_epochs=2, n_inner=2, sampling_probability=0.5), "diagonal"),
            losses=PLAIN,
            near=0.0,
            is_sampled=True,
        ),
    },
    "agd": {
        "exponential": Case(
            AdaptiveDescent(n_rounds=3, n_step_sizes=4, clip=0.2, loss_bound=1.0), near=0.001, declares_n=True
        ),
        "noisy_max": Case(
            AdaptiveDescent(n_rounds=3, n_step_sizes=4, clip=0.2, loss_bound=1.0, selection="noisy_max"),
            near=0.001,
            declares_n=True,
        ),
        "whitened": Case(
            Preconditioned(AdaptiveDescent(n_rounds=3, n_step_sizes=3)),
            losses=PLAIN,
            near=0.0,
            declares_n=True,
            is_dense=True,
            settings={"penalty": None},
        ),
    },
    "cd": {
        "uniform": Case(CoordinateDescent(n_inner=4, geometry=_TIGHT, relative_step=2.0), near=0.3, losses=ONE_OUTPUT),
        "importance": Case(
            CoordinateDescent(n_outer=2, n_inner=2, geometry=_TIGHT, schedule="importance"), near=0.3, losses=ONE_OUTPUT
        ),
        "blocks": Case(CoordinateDescent(n_inner=3, geometry=_TIGHT, block_size=2), near=0.3, losses=ONE_OUTPUT),
        "started": Case(
            Preconditioned(CoordinateDescent(n_inner=4, geometry=_TIGHT), "training", start_share=0.2),
            losses=("logistic", "poisson", "gamma"),
        ),
        "private smoothness": Case(
            CoordinateDescent(n_inner=3, geometry=Geometry(clip=CLIP, smoothness="private", row_clip=0.7)),
            losses=ONE_OUTPUT,
        ),
        "adaptive clip": Case(
            CoordinateDescent(n_inner=3, geometry=_TIGHT, adaptive=AdaptiveClip()), losses=ONE_OUTPUT
        ),
        "given vectors": Case(
            CoordinateDescent(
                n_inner=6,
                geometry=Geometry(coordinate_clips=(0.1, 0.2, 0.3, 0.4), coordinate_smoothness=(0.5, 0.4, 0.2, 0.1)),
                probabilities=(1, 2, 3, 4),
            ),
            losses=PLAIN,
            near=0.0,
        ),
        "standardized": Case(
            Preconditioned(CoordinateDescent(n_inner=6), "diagonal"), losses=PLAIN, penalty=PENALTIES["l1"], near=0.0
        ),
        "standardized blocks": Case(
            Preconditioned(
                CoordinateDescent(n_inner=3, block_size=2, geometry=Geometry(smoothness="private")), "diagonal"
            ),
            losses=PLAIN,
            penalty=PENALTIES["box"],
            near=0.0,
        ),
    },
    "gcd": {
        "gs": Case(GreedyCoordinateDescent(n_steps=2, geometry=_TIGHT, rule="gs"), losses=ONE_OUTPUT),
        "gs-q": Case(GreedyCoordinateDescent(n_steps=2, geometry=_TIGHT, rule="gs-q"), losses=ONE_OUTPUT),
        "whitened": Case(Preconditioned(GreedyCoordinateDescent(n_steps=3)), losses=PLAIN, near=0.0, is_dense=True),
        "batch": Case(GreedyCoordinateDescent(n_steps=2, geometry=_TIGHT, block_size=2), losses=ONE_OUTPUT),
        "poster": Case(
            GreedyCoordinateDescent(n_steps=2, geometry=_TIGHT, rule="gs", calibration="paper"),
            losses=ONE_OUTPUT,
            penalty=PENALTIES["l2"],
            epsilon=1.0,
        ),
        "flip": Case(
            GreedyCoordinateDescent(n_steps=2, geometry=_TIGHT, selection="permute_and_flip"),
            pure=True,
            losses=ONE_OUTPUT,
        ),
    },
    "output": {
        "started": Case(
            Preconditioned(OutputPerturbation(regularization=0.3, clip=0.2), "training", start_share=0.2),
            losses=("logistic", "poisson"),
            near=0.001,
        ),
        "regularized": Case(OutputPerturbation(regularization=0.3, **_BALL), near=0.001),
        "clip": Case(OutputPerturbation(regularization=0.3, row_norm=0.8, clip=0.2), losses=("logistic",), near=0.001),
        "steps": Case(OutputPerturbation(n_steps=4, regularization=0.2, **_BALL), relations=RELATIONS[:2], near=0.001),
        "corners": Case(
            OutputPerturbation(n_steps=4, regularization=0.2, **_BALL),
            penalty=ElasticNet(0.05, 0.5),
            relations=RELATIONS[:2],
            near=0.001,
        ),
        "default": Case("output", losses=LIPSCHITZ, near=0.001, pure=True),
        "standardized": Case(
            Preconditioned(OutputPerturbation(regularization=0.2, clip=0.5, row_norm=1.0), "diagonal"),
            losses=PLAIN,
            relations=RELATIONS[:2],
            penalty=L2(0.01),
            near=0.0,
        ),
    },
    "objective": {
        "started": Case(
            Preconditioned(ObjectivePerturbation(regularization=1.0, clip=0.2), "training", start_share=0.2),
            losses=("logistic",),
            near=0.001,
            declares_n=True,
        ),
        "regularized": Case(ObjectivePerturbation(regularization=1.0, **_BALL), near=0.001, declares_n=True),
        "clip": Case(
            ObjectivePerturbation(regularization=1.0, row_norm=0.8, clip=0.2),
            losses=("logistic",),
            near=0.001,
            pure=True,
            declares_n=True,
        ),
        "standardized": Case(
            Preconditioned(ObjectivePerturbation(regularization=0.2, clip=0.5, row_norm=1.0), "diagonal"),
            losses=PLAIN,
            relations=RELATIONS[:2],
            penalty=L2(0.01),
            near=0.0,
            declares_n=True,
        ),
    },
    "exponential": {
        "candidates": Case(_candidates(), losses=("logistic", "smoothed_hinge", "huber"), near=0.001),
        "errors": Case(_candidates(score="zero_one"), losses=("logistic",), near=0.0),
        "draw": Case(
            ExponentialMechanism(regularization=2.0, sampler="rejection"), losses=("logistic",), has_sums=False
        ),
        "chain": Case(
            ExponentialMechanism(regularization=0.5, sampler="chain", total_variation=1e-13),
            losses=("smoothed_hinge",),
            has_sums=False,
        ),
        "gaussian": Case(
            ExponentialMechanism(regularization=0.5, radius=2.0, sampler="gaussian"),
            losses=("squared",),
            has_sums=False,
        ),
    },
    "recipe": {
        "clipped": Case(Recipe(n_steps=3), is_dense=True),
        "weighted": Case(Recipe(n_steps=3, n_travel=2, n_newton=3), epsilon=300.0, is_dense=True),
        "newton": Case(Recipe(n_steps=2, n_newton=3, shares=Shares(moment=0.1, newton=0.4)), is_dense=True),
        "moments": Case(Recipe(n_steps=3, target_looks=0, shares=Shares(calibration=0.0)), is_dense=True),
        "declared": Case(Recipe("declared", n_steps=3), is_dense=True),
        "diagonal": Case(Recipe("diagonal", n_steps=3), is_dense=True),
        "two Hessians": Case(Recipe(n_steps=2, n_newton=8), epsilon=300.0, is_dense=True),
        "sizes": Case(
            Recipe(n_steps=2, n_travel=2, n_newton=3, shares=Shares(sizes=0.05)), epsilon=300.0, is_dense=True
        ),
        "public moments": Case(
            Recipe(n_steps=8, n_newton=4), losses=PLAIN, near=0.0, is_dense=True, settings=_PUBLIC_MOMENTS
        ),
        "effects": Case(
            "auto",
            losses=("logistic", "softmax", "squared", "huber", "poisson"),
            epsilon=200_000.0,
            is_dense=True,
            settings={"inference": "sandwich", "even_if_empty": True},
        ),
        "default": Case("recipe", near=0.05, is_dense=True),
        "auto": Case("auto", near=0.05),
    },
}
"""Registered name -> variants."""


def cases() -> dict[str, Case]:
    """Return every variant of every solver, as ``"solver: variant"``."""
    return {f"{name}: {variant}": case for name, kinds in SOLVERS.items() for variant, case in kinds.items()}


# --- models and tables --------------------------------------------------------------------------------


def bounds_of(loss: str, n: int | None = None) -> Bounds:
    """Return what is declared for a loss."""
    if loss in CLASSES:
        return Bounds(FEATURES, classes=(0, 1, 2) if loss == "softmax" else (0, 1), n=n)
    return Bounds(FEATURES, target=(0.0, 4.0), n=n)


def table(loss: str, *, has_persons: bool = False, n: int = N) -> Data:
    """Return few records; of three classes, the last row is the only one of the third."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, P)) * [1.0, 5.0, 4.0] + [0.0, 5.0, -1.0]
    X[np.abs(X) < 0.5] = 0.0
    score = X[:, 0] - 0.2 * X[:, 2] + rng.normal(0, 0.3, n)
    y = (score > 0).astype(float) if loss in CLASSES else np.clip(2.0 + score, 0, 4)
    if loss == "softmax" and n:
        y[-1] = 2.0
    return Data(X, y, np.arange(n) // 3 if has_persons else None)


def model(loss: str, case: Case, relation: str, *, n: int | None = None, **settings: Any) -> Any:
    """Return an unfitted estimator of a loss with a case's solver."""
    kind = DPClassifier if loss in CLASSES else DPRegressor
    declared = n if case.declares_n and relation == "add_remove" else None
    given = {"bounds": bounds_of(loss, declared), "penalty": case.penalty, **case.settings, **settings}
    delta = 0.0 if case.pure else DELTA
    return kind(case.epsilon, delta, loss=LOSSES[loss], solver=case.solver, neighbors=relation, ledger=False, **given)


def fit_of(loss: str, case: Case, relation: str, container: str = "array", **settings: Any) -> Callable[..., Any]:
    """Return a fit for replay: of a new estimator each time, on rows in a container."""

    def fit(X: Any, y: Any, groups: Any = None) -> Any:
        n = N if groups is None else len(np.unique(groups))
        return model(loss, case, relation, n=n, **settings).fit(CONTAINERS[container](X), y, groups=groups)

    return fit


# --- containers ---------------------------------------------------------------------------------------


def _frame(X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=list("abc"))


def _mixed_frame(X: Any) -> Any:
    with np.errstate(all="ignore"):  # huge cells become infinite, before the library gets them
        return _frame(X).astype({"a": np.float32, "c": object})


def _narrow(X: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(X, dtype=np.float32)


def _polars(X: Any) -> Any:
    import polars as pl

    return pl.DataFrame(X, schema=list("abc"))


def _arrow(X: Any) -> Any:
    import pyarrow as pa

    return pa.table(dict(zip("abc", np.asarray(X, dtype=float).T, strict=True)))


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda X: X,
    "float32": _narrow,
    "objects": lambda X: np.asarray(X, dtype=object),
    "lists": lambda X: np.asarray(X).tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "frame": _frame,
    "mixed frame": _mixed_frame,
    "polars": _polars,
    "arrow": _arrow,
}
"""What a matrix of floats is stored in before ``fit`` gets it. Files and tables: ``tests/promises/surface``."""

# --- queries ------------------------------------------------------------------------------------------

WIDTH = 16
_STEEP = Problem(regularization=1.0, n=4.0, clip=0.5)
_EDGES = Edges(*(np.array([0.5]) for _ in range(3)), np.empty(0))

QUERIES: dict[str, Callable[[Curator, Any], Any]] = {
    "noisy_gradient": lambda c, w: c.noisy_gradient(w, clip=0.5),
    "noisy_gradient_change": lambda c, w: c.noisy_gradient_change(w, w + 1.0, clip=0.5),
    "noisy_coordinate_gradient": lambda c, w: c.noisy_coordinate_gradient(
        w, np.arange(WIDTH), clips=np.full(WIDTH, 0.1)
    ),
    "noisy_share_within": lambda c, w: c.noisy_share_within(w, 0, clip=0.5),
    "noisy_score": lambda c, w: c.noisy_score(w),
    "noisy_count": lambda c, w: c.noisy_count(),
    "noisy_weight": lambda c, w: c.noisy_weight(),
    "noisy_mean": lambda c, w: c.noisy_mean(clip=0.5, n=4.0),
    "noisy_mean_squares": lambda c, w: c.noisy_mean_squares(clip=0.5, n=4.0),
    "noisy_second_moment": lambda c, w: c.noisy_second_moment(clip=0.5, n=4.0),
    "noisy_magnitudes": lambda c, w: c.noisy_magnitudes(np.zeros(c.domain.n_features - c.domain.intercept)),
    "noisy_squared_norms": lambda c, w: c.noisy_squared_norms(clip=0.5),
    "noisy_target_moments": lambda c, w: c.noisy_target_moments(n=4.0),
    "noisy_weighted_gradient": lambda c, w: c.noisy_weighted_gradient(w, clip=0.05, reach=9.0),
    "noisy_curvature": lambda c, w: c.noisy_curvature(w, clip=0.5, reach=9.0),
    "noisy_score_covariance": lambda c, w: c.noisy_score_covariance(w, clip=0.05, reach=9.0),
    "noisy_squared_slopes": lambda c, w: c.noisy_squared_slopes(w, clip=0.5),
    "noisy_shells": lambda c, w: c.noisy_shells(w, edges=_EDGES, reach=9.0),
    "noisy_minimizer": lambda c, w: c.noisy_minimizer(_STEEP),
    "noisy_descent": lambda c, w: c.noisy_descent(_STEEP, n_steps=3, step_size=0.05),
}
"""A small call of every noisy sum of the curator, for WIDTH columns."""
NO_SUMS = {
    "noisy_coordinate_steps": "answers of noisy_coordinate_gradient; solver cd",
    "select_coordinate": "a choice; solver gcd",
    "select_candidate": "a choice; solvers agd and exponential",
    "perturbed_minimizer": "noise inside the objective; solver objective",
    "sample_minimizer": "a draw; solver exponential",
    "exact_minimizer": "no noise, and no plan with a budget (tests/solvers/test_exact.py); solver exact",
}
"""Queries that have no sum under noise of its own, and the solvers whose replay holds them."""
