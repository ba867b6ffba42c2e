"""What the tests of scores share: models that are simply written down, small tables, and scores in plain numpy."""

import numpy as np

from discreet import Bounds, DPHuberRegressor, DPLinearSVC, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.curator.records.stream import Block, RecordStream

RANGES = [(-1.0, 1.0), (0.0, 4.0), (-2.0, 1.0)]
COEF, INTERCEPT = np.array([1.6, -0.7, 0.5]), 1.1
TARGET = (-1.0, 4.0)


def model_of(name="logistic", **settings):
    """A model as a fit would leave it, without one: scores take it as public."""
    classes = {"logistic": (0, 1), "svc": ("no", "yes"), "softmax": (0, 1, 2)}.get(name)
    kinds = {"svc": DPLinearSVC, "ridge": DPRidge, "huber": DPHuberRegressor, "poisson": DPPoissonRegressor}
    facts = {"classes": classes} if classes else {"target": (0.0, 6.0) if name == "poisson" else TARGET}
    made = kinds.get(name, DPLogisticRegression)(bounds=Bounds(RANGES, **facts), **settings)
    made.n_features_in_ = 3
    if name == "softmax":
        made.coef_, made.intercept_ = np.stack([-COEF, 0.3 * COEF, COEF]), np.array([0.0, 0.2, -0.3])
    elif classes:
        made.coef_, made.intercept_ = COEF[None, :], np.array([INTERCEPT])
    else:
        scale = 0.3 if name == "poisson" else 1.0
        made.coef_, made.intercept_ = scale * COEF, np.float64(INTERCEPT)
    if classes:
        made.classes_ = np.array(classes)
    return made


def table(name="logistic", n=600, seed=0, missing=True):
    """Rows that the model predicts fairly well; some lie out of range, some cannot be scored."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.1, 1.1, (n, 3)) * [2.0, 4.0, 3.0] + [-1.0, 0.0, -2.0]
    clean = np.clip(X, *np.array(RANGES).T)
    score = clean @ COEF + INTERCEPT
    if name == "softmax":
        y = np.clip(np.digitize(score + rng.logistic(0, 1, n), [-0.5, 0.8]), 0, 2).astype(float)
    elif name in ("logistic", "svc"):
        y = (score + rng.logistic(0, 0.7, n) > 0).astype(float)
    elif name == "poisson":
        y = rng.poisson(np.exp(np.clip(0.3 * clean @ COEF + INTERCEPT, -5, 5))).astype(float)
    else:
        y = score + rng.normal(0, 0.7, n)
    if missing:
        X[::37, 1], y[5::41] = np.nan, np.nan
    if name == "svc":
        y = np.where(np.isnan(y), "other", np.array(["no", "yes"])[np.nan_to_num(y).astype(int)])
    return X, y


def scored_rows(X, y):
    """Which rows count."""
    known = np.isin(y, ["no", "yes"]) if y.dtype.kind == "U" else np.isfinite(y)
    return np.isfinite(X).all(axis=1) & known


def by_hand(model, X, y, metric, groups=None):
    """The score without noise, by definition and with ``model.predict``; a person's k rows count 1/k each."""
    kept = scored_rows(X, y)
    weights = np.ones(len(y)) if groups is None else 1.0 / np.array([(groups == g).sum() for g in groups])
    X, y, w = X[kept], y[kept], weights[kept]
    if metric in ("accuracy", "confusion"):
        return float((w * (model.predict(X) == y)).sum() / w.sum())
    if metric == "balanced_accuracy":
        right = model.predict(X) == y
        return float(np.mean([(w * right)[y == c].sum() / w[y == c].sum() for c in model.classes_]))
    if metric in ("brier", "log_loss", "calibration"):
        chances, happened = model.predict_proba(X), y[:, None] == model.classes_[None, :]
        if metric == "brier":
            return float((w * ((chances - happened) ** 2).sum(axis=1) / 2).sum() / w.sum())
        if metric == "log_loss":
            return float(-(w * np.log(np.maximum(chances[happened], 0.01))).sum() / w.sum())
        tenth = np.minimum(np.floor(10 * chances[:, 1]), 9)
        middle = (tenth + 0.5) / 10
        off = [abs((w * (happened[:, 1] - middle))[tenth == b].sum()) for b in range(10)]
        return float(sum(off) / w.sum())
    if metric == "auc":
        positive = y == model.classes_[1]
        margins = model.decision_function(X)
        above, below = margins[positive, None], margins[None, ~positive]
        concordant = (above > below) + 0.5 * (above == below)
        pairs = w[positive, None] * w[None, ~positive]
        return float((pairs * concordant).sum() / pairs.sum())
    low, high = model.bounds.target
    y, predicted = np.clip(y, low, high), np.clip(model.predict(X), low, high)
    mean = (w * y).sum() / w.sum()
    if metric == "mae":
        return float((w * np.abs(y - predicted)).sum() / w.sum())
    if metric == "rmse":
        return float(np.sqrt((w * (y - predicted) ** 2).sum() / w.sum()))
    return float(1 - (w * (y - predicted) ** 2).sum() / (w * (y - mean) ** 2).sum())


class Stream(RecordStream):
    """An array in blocks."""

    columns = ("a", "b", "c")

    def __init__(self, X, y, persons=None, rows=70):
        self.shape, self.columns = X.shape, list(self.columns)
        self.has_persons = persons is not None
        self._parts, self._rows = (X, y, persons), rows

    def blocks(self):
        X, y, persons = self._parts
        for first in range(0, len(y), self._rows):
            part = slice(first, first + self._rows)
            yield Block(X[part], y[part], None if persons is None else persons[part])

    def persons(self):
        return self._parts[2]
