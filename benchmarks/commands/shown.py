"""``python -m benchmarks shown``: are effects shown as often as ``forecast_effects`` says?"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.comparisons.inference import ESTIMATORS
from benchmarks.pages.generated import rewrite
from benchmarks.problems.ugly import Array
from benchmarks.seeded import SeededWords
from benchmarks.sizes import VARIABLE
from discreet.bounds import Bounds
from discreet.cli.terminal import rich_console
from discreet.curator import use_entropy
from discreet.errors import Unsupported
from discreet.models import ExpectedEffect

HEAD = (
    "| design | yes/no column: forecast (shown) | numbers: forecast (shown) | undeclared |",
    "|---|---:|---:|---:|",
)
FRESH = 21
"""The first seed that no rule was chosen on."""
HIGH = 20.0
"""The largest count."""
TARGETS: dict[str, dict[str, tuple[float, ...]]] = {
    "logistic": {"classes": (0, 1)},
    "softmax": {"classes": (0, 1, 2)},
    "poisson": {"target": (0.0, HIGH)},
}
MODELS = {"logistic": 6, "linear": 4, "poisson": 10, "huber": 4, "softmax": 6}
"""Models, and how many times the least signal their tables have at least."""
STRENGTHS = {"logistic": (0.0, 1.0, 2.0, 3.0, 6.0), "softmax": (0.0, 1.0, 2.0, 3.0), "poisson": (0.0, 0.7, 1.4)}
FILLS = (1.0, 0.3, 0.1, 0.03)
NEAR = 0.15
"""Chances that are so near to shares of tables are right."""


@dataclass(frozen=True)
class Design:
    """A law of tables with numbers and one yes/no column, near the least signal at which effects are shown.

    ``strength`` is the deviation of the margins; NaN: all effects are alike, and moderate. Numbers fill the part
    ``fill`` of their ranges.
    """

    model: str
    rows: int
    columns: int
    epsilon: float
    relation: str
    cell: float
    mean: float
    strength: float = np.nan
    fill: float = 1.0

    @property
    def name(self) -> str:
        """Name what the design is about."""
        facts = f"{self.rows:,} x {self.columns}, epsilon {self.epsilon:g}, {self.relation}, cell {self.cell:g}"
        mean = "" if np.isnan(self.mean) else f", mean {self.mean:g}"
        hard = "" if np.isnan(self.strength) else f", strength {self.strength:g}, fill {self.fill:g}"
        return f"{self.model}, {facts}{mean}{hard}"

    def estimator(self, **words: object) -> object:
        """Return the estimator with declared bounds."""
        ranges = [(0.0, 1.0)] + [(-1.0, 1.0)] * (self.columns - 1)
        target = TARGETS.get(self.model, {"target": (-6.0, 6.0)})
        settings = {"neighbors": self.relation, "inference": "sandwich", "ledger": False, "even_if_empty": True}
        bounds = Bounds(ranges, **target)
        return ESTIMATORS[self.model](self.epsilon, 1.0 / self.rows**2, bounds=bounds, **settings, **words)

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw a table: half of the numbers fill their ranges evenly, half are normal; effects go either way."""
        X = rng.uniform(-1.0, 1.0, (self.rows, self.columns))
        X[:, 1::2] = np.clip(rng.normal(0.0, 0.33, X[:, 1::2].shape), -1.0, 1.0)
        X *= self.fill
        X[:, 0] = rng.random(self.rows) < self.cell
        margins = X @ (0.8 / np.sqrt(self.columns) * rng.choice([-1.0, 1.0], self.columns))
        if not np.isnan(self.strength):
            effects = rng.uniform(0.3, 1.0, self.columns) * rng.choice([-1.0, 1.0], self.columns)
            units = np.append(0.5, X[:, 1:].std(axis=0))  # truth against falsehood: as a number's two deviations
            margins = (X - X.mean(axis=0)) / units @ effects
            margins *= self.strength / margins.std()
        margins -= margins.mean()
        if "classes" in TARGETS.get(self.model, {}):
            shares = np.full(len(TARGETS[self.model]["classes"]), (1.0 - self.mean))
            shares[1] = self.mean * (len(shares) - 1)
            odds = shares * np.exp(np.multiply.outer(margins, np.arange(len(shares))))
            for _ in range(0 if np.isnan(self.strength) else 30):  # strong effects change shares
                odds *= shares / shares.sum() / (odds / odds.sum(axis=1, keepdims=True)).mean(axis=0)
            ends = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)[:, :-1]
            return X, (rng.random((self.rows, 1)) > ends).sum(axis=1).astype(float)
        if self.model == "poisson":
            rates = np.exp(margins) / (1.0 if np.isnan(self.strength) else np.exp(margins).mean())
            return X, np.minimum(rng.poisson(self.mean * rates), HIGH).astype(float)
        numbers = margins + rng.normal(size=self.rows)
        return X, np.clip(numbers / (1.0 if np.isnan(self.strength) else np.hypot(1.0, self.strength)), -6.0, 6.0)

    def shown(self, seed: int) -> Array:
        """Return which effects of one table are shown: the yes/no column's, and the mean over numbers."""
        X, y = self.draw(np.random.default_rng([seed, self.rows, self.columns]))
        try:
            with use_entropy(SeededWords(seed)):
                coef = self.estimator().fit(X, y).summary().columns()["coef"]  # type: ignore[attr-defined]
        except Unsupported:
            return np.zeros(2)
        blocks = len(TARGETS.get(self.model, {}).get("classes", (0, 1))) - 1
        seen = ~np.isnan(coef.reshape(blocks, -1)[:, : self.columns])
        return np.array([seen[:, 0].mean(), seen[:, 1:].mean()])

    def forecast(self, *, undeclared: bool = False) -> tuple[ExpectedEffect, ...]:
        """Return what is forecast of the yes/no column and of numbers, from declared shares alone.

        Moderate effects are not declared, others are.
        """
        X = np.zeros((self.rows, self.columns))
        quote = self.estimator().quote(X, np.zeros(self.rows))  # type: ignore[attr-defined]
        words = {"cells": (self.cell,), "mean": None if np.isnan(self.mean) else self.mean}
        if not np.isnan(self.strength) and not undeclared:
            words |= {"strength": self.strength, "fill": self.fill}
        found: tuple[ExpectedEffect, ...] = quote.effects(**words)
        return found


