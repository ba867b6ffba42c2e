"""What the tests of clusters share: records, fits with seeded noise, and a hook on the passes over the records."""

import os
import signal

import dask.array as da
import numpy as np

from discreet import DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.curator.clusters import dask
from discreet.curator.clusters.remote import RemoteEngine
from discreet.testing import seeded

N = 230


def records(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X @ [1.0, -0.5, 0.25] + 0.1 * rng.normal(size=n)


X, MARGINS = records()
BINARY, MANY = (MARGINS > 0).astype(int), np.digitize(MARGINS, [-0.4, 0.4])
COUNTS = np.minimum(np.random.default_rng(1).poisson(np.exp(MARGINS)), 10)

MODELS = {
    "logistic": (DPLogisticRegression(bounds=1.0, classes=(0, 1)), BINARY),
    "softmax": (DPLogisticRegression(bounds=1.0, classes=(0, 1, 2)), MANY),
    "hinge": (DPLinearSVC(bounds=1.0, classes=(0, 1)), BINARY),
    "squared": (DPRidge(bounds=1.0, target=(-2, 2)), MARGINS),
    "huber": (DPHuberRegressor(bounds=1.0, target=(-2, 2)), MARGINS),
    "poisson": (DPPoissonRegressor(bounds=1.0, target=(0, 10)), COUNTS),
}


def in_parts(values, parts):
    size = -(-len(values) // parts)
    return da.from_array(values, chunks=(size, *values.shape[1:]))


def fitted(name, parts=None, *, y=None, rows=X, **settings):
    """Fit with noise from a seed: in memory, or in parts on the current client."""
    from sklearn.base import clone

    model, targets = MODELS[name]
    y = targets if y is None else y
    if parts is not None:
        rows, y = in_parts(rows, parts), in_parts(y, parts)
    with seeded(5):
        return clone(model).set_params(**{"epsilon": 3.0, "delta": 1e-6, **settings}).fit(rows, y)


def bits(model):
    return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)]).tolist()


class Passes:
    """Counts the passes over the records, and does something while one of them is under way."""

    def __init__(self, monkeypatch, at=None, then=None):
        self.count, honest = 0, RemoteEngine.total
        mapped = dask._mapped

        def total(engine, question):
            self.count += 1
            return honest(engine, question)

        def asked(client, task, *columns, **words):
            futures = mapped(client, task, *columns, **words)
            if self.count == at and task is dask.calls.told and then is not None:
                then()
            return futures

        monkeypatch.setattr(RemoteEngine, "total", total)
        monkeypatch.setattr(dask, "_mapped", asked)


def kill_workers(client, count=1):
    """SIGKILL the processes of ``count`` workers, None: of all; their nannies start others."""
    for pid in list(client.run(os.getpid).values())[:count]:
        os.kill(pid, signal.SIGKILL)
