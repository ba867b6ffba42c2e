"""What users read about the estimators: shared docstrings, advice on unknown parameters, and warnings.

A class describes its own parameters and attributes; ``filled`` adds those that mean the same in all of them, in the
order of the signature and with its defaults, so that ``help`` shows all of them; and the example of its kind, where it
has none of its own. ``__init__`` names every parameter, as
scikit-learn wants it, so that Python alone would say "unexpected keyword" of a word of other libraries.

Warnings are of what no certificate counts: exact scores, fits that a search repeats, persons that it forgets. All
follow from which function called which, and never from a record. A search or a cross-validation of scikit-learn fits
clones of a model many times. Each fit releases a model, and without a ledger nobody adds them up. A clone does not know
who fits it, but the call stack does: whatever the search, its backend and the pipelines between, the function that
calls ``fit`` belongs to one of the public packages below, in a worker process too. The stack is read by the names of
its modules, so nothing private is imported.
"""

import difflib
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import FrameType
from typing import Any, Self
from weakref import WeakSet

from discreet.errors import DiscreetError, PrivacyWarning
from discreet.ledger.ledger import account_of

PARAMETERS = {
    "epsilon": ("float", "The budget of one fit. ``inf``: no privacy, marked so in the certificate."),
    "delta": ("float", "None: 1/n^2 where n is public, and never more than 1e-6. 0: pure epsilon-DP."),
    "bounds": (
        "Bounds, float, list or dict",
        "What is publicly known of the features: a ``Bounds``, or a bare range (1.0, a list of (low, high), a\n"
        "dictionary by column). Required.",
    ),
    "classes": ("sequence", "The labels, in order, where ``bounds`` does not name them."),
    "target": ("tuple of float", "The range (low, high) of the target, where ``bounds`` does not name it."),
    "class_weight": (
        "dict or None",
        "A weight per class, 1 for classes that it does not name: from what is publicly known, not from the labels.",
    ),
    "penalty": ("str or penalty object", '``"l2"``, ``"l1"``, ``"elasticnet"`` (half of alpha each), or None.'),
    "alpha": ("float", "Strength of the penalty, in training coordinates. The intercept is penalized too."),
    "solver": (
        "str or solver object",
        '``"auto"`` chooses by public facts. By name: ``"recipe"``, ``"gd"``, ``"sgd"``, ``"svrg"``, ``"cd"``,\n'
        '``"gcd"``, ``"agd"``, ``"output"``, ``"objective"``, ``"exponential"``. Or an object of ``discreet.solvers``.',
    ),
    "neighbors": ("str", 'What a neighbor is: ``"replace_one"``, ``"zero_out"`` or ``"add_remove"``.'),
    "allow_large_delta": ("bool", "Permit delta >= 1/n, which allows publishing a whole record."),
    "fit_intercept": ("bool", "Whether there is a constant feature."),
    "start": (
        "tuple or None",
        "The point that steps start from, (coefficients, intercept) in the user's own units: those of a public or\n"
        "released model, ``start=(model.coef_, model.intercept_)``. Not private, so free. None: zeros.",
    ),
    "public_moments": (
        "tuple or None",
        "(means, covariance) or (means, standard deviations) of the features in the user's own units, from a public\n"
        "sample, a codebook or a published table. Not private, so free: ``auto`` and ``Preconditioned`` estimate\n"
        "none of these, and steps get their budget. None: estimated with privacy budget.",
    ),
    "inference": (
        "str or None",
        '``"sandwich"``: reserve a part of the budget for standard errors, confidence intervals and p-values of a\n'
        "population's effects; see ``summary``. None: nothing is reserved.",
    ),
    "cov_type": ("str", '``"robust"``, ``"model"`` or ``"cluster"``: which covariance ``inference`` estimates.'),
    "even_if_empty": ("bool", "Whether to fit where ``inference`` would probably show no effect at all."),
    "ledger": (
        "Ledger, str, Path or False",
        "Where fits are charged before they read a record. None: the configured ledger; False: none.",
    ),
    "dataset": ("str", "The registered name of the data in the ledger."),
    "verbose": ("bool", "Whether to show a progress bar."),
}
ATTRIBUTES = {
    "coef_": ("ndarray", "Coefficients in the user's own units. Private: they may be published."),
    "intercept_": ("ndarray or float", "The intercept, of each output."),
    "coef_noise_": ("ndarray or None", "Standard deviation of each coefficient due to privacy noise, if known."),
    "coef_correlation_": (
        "ndarray or None",
        "Correlations of the noise of coefficients j and j + d of one curve, in row j and column d, if known.",
    ),
    "intercept_noise_": ("ndarray, float or None", "The same for the intercept; see ``intervals``."),
    "certificate_": ("Certificate", "What may be claimed of the model."),
    "n_features_in_": ("int", "The number of features."),
}


