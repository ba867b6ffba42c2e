"""Every public constructor, method and function that takes a parameter, each with a cheap call that is right.

They are read off the public names and their signatures: a new class, parameter or method is tried without a word here.
``OUTSIDE`` says of the others why not; a name that is in neither makes a test fail.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

import discreet
from discreet import default, losses, models, penalties, schema, solvers
from discreet.accounting import Plan, Release, price_plan
from discreet.curator import PrivateData
from discreet.models import SchemaEncoder, TableSearch, make_private_pipeline
from discreet.models.base import MODELS
from discreet.schema import Number, Target
from tests import registry
from tests.public_names import callables
from tests.report.samples import bent_effects, effects

PACKAGES = (
    *("discreet", "discreet.curator", "discreet.default", "discreet.losses", "discreet.models"),
    *("discreet.penalties", "discreet.schema", "discreet.solvers"),
)
OUTSIDE = {
    **dict.fromkeys(("Certificate", "Coefficient", "EffectsForecast", "Forecast", "Intervals"), "made by a fit"),
    "ExpectedEffect": "made by a quote",
    **dict.fromkeys(("MeanInterval", "PrivateScore", "ScorePart", "Summary", "WaldTest"), "made by a fit"),
    "EffectsTable": "made by etable",
    **dict.fromkeys(("Explanation", "TermEffect"), "made of a fit"),
    **dict.fromkeys(
        ("CurveFeatures", "DPAdditiveClassifier", "DPAdditiveRegressor"), "tried by tests/models/test_additive"
    ),
    **dict.fromkeys(("Curator", "Problem", "Recoding"), "for authors of solvers: asked after the charge"),
    **dict.fromkeys(("register", "register_loss", "register_model", "register_penalty"), "take a class"),
    **dict.fromkeys(("Loss", "Penalty"), "take no parameters"),
    **dict.fromkeys(("Ledger", "load", "remote"), "take an address"),
    "log_to_mlflow": "needs a tracking server",
    "ExactMinimizer": "releases without noise, which no ledger pays for",
}
SEEN = ("X", "y", "sample_weight")
"""Rows that the caller may see: scikit-learn checks them in its own words, and nothing is charged."""
EPSILON, DELTA, DATASET = 2.0, 1e-6, "table"
_RNG = np.random.default_rng(0)
X = _RNG.uniform(-1, 1, (60, 3))
LABELS = (X[:, 0] + _RNG.logistic(size=60) > 0).astype(int)  # of both classes everywhere: else no effect is finite
NUMBERS = np.clip(X @ [1.0, -1.0, 0.5], -1, 1)
RANKS = np.digitize(NUMBERS, [-0.3, 0.3])
COUNTS = np.floor(3 * np.abs(NUMBERS))
TABLE = {"age": list(range(20, 80)), "ill": LABELS.tolist(), "days": list(range(1, 61))}
CHEAP = {"n_steps": 2, "n_rounds": 3, "n_epochs": 1, "n_inner": 2, "n_outer": 1, "n_kept": 1, "batch_size": 30.0}
WITH_METHODS, MUCH = ("DPLogisticRegression", "DPRidge"), 1e4
SOLVERS = {name: getattr(home, name) for home in (default, solvers) for name in home.__all__}
GD = solvers.GradientDescent(n_steps=2)
Words = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """Something to call: ``run`` takes the account that pays, and parameters of these names in place of right ones."""

    name: str
    parameters: tuple[str, ...]
    run: Callable[[Words, Words], Any]


def names_of(thing: Any) -> tuple[str, ...]:
    """Return the parameters that can be handed in by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(thing).parameters.values()
    return tuple(parameter.name for parameter in found if parameter.kind in kinds and parameter.name != "self")


# --- estimators ---------------------------------------------------------------------------------------


def targets_of(name: str) -> Any:
    """Return targets that an estimator takes."""
    if name == "DPPoissonRegressor":
        return COUNTS
    if name == "DPOrdinalRegression":
        return RANKS
    return LABELS if issubclass(getattr(models, name), ClassifierMixin) else NUMBERS


def right(name: str) -> Words:
    """Return parameters of an estimator that are right."""
    y = targets_of(name)
    classes = {id(LABELS): (0, 1), id(RANKS): (0, 1, 2)}.get(id(y))
    bounds = discreet.Bounds(1.0, classes=classes, target=None if classes else (0.0, 3.0))
    return {"epsilon": EPSILON, "delta": DELTA, "bounds": bounds, "solver": GD}


def fit(name: str, account: Words, words: Words) -> Any:
    """Fit an estimator."""
    return getattr(models, name)(**{**right(name), **account, **words}).fit(X, targets_of(name))


