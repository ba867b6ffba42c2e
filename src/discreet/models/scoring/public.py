"""``public_score``: the same scores of rows that are not private, exactly."""

from dataclasses import replace
from typing import Any

from discreet.curator import container_of, is_stream, measure_public
from discreet.errors import Unsupported
from discreet.models.scoring.private import metric_of, scored
from discreet.models.scoring.released import groups_of, released
from discreet.models.scoring.result import PrivateScore
from discreet.parameters import Share, checked


@checked
def public_score(
    model: Any, X: Any, y: Any = None, metric: str = "auto", level: Share = 0.95, *, by: Any = None
) -> PrivateScore:
    """Score a model on rows that are declared public: exact, without noise and without a guarantee.

    ``population_low`` and ``population_high`` are the usual interval for the sampling of the rows: Wilson's for
    accuracy, DeLong's for the area under the curve, the delta method's for R2.

    Parameters
    ----------
    model : estimator
        A fitted estimator of discreet's.
    X, y : array-like
        Rows that everybody may see, in the model's features, and their targets.
    metric : str, default="auto"
        As for ``private_score``.
    level : float, default=0.95
        The level of the interval.
    by : feature or list of features, default=None
        Score each group of rows, too, as for ``private_score``.

    Returns
    -------
    PrivateScore
        The exact score; its ``certificate`` is None.

    Raises
    ------
    Unsupported
        If the targets are missing, or the model cannot be scored.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge, public_score
    >>> X, y = np.linspace(-1, 1, 100).reshape(50, 2), np.linspace(0, 1, 50)
    >>> model = DPRidge(epsilon=1.0, bounds=1.0, target=(0, 1)).fit(X, y)
    >>> public_score(model, X, y).metric
    'r2'
    """
    X = container_of(X)
    known = released(model, X)
    kind, name = metric_of(known, metric)
    groups = None if by is None else groups_of(model, known, by, kind)
    if y is None and not is_stream(X):
        raise Unsupported("a score needs the targets: pass y")
    if y is not None and is_stream(X):
        raise Unsupported("a stream brings its own targets: leave y out")
    exact = measure_public(name, known, X, y, level, groups)
    result = scored(name, exact.found, level, None, exact.n, exact.sampling)
    if exact.ends is None:
        return result
    return replace(result, population_low=exact.ends[0], population_high=exact.ends[1])
