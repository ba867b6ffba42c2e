"""Objectives in training coordinates, and their minimizers without privacy: numpy and scipy alone, nothing of a solver.

An estimator minimizes (1/n) sum of losses + penalty. Records are clipped to their declared ranges first. In training
coordinates a feature is divided by its largest magnitude; where its range leaves out 0 and there is an intercept, it is
taken from the middle and divided by half the width, and so is the target of a loss of residuals. The intercept is the
weight of a column of ones, penalized like any other.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from discreet.bounds import Bounds

Array = NDArray[np.float64]
RESIDUALS = ("squared", "huber")
TINY = 1e-13
"""Newton's steps end where one of them would lower the objective by less than this share of it."""


@dataclass(frozen=True)
class Loss:
    """A loss by its name; ``width`` is Huber's, the hinge's, or the limit of Poisson's margins."""

    name: str
    width: float = 1.0

    def value(self, m: Array, t: Array) -> Array:
        """Return each record's loss; margins have one column per class for softmax, else one dimension."""
        if self.name == "logistic":
            return np.asarray(np.logaddexp(0.0, -t * m))
        if self.name == "squared":
            return 0.5 * (m - t) ** 2
        if self.name == "huber":
            size = np.abs(m - t)
            inside = np.minimum(size, self.width)
            return np.asarray(inside * (size - 0.5 * inside))
        if self.name == "hinge":
            gap = np.maximum(1.0 + self.width - t * m, 0.0)
            inside = np.minimum(gap, 2.0 * self.width)
            return np.asarray(gap - inside + inside**2 / (4.0 * self.width))
        if self.name == "poisson":
            inside = np.clip(m, -self.width, self.width)
            return np.asarray(np.exp(inside) * (1.0 + m - inside) - t * m)
        return np.asarray(np.logaddexp.reduce(m, axis=1) - m[np.arange(len(t)), t.astype(int)])

    def slope(self, m: Array, t: Array) -> Array:
        """Return the derivative by the margin, or margins."""
        if self.name == "logistic":
            return -t / (1.0 + np.exp(np.clip(t * m, -700.0, 700.0)))
        if self.name == "squared":
            return m - t
        if self.name == "huber":
            return np.clip(m - t, -self.width, self.width)
        if self.name == "hinge":
            return -t * np.clip((1.0 + self.width - t * m) / (2.0 * self.width), 0.0, 1.0)
        if self.name == "poisson":
            return np.asarray(np.exp(np.clip(m, -self.width, self.width)) - t)
        chances = np.exp(m - np.logaddexp.reduce(m, axis=1, keepdims=True))
        chances[np.arange(len(t)), t.astype(int)] -= 1.0
        return np.asarray(chances)

    def curvature(self, m: Array, t: Array) -> Array:
        """Return the second derivative by the margin; for softmax one matrix per record."""
        if self.name == "logistic":
            chance = 1.0 / (1.0 + np.exp(np.clip(-m, -700.0, 700.0)))
            return np.asarray(chance * (1.0 - chance))
        if self.name == "squared":
            return np.ones_like(m)
        if self.name == "huber":
            return (np.abs(m - t) <= self.width).astype(float)
        if self.name == "hinge":
            return (np.abs(1.0 - t * m) <= self.width) / (2.0 * self.width)
        if self.name == "poisson":
            return np.where(np.abs(m) <= self.width, np.exp(np.clip(m, -self.width, self.width)), 0.0)
        chances = np.exp(m - np.logaddexp.reduce(m, axis=1, keepdims=True))
        return chances[:, :, None] * np.eye(m.shape[1]) - chances[:, :, None] * chances[:, None, :]


