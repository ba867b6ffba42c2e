"""The score without privacy: the same loss and penalty, without noise, clips and early stops."""

import math
from typing import Any

import numpy as np

from discreet.models.forecast.setting import Setting
from discreet.models.forecast.synthetic import Rehearsal
from discreet.solvers.gd import GradientDescent
from discreet.solvers.output import OutputPerturbation
from discreet.typing import Floats

LIMIT_STEPS = 600  # for penalties that have no exact solve here


def score_without_privacy(table: Rehearsal, setting: Setting, rows: int) -> float:
    """The expected score of the model that the first ``rows`` rows give where nobody asks for privacy."""
    X, y = table.X[:rows], table.y[:rows]
    if setting.penalty.ridge:
        if setting.loss.quadratic:
            return table.score(_least_squares(X, y, table.held_out, setting))
        return table.score(_noise_free(X, y, setting, OutputPerturbation()).predict(table.held_out))
    steps = GradientDescent(n_steps=LIMIT_STEPS, momentum="nesterov", restart=True)
    return table.score(_noise_free(X, y, setting, steps).predict(table.held_out))


def _noise_free(X: Any, y: Any, setting: Setting, solver: Any) -> Any:
    return setting.model(len(X), epsilon=math.inf, neighbors="zero_out", solver=solver).fit(X, y)


def _least_squares(X: Any, y: Any, held_out: Any, setting: Setting) -> Floats:
    """Ridge in training coordinates, in closed form."""
    scaling = setting.facts().scaling
    center, scale = scaling.center, scaling.scale
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    constants = int(setting.estimator.fit_intercept)
    train, test = (np.hstack([(part - center) * inverse, np.ones((len(part), constants))]) for part in (X, held_out))
    ridge = max(setting.penalty.strong_convexity, 1e-12) * len(train)
    return np.asarray(test @ np.linalg.solve(train.T @ train + ridge * np.eye(train.shape[1]), train.T @ y))
