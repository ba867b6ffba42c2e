"""The columns of a table in an ONNX graph, encoded by the same cells and maps as in ``sklearn_tables.py``.

A label's text is looked up in the table of its encoded features. A number with knots t_0 < ... < t_k is the ramps
clip((x - t_i) / (t_i+1 - t_i), 0, 1), of which hat functions are differences; a curve also takes their squares and
cubes, as it is a cubic polynomial of each.
"""

from itertools import pairwise

import numpy as np

from discreet.curator import DEGREE, Layout
from discreet.models.export.onnx_graph import Graph
from discreet.models.export.sklearn_tables import encoded_cells, spline_places
from discreet.models.export.spellings import OTHER_TEXT, spellings
from discreet.schema.cell_meaning import codes_of
from discreet.schema.columns import Number
from discreet.schema.schema import Schema
from discreet.typing import Floats


def encoded_columns(graph: Graph, schema: Schema) -> str:
    """Add the encoded features of a table's columns and of their products."""
    found = {
        name: _number(graph, schema, name) if isinstance(kind, Number) else _labels(graph, schema, name)
        for name, kind in schema.columns.items()
    }
    parts = [name for name, _ in found.values()]
    factors = {name: _factors(graph, *found[name], places) for name, places in Layout(schema).product_factors.items()}
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
    absent = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    for code in codes_of(frozenset(schema.missing_texts)):
        absent = graph.add("Or", absent, graph.add("Equal", x, graph.constant([code])))
    ramps = graph.share(x, places[:-1], places[1:])
    ramps = graph.add("Where", absent, graph.constant([0.0]), ramps)
    one = graph.add("Cast", absent, to=1)
    powers = [ramps]
    for _ in range(DEGREE - 1 if kind.is_curve else 0):
        powers.append(graph.add("Mul", powers[-1], ramps))
    low, steps = _along_ramps(schema, name, places, len(powers))
    nothing = encoded_cells(schema, name, [None])[0]
    # encoded = value at the low end + steps along the ramps, and for nothing what stands for it
    features = graph.add("Concat", *powers, one, axis=1)
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
