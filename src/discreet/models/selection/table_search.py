"""Private search on a table: ``DPRandomizedSearch`` on the rows of a source, encoded by a schema."""

from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.certificate import Certificate
from discreet.errors import Unsupported
from discreet.models.selection.private_search import DPRandomizedSearch
from discreet.models.selection.search_price import Offer
from discreet.models.shown import Shown
from discreet.models.table_model import TableModel
from discreet.parameters import check_settings
from discreet.schema.schema import Schema


class TableSearch(Shown, BaseEstimator):
    """Private search on a table: the best of several candidates.

    Parameters
    ----------
    schema : Schema
        What is publicly known of the table, every range declared: a search has no budget to estimate one with.
    search : DPRandomizedSearch
        Configured, not fitted; its estimator without bounds, which the schema brings.

    Attributes
    ----------
    best_estimator_ : TableModel
        The released model of the table.
    best_params_ : dict
        What tells its candidate apart.
    best_score_ : float
        Its noisy score: the best of several noisy numbers, so it flatters.
    certificate_ : Certificate
        What may be claimed of the model.

    Examples
    --------
    >>> from discreet import DPLogisticRegression, DPRandomizedSearch, Schema
    >>> from discreet.models import TableSearch
    >>> from discreet.schema import Number, Target
    >>> schema = Schema({"age": Number((18, 110))}, Target("back", classes=(0, 1)))
    >>> table = {"age": [30, 60] * 100, "back": [0, 1] * 100}
    >>> search = DPRandomizedSearch(DPLogisticRegression(solver="gd"), {"alpha": [1e-3, 1e-1]}, epsilon=2.0)
    >>> sorted(TableSearch(schema, search).fit(table).best_params_)
    ['alpha']
    """

    best_estimator_: TableModel
    best_params_: dict[str, Any]
    best_score_: float

    def __init__(self, schema: Schema, search: DPRandomizedSearch) -> None:
        self.schema = schema
        self.search = search

    @property
    def certificate_(self) -> Certificate:
        """What may be claimed of the released model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.certificate_

    def quote(self, data: Any) -> Offer:
        """Return what the search would cost, before a row is read (rows are counted where n is public).

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.

        Returns
        -------
        Offer
            The price in all, and what each run may spend.

        Examples
        --------
        >>> TableSearch(schema, search).quote(table).price.epsilon <= 2.0
        True
        """
        stream = self._table().stream(data)
        return self._with_bounds(stream.bounds).quote(stream)

    def fit(self, data: Any) -> Self:
        """Select privately on a data frame, or on files of CSV or Parquet. The charge comes first.

        The encoded rows are held in memory as doubles.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.

        Returns
        -------
        TableSearch
            Itself, fitted.

        Examples
        --------
        >>> TableSearch(schema, search).fit(table).certificate_.epsilon
        2.0
        """
        table = self._table()
        stream = table.stream(data)
        found = self._with_bounds(stream.bounds).fit(stream)
        table.estimator_, table.schema_ = found.best_estimator_, self.schema
        self.best_estimator_, self.best_params_, self.best_score_ = table, found.best_params_, found.best_score_
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.non_deterministic = False, True
        return tags

    def _table(self) -> TableModel:
        check_settings(self)
        if self.search.estimator is None:
            raise Unsupported(
                "a search on a table needs an estimator: DPRandomizedSearch(DPLogisticRegression(), {...})"
            )
        estimator = clone(self.search.estimator).set_params(neighbors=self.search.neighbors)
        return TableModel(self.schema, estimator, terms="linear")

    def _with_bounds(self, bounds: Any) -> DPRandomizedSearch:
        estimator = clone(self.search.estimator).set_params(bounds=bounds)
        made: DPRandomizedSearch = clone(self.search).set_params(estimator=estimator)
        return made