def filled(cls: type) -> str | None:
    """Return the docstring of an estimator with the shared entries; None where it has none."""
    if not cls.__doc__:
        return None
    text = inspect.cleandoc(cls.__doc__)
    described, attributes = _entries(text, "Parameters"), _entries(text, "Attributes")
    parameters = {
        name: described.get(name) or _entry(name, *PARAMETERS[name], default=parameter.default)
        for name, parameter in inspect.signature(cls.__init__).parameters.items()  # type: ignore[misc]
        if name in described or name in PARAMETERS
    }
    fields: Mapping[str, object] = getattr(cls, "__dataclass_fields__", {})
    attributes |= {name: _entry(name, *entry) for name, entry in ATTRIBUTES.items() if name in fields}
    sections = [
        f"{name}\n{'-' * len(name)}\n" + "\n".join(entries.values()) + "\n"
        for name, entries in (("Parameters", parameters), ("Attributes", attributes))
    ]
    head, *rest = re.split(r"\n(?=[A-Z][a-z ]+\n-{3,}\n)", text)
    if ">>>" not in text and cls.__name__.startswith("DP"):
        rest.append(inspect.cleandoc(getattr(cls, "_example", "")).format(name=cls.__name__))
    return "\n".join([head, *sections, *(s for s in rest if not s.startswith(("Parameters\n", "Attributes\n")))])


def _entry(name: str, kind: str, text: str, *, default: object = inspect.Parameter.empty) -> str:
    suffix = "" if default is inspect.Parameter.empty else f", default={default!r}".replace("'", '"')
    return f"{name} : {kind}{suffix}\n" + "\n".join(f"    {line}" for line in text.splitlines())


def _entries(text: str, section: str) -> dict[str, str]:
    """Return name -> entry of a section of a docstring; an entry of several names counts for each."""
    body = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n[A-Z][a-z ]+\n-{{3,}}\n|\Z)", text, re.MULTILINE | re.DOTALL)
    entries = re.split(r"\n(?=\S)", body.group(1).rstrip()) if body else []
    return {name: entry for entry in entries for name in re.split(r", ", entry.split(" : ")[0].splitlines()[0])}


