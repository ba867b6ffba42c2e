"""Other libraries with default settings, on the tables that ``python -m benchmarks accuracy --export`` writes.

    python benchmarks/methods/peers.py diffprivlib --tables build/tables --out build/diffprivlib.json
    python -m benchmarks accuracy --peers build/diffprivlib.json ...

Needs numpy, scikit-learn and the peer; nothing of discreet. Both get what discreet gets, or more: numeric columns
stretched from their declared ranges to [-1, 1], 0/1 columns as they are, the target in [-1, 1], predictions clipped.

diffprivlib
    LogisticRegression(epsilon, data_norm) with its defaults; data_norm is the square root of the number of columns
    before categories became 0/1 columns, which bounds every row and is public. LinearRegression(epsilon, bounds_X,
    bounds_y). Pure epsilon; n is public and a record is replaced: the same runs stand under both relations.
opacus
    A linear layer, plain SGD, per-record clipping at 1, batches of 256, ten epochs, a step of 0.1: the numbers of its
    tutorials. delta = 1/n^2. Its accountant is for adding or removing a record: the same runs stand under both
    relations, which favors it under replace_one (that needs twice the noise).
dp_ebm
    DPExplainableBoostingClassifier and -Regressor of interpret-core with their defaults: shape functions by noisy
    histograms. Categories are one nominal column each, as its users have them; bounds are the declared ones, the target
    is in [-1, 1], as its noise covers the width of a target's range and not its offset. delta = 1/n^2. A record moves
    a histogram by its own part: the relation is zero_out, and the same runs stand under both, which favors it.
adassp, ihm
    Least squares by noisy sufficient statistics and by a sketched Hessian (``least_squares_rivals``), with tight
    accounting; delta = 1/n^2, under zero_out. Rows, with a constant, are divided by the root of the number of columns
    before categories became 0/1 columns, plus one: that bounds every row and is public. For numbers only.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import least_squares_rivals  # next to this file, which is run by its path
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

RELATIONS = ("zero_out", "replace_one")
BATCH, EPOCHS, STEP, CLIP = 256, 10, 0.1, 1.0
Array = NDArray[np.float64]


class Encoded:
    """A table, stretched by its declared ranges; ``take`` divides it as the run of a seed has to."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            stored = {name: file[name] for name in file.files}
        self.name, self.is_classification = path.stem, bool(stored["classification"])
        low, high, numeric, X = stored["low"], stored["high"], stored["numeric"], stored["X"]
        self.low, self.high = np.where(numeric, -1.0, 0.0), np.ones(len(low))
        self.X, self.y = np.where(numeric, 2 * (np.clip(X, low, high) - low) / (high - low) - 1, X), stored["y"]
        self.held_out = dict(zip(stored["splits"].tolist(), stored["held_out"], strict=True))
        self.names = [str(name) for name in stored["names"]]
        self.columns = len({str(name).partition("=")[0] for name in self.names})
        self.target_low, self.target_high = float(stored["target_low"]), float(stored["target_high"])

    def split(self, seed: int) -> int:
        """The seed of the split for a run of this seed: its own where the table is small, else 0."""
        split = seed if 0 not in self.held_out else 0
        if split not in self.held_out:
            raise SystemExit(f"{self.name} was exported for fewer seeds: export it again with --seeds {seed}")
        return split

    def take(self, split: int) -> None:
        """Divide the rows into training and test rows."""
        held = self.held_out[split]
        self.X_train, self.X_test = self.X[~held], self.X[held]
        self.y_train, self.y_test = self.y[~held], self.y[held]
        if not self.is_classification:
            width = self.target_high - self.target_low
            self.y_train = 2 * (np.clip(self.y_train, self.target_low, self.target_high) - self.target_low) / width - 1

    def scores(self, margins: Array) -> dict[str, float]:
        """The metrics that discreet's command expects."""
        margins = np.nan_to_num(margins)
        if self.is_classification:
            accuracy = np.mean((margins > 0) == (self.y_test > 0))
            return {"accuracy": float(accuracy), "auc": float(roc_auc_score(self.y_test, margins))}
        middle, half = (self.target_low + self.target_high) / 2, (self.target_high - self.target_low) / 2
        residual = self.y_test - (middle + half * np.clip(margins, -1, 1))
        return {"r2": float(1 - np.sum(residual**2) / np.sum((self.y_test - self.y_test.mean()) ** 2))}


def diffprivlib(table: Encoded, epsilon: float, seed: int) -> Array:
    """Margins on the test rows."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    if table.is_classification:
        norm = float(np.sqrt(table.columns))
        model: Any = LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=seed)
        return np.asarray(model.fit(table.X_train, table.y_train).decision_function(table.X_test))
    model = LinearRegression(epsilon=epsilon, bounds_X=(table.low, table.high), bounds_y=(-1, 1), random_state=seed)
    return np.asarray(model.fit(table.X_train, table.y_train).predict(table.X_test))


@cache
def _opacus_noise(epsilon: float, delta: float, sample_rate: float) -> float:
    """What ``make_private_with_epsilon`` computes, once for all seeds."""
    from opacus import PrivacyEngine
    from opacus.accountants.utils import get_noise_multiplier

    name = PrivacyEngine().accountant.mechanism()
    settings = {"target_epsilon": epsilon, "target_delta": delta, "sample_rate": sample_rate, "epochs": EPOCHS}
    return float(get_noise_multiplier(**settings, accountant=name))


def opacus(table: Encoded, epsilon: float, seed: int) -> Array:
    """Margins on the test rows."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    class Rows(TensorDataset):
        """Gives a batch at once: the same batches as row by row, in a seventh of the time."""

        def __getitems__(self, chosen: list[int]) -> tuple[Any, ...]:
            return self[torch.as_tensor(chosen, dtype=torch.int64)]

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    n, p = table.X_train.shape
    rows = Rows(*(torch.tensor(part, dtype=torch.float32) for part in (table.X_train, table.y_train)))
    loader = DataLoader(rows, batch_size=BATCH, collate_fn=lambda batch: batch)
    model: Any = torch.nn.Linear(p, 1)
    loss = torch.nn.BCEWithLogitsLoss() if table.is_classification else torch.nn.MSELoss()
    model, optimizer, private = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=STEP),
        data_loader=loader,
        noise_multiplier=_opacus_noise(epsilon, 1 / n**2, 1 / len(loader)),
        max_grad_norm=CLIP,
    )
    for _ in range(EPOCHS):
        for X, y in private:
            optimizer.zero_grad()
            loss(model(X)[:, 0], y).backward()
            optimizer.step()
    with torch.no_grad():
        return np.asarray(model(torch.tensor(table.X_test, dtype=torch.float32))[:, 0], dtype=np.float64)


