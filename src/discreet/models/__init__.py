"""scikit-learn estimators with a privacy guarantee. They are thin: declared facts in, a certificate out."""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.inference.forecast import ExpectedEffect as ExpectedEffect
    from discreet.inference.intervals import Intervals as Intervals
    from discreet.inference.intervals import WaldTest as WaldTest
    from discreet.inference.summary import MeanInterval as MeanInterval
    from discreet.inference.summary import Summary as Summary
    from discreet.inference.text import EffectsTable as EffectsTable
    from discreet.inference.text import etable as etable
    from discreet.models.additive import CurveFeatures as CurveFeatures
    from discreet.models.additive import DPAdditiveClassifier as DPAdditiveClassifier
    from discreet.models.additive import DPAdditiveRegressor as DPAdditiveRegressor
    from discreet.models.base import register_model as register_model
    from discreet.models.classification import DPClassifier as DPClassifier
    from discreet.models.classification import DPLinearSVC as DPLinearSVC
    from discreet.models.classification import DPLogisticRegression as DPLogisticRegression
    from discreet.models.classification import DPOrdinalRegression as DPOrdinalRegression
    from discreet.models.forecast import EffectsForecast as EffectsForecast
    from discreet.models.forecast import Forecast as Forecast
    from discreet.models.persist import load as load
    from discreet.models.persist import log_to_mlflow as log_to_mlflow
    from discreet.models.regression import DPElasticNet as DPElasticNet
    from discreet.models.regression import DPGammaRegressor as DPGammaRegressor
    from discreet.models.regression import DPHuberRegressor as DPHuberRegressor
    from discreet.models.regression import DPLasso as DPLasso
    from discreet.models.regression import DPLinearRegression as DPLinearRegression
    from discreet.models.regression import DPNegativeBinomialRegressor as DPNegativeBinomialRegressor
    from discreet.models.regression import DPPoissonRegressor as DPPoissonRegressor
    from discreet.models.regression import DPQuantileRegressor as DPQuantileRegressor
    from discreet.models.regression import DPRegressor as DPRegressor
    from discreet.models.regression import DPRidge as DPRidge
    from discreet.models.regression import DPTweedieRegressor as DPTweedieRegressor
    from discreet.models.scores import PrivateScore as PrivateScore
    from discreet.models.scores import ScorePart as ScorePart
    from discreet.models.scores import private_score as private_score
    from discreet.models.scores import public_score as public_score
    from discreet.models.search import DPRandomizedSearch as DPRandomizedSearch
    from discreet.models.search import TableSearch as TableSearch
    from discreet.models.table_model import SchemaEncoder as SchemaEncoder
    from discreet.models.table_model import TableModel as TableModel
    from discreet.models.table_model import coefficients as coefficients
    from discreet.models.table_model import make_private_pipeline as make_private_pipeline
    from discreet.models.term_effects import Coefficient as Coefficient
    from discreet.models.term_effects import Explanation as Explanation
    from discreet.models.term_effects import TermEffect as TermEffect

__getattr__, __dir__, __all__ = lazy_names(__spec__)
