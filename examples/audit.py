"""Try to refute a claim: a fit is audited from four sides, and a mechanism that is wrong is caught.

Audits run on synthetic data. A verdict is REFUTED or NOT REFUTED; it is never a proof.
"""

from typing import Any

import numpy as np

from discreet import Bounds, DPLogisticRegression, audit
from discreet.solvers import GradientDescent

BOUNDS = Bounds(1.0, classes=(0, 1))


def fit(X: Any, y: Any, groups: Any = None) -> DPLogisticRegression:
    """Short steps keep the weights near 0, where a record's gradient is longer than the clip: it shows all it can."""
    solver = GradientDescent(n_steps=3, clip=0.25, step_size=1e-4)
    model = DPLogisticRegression(2.0, 1e-5, bounds=BOUNDS, solver=solver, fit_intercept=False, ledger=False)
    return model.fit(X, y, groups)


def forgetful_sum(X: Any, y: Any) -> float:
    """Somebody's mechanism: claims epsilon = 1, and has a quarter of the noise."""
    return float(y.sum() + np.random.default_rng().laplace(scale=0.25))


def main() -> None:
    X, y = np.ones((4, 1)), np.ones(4, dtype=int)
    data, neighbor = (X, y), (X, np.array([0, 1, 1, 1]))

    print(fit(*data).certificate_, end="\n\n")
    print(audit.replay(fit, X, y, bounds=BOUNDS), end="\n\n")
    print(audit.gradient(epsilon=1.0, runs=20_000), end="\n\n")
    print(audit.transcript(fit, data, neighbor, runs=100), end="\n\n")
    print(audit.model(forgetful_sum, data, neighbor, epsilon=1.0, runs=2000, subject="forgetful_sum"))


if __name__ == "__main__":
    main()
