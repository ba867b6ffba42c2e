"""Differentially private linear models whose guarantee holds for the bits that ran.

The names below are the public interface. Each is imported when it is first used, so that
``import discreet`` costs nothing: no numpy, no compiler, no accountant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> the module that defines it; kept equal to __all__ and to the imports for type checkers below
_HOME = {
    "AccountingError": "discreet.errors",
    "AdaptiveClip": "discreet.solvers.cd",
    "AdaptiveDescent": "discreet.solvers.agd",
    "AdaptivePlan": "discreet.accounting.plan",
    "AlreadyReleased": "discreet.errors",
    "Boolean": "discreet.schema.columns",
    "Bounds": "discreet.bounds",
    "Box": "discreet.penalties",
    "Budget": "discreet.budget",
    "BudgetExceeded": "discreet.errors",
    "Category": "discreet.schema.columns",
    "Certificate": "discreet.accounting.certificate",
    "CoordinateDescent": "discreet.solvers.cd",
    "Curator": "discreet.curator.curator",
    "DPElasticNet": "discreet.models",
    "DPHuberRegressor": "discreet.models",
    "DPLasso": "discreet.models",
    "DPLinearRegression": "discreet.models",
    "DPLinearSVC": "discreet.models",
    "DPLogisticRegression": "discreet.models",
    "DPPoissonRegressor": "discreet.models",
    "DPRidge": "discreet.models",
    "DPSelectCV": "discreet.models.selection.private_search",
    "Declared": "discreet.solvers.declared",
    "DiscreetError": "discreet.errors",
    "Domain": "discreet.bounds",
    "ElasticNet": "discreet.penalties",
    "ExponentialMechanism": "discreet.solvers.exponential",
    "Forecast": "discreet.models.forecast.forecast_result",
    "Geometry": "discreet.solvers.coordinate_geometry",
    "GradientDescent": "discreet.solvers.gd",
    "GreedyCoordinateDescent": "discreet.solvers.gcd",
    "GroupL2": "discreet.penalties",
    "Huber": "discreet.losses",
    "InvalidBudget": "discreet.budget",
    "L1": "discreet.penalties",
    "L2": "discreet.penalties",
    "L2Ball": "discreet.penalties",
    "Ledger": "discreet.ledger.ledger",
    "LedgerError": "discreet.errors",
    "Logistic": "discreet.losses",
    "MissingBounds": "discreet.errors",
    "Neighbors": "discreet.budget",
    "NewtonDescent": "discreet.solvers.newton",
    "NoPenalty": "discreet.penalties",
    "Number": "discreet.schema.columns",
    "ObjectivePerturbation": "discreet.solvers.objective",
    "Ordinal": "discreet.schema.columns",
    "OutputPerturbation": "discreet.solvers.output",
    "Perturbation": "discreet.accounting.plan",
    "Plan": "discreet.accounting.plan",
    "PlanViolation": "discreet.errors",
    "Poisson": "discreet.losses",
    "PrivacyWarning": "discreet.errors",
    "PrivateData": "discreet.curator.private_data",
    "PrivateScore": "discreet.models.scoring",
    "Problem": "discreet.curator.queries.minimizers",
    "Recoding": "discreet.curator.records.recoding",
    "Release": "discreet.accounting.plan",
    "Reservation": "discreet.ledger.reservation",
    "Schema": "discreet.schema.schema",
    "SchemaEncoder": "discreet.models.table_encoder",
    "SchemaError": "discreet.schema.columns",
    "SmoothedHinge": "discreet.losses",
    "Softmax": "discreet.losses",
    "Spent": "discreet.ledger.account",
    "Squared": "discreet.losses",
    "StaleKernels": "discreet.errors",
    "Standardized": "discreet.solvers.standardized",
    "StochasticGradientDescent": "discreet.solvers.sgd",
    "TableModel": "discreet.models.table_model",
    "TableSelection": "discreet.models.selection.table_selection",
    "Target": "discreet.schema.columns",
    "Unsupported": "discreet.errors",
    "VarianceReducedDescent": "discreet.solvers.svrg",
    "Whitened": "discreet.solvers.whitened",
    "calibrate": "discreet.accounting.pricing",
    "coefficients": "discreet.models.table_encoder",
    "load": "discreet.models.persistence",
    "make_private_pipeline": "discreet.models.table_encoder",
    "price": "discreet.accounting.pricing",
    "private_score": "discreet.models.scoring",
    "public_score": "discreet.models.scoring",
}

__all__ = [
    "L1",
    "L2",
    "AccountingError",
    "AdaptiveClip",
    "AdaptiveDescent",
    "AdaptivePlan",
    "AlreadyReleased",
    "Boolean",
    "Bounds",
    "Box",
    "Budget",
    "BudgetExceeded",
    "Category",
    "Certificate",
    "CoordinateDescent",
    "Curator",
    "DPElasticNet",
    "DPHuberRegressor",
    "DPLasso",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPSelectCV",
    "Declared",
    "DiscreetError",
    "Domain",
    "ElasticNet",
    "ExponentialMechanism",
    "Forecast",
    "Geometry",
    "GradientDescent",
    "GreedyCoordinateDescent",
    "GroupL2",
    "Huber",
    "InvalidBudget",
    "L2Ball",
    "Ledger",
    "LedgerError",
    "Logistic",
    "MissingBounds",
    "Neighbors",
    "NewtonDescent",
    "NoPenalty",
    "Number",
    "ObjectivePerturbation",
    "Ordinal",
    "OutputPerturbation",
    "Perturbation",
    "Plan",
    "PlanViolation",
    "Poisson",
    "PrivacyWarning",
    "PrivateData",
    "PrivateScore",
    "Problem",
    "Recoding",
    "Release",
    "Reservation",
    "Schema",
    "SchemaEncoder",
    "SchemaError",
    "SmoothedHinge",
    "Softmax",
    "Spent",
    "Squared",
    "StaleKernels",
    "Standardized",
    "StochasticGradientDescent",
    "TableModel",
    "TableSelection",
    "Target",
    "Unsupported",
    "VarianceReducedDescent",
    "Whitened",
    "__version__",
    "calibrate",
    "coefficients",
    "load",
    "make_private_pipeline",
    "price",
    "private_score",
    "public_score",
]

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.accounting.plan import AdaptivePlan, Perturbation, Plan, Release
    from discreet.accounting.pricing import calibrate, price
    from discreet.bounds import Bounds, Domain
    from discreet.budget import Budget, InvalidBudget, Neighbors
    from discreet.curator.curator import Curator
    from discreet.curator.private_data import PrivateData
    from discreet.curator.queries.minimizers import Problem
    from discreet.curator.records.recoding import Recoding
    from discreet.errors import (
        AccountingError,
        AlreadyReleased,
        BudgetExceeded,
        DiscreetError,
        LedgerError,
        MissingBounds,
        PlanViolation,
        PrivacyWarning,
        StaleKernels,
        Unsupported,
    )
    from discreet.ledger.account import Spent
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.reservation import Reservation
    from discreet.losses import Huber, Logistic, Poisson, SmoothedHinge, Softmax, Squared
    from discreet.models import (
        DPElasticNet,
        DPHuberRegressor,
        DPLasso,
        DPLinearRegression,
        DPLinearSVC,
        DPLogisticRegression,
        DPPoissonRegressor,
        DPRidge,
    )
    from discreet.models.forecast.forecast_result import Forecast
    from discreet.models.persistence import load
    from discreet.models.scoring import PrivateScore, private_score, public_score
    from discreet.models.selection.private_search import DPSelectCV
    from discreet.models.selection.table_selection import TableSelection
    from discreet.models.table_encoder import SchemaEncoder, coefficients, make_private_pipeline
    from discreet.models.table_model import TableModel
    from discreet.penalties import L1, L2, Box, ElasticNet, GroupL2, L2Ball, NoPenalty
    from discreet.schema.columns import Boolean, Category, Number, Ordinal, SchemaError, Target
    from discreet.schema.schema import Schema
    from discreet.solvers.agd import AdaptiveDescent
    from discreet.solvers.cd import AdaptiveClip, CoordinateDescent
    from discreet.solvers.coordinate_geometry import Geometry
    from discreet.solvers.declared import Declared
    from discreet.solvers.exponential import ExponentialMechanism
    from discreet.solvers.gcd import GreedyCoordinateDescent
    from discreet.solvers.gd import GradientDescent
    from discreet.solvers.newton import NewtonDescent
    from discreet.solvers.objective import ObjectivePerturbation
    from discreet.solvers.output import OutputPerturbation
    from discreet.solvers.sgd import StochasticGradientDescent
    from discreet.solvers.standardized import Standardized
    from discreet.solvers.svrg import VarianceReducedDescent
    from discreet.solvers.whitened import Whitened


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
