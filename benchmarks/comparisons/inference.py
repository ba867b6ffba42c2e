"""Coverage and width of confidence intervals for effects: many tables per design, one file of results per design."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems.effects import MODELS, WIDTH, Design, plain_fit, source_of
from benchmarks.seeded import SeededWords
from discreet import DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, DPRidge
from discreet.curator import use_entropy
from discreet.errors import Unsupported

ESTIMATORS = {
    "logistic": DPLogisticRegression,
    "softmax": DPLogisticRegression,
    "linear": DPLinearRegression,
    "ridge": DPRidge,
    "huber": partial(DPHuberRegressor, width=WIDTH),
    "poisson": DPPoissonRegressor,
}
SAVE_EVERY = 20

_GRID = (
    ("logistic", 2_000, 6, 4.0, "zero_out", "right"),
    ("logistic", 10_000, 6, 0.5, "add_remove", "right"),
    ("logistic", 10_000, 11, 1.0, "zero_out", "quadratic"),
    ("logistic", 20_000, 11, 1.0, "zero_out", "right"),
    ("logistic", 20_000, 11, 1.0, "replace_one", "right"),
    ("logistic", 50_000, 21, 1.0, "replace_one", "right"),
    ("logistic", 50_000, 11, 4.0, "replace_one", "quadratic"),
    ("linear", 2_000, 6, 4.0, "zero_out", "right"),
    ("linear", 10_000, 6, 1.0, "replace_one", "skewed"),
    ("linear", 10_000, 11, 1.0, "zero_out", "unequal"),
    ("linear", 50_000, 11, 0.5, "add_remove", "right"),
    ("linear", 50_000, 11, 1.0, "replace_one", "skewed"),
    ("linear", 50_000, 21, 4.0, "replace_one", "quadratic"),
    ("ridge", 10_000, 6, 1.0, "zero_out", "right"),
    ("huber", 20_000, 6, 1.0, "zero_out", "skewed"),
    ("poisson", 20_000, 6, 2.0, "zero_out", "right"),
    ("poisson", 50_000, 6, 2.0, "replace_one", "skewed"),
    ("logistic", 10_000, 21, 4.0, "zero_out", "right"),
    ("linear", 10_000, 21, 4.0, "replace_one", "right"),
    ("logistic", 10_000, 51, 1.0, "zero_out", "right"),
    ("softmax", 20_000, 6, 4.0, "replace_one", "right"),
    ("softmax", 20_000, 6, 1.0, "zero_out", "right"),
    ("linear", 20_000, 6, 2.0, "zero_out", "persons", "cluster"),
    ("logistic", 20_000, 6, 2.0, "zero_out", "persons", "cluster"),
)
_PUBLIC = (
    ("linear", 54_875, 5, 10.0, "replace_one", "wages"),
    ("linear", 54_875, 5, 1.0, "zero_out", "wages"),
    ("logistic", 48_842, 9, 1.0, "zero_out", "adult"),
    ("logistic", 45_211, 9, 1.0, "replace_one", "bank_marketing"),
    ("logistic", 30_000, 9, 4.0, "replace_one", "credit_default_taiwan"),
    ("softmax", 45_211, 7, 4.0, "replace_one", "marital"),
    ("linear", 20_640, 7, 4.0, "zero_out", "california_housing"),
    ("linear", 53_940, 7, 4.0, "replace_one", "diamonds"),
)
_LARGE = (
    ("logistic", 50_000, 51, 4.0, "replace_one", "right"),
    ("linear", 50_000, 51, 4.0, "zero_out", "unequal"),
    ("logistic", 200_000, 51, 4.0, "zero_out", "right"),
    ("linear", 200_000, 51, 4.0, "zero_out", "unequal"),
)
DESIGNS = tuple(Design(*line) for line in (*_GRID, *_PUBLIC, *_LARGE))
QUICK = (Design("logistic", 5_000, 6, 2.0, "zero_out"), Design("linear", 5_000, 6, 2.0, "zero_out"))


def one_table(design: Design, seed: int, folder: Path | None) -> dict[str, Any]:
    """Fit one table: what was estimated, with which standard errors, and the same without privacy."""
    source = source_of(design, folder)
    rng = np.random.default_rng([seed, design.n, design.p])
    X, y = source.draw(rng, design.n)  # type: ignore[operator]
    model = ESTIMATORS[design.model](
        design.epsilon,
        1.0 / design.n**2,
        bounds=source.bounds,
        neighbors=design.relation,
        inference="sandwich",
        cov_type=design.cov_type,
        ledger=False,
    )
    groups = source.groups(design.n)
    plain, plain_se = plain_fit(X, y, MODELS[design.model], WIDTH, groups)
    try:
        with use_entropy(SeededWords(seed)):
            columns = model.fit(X, y, groups=groups).summary().columns()
    except Unsupported as reason:
        return {"refused": str(reason)}
    kept = ("coef", "se", "se_privacy", "p", "low", "high")
    found = {name: [round(float(value), 10) for value in columns[name]] for name in kept}
    return {**found, "plain": plain.tolist(), "plain_se": plain_se.tolist()}


def run(
    designs: Iterable[Design],
    repetitions: int,
    out: Path,
    folder: Path | None,
    done: Callable[[], None],
    first_seed: int = 0,
) -> None:
    """Fit what is still missing of every design; each has a file, which a second run goes on with."""
    for design in designs:
        path = out / f"{design.name}.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"tables": []}
        tables = known["tables"]
        if not tables:
            truth = source_of(design, folder)
            known = {"design": asdict(design), "truth": truth.truth.tolist(), "classes": list(truth.classes)}
        if known.setdefault("first_seed", first_seed) != first_seed:
            raise Unsupported(f"{path} has tables from seed {known['first_seed']} on: name another folder with --out")
        for seed in range(first_seed + len(tables), first_seed + repetitions):
            tables.append(one_table(design, seed, folder))
            done()
            if "refused" in tables[-1] and len(tables) >= 3 and all("refused" in table for table in tables):
                break
            if len(tables) % SAVE_EVERY == 0:
                _write(path, {**known, "tables": tables})
        _write(path, {**known, "tables": tables})


def _write(path: Path, found: dict[str, Any]) -> None:
    beside = path.with_suffix(".part")  # an interrupted write must not cost the fits that are done
    beside.write_text(json.dumps(found) + "\n", encoding="utf-8")
    beside.replace(path)
