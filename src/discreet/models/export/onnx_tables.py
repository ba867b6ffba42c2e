"""The columns of a table in an ONNX graph, encoded by the same cells and maps as in ``sklearn_tables.py``.

A label's text is looked up in the table of its encoded features. A number with knots t_0 < ... < t_k is the ramps
clip((x - t_i) / (t_i+1 - t_i), 0, 1), of which hat functions are differences.
"""

import numpy as np

from discreet.models.export.onnx_graph import Graph
from discreet.models.export.sklearn_tables import encoded_cells
from discreet.models.export.spellings import OTHER_TEXT, spellings
from discreet.schema.cell_meaning import codes_of
from discreet.schema.columns import Number
from discreet.schema.schema import Schema


def encoded_columns(graph: Graph, schema: Schema) -> str:
    """Add the encoded features of a table's columns and of their products."""
    found = {
        name: _number(graph, schema, name) if isinstance(kind, Number) else _labels(graph, schema, name)
        for name, kind in schema.columns.items()
    }
    parts = [name for name, _ in found.values()]
    for group in schema.interactions:
        product, width = found[group[0]]
        for name in group[1:]:
            other, size = found[name]
            left = graph.add("Unsqueeze", product, graph.constant([2]))
            right = graph.add("Unsqueeze", other, graph.constant([1]))
            width *= size
            product = graph.add("Reshape", graph.add("Mul", left, right), graph.constant([-1, width]))
        parts.append(product)
    return graph.add("Concat", *parts, axis=1)


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
    places = np.array([kind.limits[0], *kind.knots, kind.limits[1]])
    x = graph.input(name, 1)
    absent = graph.add("Or", graph.add("IsNaN", x), graph.add("IsInf", x))
    for code in codes_of(frozenset(schema.missing_texts)):
        absent = graph.add("Or", absent, graph.add("Equal", x, graph.constant([code])))
    ramps = graph.share(x, places[:-1], places[1:])
    ramps = graph.add("Where", absent, graph.constant([0.0]), ramps)
    one = graph.add("Cast", absent, to=1)
    at_knots, nothing = encoded_cells(schema, name, places.tolist()), encoded_cells(schema, name, [None])[0]
    # encoded = value at the low end + steps along the ramps, and for nothing what stands for it
    steps = np.vstack([np.diff(at_knots, axis=0), nothing - at_knots[0]])
    features = graph.add("Concat", ramps, one, axis=1)
    return graph.add("Gemm", features, graph.constant(steps), graph.constant(at_knots[0])), len(nothing)
