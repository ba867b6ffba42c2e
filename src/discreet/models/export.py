"""Fitted models as plain scikit-learn pipelines and ONNX graphs, which need no class of discreet's. Post-processing.

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

An ONNX graph (clip, encode, multiply, link) encodes by the same cells and maps. It takes and returns single precision
and computes in double: terms of rare cells may be large and cancel. A label's text is
looked up in the table of its encoded features. A number with knots t_0 < ... < t_k is the ramps
clip((x - t_i) / (t_i+1 - t_i), 0, 1), of which hat functions are differences; a curve also takes their squares and
cubes, as it is a cubic polynomial of each.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
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

from discreet import __version__
from discreet.accounting.certificate import Certificate
from discreet.curator import DEGREE, Layout
from discreet.errors import MissingExtra, Unsupported
from discreet.losses.base import LEAST_LOG
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
        steps += [("exp", FunctionTransformer(np.log, np.exp)), _clipped("limit", LEAST_LOG, limit)]
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
        nothing = encoded_cells(schema, name, [None])[0]
        blocks[name] = ScaledBlock(j, np.stack([np.eye(len(nothing))[0], nothing], axis=1), len(straight))
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


OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Old enough for runtimes of 2022, new enough for every operator that is used."""


class Graph:
    """Nodes, inputs and constants of a graph in the making; each method adds some and returns the result's name."""

    def __init__(self, onnx: Any) -> None:
        self._onnx, self._helper = onnx, onnx.helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def add(self, kind: str, *inputs: str, out: str | None = None, domain: str = "", **settings: object) -> str:
        """Add a node with one result."""
        name = out or f"step {len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, list(inputs), [name], domain=domain, **settings))
        return name

    def constant(self, values: ArrayLike) -> str:
        """Add a constant: floats in double precision, whole numbers, or texts."""
        array = np.asarray(values)
        name = f"constant {len(self.constants)}"
        if array.dtype.kind in "OU":
            texts = [str(value).encode() for value in array.ravel().tolist()]
            tensor = self._helper.make_tensor(name, self._onnx.TensorProto.STRING, array.shape, texts)
        else:
            dtype = np.int64 if array.dtype.kind in "biu" else np.float64
            tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array, dtype=dtype), name)
        self.constants.append(tensor)
        return name

    def input(self, name: str, width: int, text: bool = False) -> str:
        """Add an input with this many columns: texts, or single precision, which is taken to double."""
        kind = self._onnx.TensorProto.STRING if text else self._onnx.TensorProto.FLOAT
        self.inputs.append(self._helper.make_tensor_value_info(name, kind, [None, width]))
        return name if text else self.double(name)

    def double(self, values: str) -> str:
        """Add the values in double precision."""
        return self.add("Cast", values, to=self._onnx.TensorProto.DOUBLE)

    def single(self, values: str, out: str) -> None:
        """Add an output in single precision."""
        self.add("Cast", values, out=out, to=self._onnx.TensorProto.FLOAT)

    def share(self, x: str, low: Floats, high: Floats) -> str:
        """Add (x - low) / (high - low), clipped to [0, 1]; 0 where the range is one point."""
        width = np.where(high > low, high - low, 1.0)
        moved = self.add("Div", self.add("Sub", x, self.constant(low)), self.constant(width))
        return self.add("Min", self.add("Max", moved, self.constant([0.0])), self.constant([1.0]))


