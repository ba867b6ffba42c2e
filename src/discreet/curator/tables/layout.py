"""``Layout``: where each column's features stand, how they are filled in, and within which bounds."""

import math
from collections.abc import Mapping

import numpy as np

from discreet.bounds import Bounds
from discreet.curator.tables import cells
from discreet.curator.tables.cell_states import NOT_ASKED, States, states_of_labels, states_of_numbers
from discreet.curator.tables.cells import Column
from discreet.curator.tables.features import CELL, Encoding, Feature, encoding_of, product_feature, products, row_norm
from discreet.schema.cell_meaning import MISSING
from discreet.schema.columns import Boolean
from discreet.schema.limits import MAX_FEATURES, SchemaError, check_count
from discreet.schema.schema import Schema
from discreet.typing import Floats, Integers


class Layout:
    """Where each column's features stand, and how they are filled in: made from a schema, without data."""

    def __init__(self, schema: Schema) -> None:
        if not schema.columns:
            raise SchemaError("the schema declares no column to predict from")
        self.schema, self.missing = schema, frozenset(schema.missing_texts)
        self._parts: dict[str, tuple[Encoding, slice]] = {}
        self.features: list[Feature] = []
        for name, kind in schema.columns.items():
            encoding = encoding_of(name, kind, self.missing)
            self._parts[name] = encoding, slice(len(self.features), len(self.features) + len(encoding.features))
            self.features += encoding.features
        self._products: list[Integers] = []
        self._append_products()
        names = [feature.name for feature in self.features]
        if len(set(names)) < len(names):
            raise SchemaError("two features would have the same name: rename a column or a category")

    def _append_products(self) -> None:
        by_column = {name: encoding.factors for name, (encoding, _) in self._parts.items()}
        made = [math.prod(len(by_column[name]) for name in group) for group in self.schema.interactions]
        check_count(len(self.features) + sum(made), MAX_FEATURES, "features")  # before any product is made
        place = {feature.name: i for i, feature in enumerate(self.features)}
        for group in self.schema.interactions:
            for factors in products(group, by_column):
                self._products.append(np.array([place[factor.name] for factor in factors]))
                self.features.append(product_feature(factors))

    @property
    def bounds(self) -> Bounds:
        """What is known of the encoded rows: ranges, row norm, and the target's classes or range."""
        target = self.schema.target
        norms = [*(encoding.norm for encoding, _ in self._parts.values()), *(1.0 for _ in self.schema.interactions)]
        return Bounds(
            features=[feature.range for feature in self.features],
            row_norm=row_norm(norms),
            target=None if target is None else target.range,
            classes=None if target is None else target.classes,
            n=self.schema.rows,
        )

    @property
    def places(self) -> dict[str, slice]:
        """Where each column's own features stand."""
        return {name: place for name, (_, place) in self._parts.items()}

    @property
    def factors(self) -> list[tuple[int, ...]]:
        """The columns' features that each feature is the product of, by place: itself alone, or several."""
        alone = len(self.features) - len(self._products)
        return [*((j,) for j in range(alone)), *(tuple(places.tolist()) for places in self._products)]

    @property
    def product_factors(self) -> dict[str, list[int]]:
        """The places of each column's features, among its own, of which products are made."""
        parts = {name: encoding for name, (encoding, _) in self._parts.items()}
        return {name: [part.features.index(factor) for factor in part.factors] for name, part in parts.items()}

    @property
    def indicators(self) -> tuple[tuple[int, ...], ...]:
        """The features of which at most one is on in a row, column by column: cells, and truth by itself."""
        groups: dict[str, list[int]] = {}
        for j, feature in enumerate(self.features):
            if feature.range == CELL or isinstance(self.schema.columns.get(feature.column), Boolean):
                groups.setdefault(feature.name if feature.range != CELL else feature.column, []).append(j)
        return tuple(tuple(group) for group in groups.values())

    def encode(self, columns: Mapping[str, Column], rows: int, states: States | None = None) -> Floats:
        """Return the features of some rows; a NaN among them makes a row null.

        ``states`` (rows, columns of the schema) is filled with what each cell holds, where it is given.
        """
        out = np.empty((rows, len(self.features)), order="F")  # columns are written, and read, one by one
        for j, (name, (encoding, place)) in enumerate(self._parts.items()):
            encoding.encode(columns[name], out[:, place], NOT_ASKED if states is None else states[:, j])
        first = len(self.features) - len(self._products)
        for j, factors in enumerate(self._products):
            np.multiply.reduce(out[:, factors], axis=1, out=out[:, first + j])
        return out

    def targets(self, column: Column, states: States = NOT_ASKED) -> Floats:
        """Return a class's position, or a number, NaN for anything else; ``states`` receives what each cell holds."""
        target = self.schema.target
        assert target is not None
        if target.range is not None:
            numbers = cells.numbers(column, self.missing)
            if states.size:
                states[:] = states_of_numbers(numbers, *target.range)
            return numbers
        count = len(target.classes or ())
        found = cells.positions(column, target.classes or (), self.missing)
        if states.size:
            states[:] = states_of_labels(found, count)
        return np.where((found == MISSING) | (found == count), np.nan, found)