def _fit_with(name: str, account: Words, words: Words) -> Any:
    given = {"X": X, "y": targets_of(name), **words}
    return getattr(models, name)(**right(name), **account).fit(**given)


@cache
def fitted(name: str) -> Any:
    """Return a released model."""
    inferring = {"inference": "sandwich", "epsilon": MUCH} if name in WITH_METHODS else {}
    return fit(name, {"ledger": False}, {"solver": "auto", **inferring})


@cache
def stepped(name: str) -> Any:
    """Return a released model whose noise is known: without effects, by gradient steps."""
    return fit(name, {"ledger": False}, {})


def _method(name: str, method: str, account: Words, words: Words) -> Any:
    model, y = (stepped if method == "intervals" else fitted)(name), targets_of(name)
    given = {"n": 300, "p": 3, "epsilons": [1.0], "n_grid": [300], "seeds": 2} if method.startswith("forecast") else {}
    given |= {"X": X, "y": y, "path": str(Path(mkdtemp()) / "model.discreet")}
    found = {key: value for key, value in {**given, **words}.items() if key in names_of(getattr(model, method))}
    return getattr(model, method)(**found)


def _estimators() -> Iterator[Entry]:
    for key in MODELS:
        cls = MODELS[key]
        name = cls.__name__
        yield Entry(name, names_of(cls), partial(fit, name))
        yield Entry(f"{name}.fit", names_of(cls.fit)[1:], partial(_fit_with, name))
    for name in WITH_METHODS:
        for method, thing in inspect.getmembers(getattr(models, name), inspect.isfunction):
            own = thing.__module__.startswith("discreet.") and not method.startswith("_")
            found = tuple(word for word in names_of(thing) if method == "quote" or word not in SEEN)
            if own and method not in ("fit", "set_params") and found:
                yield Entry(f"{name}.{method}", found, partial(_method, name, method))


# --- what is handed to them ---------------------------------------------------------------------------


def _whole(name: str, part: Any) -> Any:
    """Return a solver that runs a part of one."""
    around = {
        "AdaptiveClip": lambda: solvers.CoordinateDescent(n_inner=2, adaptive=part),
        "Geometry": lambda: solvers.CoordinateDescent(n_inner=2, geometry=part),
        "Limits": lambda: solvers.Sandwich(solvers.Preconditioned(GD), limits=part),
        "Shares": lambda: default.Recipe(n_steps=2, shares=part),
    }
    return around.get(name, lambda: part)()


def _solver(name: str, estimator: str, account: Words, words: Words) -> Any:
    cls = SOLVERS[name]
    given = {key: value for key, value in CHEAP.items() if key in names_of(cls)}
    inner = solvers.Preconditioned(GD) if name == "Sandwich" else GD
    given |= {"solver": inner} if "solver" in names_of(cls) else {}
    given |= {"reach": 3.0, "slope": 8.0} if name == "Limits" else {}
    if {"batch_size", "sampling_probability"} & set(words):
        given.pop("batch_size", None)
    given |= {"radius": 3.0} if name == "ExponentialMechanism" else {}
    much = {"epsilon": MUCH} if name in ("Sandwich", "Limits") else {}
    return fit(estimator, account, {"solver": _whole(name, cls(**{**given, **words})), **much})


def _loss(name: str, account: Words, words: Words) -> Any:
    cls = getattr(losses, name)
    (given,) = (loss._asdict() for loss in registry.LOSSES.values() if type(loss) is cls)
    loss = cls(**{**given, **words})
    estimator = "DPClassifier" if loss.task == "classification" else "DPRegressor"
    facts = {"bounds": discreet.Bounds(1.0, classes=(0, 1, 2))} if name == "Softmax" else {}
    return fit(estimator, account, {**facts, "loss": loss})


def _penalty(name: str, estimator: str, account: Words, words: Words) -> Any:
    known = {"strength": 1e-3, "l1": 1e-3, "l2": 1e-3, "low": -1.0, "high": 1.0, "radius": 1.0, "groups": ((0, 1),)}
    cls = getattr(penalties, name)
    made = cls(**{**{key: value for key, value in known.items() if key in names_of(cls)}, **words})
    solver = solvers.CoordinateDescent(n_inner=2) if estimator == "DPRegressor" and made.separable else GD
    return fit(estimator, account, {"penalty": made, "solver": solver})