def onnx_model(model: Any) -> Any:
    """Return the model as an ``onnx.ModelProto``."""
    try:
        import onnx
    except ImportError:
        raise MissingExtra('ONNX graphs need onnx: pip install "discreet[onnx]"') from None
    graph, fitted = Graph(onnx), getattr(model, "estimator_", model)
    coef, intercept = np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_)
    if hasattr(model, "schema_"):
        features = encoded_columns(graph, model.schema_)
    else:
        names = getattr(model, "feature_names_in_", None)
        low, high = (np.asarray(end) for end in declared(model.bounds).ranges(model.n_features_in_, names))
        features = graph.share(graph.input("X", model.n_features_in_), low, high)
        coef, intercept = coef * (high - low), intercept + coef @ low
    margins = graph.add("Gemm", features, graph.constant(coef.T), graph.constant(intercept))
    if hasattr(model, "schema_") and model.schema_.offset is not None:
        margins = graph.add("Add", margins, _offset_node(graph, model.schema_, model.schema_.offset))
    outputs = _outputs(graph, onnx, fitted, margins)
    onnx_graph = onnx.helper.make_graph(graph.nodes, type(fitted).__name__, graph.inputs, outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    proto = onnx.helper.make_model(onnx_graph, producer_name="discreet", producer_version=__version__,
                                   ir_version=IR_VERSION, opset_imports=opsets)  # fmt: skip
    onnx.helper.set_model_props(proto, _metadata(fitted.certificate_))
    onnx.checker.check_model(proto)
    return proto


def digest_of(certificate: Certificate) -> str:
    """Return the SHA-256 of a certificate's file, as `sha256sum certificate.json` prints it."""
    return hashlib.sha256((certificate.to_json() + "\n").encode()).hexdigest()


def _metadata(certificate: Certificate) -> dict[str, str]:
    facts = {"epsilon": certificate.epsilon, "delta": certificate.delta, "neighbors": certificate.neighbors}
    return {
        **{f"discreet.{name}": str(value) for name, value in facts.items()},
        "discreet.unit": certificate.unit,
        "discreet.certificate.sha256": digest_of(certificate),
    }


def _clip_node(graph: Graph, values: str, low: float, high: float) -> str:
    return graph.add("Min", graph.add("Max", values, graph.constant([low])), graph.constant([high]))


def _outputs(graph: Graph, onnx: Any, fitted: Any, margins: str) -> list[Any]:
    """Add labels with probabilities or scores, or numbers; return the graph's outputs."""
    value_info, types = onnx.helper.make_tensor_value_info, onnx.TensorProto
    if not hasattr(fitted, "classes_"):
        limit, last = log_limit(fitted), margins
        if limit is not None:
            last = graph.add("Exp", _clip_node(graph, last, LEAST_LOG, limit))
        last = _clip_node(graph, last, *target_range(fitted))
        graph.single(last, "prediction")
        return [value_info("prediction", types.FLOAT, [None, 1])]
    classes, scores = fitted.classes_, margins
    is_float = classes.dtype.kind == "f"
    ordered = 1 < len(fitted.coef_) < len(classes)
    if ordered:
        scores = _ordered_probabilities(graph, margins)
    elif len(classes) == 2:
        scores = graph.add("Concat", graph.add("Mul", margins, graph.constant([0.0])), margins, axis=1)
    chosen = graph.add("ArgMax", scores, axis=1, keepdims=0)
    label_of = graph.add("Gather", graph.constant(classes), chosen, axis=0, out=None if is_float else "label")
    if is_float:
        graph.single(label_of, "label")
    kind = {"b": types.INT64, "i": types.INT64, "u": types.INT64, "f": types.FLOAT}
    label = value_info("label", kind.get(classes.dtype.kind, types.STRING), [None])
    if hasattr(fitted, "predict_proba"):
        last = scores if ordered else graph.add("Softmax", scores, axis=1)
        graph.single(last, "probabilities")
        return [label, value_info("probabilities", types.FLOAT, [None, len(classes)])]
    graph.single(margins, "scores")
    return [label, value_info("scores", types.FLOAT, [None, 1 if len(classes) == 2 else len(classes)])]


def _ordered_probabilities(graph: Graph, margins: str) -> str:
    """Add the probabilities of ordered classes, from the log odds of each class or above but the lowest."""
    beyond = graph.add("Sigmoid", margins)
    none = graph.add("Mul", graph.add("Gather", beyond, graph.constant([0]), axis=1), graph.constant([0.0]))
    every = graph.add("Add", none, graph.constant([1.0]))
    return graph.add("Sub", graph.add("Concat", every, beyond, axis=1), graph.add("Concat", beyond, none, axis=1))


def encoded_columns(graph: Graph, schema: Schema) -> str:
    """Add the encoded features of a table's columns and of their products."""
    encoded = {
        name: _number_nodes(graph, schema, name) if isinstance(kind, Number) else _label_nodes(graph, schema, name)
        for name, kind in schema.columns.items()
    }
    parts = [name for name, _ in encoded.values()]
    factors = {name: _factors(graph, *encoded[name], places) for name, places in Layout(schema).product_factors.items()}
    for group in schema.interactions:
        product, width = factors[group[0]]
        for name in group[1:]:
            other, size = factors[name]
            left = graph.add("Unsqueeze", product, graph.constant([2]))
            right = graph.add("Unsqueeze", other, graph.constant([1]))
            width *= size
            product = graph.add("Reshape", graph.add("Mul", left, right), graph.constant([-1, width]))
        parts.append(product)
    return graph.add("Concat", *parts, axis=1)


def _factors(graph: Graph, features: str, width: int, places: list[int]) -> tuple[str, int]:
    """Add the features of which products are made, where these are not all."""
    return (
        (features, width)
        if len(places) == width
        else (graph.add("Gather", features, graph.constant(places), axis=1), len(places))
    )


def _offset_node(graph: Graph, schema: Schema, offset: Offset) -> str:
    """Add what the offset's column adds to the margin."""
    x = graph.input(offset.column, 1)
    held = _clip_node(graph, x, *offset.range)
    held = graph.add("Log", held) if offset.log else held
    return graph.add("Where", _absent(graph, schema, x), graph.constant([missing_offset(offset)]), held)


def _absent(graph: Graph, schema: Schema, x: str) -> str:
    """Add whether there is no number."""
    absent = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    for code in codes_of(frozenset(schema.missing_texts)):
        absent = graph.add("Or", absent, graph.add("Equal", x, graph.constant([code])))
    return absent


def _label_nodes(graph: Graph, schema: Schema, name: str) -> tuple[str, int]:
    texts = spellings(schema.columns[name], schema.missing_texts)
    table = encoded_cells(schema, name, [*texts.values(), OTHER_TEXT])
    codes = graph.add("LabelEncoder", graph.input(name, 1, text=True), domain="ai.onnx.ml", keys_strings=list(texts),
                      values_int64s=list(range(len(texts))), default_int64=len(texts))  # fmt: skip
    rows = graph.add("Gather", graph.constant(table), codes, axis=0)
    return graph.add("Squeeze", rows, graph.constant([1])), table.shape[1]


def _number_nodes(graph: Graph, schema: Schema, name: str) -> tuple[str, int]:
    """Add the ramps between knots, 0 where nothing is there, and from them the encoded features."""
    kind = schema.columns[name]
    assert isinstance(kind, Number)
    places = spline_places(kind)
    x = graph.input(name, 1)
    absent = _absent(graph, schema, x)
    ramps = graph.share(x, places[:-1], places[1:])
    ramps = graph.add("Where", absent, graph.constant([0.0]), ramps)
    indicator = graph.double(absent)
    powers = [ramps]
    for _ in range(DEGREE - 1 if kind.is_curve else 0):
        powers.append(graph.add("Mul", powers[-1], ramps))
    low, steps = _along_ramps(schema, name, places, len(powers))
    nothing = encoded_cells(schema, name, [None])[0]
    # encoded = value at the low end + steps along the ramps, and for nothing what stands for it
    features = graph.add("Concat", *powers, indicator, axis=1)
    steps = np.vstack([steps, nothing - low])
    return graph.add("Gemm", features, graph.constant(steps), graph.constant(low)), len(nothing)


def _along_ramps(schema: Schema, name: str, places: Floats, degree: int) -> tuple[Floats, Floats]:
    """Return the features at the low end, and what the powers of each ramp add: by cells at shares of the way."""
    shares = np.arange(degree + 1) / degree
    cells = [left * (1 - share) + right * share for left, right in pairwise(places.tolist()) for share in shares]
    encoded = encoded_cells(schema, name, cells).reshape(len(places) - 1, degree + 1, -1)
    powers = shares[1:, np.newaxis] ** np.arange(1, degree + 1)
    steps = np.linalg.inv(powers) @ (encoded[:, 1:] - encoded[:, :1])  # (ramps, powers, features)
    return encoded[0, 0], steps.transpose(1, 0, 2).reshape(-1, encoded.shape[2])
