"""Fitted models as plain scikit-learn pipelines that need no class of discreet's to run. All of it is post-processing.

An estimator becomes a scaler that clips by declared ranges, and a linear model. Of a table each column becomes features
that scikit-learn computes, and the features that the curator encodes are a linear function of those, column by column:

    number            scaled to [-1, 1] with 0 for nothing, and an indicator of nothing
    number, knots     B-splines (of a curve cubic ones, else hat functions) with those of the low end for nothing, and
                      an indicator of nothing
    names, levels,    one cell for each way to write a label or nothing, and one for any other text
    truth
    offset            itself, or its logarithm, within its declared range

So with encoded = T features, a coefficient w of the encoded features is w T of these; a product of columns has the
tensor of its coefficients multiplied by T along each axis. T is found by encoding the cells that it is about.
Features are a sparse matrix where there are labels: nearly all cells and nearly all products are 0.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.svm import LinearSVC

from discreet.curator import DEGREE, Layout
from discreet.errors import Unsupported
from discreet.models.base import DPLinearModel
from discreet.models.fit import declared
from discreet.schema.cell_meaning import BLANKS, Label, codes_of, is_number_text, number_of, plain_number
from discreet.schema.columns import Boolean, Category, ColumnKind, Number, Offset, Ordinal
from discreet.schema.schema import Schema
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.models.table_model import TableModel

OTHER_TEXT = "\0other"
"""A text that is no label."""


def spellings(kind: ColumnKind, missing: Iterable[str]) -> dict[str, Label | None]:
    """Return text -> cell for labels and for nothing, as ``str`` writes cells; the empty text is nothing."""
    cells: dict[str, Label | None] = {"": None}
    for text in missing:
        cells |= _written(text, any_case=False)
    for label in _labels(kind):
        for text, cell in _written(label, isinstance(kind, Boolean)).items():
            cells.setdefault(text, cell)
    return {**{str(cell): cell for cell in (math.inf, -math.inf)}, **cells}


def _labels(kind: ColumnKind) -> tuple[Label, ...]:
    if isinstance(kind, Category):
        return kind.categories
    if isinstance(kind, Ordinal):
        return kind.levels
    assert isinstance(kind, Boolean)
    return (*kind.true, *kind.false)


def _written(label: Label, any_case: bool) -> dict[str, Label | None]:
    """Return a label as it is, as a decimal number, as Python writes truth, and with capitals where they are equal."""
    text = label if isinstance(label, str) else plain_number(float(label))
    cells: dict[str, Label | None] = {text: text}
    if any_case:
        cells |= {text.capitalize(): text, text.upper(): text}
    if is_number_text(text) and plain_number(number_of(text)) == text:
        cells.setdefault(repr(number_of(text)), number_of(text))
    if text in ("true", "false"):
        cells.setdefault(text.capitalize(), text == "true")
    return cells


def final_step(model: DPLinearModel, coef: Floats, intercept: Floats) -> Any:
    """Return a scikit-learn estimator that maps features to the model's predictions by these coefficients.

    ``LogisticRegression`` where the model has probabilities, ``LinearSVC`` for other classifiers, ``LinearRegression``
    for numbers, within ``TransformedTargetRegressor``, which clips and exponentiates.
    """
    if hasattr(model, "classes_"):
        if 1 < len(coef) < len(model.classes_):
            raise Unsupported("scikit-learn has no model of ordered classes: use to_onnx, or predict with discreet")
        estimator = LogisticRegression() if hasattr(model, "predict_proba") else LinearSVC()
        estimator.classes_, estimator.coef_, estimator.intercept_ = model.classes_.copy(), coef, intercept
        estimator.n_features_in_, estimator.n_iter_ = coef.shape[1], np.zeros(1, dtype=np.int32)
        return estimator
    return _numbers(model, coef, intercept)


def log_limit(model: DPLinearModel) -> float | None:
    """Return the bound on the logarithm of the mean where predictions are exponentials, None where they are margins."""
    loss, probe = model._facts()[1], np.array([-2.0, 0.5, 3.0])
    mean = model._mean(probe)
    if loss.log_link and np.array_equal(mean, loss.prediction(probe)):
        return float(loss.prediction_limit)
    if not np.array_equal(mean, probe):
        raise Unsupported(f"{type(model).__name__} predicts by a link of its own, which scikit-learn does not have")
    return None


def _clipped(name: str, low: float, high: float) -> tuple[str, Any]:
    return name, FunctionTransformer(None, np.clip, inv_kw_args={"a_min": low, "a_max": high})


def _numbers(model: DPLinearModel, coef: Floats, intercept: Floats) -> Any:
    """Return margins, or exp of them, clipped to the target's range: the inverse of transforms, last one first."""
    steps, limit = [_clipped("range", *target_range(model))], log_limit(model)
    if limit is not None:
        steps += [("exp", FunctionTransformer(np.log, np.exp)), _clipped("limit", -limit, limit)]
    regressor = TransformedTargetRegressor(LinearRegression(), transformer=Pipeline(steps), check_inverse=False)
    regressor.fit(np.zeros((2, coef.shape[1])), np.ones(2))  # made-up rows: a fit sets how predictions are shaped
    linear = regressor.regressor_
    linear.coef_, linear.intercept_, linear.n_features_in_ = coef[0], float(intercept[0]), coef.shape[1]
    return regressor


