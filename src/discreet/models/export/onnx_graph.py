"""A fitted model as an ONNX graph: clip, encode, multiply, link. Written directly, in single precision."""

import hashlib
from typing import Any

import numpy as np

from discreet import __version__
from discreet.errors import MissingExtra
from discreet.models.export.final_step import log_limit
from discreet.models.fitting import declared
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

    def add(self, kind: str, *inputs: str, out: str | None = None, domain: str = "", **settings: Any) -> str:
        """Add a node with one result."""
        name = out or f"step {len(self.nodes)}"
        self.nodes.append(self._helper.make_node(kind, list(inputs), [name], domain=domain, **settings))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant: floats in single precision, whole numbers, or texts."""
        array = np.asarray(values)
        name = f"constant {len(self.constants)}"
        if array.dtype.kind in "OU":
            texts = [str(value).encode() for value in array.ravel().tolist()]
            made = self._helper.make_tensor(name, self._onnx.TensorProto.STRING, array.shape, texts)
        else:
            kept = np.int64 if array.dtype.kind in "biu" else np.float32
            made = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array, dtype=kept), name)
        self.constants.append(made)
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
        from discreet.models.export.onnx_tables import encoded_columns

        features = encoded_columns(graph, model.schema_)
    else:
        names = getattr(model, "feature_names_in_", None)
        low, high = (np.asarray(end) for end in declared(model.bounds).ranges(model.n_features_in_, names))
        features = graph.share(graph.input("X", model.n_features_in_), low, high)
        coef, intercept = coef * (high - low), intercept + coef @ low
    margins = graph.add("Gemm", features, graph.constant(coef.T), graph.constant(intercept))
    outputs = _outputs(graph, onnx, fitted, margins)
    made = onnx.helper.make_graph(graph.nodes, type(fitted).__name__, graph.inputs, outputs, graph.constants)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    proto = onnx.helper.make_model(made, producer_name="discreet", producer_version=__version__,
                                   ir_version=IR_VERSION, opset_imports=opsets)  # fmt: skip
    onnx.helper.set_model_props(proto, _metadata(fitted.certificate_))
    onnx.checker.check_model(proto)
    return proto


def digest_of(certificate: Any) -> str:
    """Return the SHA-256 of a certificate's file, as `sha256sum certificate.json` prints it."""
    return hashlib.sha256((certificate.to_json() + "\n").encode()).hexdigest()


def _metadata(certificate: Any) -> dict[str, str]:
    facts = {"epsilon": certificate.epsilon, "delta": certificate.delta, "neighbors": certificate.neighbors}
    return {
        **{f"discreet.{name}": str(value) for name, value in facts.items()},
        "discreet.unit": certificate.unit,
        "discreet.certificate.sha256": digest_of(certificate),
    }


def _outputs(graph: Graph, onnx: Any, fitted: Any, margins: str) -> list[Any]:
    """Add labels with probabilities or scores, or numbers; return the graph's outputs."""
    value_info, types = onnx.helper.make_tensor_value_info, onnx.TensorProto
    if not hasattr(fitted, "classes_"):
        limit, last = log_limit(fitted), margins
        if limit is not None:
            last = graph.add("Min", graph.add("Max", last, graph.constant([-limit])), graph.constant([limit]))
            last = graph.add("Exp", last)
        graph.add("Identity", last, out="prediction")
        return [value_info("prediction", types.FLOAT, [None, 1])]
    classes, scores = fitted.classes_, margins
    if len(classes) == 2:
        scores = graph.add("Concat", graph.add("Mul", margins, graph.constant([0.0])), margins, axis=1)
    chosen = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(classes), chosen, axis=0, out="label")
    kind = {"b": types.INT64, "i": types.INT64, "u": types.INT64, "f": types.FLOAT}
    label = value_info("label", kind.get(classes.dtype.kind, types.STRING), [None])
    if hasattr(fitted, "predict_proba"):
        graph.add("Softmax", scores, axis=1, out="probabilities")
        return [label, value_info("probabilities", types.FLOAT, [None, len(classes)])]
    graph.add("Identity", margins, out="scores")
    return [label, value_info("scores", types.FLOAT, [None, 1 if len(classes) == 2 else len(classes)])]
