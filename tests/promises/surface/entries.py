"""Every way in which records enter discreet from Python, each with cheap settings.

``covers`` names what an entry tries, as ``"name"`` or ``"name.method"`` of the public names; a test compares them with
what the package offers, so that a new way in without a case here makes it fail.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import discreet
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.budget import Neighbors
from discreet.curator import PrivateData
from discreet.losses import Logistic
from discreet.models import CurveFeatures, SchemaEncoder, TableSearch, make_private_pipeline
from discreet.schema import Boolean, Category, Number, Target
from discreet.solvers.gd import GradientDescent
from tests.promises.surface.observing import RICH, WatchedLedger, account_name, masked
from tests.promises.surface.rows import ANSWER, MATRIX, ROWS, TABLE, WHO, Cells, matrix_cells, table_cells

EPSILON, DELTA = 1.0, 1e-5
_GD = GradientDescent(n_steps=2, clip=0.5, step_size=0.1)
CLASSIFIERS = ("DPLogisticRegression", "DPLinearSVC", "DPClassifier", "DPOrdinalRegression")
ORDERED = (0, 1, 2)
"""The classes of an ordinal regression: of the last one there are no rows."""
REGRESSORS = (
    *("DPRegressor", "DPLinearRegression", "DPRidge", "DPLasso", "DPElasticNet", "DPHuberRegressor"),
    *("DPPoissonRegressor", "DPNegativeBinomialRegressor", "DPGammaRegressor", "DPTweedieRegressor"),
    "DPQuantileRegressor",
)

ALIKE = 4
"""One value in so many, for entries that share all their code with another."""
ROWS_SHOWN = "what it makes of each row is what it is for; it is given rows that its caller may see"
SCORE_SHOWN = "the rows are declared public: the score is exact"


@dataclass(frozen=True, repr=False)
class Task:
    """What an entry is given: a table in a container, and where it is charged."""

    table: Any
    y: Any
    groups: Any
    relation: Neighbors
    ledger: WatchedLedger
    dataset: str
    out: Path
    n: int | None
    purse: str = RICH

    @property
    def account(self) -> dict[str, Any]:
        """Where to charge."""
        return {"ledger": self.ledger, "dataset": self.dataset}

    @property
    def budget(self) -> dict[str, Any]:
        """What may be spent."""
        return {"epsilon": EPSILON, "delta": DELTA, "neighbors": str(self.relation)}


class Held:
    """Objects that hold records by design: only how they show themselves is compared."""

    def __init__(self, *objects: Any) -> None:
        self._objects = objects

    def __reduce__(self) -> Any:
        raise TypeError("whoever pickles records has them in a pickle")

    def __repr__(self) -> str:
        return " ".join(f"{one!r} {one}" for one in self._objects)

    def equals(self, other: "Held") -> bool:
        """Everything that may be compared is in the text."""
        return masked(repr(self).encode()) == masked(repr(other).encode())


@dataclass(frozen=True)
class Entry:
    """A way in.

    Parameters
    ----------
    name
        For the user.
    covers
        The public names that it tries.
    cells, features
        The plain table, and the columns that are handed in as one table.
    run
        Takes a task, returns what its caller gets.
    targets
        Whether targets are handed in by themselves.
    persons
        Whether persons are protected.
    pays, reads
        Whether it must be charged before it reads a record, and whether it may read records at all.
    shows
        Kinds of observations that are declared to depend on the records, each with its reason.
    files, memory
        Whether tables in files, and in memory, are handed in.
    relations
        Between which neighbors.
    every
        One value in so many is tried: for what takes long.
    """

    name: str
    covers: tuple[str, ...]
    cells: Callable[[], Cells]
    features: tuple[str, ...]
    run: Callable[[Task], Any]
    targets: bool = True
    persons: bool = False
    pays: bool = True
    reads: bool = True
    shows: Mapping[str, str] = field(default_factory=dict)
    files: bool = False
    memory: bool = True
    relations: tuple[Neighbors, ...] = tuple(Neighbors)
    every: int = 1

    @property
    def unit(self) -> str:
        """Whom it protects."""
        return "person" if self.persons else "record"

    @property
    def places(self) -> tuple[str, ...]:
        """Columns in which a hostile cell may stand."""
        more = [ANSWER] if self.targets else []
        more += [WHO] if self.persons else []
        return tuple(dict.fromkeys((*self.features, *more)))

    def dataset(self, relation: Neighbors, purse: str) -> str:
        """The account that is charged."""
        return account_name(relation, self.unit, purse)

    def declared_n(self, relation: Neighbors) -> int | None:
        """The number of records or persons, where it must be declared."""
        return None if relation.n_is_public else ROWS // 2 if self.persons else ROWS


# --- estimators ---------------------------------------------------------------------------------------


def bounds_of(name: str, n: int | None, worded: bool = False) -> Any:
    """The declared facts of the matrix."""
    features = [(0.0, 1.0)] * len(MATRIX)
    if name in CLASSIFIERS:
        classes = ORDERED if name == "DPOrdinalRegression" else ("no", "yes") if worded else (0, 1)
        return discreet.Bounds(features=features, classes=classes, n=n)
    return discreet.Bounds(features=features, target=(0.0, 1.0), n=n)


def estimator(name: str, task: Task | None = None, *, worded: bool = False, named: bool = False) -> Any:
    """An estimator that takes a millisecond; without a task, one that is charged nowhere."""
    bounds = bounds_of(name, None if task is None else task.n, worded)
    if named:
        ranges = dict.fromkeys(MATRIX, (0.0, 1.0))
        bounds = discreet.Bounds(features=ranges, classes=bounds.classes, target=bounds.target, n=bounds.n)
    charged: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "ledger": False}
    if task is not None:
        charged = {**task.budget, **task.account}
    return getattr(discreet.models, name)(bounds=bounds, solver=_GD, **charged)


def _fit(name: str, task: Task, **how: bool) -> Any:
    return estimator(name, task, **how).fit(task.table, task.y, task.groups)


def _quote(name: str, task: Task) -> Any:
    return estimator(name, task).quote(task.table, task.y, task.groups)


@cache
def fitted(name: str) -> Any:
    """A released model."""
    cells = matrix_cells()
    X = list(zip(*(cells.columns[column] for column in MATRIX), strict=True))
    return estimator(name).fit(X, cells.columns[ANSWER])


def _saved(task: Task) -> Any:
    path = _fit("DPLogisticRegression", task).save(task.out / "model.discreet")
    return discreet.load(path)


def _selection(task: Task, inner: Any) -> Any:
    return discreet.DPRandomizedSearch(inner, {"alpha": [1e-3, 1e-1]}, mean_runs=2, **task.budget, **task.account)


def _select(method: str, task: Task) -> Any:
    inner = estimator("DPLogisticRegression", task).set_params(ledger=None, dataset=None)
    return getattr(_selection(task, inner), method)(task.table, task.y, task.groups)


def _opened(task: Task) -> Any:
    data = PrivateData(
        task.table, task.y, bounds_of("DPLogisticRegression", task.n), groups=task.groups, **task.account
    )
    plan = Plan([Release("noisy_gradient", 2)])
    curator = data.open(price_plan(plan, discreet.Budget(EPSILON, DELTA, task.relation)), Logistic())
    return Held(data, curator)


def _score(name: str, metric: str, task: Task) -> Any:
    budget = task.budget | {"delta": DELTA}
    return discreet.private_score(
        fitted(name), task.table, task.y, task.groups, metric=metric, **budget, **task.account
    )


def _public_score(task: Task) -> Any:
    return discreet.public_score(fitted("DPLogisticRegression"), task.table, task.y)


def _additive(name: str, method: str, task: Task) -> Any:
    alike = "DPLogisticRegression" if "Classifier" in name else "DPRidge"
    model = getattr(discreet.models, name)(bounds=bounds_of(alike, task.n), **task.budget, **task.account)
    return getattr(model, method)(task.table, task.y, task.groups)


def _curves(method: str, task: Task) -> Any:
    return getattr(CurveFeatures([(0.0, 1.0)] * len(MATRIX), knots=3), method)(task.table)


def _additives() -> Iterator[Entry]:
    for name in ("DPAdditiveClassifier", "DPAdditiveRegressor"):
        for method in ("fit", "quote"):
            run = partial(_additive, name, method)
            yield Entry(f"{name}.{method}", (f"{name}.{method}",), matrix_cells, MATRIX, run, reads=method == "fit",
                        every=ALIKE)  # fmt: skip
    fit = partial(_additive, "DPAdditiveClassifier", "fit")
    yield Entry("DPAdditiveClassifier.fit, persons", (), matrix_cells, MATRIX, fit, persons=True, every=ALIKE)
    yield Entry("CurveFeatures.fit", ("CurveFeatures.fit",), matrix_cells, MATRIX, partial(_curves, "fit"), pays=False,
                reads=False, every=ALIKE)  # fmt: skip
    for method in ("transform", "fit_transform"):
        yield Entry(f"CurveFeatures.{method}", (f"CurveFeatures.{method}",), matrix_cells, MATRIX,
                    partial(_curves, method), pays=False, shows={"result": ROWS_SHOWN}, every=ALIKE)  # fmt: skip


def _estimators() -> Iterator[Entry]:
    for name in (*CLASSIFIERS, *REGRESSORS):
        fit, quote = partial(_fit, name), partial(_quote, name)
        every = 1 if name in ("DPLogisticRegression", "DPRidge") else ALIKE
        yield Entry(f"{name}.fit", (f"{name}.fit",), matrix_cells, MATRIX, fit, every=every)
        yield Entry(f"{name}.quote", (f"{name}.quote",), matrix_cells, MATRIX, quote, reads=False, every=every)
    logistic = partial(_fit, "DPLogisticRegression")
    worded = partial(matrix_cells, worded=True)
    yield Entry("DPLogisticRegression.fit, labels in words", (), worded, MATRIX, partial(logistic, worded=True))
    yield Entry("DPLogisticRegression.fit, named bounds", (), matrix_cells, MATRIX, partial(logistic, named=True))
    yield Entry("DPLogisticRegression.fit, persons", (), matrix_cells, MATRIX, logistic, persons=True)
    numbered = partial(matrix_cells, numbered=True)
    yield Entry("DPLogisticRegression.fit, numbered persons", (), numbered, MATRIX, logistic, persons=True)
    ordinal = partial(_fit, "DPOrdinalRegression")
    yield Entry("DPOrdinalRegression.fit, persons", (), matrix_cells, MATRIX, ordinal, persons=True, every=ALIKE)
    yield Entry("DPRidge.fit, persons", (), matrix_cells, MATRIX, partial(_fit, "DPRidge"), persons=True, every=ALIKE)
    covers = (*(f"{name}.save" for name in (*CLASSIFIERS, *REGRESSORS)), "load")
    yield Entry("save and load", covers, matrix_cells, MATRIX, _saved, every=ALIKE)
    select = partial(_select, "fit")
    yield Entry(
        "DPRandomizedSearch.fit", ("DPRandomizedSearch.fit", "DPRandomizedSearch.save"), matrix_cells, MATRIX, select
    )
    yield Entry("DPRandomizedSearch.fit, persons", (), matrix_cells, MATRIX, select, persons=True, every=ALIKE)
    quote = partial(_select, "quote")
    yield Entry(
        "DPRandomizedSearch.quote", ("DPRandomizedSearch.quote",), matrix_cells, MATRIX, quote, reads=False, every=ALIKE
    )
    yield Entry("PrivateData.open", ("PrivateData", "PrivateData.open"), matrix_cells, MATRIX, _opened)
    yield Entry("PrivateData.open, persons", (), matrix_cells, MATRIX, _opened, persons=True, every=ALIKE)
    logistic = [("DPLogisticRegression", metric) for metric in ("accuracy", "log_loss", "calibration", "confusion")]
    for name, metric in (*logistic, ("DPLinearSVC", "auc"), ("DPRidge", "r2")):
        run = partial(_score, name, metric)
        every = 1 if metric == "accuracy" else ALIKE
        yield Entry(f"private_score, {metric}", ("private_score",), matrix_cells, MATRIX, run, every=every)
    run = partial(_score, "DPLogisticRegression", "accuracy")
    yield Entry("private_score, persons", (), matrix_cells, MATRIX, run, persons=True)
    shown = {"result": SCORE_SHOWN}
    yield Entry("public_score", ("public_score",), matrix_cells, MATRIX, _public_score, pays=False, shows=shown)


# --- tables -------------------------------------------------------------------------------------------


def schema_of(n: int | None, *, persons: bool = False, private: bool = False) -> Any:
    """What is declared of the table."""
    age = Number(range="private", within=(0, 1000)) if private else Number(range=(0, 120))
    return discreet.Schema(
        columns={"age": age, "color": Category(("red", "blue")), "smoker": Boolean()},
        target=Target(ANSWER, classes=("low", "high")),
        person=WHO if persons else None,
        ignore=() if persons else (WHO,),
        rows=n,
    )


def _table_model(task: Task, rows: int | None = None, **how: bool) -> Any:
    model = discreet.DPLogisticRegression(solver=_GD, **task.budget, **task.account)
    return discreet.TableModel(schema_of(task.n or rows, **how), model)


def _fit_table(task: Task, **how: bool) -> Any:
    return _table_model(task, **how).fit(task.table)


def _saved_table(task: Task) -> Any:
    model = _fit_table(task)
    model.save(task.out / "model")
    return discreet.TableModel.load(task.out / "model").coefficients()


@cache
def fitted_table() -> Any:
    """A released model of the table."""
    model = discreet.DPLogisticRegression(EPSILON, DELTA, solver=_GD, ledger=False)
    return discreet.TableModel(schema_of(None), model).fit(table_cells().columns)


def _score_table(task: Task) -> Any:
    return fitted_table().private_score(task.table, **task.budget, **task.account)


def _of_table(method: str, task: Task) -> Any:
    found = getattr(fitted_table(), method)(task.table)
    return list(found) if method == "predictions" else found


def _rows_of_table(task: Task) -> Any:
    return Held(fitted_table().rows(task.table), fitted_table().stream(task.table))


def _select_on_table(method: str, task: Task, **how: bool) -> Any:
    selection = _selection(task, discreet.DPLogisticRegression(solver=_GD))
    return getattr(TableSearch(schema_of(task.n, **how), selection), method)(task.table)


def _encoder(method: str, task: Task) -> Any:
    return getattr(SchemaEncoder(schema_of(None)), method)(task.table)


def _pipeline(task: Task) -> Any:
    model = discreet.DPLogisticRegression(solver=_GD, classes=("low", "high"), **task.budget, **task.account)
    return make_private_pipeline(schema_of(task.n), model).fit(task.table, task.y)


def _tables() -> Iterator[Entry]:
    names = (*TABLE, ANSWER, WHO)

    def entry(name: str, covers: tuple[str, ...], run: Callable[[Task], Any], **how: Any) -> Entry:
        return Entry(name, covers, table_cells, names, run, files=True, **{"targets": False, **how})

    yield entry("TableModel.fit", ("TableModel.fit",), _fit_table)
    yield entry("TableModel.fit, persons", (), partial(_fit_table, persons=True), persons=True)
    yield entry("TableModel.fit, a private range", (), partial(_fit_table, private=True))
    yield Entry("TableModel.fit, declared rows", (), table_cells, names,
                lambda task: _table_model(task, rows=ROWS).fit(task.table), targets=False)  # fmt: skip
    yield entry("TableModel.save", ("TableModel.save", "TableModel.load"), _saved_table, every=ALIKE)
    yield entry("TableModel.quote", ("TableModel.quote",), lambda task: _table_model(task).quote(task.table),
                reads=False)  # fmt: skip
    yield entry("TableModel.private_score", ("TableModel.private_score",), _score_table)
    yield entry("TableModel.rows", ("TableModel.rows", "TableModel.stream"), _rows_of_table, reads=False, every=ALIKE)
    selected = partial(_select_on_table, "fit")
    yield entry("TableSearch.fit", ("TableSearch.fit",), selected, every=ALIKE)
    yield entry("TableSearch.fit, persons", (), partial(selected, persons=True), persons=True, every=ALIKE)
    yield entry("TableSearch.quote", ("TableSearch.quote",), partial(_select_on_table, "quote"), reads=False,
                every=ALIKE)  # fmt: skip
    shown = {"result": ROWS_SHOWN}
    for method in ("predict", "predict_proba", "predictions"):
        every = 1 if method == "predict" else ALIKE
        yield entry(f"TableModel.{method}", (f"TableModel.{method}",), partial(_of_table, method),
                    pays=False, shows=shown, every=every)  # fmt: skip
    yield entry("TableModel.public_score", ("TableModel.public_score",), partial(_of_table, "public_score"),
                pays=False, shows={"result": SCORE_SHOWN}, every=ALIKE)  # fmt: skip
    yield entry("SchemaEncoder.fit", ("SchemaEncoder.fit",), partial(_encoder, "fit"), reads=False)
    for method in ("transform", "fit_transform"):
        every = 1 if method == "transform" else ALIKE
        yield entry(f"SchemaEncoder.{method}", (f"SchemaEncoder.{method}",), partial(_encoder, method),
                    pays=False, shows=shown, every=every)  # fmt: skip
    yield Entry("make_private_pipeline", ("make_private_pipeline",), table_cells, TABLE, _pipeline, pays=False)


@cache
def python_entries() -> tuple[Entry, ...]:
    """All of them."""
    return (*_estimators(), *_additives(), *_tables())