_STEPS = "the plan of steps follows from the budget; to choose it, pass a solver: solver=GradientDescent(n_steps=50)"
_SEED = (
    "noise is drawn from the operating system and cannot be seeded: anyone who knows the seed could subtract it. "
    "With a ledger, fit(..., charge_id='name') gives the same model again"
)
_WEIGHTS = "weights are a column of the records: fit(X, y, sample_weight=w), bounds=Bounds(..., weights=(low, high))"
_SCALE = "features are scaled by their declared bounds: bounds=Bounds(..., scale='feature') or 'global'"
ADVICE: dict[str, str] = {
    "C": "use alpha, the strength of the penalty: a larger C is a smaller alpha, about 1 / (C n)",
    "lam": "use alpha, the strength of the penalty",
    "reg": "use alpha, the strength of the penalty",
    "alpha": "this model has no penalty with a strength: use DPRidge, DPLasso or DPElasticNet",
    "penalty": "this model's penalty is its own: DPRidge, DPLasso and DPElasticNet have another each",
    "l1_ratio": "pass a penalty where the model takes one, penalty=ElasticNet(l1, l2), or use DPElasticNet",
    "class_weight": "classes have weights where a target has classes: use DPLogisticRegression",
    "sample_weight": _WEIGHTS,
    "offset": "offsets are a column of the records: fit(X, y, offset=o), with bounds=Bounds(..., offsets=(low, high))",
    "exposure": "pass its logarithm: fit(X, y, offset=np.log(exposure)), with bounds=Bounds(..., offsets=(low, high))",
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
    "inference": "this model has no standard errors (a hinge and L1 have none; those of Gamma, Tweedie, negative "
    "binomial, quantile and ordinal models are not proven): use DPLogisticRegression, DPLinearRegression, DPRidge, "
    "DPHuberRegressor or DPPoissonRegressor",
    "cov_type": "this model has no standard errors: see inference of DPLogisticRegression and DPLinearRegression",
    "even_if_empty": "this model has no standard errors: see inference of DPLogisticRegression and DPLinearRegression",
    "accountant": "use ledger and dataset",
    "eps": "use epsilon",
}


_STRENGTHS = ("C", "lam", "reg")


class UnknownParameter(DiscreetError, TypeError, ValueError):
    """A parameter that an estimator, or its fit, does not have; the message says what to use instead."""


class NamedParameters:
    """Estimators whose constructor, ``set_params`` and ``fit`` explain words that they do not know.

    Each class wraps the two functions once, with their signatures, so that what scikit-learn reads off them stays as it
    is. Words are looked at only where Python refused the call.
    """

    def __init_subclass__(cls, **settings: object) -> None:
        super().__init_subclass__(**settings)
        for name in {"__init__", "fit"} & vars(cls).keys():
            setattr(cls, name, _explaining(vars(cls)[name]))
        if "__init__" in vars(cls):
            cls.__init__.__signature__ = _in_order(inspect.signature(cls.__init__))  # type: ignore[attr-defined]
            cls.__doc__ = filled(cls)

    def set_params(self, **params: object) -> Self:
        """Set parameters by name, as in scikit-learn; a name that does not exist is explained.

        Examples
        --------
        >>> model.set_params(epsilon=2.0).epsilon
        2.0
        """
        names = [name for name in params if "__" not in name]
        _refuse_unknown(type(self).__name__, names, inspect.signature(type(self).__init__).parameters)
        return super().set_params(**params)  # type: ignore[misc, no-any-return]