def target_range(model: DPLinearModel) -> tuple[float, float]:
    """Return the declared range of a regression's target, to which predictions are clipped."""
    target = model._facts()[0].target
    assert target is not None
    return target


def array_pipeline(model: DPLinearModel) -> Pipeline:
    """Return a pipeline that predicts what the fitted model predicts, features clipped to their declared ranges.

    With u = (clip(x) - low) / (high - low), the margin w.clip(x) + b is (w (high - low)).u + (b + w.low).
    """
    names = getattr(model, "feature_names_in_", None)
    low, high = (
        np.asarray(end, dtype=np.float64) for end in declared(model.bounds).ranges(model.n_features_in_, names)
    )
    clip: Any = MinMaxScaler(clip=True).fit(np.stack([low, high]))
    if names is not None:
        clip.feature_names_in_ = names.copy()
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    return Pipeline([("clip", clip), ("model", final_step(model, coef * (high - low), intercept + coef @ low))])


MOST_PRODUCTS = 2_000_000
"""Products of an interaction that a pipeline may compute, those within one column among them."""


@dataclass(frozen=True)
class Block:
    """The features that scikit-learn makes of one column, and the map from them to the encoded ones."""

    first: int
    to_encoded: Floats

    @property
    def places(self) -> list[int]:
        """Where the features stand."""
        return list(range(self.first, self.first + self.to_encoded.shape[1]))


def missing_offset(offset: Offset) -> float:
    """Return what a prediction adds where there is no offset: 0, or the end of the declared range that is nearest."""
    low, high = offset.limits
    return min(max(0.0, low), high)


def table_pipeline(model: "TableModel") -> Pipeline:
    """Return a pipeline of data frames that predicts what the fitted model predicts."""
    schema, fitted = model.schema_, model.estimator_
    columns, blocks = _columns(schema)
    coef, intercept = np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)
    steps: list[tuple[str, Any]] = [("columns", columns)]
    if schema.interactions:
        steps.append(("products", _products(schema, columns, blocks)))
    steps.append(("model", final_step(fitted, _coefficients(schema, blocks, coef), intercept.copy())))
    return Pipeline(steps)


def _columns(schema: Schema) -> tuple[ColumnTransformer, dict[str, Block]]:
    """Return the transformer of columns, fitted on what the schema declares, and the block of each column."""
    import pandas as pd

    kinds = schema.columns
    straight = [name for name, kind in kinds.items() if isinstance(kind, Number) and not _is_spline(kind)]
    bent = [name for name, kind in kinds.items() if isinstance(kind, Number) and _is_spline(kind)]
    labeled = [name for name, kind in kinds.items() if not isinstance(kind, Number)]
    texts = {name: spellings(kinds[name], schema.missing_texts) for name in labeled}
    parts: list[tuple[str, Any, list[str]]] = []
    if straight:
        filled = SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True)
        scaled = [("scale", MinMaxScaler((-1, 1), clip=True)), ("nothing", filled)]
        parts.append(("numbers", Pipeline([*_as_numbers(schema), *scaled]), straight))
    parts += [(f"spline {j}", _spline(schema, name), [name]) for j, name in enumerate(bent)]
    if labeled:
        parts.append(("labels", _one_hot([list(texts[name]) for name in labeled]), labeled))
    cells = {name: [""] * 3 if name in texts else [*kinds[name].limits, math.nan] for name in kinds}  # type: ignore[union-attr]
    if schema.offset is not None:
        parts.append(("offset", _offset(schema, schema.offset), [schema.offset.column]))
        cells[schema.offset.column] = [*schema.offset.range, math.nan]
    transformer = ColumnTransformer(parts, sparse_threshold=1.0).fit(pd.DataFrame(cells))

    blocks: dict[str, Block] = {}
    scaled_at, first = {name: j for j, name in enumerate(straight)}, 2 * len(straight)
    for name in bent:
        blocks[name] = Block(first, _splines_to_encoded_cells(schema, name))
        first += blocks[name].to_encoded.shape[1]
    for name in labeled:
        blocks[name] = Block(first, encoded_cells(schema, name, [OTHER_TEXT, *texts[name].values()]).T)
        first += blocks[name].to_encoded.shape[1]
    if schema.offset is not None:
        blocks[schema.offset.column] = Block(first, np.ones((1, 1)))
    for name, j in scaled_at.items():
        blocks[name] = ScaledBlock(j, _scaled_toencoded_cells(schema, name), len(straight))
    return transformer, blocks


