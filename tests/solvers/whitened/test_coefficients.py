"""Back from recoded coordinates: the same predictions, by the map's own formula."""

import numpy as np
import pytest

from discreet.curator.records.recoding import Recoding
from discreet.solvers.propagation import affine
from tests.covering import covering
from tests.solvers.whitened.cases import records_of

P = 4


def predictors(recoding, X, w, intercept=True):
    """Recoded rows (unshrunk) times w, in the target's units; admitted rows times the coefficients."""
    u = (X - recoding.center) / recoding.scale
    admitted = X
    if intercept:
        u = np.hstack([u, np.full((len(X), 1), recoding.constant)])
        admitted = np.hstack([X, np.ones((len(X), 1))])
    z = u
    if recoding.matrix is not None:
        z = u * recoding.matrix if recoding.matrix.ndim == 1 else u @ recoding.matrix
    return recoding.target_center + recoding.target_scale * (z @ w), admitted @ recoding.coefficients(w)


@covering(
    ("intercept", [True, False]),
    ("kind", ["none", "diagonal", "square", "narrow", "wide"]),
    ("outputs", [None, 1, 3]),
    ("target", [{}, {"target_center": 0.7, "target_scale": 0.03}]),
)
def test_the_predictor_is_the_same(kind, outputs, intercept, target):
    if not intercept:
        target = {key: value for key, value in target.items() if key != "target_center"}
    rng = np.random.default_rng(1)
    columns = P + intercept
    matrix = {
        "none": None,
        "diagonal": rng.normal(size=columns),
        "square": rng.normal(size=(columns, columns)),
        "narrow": rng.normal(size=(columns, 2)),
        "wide": rng.normal(size=(columns, 9)),
    }[kind]
    center = rng.uniform(-1, 1, P) if intercept else np.zeros(P)
    recoding = Recoding(center, 10.0 ** rng.uniform(-3, 1, P), 0.37, matrix=matrix, **target)
    q = columns if matrix is None or matrix.ndim == 1 else matrix.shape[1]
    w = rng.normal(size=q if outputs is None else (q, outputs))
    ours, theirs = predictors(recoding, rng.uniform(-1, 1, (50, P)), w, intercept)
    np.testing.assert_allclose(theirs, ours, rtol=1e-11, atol=1e-11 * np.abs(ours).max())
    assert recoding.coefficients(w).shape == (columns, *w.shape[1:])


@pytest.mark.parametrize("intercept", [True, False])
def test_the_affine_form_is_the_map(intercept):
    rng = np.random.default_rng(3)
    columns = P + intercept
    center, facts = (rng.uniform(-1, 1, P), {"target_center": 0.4}) if intercept else (np.zeros(P), {})
    recoding = Recoding(center, rng.uniform(0.1, 1, P), 0.5, matrix=rng.normal(size=(columns, columns)), **facts)
    _, domain = records_of(np.zeros((3, P)), np.ones(3), intercept=intercept)
    linear, offset = affine(recoding, recoding.domain(domain))
    for _ in range(5):
        v = rng.normal(size=columns)
        np.testing.assert_allclose(linear @ v + offset, recoding.coefficients(v), rtol=1e-9, atol=1e-9)
