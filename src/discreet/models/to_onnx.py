"""A fitted model as an ONNX graph: clip, encode, multiply, link. Written directly, in single precision.

The columns of a table are encoded by the same cells and maps as in ``to_sklearn.py``. A label's text is looked up in
the table of its encoded features. A number with knots t_0 < ... < t_k is the ramps clip((x - t_i) / (t_i+1 - t_i), 0,
1), of which hat functions are differences; a curve also takes their squares and cubes, as it is a cubic polynomial of
each.
"""

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet import __version__
from discreet.accounting.certificate import Certificate
from discreet.curator import DEGREE, Layout
from discreet.errors import MissingExtra
from discreet.models.fit import declared
from discreet.models.to_sklearn import (
    OTHER_TEXT,
    encoded_cells,
    log_limit,
    missing_offset,
    spellings,
    spline_places,
    target_range,
)
from discreet.schema.cell_meaning import codes_of
from discreet.schema.columns import Number, Offset
from discreet.schema.schema import Schema
from discreet.typing import Floats

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
        """Add a constant: floats in single precision, whole numbers, or texts."""
        array = np.asarray(values)
        name = f"constant {len(self.constants)}"
        if array.dtype.kind in "OU":
            texts = [str(value).encode() for value in array.ravel().tolist()]
            tensor = self._helper.make_tensor(name, self._onnx.TensorProto.STRING, array.shape, texts)
        else:
            dtype = np.int64 if array.dtype.kind in "biu" else np.float32
            tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array, dtype=dtype), name)
        self.constants.append(tensor)
        return name

    def input(self, name: str, width: int, text: bool = False) -> str:
        """Add an input with this many columns."""
        kind = self._onnx.TensorProto.STRING if text else self._onnx.TensorProto.FLOAT
        self.inputs.append(self._helper.make_tensor_value_info(name, kind, [None, width]))
        return name

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
        margins = graph.add("Add", margins, _offset(graph, model.schema_, model.schema_.offset))
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


def _clipped(graph: Graph, values: str, low: float, high: float) -> str:
    return graph.add("Min", graph.add("Max", values, graph.constant([low])), graph.constant([high]))


def _outputs(graph: Graph, onnx: Any, fitted: Any, margins: str) -> list[Any]:
    """Add labels with probabilities or scores, or numbers; return the graph's outputs."""
    value_info, types = onnx.helper.make_tensor_value_info, onnx.TensorProto
    if not hasattr(fitted, "classes_"):
        limit, last = log_limit(fitted), margins
        if limit is not None:
            last = graph.add("Exp", _clipped(graph, last, -limit, limit))
        last = _clipped(graph, last, *target_range(fitted))
        graph.add("Identity", last, out="prediction")
        return [value_info("prediction", types.FLOAT, [None, 1])]
    classes, scores = fitted.classes_, margins
    ordered = 1 < len(fitted.coef_) < len(classes)
    if ordered:
        scores = _ordered_probabilities(graph, margins)
    elif len(classes) == 2:
        scores = graph.add("Concat", graph.add("Mul", margins, graph.constant([0.0])), margins, axis=1)
    chosen = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(classes), chosen, axis=0, out="label")
    kind = {"b": types.INT64, "i": types.INT64, "u": types.INT64, "f": types.FLOAT}
    label = value_info("label", kind.get(classes.dtype.kind, types.STRING), [None])
    if hasattr(fitted, "predict_proba"):
        last = scores if ordered else graph.add("Softmax", scores, axis=1)
        graph.add("Identity", last, out="probabilities")
        return [label, value_info("probabilities", types.FLOAT, [None, len(classes)])]
    graph.add("Identity", margins, out="scores")
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
        name: _number(graph, schema, name) if isinstance(kind, Number) else _labels(graph, schema, name)
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


def _offset(graph: Graph, schema: Schema, offset: Offset) -> str:
    """Add what the offset's column adds to the margin."""
    x = graph.input(offset.column, 1)
    held = _clipped(graph, x, *offset.range)
    held = graph.add("Log", held) if offset.log else held
    return graph.add("Where", _absent(graph, schema, x), graph.constant([missing_offset(offset)]), held)


def _absent(graph: Graph, schema: Schema, x: str) -> str:
    """Add whether there is no number."""
    absent = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    for code in codes_of(frozenset(schema.missing_texts)):
        absent = graph.add("Or", absent, graph.add("Equal", x, graph.constant([code])))
    return absent


def _labels(graph: Graph, schema: Schema, name: str) -> tuple[str, int]:
    texts = spellings(schema.columns[name], schema.missing_texts)
    table = encoded_cells(schema, name, [*texts.values(), OTHER_TEXT])
    codes = graph.add("LabelEncoder", graph.input(name, 1, text=True), domain="ai.onnx.ml", keys_strings=list(texts),
                      values_int64s=list(range(len(texts))), default_int64=len(texts))  # fmt: skip
    rows = graph.add("Gather", graph.constant(table), codes, axis=0)
    return graph.add("Squeeze", rows, graph.constant([1])), table.shape[1]


def _number(graph: Graph, schema: Schema, name: str) -> tuple[str, int]:
    """Add the ramps between knots, 0 where nothing is there, and from them the encoded features."""
    kind = schema.columns[name]
    assert isinstance(kind, Number)
    places = spline_places(kind)
    x = graph.input(name, 1)
    absent = _absent(graph, schema, x)
    ramps = graph.share(x, places[:-1], places[1:])
    ramps = graph.add("Where", absent, graph.constant([0.0]), ramps)
    indicator = graph.add("Cast", absent, to=1)
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