@dataclass(frozen=True)
class ScaledBlock(Block):
    """A scaled number, whose indicator stands behind all scaled numbers."""

    count: int

    @property
    def places(self) -> list[int]:
        """Where the number and its indicator stand."""
        return [self.first, self.first + self.count]


def _as_numbers(schema: Schema) -> list[tuple[str, Any]]:
    """Return steps that make every cell a finite number or NaN, by functions of pandas and numpy."""
    import pandas as pd

    numeric = {"func": pd.to_numeric, "errors": "coerce"}
    steps = [("numeric", FunctionTransformer(pd.DataFrame.apply, kw_args=numeric))]
    codes = codes_of(frozenset(schema.missing_texts))
    if codes:
        none = {"to_replace": codes, "value": math.nan}
        steps.append(("codes", FunctionTransformer(pd.DataFrame.replace, kw_args=none)))
    steps.append(("float", FunctionTransformer(pd.DataFrame.astype, kw_args={"dtype": "float64"})))
    finite = {"nan": math.nan, "posinf": math.nan, "neginf": math.nan}
    steps.append(("finite", FunctionTransformer(np.nan_to_num, kw_args=finite)))
    return steps


def _offset(schema: Schema, offset: Offset) -> Pipeline:
    """Return steps from numbers to what they add to the margin."""
    low, high = offset.range
    clip = FunctionTransformer(np.clip, kw_args={"a_min": low, "a_max": high})
    logarithm = [("logarithm", FunctionTransformer(np.log))] if offset.log else []
    nothing = SimpleImputer(strategy="constant", fill_value=missing_offset(offset))
    return Pipeline([*_as_numbers(schema), ("clip", clip), *logarithm, ("nothing", nothing)])


def _is_spline(kind: Number) -> bool:
    return kind.is_curve or kind.is_bent


def spline_places(kind: Number) -> Floats:
    """Return the knots of a spline in the column's unit, the range's ends among them."""
    low, high = kind.limits
    if not isinstance(kind.knots, int):
        return np.array([low, *kind.knots, high])
    inner = (low / 2 * (1 - u) + high / 2 * (1 + u) for u in kind.scaled_knots[1:-1])
    return np.array([low, *inner, high])


def _splines(kind: Number) -> Pipeline:
    """Return steps from numbers, those of the low end for nothing, to B-splines."""
    low, _ = kind.limits
    degree, places = DEGREE if kind.is_curve else 1, spline_places(kind)[:, np.newaxis]
    splines = SplineTransformer(degree=degree, knots=places, extrapolation="constant")
    return Pipeline([("nothing", SimpleImputer(strategy="constant", fill_value=low)), ("splines", splines)])


def _spline(schema: Schema, name: str) -> Pipeline:
    kind = schema.columns[name]
    assert isinstance(kind, Number)
    both = FeatureUnion([("splines", _splines(kind)), ("nothing", MissingIndicator(features="all"))])
    return Pipeline([*_as_numbers(schema), ("effect", both)])


def _one_hot(texts: Sequence[Sequence[str]]) -> Pipeline:
    """Return steps from cells to texts to codes (-1 for any other) to one cell each."""
    import pandas as pd

    blanks = rf"^[{BLANKS}]+|[{BLANKS}]+$"
    categories = [np.array(words, dtype=object) for words in texts]
    codes = OrdinalEncoder(categories=categories, handle_unknown="use_encoded_value", unknown_value=-1)
    return Pipeline(
        [
            ("cells", FunctionTransformer(pd.DataFrame.astype, kw_args={"dtype": object})),
            ("nothing", FunctionTransformer(pd.DataFrame.mask, kw_args={"cond": pd.isna, "other": ""})),
            ("texts", FunctionTransformer(pd.DataFrame.map, kw_args={"func": str})),
            (
                "blanks",
                FunctionTransformer(pd.DataFrame.replace, kw_args={"to_replace": blanks, "value": "", "regex": True}),
            ),
            ("codes", codes),
            ("cells of codes", OneHotEncoder(categories=[np.arange(-1.0, len(words)) for words in texts])),
        ]
    )


