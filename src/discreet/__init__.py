"""Differentially private linear models whose guarantee holds for the bits that ran.

The names below are the public interface, and those of the subpackages among them. Each is imported when it is first
used.
"""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet import accounting as accounting
    from discreet import audit as audit
    from discreet import datasets as datasets
    from discreet import losses as losses
    from discreet import models as models
    from discreet import penalties as penalties
    from discreet import scale as scale
    from discreet import schema as schema
    from discreet import solvers as solvers
    from discreet import testing as testing
    from discreet.accounting.certificate import Certificate as Certificate
    from discreet.bounds import Bounds as Bounds
    from discreet.budget import Budget as Budget
    from discreet.budget import Neighbors as Neighbors
    from discreet.errors import BudgetExceeded as BudgetExceeded
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.inference.text import etable as etable
    from discreet.ledger.ledger import Ledger as Ledger
    from discreet.models.classification import DPClassifier as DPClassifier
    from discreet.models.classification import DPLinearSVC as DPLinearSVC
    from discreet.models.classification import DPLogisticRegression as DPLogisticRegression
    from discreet.models.persist import load as load
    from discreet.models.regression import DPElasticNet as DPElasticNet
    from discreet.models.regression import DPHuberRegressor as DPHuberRegressor
    from discreet.models.regression import DPLasso as DPLasso
    from discreet.models.regression import DPLinearRegression as DPLinearRegression
    from discreet.models.regression import DPPoissonRegressor as DPPoissonRegressor
    from discreet.models.regression import DPRegressor as DPRegressor
    from discreet.models.regression import DPRidge as DPRidge
    from discreet.models.scores import private_score as private_score
    from discreet.models.scores import public_score as public_score
    from discreet.models.search import DPRandomizedSearch as DPRandomizedSearch
    from discreet.models.table_model import TableModel as TableModel
    from discreet.schema.schema import Schema as Schema
    from discreet.service_client import remote as remote

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__spec__)
__all__ += ["__version__"]