@dataclass(frozen=True)
class Coordinates:
    """The public map from declared units into training coordinates."""

    low: Array
    high: Array
    center: Array
    scale: Array
    intercept: bool
    ends: tuple[float, float] | None
    target_center: float
    target_scale: float
    classes: tuple[Any, ...] | None

    @classmethod
    def of(cls, bounds: Bounds, p: int, loss: Loss, intercept: bool) -> "Coordinates":
        """Return the map that declared ranges imply."""
        low, high = bounds.ranges(p)
        far = ((low > 0) | (high < 0)) & (high > low) & intercept
        center = np.where(far, (low + high) / 2.0, 0.0)
        size = np.where(far, (high - low) / 2.0, np.maximum(np.abs(low), np.abs(high)))
        place, unit = 0.0, 1.0
        if bounds.target is not None and loss.name in RESIDUALS:
            least, most = bounds.target
            away = intercept and most > least and (least > 0 or most < 0)
            place, unit = ((least + most) / 2, (most - least) / 2) if away else (0.0, max(abs(least), abs(most)))
        return cls(
            low, high, center, np.where(size > 0, size, 1.0), intercept, bounds.target, place, unit, bounds.classes
        )

    def rows(self, X: Array) -> Array:
        """Return clipped features in training coordinates, with the column of ones where there is an intercept."""
        rows = (np.clip(X, self.low, self.high) - self.center) / self.scale
        return np.column_stack([rows, np.ones(len(rows))]) if self.intercept else rows

    def targets(self, y: Any) -> Array:
        """Return clipped numbers; -1 and 1 for two classes, the class's place for more."""
        if self.classes is None:
            clipped = np.asarray(y, dtype=float) if self.ends is None else np.clip(y, *self.ends)
            return np.asarray((clipped - self.target_center) / self.target_scale)
        places = np.array([self.classes.index(label) for label in np.asarray(y).tolist()], dtype=float)
        return 2.0 * places - 1.0 if len(self.classes) == 2 else places

    def weights(self, model: Any) -> Array:
        """Return a fitted model's coefficients in training coordinates, the intercept's last."""
        coef, place = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        w = (coef * self.scale / self.target_scale).T
        if self.intercept:
            w = np.vstack([w, (place + coef @ self.center - self.target_center) / self.target_scale])
        return w[:, 0] if w.shape[1] == 1 else w