def encoded_cells(schema: Schema, name: str, cells: Sequence[object]) -> Floats:
    """Return the encoded features of cells of one column, as a prediction takes them."""
    layout = Layout(Schema({name: schema.columns[name]}, missing_texts=schema.missing_texts))
    column = np.fromiter(cells, dtype=object, count=len(cells))
    return np.nan_to_num(layout.encode({name: column}, len(cells)))


def _scaled_toencoded_cells(schema: Schema, name: str) -> Floats:
    nothing = encoded_cells(schema, name, [None])[0]
    return np.stack([np.eye(len(nothing))[0], nothing], axis=1)


def _splines_to_encoded_cells(schema: Schema, name: str) -> Floats:
    """Return the map from B-splines and an indicator of nothing: encoded cells determine it, four between two knots."""
    kind = schema.columns[name]
    assert isinstance(kind, Number)
    places = spline_places(kind)
    cells = np.unique([left / 3 * (3 - j) + right / 3 * j for left, right in pairwise(places) for j in range(4)])
    splines = _splines(kind).fit_transform(cells[:, np.newaxis])
    to_encoded = np.linalg.lstsq(splines, encoded_cells(schema, name, cells.tolist()), rcond=None)[0].T
    nothing = encoded_cells(schema, name, [None])[0]
    return np.column_stack([to_encoded, nothing - to_encoded @ splines[0]])


def _products(schema: Schema, columns: ColumnTransformer, blocks: dict[str, Block]) -> FeatureUnion:
    """Return the features, and behind them every product of as many features as an interaction has columns."""
    total = sum(block.to_encoded.shape[1] for block in blocks.values())
    parts: list[tuple[str, Any]] = [("features", "passthrough")]
    for j, group in enumerate(schema.interactions):
        places = sorted(place for name in group for place in blocks[name].places)  # sparse products need an order
        if math.comb(len(places), len(group)) > MOST_PRODUCTS:
            raise Unsupported(f"the interaction of {' and '.join(group)} has too many products for a pipeline")
        chosen = ColumnTransformer([("chosen", "passthrough", places)], sparse_threshold=1.0)
        powers = PolynomialFeatures((len(group), len(group)), interaction_only=True, include_bias=False)
        parts.append((f"product {j}", Pipeline([("columns", chosen), ("products", powers)])))
    return FeatureUnion(parts).fit(csr_array((1, total)) if columns.sparse_output_ else np.zeros((1, total)))


def _coefficients(schema: Schema, blocks: dict[str, Block], coef: Floats) -> Floats:
    """Return the coefficients of scikit-learn's features, from those of the encoded ones."""
    linear = np.zeros((len(coef), sum(block.to_encoded.shape[1] for block in blocks.values())))
    first = 0
    for name in schema.columns:
        last = first + len(blocks[name].to_encoded)
        linear[:, blocks[name].places] = coef[:, first:last] @ blocks[name].to_encoded
        first = last
    if schema.offset is not None:
        linear[:, blocks[schema.offset.column].places] = 1.0
    parts, factors = [linear], Layout(schema).product_factors
    for group in schema.interactions:
        maps = [blocks[name].to_encoded[factors[name]] for name in group]
        last = first + math.prod(len(to_encoded) for to_encoded in maps)
        tensor = coef[:, first:last].reshape(-1, *(len(to_encoded) for to_encoded in maps))
        for to_encoded in maps:
            tensor = np.tensordot(tensor, to_encoded, axes=(1, 0))  # the first axis left goes, its image comes last
        parts.append(_among_combinations(tensor, [blocks[name].places for name in group]))
        first = last
    return np.hstack(parts)


def _among_combinations(tensor: Floats, places: Sequence[Sequence[int]]) -> Floats:
    """Return a tensor's entries (outputs, *features of columns) at their places among all combinations of features."""
    where = np.argsort(np.concatenate(places))
    owner = np.repeat(np.arange(len(places)), [len(block) for block in places])[where]
    within = np.concatenate([np.arange(len(block)) for block in places])[where]
    chosen = np.array(list(combinations(range(len(where)), len(places))))
    by_owner = np.argsort(owner[chosen], axis=1)
    ours = (np.sort(owner[chosen], axis=1) == np.arange(len(places))).all(axis=1)
    entries = np.take_along_axis(within[chosen], by_owner, axis=1)[ours]
    coefficients = np.zeros((len(tensor), len(chosen)))
    coefficients[:, ours] = tensor[:, *entries.T]
    return coefficients