def _parts() -> Iterator[Entry]:
    for name, cls in SOLVERS.items():
        if is_dataclass(cls) and name not in OUTSIDE:
            for estimator in ("DPLogisticRegression", "DPRidge"):
                run = partial(_solver, name, estimator)
                yield Entry(f"{name} in {estimator}", names_of(cls), run)
    for name in losses.__all__:
        if found := names_of(getattr(losses, name)) if isinstance(getattr(losses, name), type) else ():
            yield Entry(name, found, partial(_loss, name))
    for name in penalties.__all__:
        cls = getattr(penalties, name)
        if isinstance(cls, type) and (found := names_of(cls)):
            for estimator in ("DPClassifier", "DPRegressor"):
                yield Entry(f"{name} in {estimator}", found, partial(_penalty, name, estimator))


# --- everything else ----------------------------------------------------------------------------------


def _bounds(name: str, account: Words, words: Words) -> Any:
    given = {"features": 1.0, "classes": (0, 1), "target": (0.0, 3.0)}
    bounds = discreet.Bounds(**{**given, **words})
    relation = "add_remove" if "n" in words else "replace_one"
    return fit(name, account, {"bounds": bounds, "neighbors": relation})


def _open(account: Words, words: Words, budget: Any = None) -> Any:
    given = {"X": X, "y": LABELS, "bounds": discreet.Bounds(1.0, classes=(0, 1)), **account, **words}
    priced = price_plan(Plan([Release("noisy_gradient", 2)]), budget or discreet.Budget(EPSILON, DELTA))
    curator = PrivateData(**given).open(priced, losses.Logistic())
    return curator.noisy_gradient(np.zeros(curator.domain.shape), clip=1.0)


def _budget(account: Words, words: Words) -> Any:
    return _open(account, {}, discreet.Budget(**{"epsilon": EPSILON, "delta": DELTA, **words}))


def _private_score(name: str, account: Words, words: Words) -> Any:
    given = {"model": fitted(name), "X": X, "y": targets_of(name), "epsilon": 1.0, **account, **words}
    return discreet.private_score(**given)


def _public_score(account: Words, words: Words) -> Any:
    return discreet.public_score(**{"model": fitted("DPRidge"), "X": X, "y": NUMBERS, **words})


def _candidate(account: Words, words: Words) -> Any:
    """Search among candidates of which one is hostile."""
    model = discreet.DPLogisticRegression(**right("DPLogisticRegression"))
    listed = [{}, *([{key: value} for key, value in words.items()])]
    return _searched(account, {"estimator": model.set_params(epsilon=1.0, delta=None), "candidates": listed})


def _searched(account: Words, words: Words) -> Any:
    model = discreet.DPLogisticRegression(**right("DPLogisticRegression")).set_params(epsilon=1.0, delta=None)
    given = {"estimator": model, "candidates": {"alpha": [1e-3, 1e-1]}, "mean_runs": 2.0, "epsilon": EPSILON}
    return discreet.DPRandomizedSearch(**{**given, **account, **words}).fit(X, LABELS)


def declared() -> Any:
    """Return a schema that is right."""
    return discreet.Schema({"age": Number((0, 120))}, Target("ill", classes=(0, 1)))


def _unbounded(account: Words) -> Any:
    return discreet.DPLogisticRegression(epsilon=EPSILON, delta=DELTA, solver=GD, **account)


def _table_model(account: Words, words: Words) -> Any:
    return discreet.TableModel(**{"schema": declared(), "estimator": _unbounded(account), **words}).fit(TABLE)


def _table_fit(account: Words, words: Words) -> Any:
    return discreet.TableModel(declared(), _unbounded(account)).fit(**{"data": TABLE, **words})


def _table_search(account: Words, words: Words) -> Any:
    model = discreet.DPLogisticRegression(solver=GD)
    search = discreet.DPRandomizedSearch(model, {"alpha": [1e-3, 1e-1]}, mean_runs=2.0, epsilon=EPSILON, **account)
    return TableSearch(**{"schema": declared(), "search": search, **words}).fit(TABLE)


def _pipeline(account: Words, words: Words) -> Any:
    given = {"schema": declared(), "estimator": _unbounded(account), **words}
    return make_private_pipeline(**given).fit({"age": TABLE["age"]}, LABELS)


def _coefficients(account: Words, words: Words) -> Any:
    pipeline = _pipeline({"ledger": False}, {})
    return models.coefficients(**{"pipeline": pipeline, **words})


def _encoder(account: Words, words: Words) -> Any:
    return SchemaEncoder(**{"schema": declared(), **words}).fit_transform({"age": TABLE["age"]})


