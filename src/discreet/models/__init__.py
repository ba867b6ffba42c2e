"""scikit-learn estimators with a privacy guarantee. They are thin: declared facts in, a certificate out."""

from discreet.models.classification import DPLinearSVC, DPLogisticRegression
from discreet.models.generic import DPClassifier, DPRegressor
from discreet.models.regression import (
    DPElasticNet,
    DPHuberRegressor,
    DPLasso,
    DPLinearRegression,
    DPPoissonRegressor,
    DPRidge,
)

__all__ = [
    "DPClassifier",
    "DPElasticNet",
    "DPHuberRegressor",
    "DPLasso",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRegressor",
    "DPRidge",
]