def _nominal(table: Encoded, X: Array) -> tuple[list[Array], list[str], dict[int, tuple[float, float]]]:
    """Columns with 0/1 columns of one category put together again, their types, and bounds of the numbers."""
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(table.names):
        groups.setdefault(name.partition("=")[0], []).append(j)
    columns, types, bounds = [], [], {}
    for k, places in enumerate(groups.values()):
        alone = len(places) == 1 and "=" not in table.names[places[0]]
        part = X[:, places]
        columns.append(part[:, 0] if alone else np.where(part.any(axis=1), part.argmax(axis=1), -1))
        types.append("continuous" if alone else "nominal")
        if alone:
            bounds[k] = (float(table.low[places[0]]), float(table.high[places[0]]))
    return columns, types, bounds


def dp_ebm(table: Encoded, epsilon: float, seed: int) -> Array:
    """Margins on the test rows."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    columns, types, bounds = _nominal(table, table.X_train)
    settings = {"epsilon": epsilon, "delta": 1 / len(table.y_train) ** 2, "random_state": seed, "n_jobs": 1}
    settings |= {"feature_types": types, "privacy_bounds": bounds}
    test = np.column_stack(_nominal(table, table.X_test)[0]).astype(object)
    train = np.column_stack(columns).astype(object)
    if table.is_classification:
        model: Any = DPExplainableBoostingClassifier(**settings).fit(train, table.y_train.astype(int))
        return np.asarray(model.decision_function(test))
    model = DPExplainableBoostingRegressor(**settings, privacy_target_min=-1.0, privacy_target_max=1.0)
    return np.asarray(model.fit(train, table.y_train).predict(test))


def _least_squares(table: Encoded, epsilon: float, seed: int, method: Callable[..., Array]) -> Array:
    """Margins on the test rows."""

    def rows(X: Array) -> Array:
        return np.column_stack([X, np.ones(len(X))]) / np.sqrt(table.columns + 1.0)

    w = method(rows(table.X_train), table.y_train, epsilon, 1 / len(table.y_train) ** 2, np.random.default_rng(seed))
    return rows(table.X_test) @ w


def adassp(table: Encoded, epsilon: float, seed: int) -> Array:
    """Margins on the test rows."""
    return _least_squares(table, epsilon, seed, least_squares_rivals.adassp)


def ihm(table: Encoded, epsilon: float, seed: int) -> Array:
    """Margins on the test rows."""
    return _least_squares(table, epsilon, seed, least_squares_rivals.hessian_mixing)


METHODS: dict[str, Callable[[Encoded, float, int], Array]] = {
    "diffprivlib": diffprivlib,
    "opacus": opacus,
    "dp_ebm": dp_ebm,
    "adassp": adassp,
    "ihm": ihm,
}
FOR_NUMBERS = ("adassp", "ihm")


def main() -> None:
    """Run what is missing, table by table, and write after each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--tables", type=Path, required=True, help="folder with the exported tables")
    parser.add_argument("--out", type=Path, required=True, help="JSON file; runs that it has are not run again")
    parser.add_argument("--set", action="append", help="a table; repeatable")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--epsilon", type=float, action="append")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = json.loads(given.out.read_text()) if given.out.is_file() else {"runs": []}
    for name in given.set or sorted(path.stem for path in given.tables.glob("*.npz")):
        table = Encoded(given.tables / f"{name}.npz")
        if given.method in FOR_NUMBERS and table.is_classification:
            continue
        relations = RELATIONS[:1] if given.method in FOR_NUMBERS else RELATIONS
        for epsilon in given.epsilon or (0.1, 0.5, 1.0, 4.0):
            news = []
            for seed in range(1, given.seeds + 1):
                split = table.split(seed)
                facts = {"set": name, "method": given.method, "epsilon": epsilon, "seed": seed, "split": split}
                if any(all(run.get(fact, 0) == facts[fact] for fact in facts) for run in found["runs"]):
                    continue
                table.take(split)
                start = time.perf_counter()
                metrics = table.scores(METHODS[given.method](table, epsilon, seed))
                seconds = round(time.perf_counter() - start, 3)
                news += [
                    {**facts, "relation": relation, "metrics": metrics, "seconds": seconds} for relation in relations
                ]
            if news:
                found["runs"] += news
                print(name, f"{epsilon:g}", news[-1]["metrics"], f"{news[-1]['seconds']:.1f} s a fit", flush=True)
                given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
