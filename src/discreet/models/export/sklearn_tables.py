"""A table model as a plain scikit-learn pipeline of a pandas frame: no class of discreet's is needed to run it.

Each column becomes features that scikit-learn computes, and the encoded features of ``curator/tables/features.py`` are
a linear function of those, column by column:

    number            scaled to [-1, 1] with 0 for nothing, and an indicator of nothing
    number, knots     B-splines (of a curve cubic ones, else hat functions) with those of the low end for nothing, and
                      an indicator of nothing
    names, levels,    one cell for each way to write a label or nothing, and one for any other text
    truth

So with encoded = T features, a coefficient w of the encoded features is w T of these; a product of columns has the
tensor of its coefficients multiplied by T along each axis. T is found by encoding the cells that it is about.
Features are a sparse matrix where there are labels: nearly all cells and nearly all products are 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)

from discreet.curator import DEGREE, Layout
from discreet.errors import Unsupported
from discreet.models.export.final_step import final_step
from discreet.models.export.spellings import OTHER_TEXT, spellings
from discreet.schema.cell_meaning import BLANKS, codes_of
from discreet.schema.columns import Number
from discreet.schema.schema import Schema
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.models.table_model import TableModel

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
    made = ColumnTransformer(parts, sparse_threshold=1.0).fit(pd.DataFrame(cells))

    blocks: dict[str, Block] = {}
    scaled_at, first = {name: j for j, name in enumerate(straight)}, 2 * len(straight)
    for name in bent:
        blocks[name] = Block(first, _splines_to_encoded_cells(schema, name))
        first += blocks[name].to_encoded.shape[1]
    for name in labeled:
        blocks[name] = Block(first, encoded_cells(schema, name, [OTHER_TEXT, *texts[name].values()]).T)
        first += blocks[name].to_encoded.shape[1]
    for name, j in scaled_at.items():
        blocks[name] = ScaledBlock(j, _scaled_toencoded_cells(schema, name), len(straight))
    return made, blocks


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
    known = [np.array(words, dtype=object) for words in texts]
    codes = OrdinalEncoder(categories=known, handle_unknown="use_encoded_value", unknown_value=-1)
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


def encoded_cells(schema: Schema, name: str, cells: Sequence[Any]) -> Floats:
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
    found = np.zeros((len(coef), sum(block.to_encoded.shape[1] for block in blocks.values())))
    first = 0
    for name in schema.columns:
        last = first + len(blocks[name].to_encoded)
        found[:, blocks[name].places] = coef[:, first:last] @ blocks[name].to_encoded
        first = last
    parts, factors = [found], Layout(schema).product_factors
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
    owner = np.repeat(np.arange(len(places)), [len(own) for own in places])[where]
    within = np.concatenate([np.arange(len(own)) for own in places])[where]
    chosen = np.array(list(combinations(range(len(where)), len(places))))
    by_owner = np.argsort(owner[chosen], axis=1)
    ours = (np.sort(owner[chosen], axis=1) == np.arange(len(places))).all(axis=1)
    entries = np.take_along_axis(within[chosen], by_owner, axis=1)[ours]
    found = np.zeros((len(tensor), len(chosen)))
    found[:, ours] = tensor[:, *entries.T]
    return found
