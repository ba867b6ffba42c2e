"""scikit-learn estimators with a privacy guarantee. They are thin: declared facts in, a certificate out."""

from discreet.models.classification import DPLinearSVC, DPLogisticRegression
from discreet.models.regression import DPHuberRegressor, DPLinearRegression, DPPoissonRegressor, DPRidge

__all__ = [
    "DPHuberRegressor",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
]