def _column(name: str, account: Words, words: Words) -> Any:
    known = {"range": (0, 120), "values": ("a", "b"), "column": "ill", "levels": ("a", "b"), "classes": (0, 1)}
    known |= {"column": "days"} if name in ("Weight", "Offset") else {}
    cls = getattr(schema, name)
    required = [one.name for one in inspect.signature(cls).parameters.values() if one.default is one.empty]
    required += ["classes"] if name == "Target" and "range" not in words else []
    made = cls(**{**{key: known.get(key, ("a", "b")) for key in required}, **words})
    if name == "Target":
        return _table_model(account, {"schema": discreet.Schema({"age": Number((0, 120))}, made)})
    if name in ("Weight", "Offset"):
        beside = {"target": Target("ill", classes=(0, 1)), name.lower(): made}
        return _table_model(account, {"schema": discreet.Schema({"age": Number((0, 120))}, **beside)})
    return _table_model(account, {"schema": discreet.Schema({"age": made}, Target("ill", classes=(0, 1)))})


def _schema(account: Words, words: Words) -> Any:
    given = {"columns": {"age": Number((0, 120))}, "target": Target("ill", classes=(0, 1)), **words}
    return _table_model(account, {"schema": discreet.Schema(**given)})


def _compared(account: Words, words: Words) -> Any:
    given = {"sensitivities": [1.0, 0.1], "smoothness": [1.0, 0.1], "solution": [0.1, 3.0], **words}
    return solvers.compare_bounds(**given)


def _side_by_side(account: Words, words: Words) -> Any:
    return discreet.etable(**{"models": effects(), **words})


SUMMARY = {
    "wald_test": {"hypotheses": "age"},
    "contrast": {"combinations": "age at 40"},
    "nonlinearity_test": {"column": "age"},
    "curve": {"column": "age"},
    "tidy": {},
    "epsilon_for": {"effect": "age at 40", "standard_error": 1.0},
    "conf_int": {},
    "ratios": {},
}
"""Methods of a summary with what they need."""


def _summary(method: str, account: Words, words: Words) -> Any:
    return getattr(bent_effects(), method)(**{**SUMMARY[method], **words})


def _others() -> Iterator[Entry]:
    yield Entry("etable", names_of(discreet.etable), _side_by_side)
    for method in SUMMARY:
        yield Entry(f"Summary.{method}", names_of(getattr(models.Summary, method)), partial(_summary, method))
    for name in ("DPLogisticRegression", "DPRidge"):
        yield Entry(f"Bounds in {name}", names_of(discreet.Bounds), partial(_bounds, name))
        yield Entry(f"private_score of {name}", names_of(discreet.private_score), partial(_private_score, name))
    yield Entry("Budget", names_of(discreet.Budget), _budget)
    yield Entry("PrivateData", names_of(PrivateData), _open)
    yield Entry("public_score", tuple(set(names_of(discreet.public_score)) - set(SEEN)), _public_score)
    yield Entry("DPRandomizedSearch", names_of(discreet.DPRandomizedSearch), _searched)
    yield Entry("a candidate of DPRandomizedSearch", names_of(discreet.DPLogisticRegression), _candidate)
    yield Entry("TableModel", names_of(discreet.TableModel), _table_model)
    yield Entry("TableModel.fit", names_of(discreet.TableModel.fit), _table_fit)
    yield Entry("TableSearch", names_of(TableSearch), _table_search)
    yield Entry("SchemaEncoder", names_of(SchemaEncoder), _encoder)
    yield Entry("make_private_pipeline", names_of(make_private_pipeline), _pipeline)
    yield Entry("coefficients", names_of(models.coefficients), _coefficients)
    yield Entry("compare_bounds", names_of(solvers.compare_bounds), _compared)
    yield Entry("Schema", names_of(discreet.Schema), _schema)
    for name in ("Boolean", "Category", "Number", "Offset", "Ordinal", "Target", "Weight"):
        yield Entry(name, names_of(getattr(schema, name)), partial(_column, name))


@cache
def entries() -> dict[str, Entry]:
    """Return every entry by its name."""
    return {entry.name: entry for entry in (*_estimators(), *_parts(), *_others())}


def left_out() -> set[str]:
    """Return public names that no entry tries and that are not known to be outside."""
    tried = {word for name in entries() for word in name.replace(".", " ").split()}
    plain = {name for name, thing in callables(*PACKAGES).items() if not _is_plain(thing)}
    return plain - tried - set(OUTSIDE) - {"NoPenalty"}


def _is_plain(thing: Any) -> bool:
    """Say whether this is an error or an enumeration: no configuration."""
    return isinstance(thing, type) and issubclass(thing, (Exception, Enum))
