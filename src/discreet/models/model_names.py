"""The models' short names: what ``TableModel`` and the command line call them."""

from discreet.models.base import DPLinearModel
from discreet.models.classification import DPLinearSVC, DPLogisticRegression
from discreet.models.regression import (
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPPoissonRegressor,
    DPRidge,
)
from discreet.schema.schema import Schema

MODELS: dict[str, type[DPLinearModel]] = {
    "logistic": DPLogisticRegression,
    "svm": DPLinearSVC,
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "lasso": DPLasso,
    "elasticnet": DPElasticNet,
    "huber": DPHuberRegressor,
    "poisson": DPPoissonRegressor,
}
"""Models by their short names."""


def default_model(schema: Schema) -> str:
    """Return the short name of the model that suits the target."""
    return "logistic" if schema.target is not None and schema.target.classes is not None else "ridge"
