"""A parametric bootstrap of a private fit: free of budget, since tables are simulated from released values alone.

    X* ~ means and second moments of the released Hessian;     y* ~ the model at the released coefficients
    (coef*, se*) = the same plan with fresh noise on (X*, y*);           bias = mean(coef*) - coef
    coef <- coef - bias;   interval: coef - se times quantiles of (coef* - bias - coef) / se*         (percentile-t)

Columns with a variance near that of a coin within their range are simulated as two values, the others as Gaussian. What
the law of a real table has beyond that (skewed errors, curved means) is not in the simulated ones, and not corrected.
The seed is a hash of released values: the same fit, asked for again, gives the same model.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri, pdtrik

from discreet.curator import use_entropy
from discreet.errors import Diverged, Unsupported
from discreet.models.fitting import FitSettings, Fitted, fit_model
from discreet.models.forecast.synthetic import Stream
from discreet.solvers.base import Effects
from discreet.typing import Floats

TABLES = 200
"""Simulated tables."""
MOST_ROWS = 200_000
"""Tables of more rows are simulated with so many: what is used of them is relative to their own standard errors."""
COIN = 0.8
"""A column whose variance is above this part of a coin's with the same mean is simulated as two values."""


def bootstrapped(
    fit: FitSettings, fitted: Fitted, names: Sequence[str] | None, progress: Callable[[int, int], None] | None = None
) -> Fitted:
    """Return the fit with its bias corrected, and the simulated errors by its side; as it is where they are few."""
    effects, n_columns = fitted.effects, fitted.coef.shape[1]
    assert effects is not None
    ranges = tuple(zip(*(end.tolist() for end in fit.bounds.ranges(n_columns, names)), strict=True))
    fit = replace(fit, bounds=fit.bounds.with_facts(features=ranges))
    told = replace(fit, ledger=False, dataset=None, inference="sandwich", cov_type="robust")
    own = np.append(fitted.coef[0], fitted.intercept if fit.fit_intercept else [])
    seed = int.from_bytes(hashlib.sha256(own.tobytes()).digest()[:6], "big")
    n = int(min(MOST_ROWS, max(2.0, round(effects.count))))
    known = None if fit.bounds.n is None else n
    told = replace(told, delta=fitted.certificate.delta, bounds=fit.bounds.with_facts(n=known))
    rows: list[Floats] = []
    for table in range(TABLES):
        stream = Stream(seed, table)
        X = _features(fit, effects, n, stream)
        y = _targets(fit, effects, X @ fitted.coef[0] + fitted.intercept[0], stream)
        with use_entropy(stream):
            try:
                again = fit_model(told, X, y, None)
            except (Unsupported, Diverged):
                continue
        if again.effects is not None:
            rows.append(_row(fit, again, own, effects))
        if progress is not None:
            progress(table + 1, TABLES)
    if len(rows) < TABLES // 2:  # a fit that is paid for is not lost: it keeps its own standard errors
        return fitted
    draws = np.array(rows)
    bias = draws[:, :-1].mean(axis=0)
    draws[:, :-1] -= bias
    coef = fitted.coef - bias[None, :n_columns]
    intercept = fitted.intercept - bias[n_columns:] if fit.fit_intercept else fitted.intercept
    return replace(fitted, coef=coef, intercept=intercept, effects=replace(effects, draws=draws))


def _row(fit: FitSettings, again: Fitted, own: Floats, effects: Effects) -> Floats:
    """Return a simulated fit's errors, and its standard errors over the fit's own, in the middle."""
    assert again.effects is not None
    found = np.append(again.coef[0], again.intercept if fit.fit_intercept else [])
    ratios = np.diag(again.effects.covariance) / np.maximum(np.diag(effects.covariance), 1e-300)
    return np.append(found - own, math.sqrt(float(np.median(ratios))))


def _features(fit: FitSettings, effects: Effects, n: int, stream: Stream) -> Floats:
    """Return rows with the Hessian's means and second moments, as far as declared ranges allow."""
    n_columns = len(effects.metric) - fit.fit_intercept
    low, high = fit.bounds.ranges(n_columns)
    second = np.linalg.pinv(effects.design)
    if fit.fit_intercept:
        mean = second[:-1, -1] / second[-1, -1]
        second = second[:-1, :-1] / second[-1, -1] - np.outer(mean, mean)
    else:
        mean, second = np.zeros(n_columns), second
    mean = np.clip(mean, low, high)
    values, vectors = np.linalg.eigh((second + second.T) / 2.0)
    spread = np.sqrt(np.maximum(np.diag(second), 1e-12))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    standard = stream.normals(n * n_columns).reshape(n, n_columns) @ root / spread
    X = np.clip(mean + standard * spread, low, high)
    width = np.maximum(high - low, 1e-300)
    share = np.clip((mean - low) / width, 1e-6, 1.0 - 1e-6)
    for j in np.flatnonzero(spread**2 > COIN * share * (1.0 - share) * width**2):
        X[:, j] = np.where(standard[:, j] < ndtri(share[j]), high[j], low[j])
    return np.asarray(X)


def _targets(fit: FitSettings, effects: Effects, margins: Floats, stream: Stream) -> Any:
    """Return outcomes of the model at its released coefficients."""
    u = stream.uniforms(len(margins))
    if fit.loss.sigmoid_link:
        labels = np.array(fit.bounds.classes, dtype=object)
        return labels[(u < 1.0 / (1.0 + np.exp(-margins))).astype(int)]
    assert fit.bounds.target is not None
    if fit.loss.log_link:
        means = np.exp(np.clip(margins, -20.0, 20.0))
        counts = np.where(u <= np.exp(-means), 0.0, np.ceil(np.maximum(np.nan_to_num(pdtrik(u, means)), 0.0)))
        return np.clip(counts, *fit.bounds.target)
    return np.clip(margins + effects.deviation * ndtri(u), *fit.bounds.target)