@dataclass(frozen=True, eq=False)
class Objective:
    """Mean loss + l1 ||w||_1 + (l2/2) ||w||^2 on rows in training coordinates."""

    rows: Array
    targets: Array
    loss: Loss
    l1: float = 0.0
    l2: float = 0.0
    classes: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the coefficients."""
        return (self.rows.shape[1],) if self.classes == 1 else (self.rows.shape[1], self.classes)

    @cached_property
    def mean_loss(self) -> "Objective":
        """The same without a penalty."""
        return replace(self, l1=0.0, l2=0.0)

    def value(self, w: Array) -> float:
        """Return the objective at w."""
        penalty = self.l1 * np.sum(np.abs(w)) + 0.5 * self.l2 * np.sum(np.square(w))
        return float(np.mean(self.loss.value(self.rows @ w, self.targets)) + penalty)

    def gradient(self, w: Array) -> Array:
        """Return the gradient of what is smooth in it."""
        return np.asarray(self.rows.T @ self.loss.slope(self.rows @ w, self.targets) / len(self.rows) + self.l2 * w)

    def hessian(self, w: Array) -> Array:
        """Return the matrix of second derivatives, of the flattened coefficients."""
        curvature, n, size = self.loss.curvature(self.rows @ w, self.targets), len(self.rows), int(np.prod(self.shape))
        if self.classes == 1:
            found = (self.rows.T * curvature) @ self.rows / n
        else:
            pairs = [[(self.rows.T * c) @ self.rows / n for c in row] for row in np.moveaxis(curvature, 0, 2)]
            found = np.array(pairs).transpose(2, 0, 3, 1).reshape(size, size)
        return np.asarray(found + self.l2 * np.eye(size))

    @cached_property
    def minimizer(self) -> Array:
        """The point of the least value."""
        start = np.zeros(self.shape)
        if self.l1 == 0.0:
            return self._newton(start, np.ones(self.shape, dtype=bool), np.zeros(self.shape))
        near = self._split(start)
        return min(self._active_set(near), near, key=self.value)

    @cached_property
    def least(self) -> float:
        """The least value."""
        return self.value(self.minimizer)

    @cached_property
    def trivial(self) -> float:
        """The value of the best constant, or of zeros where there is no intercept."""
        zeros = np.zeros(self.shape)
        if not np.all(self.rows[:, -1] == 1.0):
            return self.value(zeros)
        best = replace(self, rows=self.rows[:, -1:]).minimizer
        zeros[-1] = best[0]
        return self.value(zeros)

    def _newton(self, w: Array, free: NDArray[np.bool_], tilt: Array) -> Array:
        """Minimize value + tilt * w over the free coefficients by damped Newton steps (Levenberg, Marquardt)."""
        at, damping = np.flatnonzero(free), 1e-10

        def height(v: Array) -> float:
            return replace(self, l1=0.0).value(v) + float(np.sum(tilt * v))

        for _ in range(300):
            gradient = np.ravel(self.gradient(w) + tilt)[at]
            hessian = self.hessian(w)[np.ix_(at, at)]
            unit = max(float(np.trace(hessian)) / max(len(at), 1), 1e-12)
            before, tried = height(w), False
            while not tried:
                step = np.zeros(w.size)
                step[at] = np.linalg.solve(hessian + damping * unit * np.eye(len(at)), gradient)
                drop = 0.5 * float(step[at] @ gradient)
                moved = w - step.reshape(w.shape)
                if drop < TINY * max(abs(before), 1e-3):
                    return moved if height(moved) <= before else w
                tried = height(moved) <= before - 0.1 * drop
                damping = max(damping / 10.0, 1e-13) if tried else damping * 10.0
            w = moved
        return w

    def _active_set(self, w: Array) -> Array:
        """Minimize within an orthant; leave it where a coefficient would change its sign, enter where a slope asks."""
        w = np.where(np.abs(w) > 1e-9 * np.abs(w).max(initial=0.0), w, 0.0)
        signs, entered = np.sign(w), list[int]()
        for _ in range(20 * w.size):
            free = signs != 0
            aim = self._newton(w, free, self.l1 * signs)
            crosses = free & (aim * signs < 0)
            if crosses.any():
                share = np.where(crosses, np.abs(w) / np.where(crosses, np.abs(w - aim), 1.0), np.inf)
                at = int(np.argmin(share))
                w = w + float(share.flat[at]) * (aim - w)
                w.flat[at] = signs.flat[at] = 0.0
                continue
            w, slope = aim, self.gradient(aim)
            beyond = np.where(signs == 0, np.abs(slope) - self.l1, -np.inf)
            at = int(np.argmax(beyond))
            if beyond.flat[at] <= 1e-12 or at in entered[-2:]:
                break
            signs.flat[at] = -np.sign(slope.flat[at])
            entered.append(at)
        return w

    def _split(self, start: Array) -> Array:
        """Minimize over positive and negative parts, in units in which curvatures are alike."""
        unit = 1.0 / np.sqrt(np.maximum(np.diag(self.hessian(start)), 1e-12)).reshape(self.shape)
        size = start.size

        def both(v: Array) -> tuple[float, Array]:
            w = (v[:size] - v[size:]).reshape(self.shape) * unit
            slope = np.ravel(self.gradient(w) * unit)
            smooth = replace(self, l1=0.0).value(w)
            cost = self.l1 * np.ravel(unit)
            return smooth + float(cost @ (v[:size] + v[size:])), np.concatenate([slope + cost, cost - slope])

        options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 20_000, "maxfun": 100_000, "maxcor": 30}
        found = minimize(
            both, np.zeros(2 * size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * size, options=options
        )
        return np.asarray((found.x[:size] - found.x[size:]).reshape(self.shape) * unit)
