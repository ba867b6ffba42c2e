"""What a recipe says of its noise is what repeated fits show."""

import numpy as np
import pytest

from discreet import DPLinearRegression, DPLogisticRegression, DPRidge
from discreet.default import Recipe
from discreet.testing import seeded
from tests.covering import covering

FITS, FACTOR = 24, 2.5


def table(classes, n=6000):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, (n, 3)), rng.standard_t(3, n).clip(-8, 8) / 8])
    if classes == 0:
        return X, np.clip(X @ [0.8, -0.5, 0.3, 1.0] + rng.normal(0, 0.4, n), -3, 3)
    margins = X @ rng.normal(0, 1.5, (4, classes))
    return X, np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)


def told_over_seen(kind, classes, solver, epsilon, **facts):
    """The reported deviation over that of repeated fits, median over coefficients and intercepts."""
    X, y = table(classes)
    facts |= {"classes": tuple(range(classes))} if classes else {"target": (-3.0, 3.0)}
    fits = []
    for seed in range(FITS):
        with seeded(seed):
            fits.append(kind(epsilon, 1e-6, bounds=1.0, solver=solver, ledger=False, **facts).fit(X, y))
    seen = np.std([np.append(np.ravel(m.coef_), m.intercept_) for m in fits], axis=0, ddof=1)
    told = np.median([np.append(np.ravel(m.coef_noise_), m.intercept_noise_) for m in fits], axis=0)
    return float(np.median(told / seen))


CASES = {
    "clipped classes": (DPLogisticRegression, 2, Recipe(n_steps=8), 2.0),
    "weighted classes": (DPLogisticRegression, 2, Recipe(n_steps=8, n_travel=6, n_newton=4), 4.0),
    "auto, two classes": (DPLogisticRegression, 2, "auto", 8.0),
    "auto, four classes": (DPLogisticRegression, 4, "auto", 8.0),
    "clipped numbers": (DPLinearRegression, 0, Recipe(n_steps=8), 2.0),
    "weighted numbers": (DPRidge, 0, Recipe(n_steps=8, n_newton=4), 4.0),
    "auto, numbers": (DPLinearRegression, 0, "auto", 8.0),
}


@pytest.mark.few(1)
@covering(("case", CASES), ("relation", ["zero_out", "replace_one"]))
def test_noise_figures_are_those_of_fits(case, relation):
    assert 1 / FACTOR < told_over_seen(*CASES[case], neighbors=relation) < FACTOR
