"""What a table model reports on how well it predicts: scores, and the report that shows them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.curator import Groups, Layout
from discreet.errors import Unsupported
from discreet.models.scoring.private import private_score
from discreet.models.scoring.public import public_score
from discreet.models.scoring.result import PrivateScore
from discreet.schema.columns import Boolean, Category
from discreet.schema.schema import Schema

if TYPE_CHECKING:
    from discreet.report.model_report import ModelReport


class TableScores:
    """What ``TableModel`` reports on scores."""

    _fitted: Any
    schema_: Schema
    rows: Any

    def private_score(self, data: Any, **settings: Any) -> PrivateScore:
        """Score the model on private rows that it was not fitted on, with noise, for a budget of its own.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.
        **settings : dict
            Those of ``discreet.private_score``: ``epsilon``, ``metric``, ``delta``, ``ledger``, ... ``by`` names a
            category or a yes/no column.

        Returns
        -------
        PrivateScore
            The noisy score with its interval and certificate.

        Examples
        --------
        >>> model.private_score(table, epsilon=1.0).metric
        'accuracy'
        """
        return private_score(self._fitted, self.rows(data), **self._grouped(settings))

    def public_score(self, data: Any, **settings: Any) -> PrivateScore:
        """Score the model exactly, on rows that everybody may see.

        Parameters
        ----------
        data : data frame, path or list of paths
            The table, with its target.
        **settings : dict
            Those of ``discreet.public_score``: ``metric``, ``level``, ``by``.

        Returns
        -------
        PrivateScore
            The exact score with its interval.

        Examples
        --------
        >>> 0 <= model.public_score(table).value <= 1
        True
        """
        return public_score(self._fitted, self.rows(data), **self._grouped(settings))

    def _grouped(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with the groups of the column that ``by`` names in its place."""
        name = settings.get("by")
        if name is None:
            return settings
        kind = self.schema_.columns.get(name)
        if not isinstance(kind, Boolean | Category):
            raise Unsupported("by must name a category or a yes/no column of the schema")
        found = [(j, one.name) for j, one in enumerate(Layout(self.schema_).features) if one.column == name]
        if isinstance(kind, Boolean):  # encoded as -1 and 1
            return {**settings, "by": Groups((f"{name} = false", f"{name} = true"), (found[0][0],), 0.0)}
        columns, names = zip(*found, strict=True)
        return {**settings, "by": Groups(names, columns, 0.5)}

    def report(self, *, title: str | None = None, scores: Sequence[PrivateScore] = ()) -> "ModelReport":
        """Return the report of the model for people: the promise, scores, effects, plan and public facts.

        Parameters
        ----------
        title : str, default=None
            The page's title; None: what is predicted.
        scores : sequence of PrivateScore, default=()
            Scores to show, as ``private_score`` returned them.

        Returns
        -------
        ModelReport
            ``html()`` is one page that fetches nothing.

        Examples
        --------
        >>> page = model.report(title="Readmission").html()
        >>> "What is promised" in page
        True
        """
        from discreet.report.scores_section import Score
        from discreet.report.table_report import report_of

        assert self._fitted is not None
        assert self.schema_.target is not None
        model: Any = self
        shown = [Score.from_dict(score.to_dict()) for score in scores]
        return report_of(model, title or f"A private model of {self.schema_.target.column}", scores=shown)
