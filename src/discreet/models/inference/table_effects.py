"""Effects of a table model: its summary in the columns' own units, and intervals for predicted means."""

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.schema.schema import Schema

if TYPE_CHECKING:
    from discreet.models.inference.summarize import MeanInterval
    from discreet.models.inference.summary import Summary


class TableEffects:
    """What ``TableModel`` reports on effects for a population."""

    _fitted: Any
    schema_: Schema
    _features: Any

    def summary(self, level: float = 0.95) -> "Summary":
        """Return the effects for a population, in the columns' own units: for fits with ``inference="sandwich"``.

        Numbers per their declared unit (1), levels per level, truth against falsehood, categories against their base:
        the declared one, or the first. The intercept is that of a row with every column at its base and every number
        at 0.

        Parameters
        ----------
        level : float, default=0.95
            About how often an interval covers its effect, one by one.

        Returns
        -------
        Summary
            Prints as a table; ``frame`` is a data frame.

        Raises
        ------
        Unsupported
            Where there is none; the message says why, and what would help.

        Examples
        --------
        >>> model.summary()
        Traceback (most recent call last):
        discreet.errors.Unsupported: nothing was reserved for standard errors: fit again with inference='sandwich' ...
        """
        from discreet.models.inference.summarize import summary_of

        return summary_of(self._fitted, level, self.schema_)

    def predict_interval(self, data: Any, level: float = 0.95) -> "MeanInterval":
        """Return predicted means of rows, with confidence intervals; for two classes the probability of the second.

        Parameters
        ----------
        data : data frame, path or list of paths
            Rows with the declared columns; the target is not read.
        level : float, default=0.95
            About how often an interval covers the mean of all records with these features.

        Returns
        -------
        MeanInterval
            ``mean``, ``low`` and ``high``.

        Examples
        --------
        >>> model.predict_interval(table)
        Traceback (most recent call last):
        discreet.errors.Unsupported: nothing was reserved for standard errors: fit again with inference='sandwich' ...
        """
        from discreet.models.inference.summarize import MeanInterval

        parts = [self._fitted.predict_interval(block, level) for block in self._features(data)]
        return MeanInterval(*(np.concatenate(part) for part in zip(*parts, strict=True)))