def _in_order(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature in the order of ``PARAMETERS``, those of a class alone before its penalty."""
    places = {name: place for place, name in enumerate(["self", *PARAMETERS])}
    alone = places["penalty"] - 0.5
    ordered = sorted(signature.parameters.values(), key=lambda parameter: places.get(parameter.name, alone))
    return signature.replace(parameters=ordered)


def _explaining(function: Callable[..., object]) -> Callable[..., Any]:
    """Return the function with a refusal of its own for keywords that it does not have."""

    @wraps(function)
    def explained(self: object, *args: object, **words: object) -> Any:
        try:
            return function(self, *args, **words)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # of the call, not of its body
                name = type(self).__name__
                where = name if function.__name__ == "__init__" else f"{name}.{function.__name__}"
                _refuse_unknown(where, words, inspect.signature(function).parameters)
            raise

    return explained


def _refuse_unknown(where: str, words: Iterable[str], parameters: Mapping[str, inspect.Parameter]) -> None:
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return  # a subclass that hands its words on
    names = [name for name in parameters if name != "self"]
    for word in words:
        if word in names:
            continue
        close = difflib.get_close_matches(word, names, 1)
        lacks_strength = "alpha" not in names and word in _STRENGTHS
        advice = ADVICE.get("alpha" if lacks_strength else word) or (
            f"did you mean {close[0]}?" if close else f"it has {', '.join(names)}"
        )
        raise UnknownParameter(f"Invalid parameter {word!r} for {where}: {advice}")  # scikit-learn's words


REPEATING = (
    *("sklearn.calibration", "sklearn.ensemble", "sklearn.feature_selection", "sklearn.model_selection"),
    *("sklearn.multiclass", "sklearn.multioutput", "sklearn.semi_supervised"),
)
"""Packages whose estimators and functions fit a model several times."""

SCORE = (
    "an exact score of private rows is a release without noise, which no certificate counts: use private_score, or "
    "public_score where everybody may see the rows"
)
SEARCH = (
    "this model is fitted inside a search or a cross-validation, and charged to no ledger: every fit spends its whole "
    "budget again, and the certificate of the best one does not count the others. Use DPRandomizedSearch, name a "
    "ledger, or set ledger=False where the records are public"
)

LOST_GROUPS = (
    "a search was given groups, and its models are fitted without: they protect single records, not persons. Enable "
    "scikit-learn's metadata routing and call set_fit_request(groups=True) on the model"
)

AUTOLOG = (
    "mlflow.sklearn.autolog is on: it logs exact training scores of pipelines and searches, releases without noise "
    "that no certificate counts. Turn it off with mlflow.sklearn.autolog(disable=True), and use log_to_mlflow"
)

_warned_searches: "WeakSet[object]" = WeakSet()
_warned_lines: set[tuple[str, int]] = set()


def warn_of_exact_score() -> None:
    """Warn the caller of a ``score`` method."""
    warnings.warn(SCORE, PrivacyWarning, stacklevel=3)


def warn_of_autolog() -> None:
    """Warn where MLflow would log exact training scores of the pipeline or search around a fit."""
    autologging = sys.modules.get("mlflow.utils.autologging_utils")
    off = getattr(autologging, "autologging_is_disabled", None)
    if off is not None and "mlflow.sklearn" in sys.modules and not off("sklearn"):
        warnings.warn(AUTOLOG, PrivacyWarning, stacklevel=4)


def warn_of_uncounted_fits(ledger: Any, dataset: str | None, groups: object) -> None:
    """Warn of what a search around a fit leaves uncounted, at the search's caller: its other fits, and its persons.

    A fit without a ledger is warned of once per search and process. A search that is a function, such as
    ``cross_val_score``, and a task of a worker process are recognized by the line that called them. ``ledger=False``
    declares that nothing has to be charged, and is silent.
    """
    search = None if ledger is False else _outermost_search()
    if search is None:
        return
    if account_of(ledger, dataset) is None:
        _warn_of_repeated_fits(search)
    params = search.f_locals.get("params")
    persons = search.f_locals.get("groups")
    persons = params.get("groups") if persons is None and isinstance(params, dict) else persons
    if groups is None and persons is not None:
        _warn_at(_caller(search), LOST_GROUPS)


def _warn_of_repeated_fits(search: FrameType) -> None:
    caller, owner = _caller(search), search.f_locals.get("self")
    line = (caller.f_code.co_filename, caller.f_lineno)
    if owner in _warned_searches if owner is not None else line in _warned_lines:
        return
    _warn_at(caller, SEARCH)
    if owner is None:
        _warned_lines.add(line)
    else:
        _warned_searches.add(owner)


def _warn_at(frame: FrameType, message: str) -> None:
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    line = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(message, PrivacyWarning, *line, module=_module(frame), registry=registry)


def _outermost_search() -> FrameType | None:
    """Return the outermost frame of a package that repeats fits; None where there is none."""
    search: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(REPEATING):
            search = frame
        frame = frame.f_back
    return search


def _caller(search: FrameType) -> FrameType:
    """Return who called the search: the first frame outside of scikit-learn, whose decorators stand between."""
    frame = search
    while frame.f_back is not None and _module(frame).startswith("sklearn."):
        frame = frame.f_back
    return frame


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