def design(seed: int) -> Design:
    """Return the design of a seed."""
    rng = np.random.default_rng([seed, 43])
    model = list(MODELS)[seed // 2 % len(MODELS)]
    columns, epsilon = int(rng.choice([2, 4, 8, 12, 20])), float(rng.choice([0.5, 1.0, 3.0]))
    relation = str(rng.choice(["zero_out", "replace_one"]))
    least = (columns + 1) ** 1.5 / epsilon * (7.0 if relation == "zero_out" else 10.0)
    rows = int(least * MODELS[model] * np.exp(rng.uniform(0.5, 2.5)))
    means = {"logistic": (0.5, 0.3, 0.1, 0.05), "softmax": (0.5, 0.3, 0.1), "poisson": (0.5, 1.0, 3.0)}
    mean = float(rng.choice(means.get(model, (np.nan,))))
    rows = rows if model not in ("logistic", "softmax") else int(rows / np.sqrt(4.0 * mean * (1.0 - mean)))
    cell = float(rng.choice([0.5, 0.2, 0.1, 0.05, 0.02]))
    return Design(model, min(rows, 60_000), columns, epsilon, relation, cell, mean)


def hard(seed: int) -> Design:
    """Return the design of a seed with weak, strong or very strong effects, in ranges that are filled in part."""
    law, rng = design(seed), np.random.default_rng([seed, 47])
    strength = float(rng.choice(STRENGTHS.get(law.model, (0.0, 1.0, 3.0))))
    rows = min(int(law.rows * np.exp(rng.uniform(0.0, 0.5 * strength))), 60_000)
    return replace(law, rows=rows, strength=strength, fill=float(rng.choice(FILLS)))


def shown(
    designs: Annotated[int, typer.Option(min=1, help="Designs of each sort: odd seeds, which no rule has seen.")] = 10,
    tables: Annotated[int, typer.Option(min=1, help="Tables per design.")] = 40,
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose table is replaced.")] = None,
    even: Annotated[bool, typer.Option("--even", help="Even seeds: those that rules were chosen on.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", envvar=VARIABLE, help="One design, two tables: does it run?")
    ] = False,
) -> None:
    """Compare how often effects are shown with the chances that ``quote().effects()`` gives for declared shares.

    One line per design: chances and shares of tables for the yes/no column, and for numbers. Half of the designs have
    moderate effects and fill their ranges, as a forecast assumes; the others' strength and fill are declared, and the
    chances of a forecast without them are shown, too: the least, and the one for moderate effects.
    """
    console, gaps, lines, apart = rich_console(markup=True), list[float](), list[str](), list[float]()
    first = 0 if even else FRESH
    seeds = range(first, first + 2 * (1 if quick else designs), 2)
    for law in [make(seed) for make in (design, hard) for seed in seeds]:
        seen = np.mean([law.shown(table) for table in range(2 if quick else tables)], axis=0)
        expected, undeclared = law.forecast(), law.forecast(undeclared=True)
        gaps += [abs(kind.chance - share) for kind, share in zip(expected, seen, strict=True)]
        apart += [max(k.least - share, share - k.chance, 0.0) for k, share in zip(undeclared, seen, strict=True)]
        parts = [
            f"{kind.name}: forecast {kind.chance:.2f}, shown {share:.2f}"
            for kind, share in zip(expected, seen, strict=True)
        ]
        between = ", ".join(f"{kind.least:.2f} to {kind.chance:.2f}" for kind in undeclared)
        console.print(f"{law.name}: {'; '.join(parts)}; undeclared {between}", soft_wrap=True)
        cells = (f"{kind.chance:.2f} ({share:.2f})" for kind, share in zip(expected, seen, strict=True))
        lines.append(f"| {law.name} | {' | '.join(cells)} | {between} |")
    near, inside = (float(np.mean(np.array(some) <= NEAR)) for some in (gaps, apart))
    told = (
        f"{len(gaps)} chances; largest gap {max(gaps):.2f}, within {NEAR} in {near:.0%}; undeclared, shares are within "
        f"{NEAR} of the chances' range in {inside:.0%}"
    )
    console.print(told)
    if page is not None:
        rewrite(page, "\n".join([f"{told}; {tables} tables each.", "", *HEAD, *lines]), "shown")
