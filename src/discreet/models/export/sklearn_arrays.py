"""An estimator as a plain scikit-learn pipeline: scale and clip by declared ranges, then a linear model."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from discreet.models.base import DPLinearModel
from discreet.models.export.final_step import final_step
from discreet.models.fitting import declared


def array_pipeline(model: DPLinearModel) -> Pipeline:
    """Return a pipeline that predicts what the fitted model predicts, features clipped to their declared ranges.

    With u = (clip(x) - low) / (high - low), the margin w.clip(x) + b is (w (high - low)).u + (b + w.low).
    """
    names = getattr(model, "feature_names_in_", None)
    low, high = (
        np.asarray(end, dtype=np.float64) for end in declared(model.bounds).ranges(model.n_features_in_, names)
    )
    clip: Any = MinMaxScaler(clip=True).fit(np.stack([low, high]))
    if names is not None:
        clip.feature_names_in_ = names.copy()
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    return Pipeline([("clip", clip), ("model", final_step(model, coef * (high - low), intercept + coef @ low))])
