"""Words of scikit-learn and of other libraries that mean something else here, or nothing: errors that say what to use.

``__init__`` names every parameter, as scikit-learn wants it, so that Python alone would say "unexpected keyword".
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Self

from discreet.errors import DiscreetError
from discreet.models.shared_docs import filled

_STEPS = "the plan of steps follows from the budget; to choose it, pass a solver: solver=GradientDescent(n_steps=50)"
_SEED = (
    "noise is drawn from the operating system and cannot be seeded: anyone who knows the seed could subtract it. "
    "With a ledger, fit(..., charge_id='name') gives the same model again"
)
_WEIGHTS = "records cannot be weighted: a weight would change how much one of them may contribute"
_SCALE = "features are scaled by their declared bounds: bounds=Bounds(..., scale='feature') or 'global'"
ADVICE: dict[str, str] = {
    "C": "use alpha, the strength of the penalty: a larger C is a smaller alpha, about 1 / (C n)",
    "lam": "use alpha, the strength of the penalty",
    "reg": "use alpha, the strength of the penalty",
    "alpha": "this model has no penalty with a strength: use DPRidge, DPLasso or DPElasticNet",
    "penalty": "this model's penalty is its own: DPRidge, DPLasso and DPElasticNet have another each",
    "l1_ratio": "pass a penalty where the model takes one, penalty=ElasticNet(l1, l2), or use DPElasticNet",
    "class_weight": f"{_WEIGHTS}. Choose a threshold on predict_proba instead",
    "sample_weight": _WEIGHTS,
    "random_state": _SEED,
    "seed": _SEED,
    "max_iter": _STEPS,
    "n_iter": _STEPS,
    "n_iter_no_change": _STEPS,
    "early_stopping": _STEPS,
    "learning_rate": _STEPS,
    "batch_size": "pass a solver: solver=StochasticGradientDescent(n_steps=200, batch_size=256)",
    "tol": f"there is no tolerance, since when to stop would depend on the records: {_STEPS}",
    "n_jobs": "fits use all cores: set the environment variable DISCREET_NUM_THREADS for fewer",
    "normalize": _SCALE,
    "standardize": _SCALE,
    "copy_X": "records are never changed: leave it out",
    "warm_start": "every fit is priced by itself; from a released model: start=(model.coef_, model.intercept_)",
    "multi_class": "more than two classes are fitted by softmax: leave it out",
    "dual": "leave it out, and see the solvers",
    "intercept_scaling": "the intercept is a constant feature: leave it out",
    "positive": "pass a penalty where the model takes one, penalty=Box(0, 10)",
    "loss": "each loss has a model: DPLogisticRegression, DPLinearSVC, DPRidge, DPHuberRegressor, DPPoissonRegressor",
    "data_norm": "use bounds, with row_norm: bounds=Bounds(..., row_norm=1.0)",
    "bounds_X": "use bounds",
    "bounds_y": "use target=(low, high)",
    "inference": "a hinge or a penalty with corners (L1) has no standard errors: use DPLogisticRegression, "
    "DPLinearRegression, DPRidge, DPHuberRegressor or DPPoissonRegressor",
    "cov_type": "this model has no standard errors: see inference of DPLogisticRegression and DPLinearRegression",
    "accountant": "use ledger and dataset",
    "eps": "use epsilon",
}


_STRENGTHS = ("C", "lam", "reg")


class UnknownParameter(DiscreetError, TypeError, ValueError):
    """A parameter that an estimator, or its fit, does not have; the message says what to use instead."""


class NamedParameters:
    """Estimators whose constructor, ``set_params`` and ``fit`` explain words that they do not know.

    The constructor's words are looked at in ``__new__`` and those of ``fit`` in a wrapper with the same signature, so
    that what scikit-learn reads off the signatures stays as it is.
    """

    def __new__(cls, *_: Any, **given: Any) -> Self:
        _refuse_unknown(cls.__name__, given, inspect.signature(cls.__init__).parameters)
        return super().__new__(cls)

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "__init__" in vars(cls):
            cls.__doc__ = filled(cls)
        if "fit" in vars(cls):
            cls.fit = _explaining(vars(cls)["fit"])  # type: ignore[attr-defined]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn; a name that does not exist is explained.

        Parameters
        ----------
        **params : dict
            Parameters of the constructor.

        Returns
        -------
        estimator
            Itself.

        Examples
        --------
        >>> model.set_params(epsilon=2.0).epsilon
        2.0
        """
        known = inspect.signature(type(self).__init__).parameters
        _refuse_unknown(type(self).__name__, [name for name in params if "__" not in name], known)
        return super().set_params(**params)  # type: ignore[misc, no-any-return]


def _explaining(fit: Callable[..., Any]) -> Callable[..., Any]:
    known = inspect.signature(fit).parameters

    @wraps(fit)
    def explained(self: Any, *args: Any, **given: Any) -> Any:
        _refuse_unknown(f"{type(self).__name__}.fit", given, known)
        return fit(self, *args, **given)

    return explained


def _refuse_unknown(where: str, given: Iterable[str], known: Mapping[str, inspect.Parameter]) -> None:
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        return  # a subclass that hands its words on
    names = [name for name in known if name != "self"]
    for name in given:
        if name in names:
            continue
        close = difflib.get_close_matches(name, names, 1)
        without = "alpha" not in names and name in _STRENGTHS
        advice = ADVICE.get("alpha" if without else name) or (
            f"did you mean {close[0]}?" if close else f"it has {', '.join(names)}"
        )
        raise UnknownParameter(f"Invalid parameter {name!r} for {where}: {advice}")  # scikit-learn's words
