"""Private selection on a table: ``DPSelectCV`` on the rows of a source, encoded by a schema."""

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from discreet.errors import Unsupported
from discreet.models.selection.private_search import DPSelectCV
from discreet.models.selection.search_price import Offer
from discreet.models.table_model import TableModel
from discreet.schema.schema import Schema


@dataclass(frozen=True)
class TableSelection:
    """The best of several candidates on a table, chosen privately.

    Parameters
    ----------
    schema
        What is publicly known of the table, every range declared: a selection has no budget to estimate one with.
    selection
        Configured, not fitted; its estimator without bounds, which the schema brings.
    """

    schema: Schema
    selection: DPSelectCV

    def quote(self, data: Any) -> Offer:
        """Return what the selection would cost, before a row is read (rows are counted where neighbors agree on n)."""
        table = self._table()
        stream = table.stream(data)
        return self._with_bounds(stream.bounds).quote(stream)

    def fit(self, data: Any) -> "Selected":
        """Select privately on a data frame, or on files of CSV or Parquet. The charge comes first.

        The encoded rows are held in memory as doubles.
        """
        table = self._table()
        stream = table.stream(data)
        found = self._with_bounds(stream.bounds).fit(stream)
        table.estimator_, table.schema_ = found.best_estimator_, self.schema
        return Selected(table, found.best_params_, found.best_score_)

    def _table(self) -> TableModel:
        if self.selection.estimator is None:
            raise Unsupported("a selection on a table needs an estimator: DPSelectCV(DPLogisticRegression(), {...})")
        return TableModel(self.schema, clone(self.selection.estimator).set_params(neighbors=self.selection.neighbors))

    def _with_bounds(self, bounds: Any) -> DPSelectCV:
        estimator = clone(self.selection.estimator).set_params(bounds=bounds)
        made: DPSelectCV = clone(self.selection).set_params(estimator=estimator)
        return made


@dataclass(frozen=True)
class Selected:
    """The released model, what tells its candidate apart, and its noisy score, which flatters."""

    model: TableModel
    params: dict[str, Any]
    score: float
