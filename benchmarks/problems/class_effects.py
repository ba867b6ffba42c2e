"""Effects on three classes: outcomes of a multinomial law, and maximum likelihood without privacy.

Effects are differences from the first class, the blocks of the other classes after one another, the intercept last in
each.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CLASSES = (0, 1, 2)
STEPS, ARRIVED = 30, 1e-9


def class_coefficients(p: int) -> Array:
    """Return a row per class after the first: slopes of which every third is 0, and an intercept."""
    theta = np.random.default_rng([p, len(CLASSES)]).normal(0, 0.6, (len(CLASSES) - 1, p))
    theta[:, ::3] = 0.0
    theta[:, -1] = (-0.3, 0.2)
    return theta


def class_targets(rng: np.random.Generator, X: Array) -> Array:
    """Return classes drawn by the multinomial law with these coefficients."""
    theta = class_coefficients(X.shape[1] + 1)
    margins = np.column_stack([np.zeros(len(X)), X @ theta[:, :-1].T + theta[:, -1]])
    return np.argmax(margins + rng.gumbel(size=margins.shape), axis=1).astype(float)


def class_fit(X: Array, y: Array) -> tuple[Array, Array]:
    """Return the maximum of the multinomial likelihood by Newton's method, and robust standard errors."""
    Z, labels = np.column_stack([X, np.ones(len(X))]), np.unique(y)
    chosen = (y[:, None] == labels[1:]).astype(float)
    w = np.zeros((len(labels) - 1, Z.shape[1]))
    for _ in range(STEPS):
        margins = np.column_stack([np.zeros(len(Z)), Z @ w.T])
        chances = np.exp(margins - np.logaddexp.reduce(margins, axis=1)[:, None])[:, 1:]
        inverse = np.linalg.inv(_hessian(Z, chances))
        step = (inverse @ ((chances - chosen).T @ Z).ravel()).reshape(w.shape)
        w = w - step
        if np.abs(step).max() < ARRIVED:
            break
    scores = np.column_stack([Z * slopes[:, None] for slopes in (chances - chosen).T])
    return w.ravel(), np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))


def _hessian(Z: Array, chances: Array) -> Array:
    """Return a block for each two classes after the first."""
    others = range(chances.shape[1])
    bends = [[chances[:, k] * ((k == other) - chances[:, other]) for other in others] for k in others]
    return np.block([[Z.T @ (Z * bend[:, None]) for bend in row] for row in bends])
