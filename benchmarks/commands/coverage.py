"""``python -m benchmarks coverage``: do shown intervals cover effects on ugly tables, kind of column by kind?"""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.comparisons.inference import ESTIMATORS
from benchmarks.pages.generated import rewrite
from benchmarks.problems.ugly import MODELS, Array, Ugly, ugly
from benchmarks.seeded import SeededWords
from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import Refused, rich_console
from discreet.curator import use_entropy
from discreet.errors import Unsupported

HEAD = (
    "| model | relation | epsilon | kinds of columns shown | mean | at least .93 | below .88 | lowest | size |",
    "|---|---|---:|---:|---:|---:|---:|---:|---:|",
)
FEWEST = 5
"""A kind that is shown less often has no coverage to speak of."""
LEVEL = 0.05


def covered(law: Ugly, n: int, epsilon: float, relation: str, seed: int, truth: Array) -> Array:
    """Return for each effect of a table whether its interval covers it, and whether a test rejects that it is 0.

    Both are NaN where it is not shown, the second also where it is not 0.
    """
    X, y = law.draw(np.random.default_rng([law.seed, seed, 7]), n)
    words = {"neighbors": relation, "inference": "sandwich", "fit_intercept": law.fit_intercept, "ledger": False}
    model = ESTIMATORS[law.model](epsilon, 1.0 / n**2, bounds=law.bounds, **words)
    try:
        with use_entropy(SeededWords(1000 * law.seed + seed)):  # laws share no noise, which would err alike in all
            found = model.fit(X, y, groups=law.groups(n)).summary().columns()
    except Unsupported:
        return np.full((2, len(truth)), np.nan)
    inside, shown = (found["low"] <= truth) & (truth <= found["high"]), ~np.isnan(found["coef"])
    rejected = np.where(shown & law.zero, found["p"] < LEVEL, np.nan)
    return np.stack([np.where(shown, inside, np.nan), rejected])


def coverage(
    model: Annotated[list[str] | None, typer.Option(help="Models; repeatable. All without it.")] = None,
    laws: Annotated[int, typer.Option(min=1, help="Laws of tables per model: odd seeds, which no rule has seen.")] = 6,
    first: Annotated[int, typer.Option(min=0, help="The first law's seed; from 100 on they have further columns.")] = 1,
    tables: Annotated[int, typer.Option(min=1, help="Tables per law.")] = 60,
    rows: Annotated[int, typer.Option(min=100, help="Rows of a table.")] = 20_000,
    epsilon: Annotated[list[float] | None, typer.Option(help="Repeatable; 1 and 3 without it.")] = None,
    relation: Annotated[list[str] | None, typer.Option(help="Repeatable; zero_out and replace_one without it.")] = None,
    page: Annotated[Path | None, typer.Option(help="A Markdown page whose table is replaced.")] = None,
    quick: Annotated[bool, typer.Option("--quick", envvar=VARIABLE, help="One law, two tables: does it run?")] = False,
) -> None:
    """Fit ugly tables (``problems/ugly.py``) with inference="sandwich", and count how often shown intervals cover.

    One line per law and epsilon: coverage of each kind of column, and in parentheses how often it was shown. The Monte
    Carlo error of one coefficient over 60 tables is .03. Then the size of tests by model and by kind: how often one
    at .05 rejects that an effect is 0 which is 0, of right models, with the Monte Carlo error of independent tests.
    """
    console, cells = rich_console(markup=True), dict[tuple[str, str, float], list[float]]()
    tests, kinds_tested = dict[tuple[str, str, float], list[float]](), dict[str, list[float]]()
    names = ("linear",) if quick else tuple(model or MODELS)
    if not set(names) <= set(MODELS):
        raise Refused(f"models are {', '.join(MODELS)}")
    for name in names:
        for seed in range(first, first + 2 * (1 if quick else laws), 2):
            law = ugly(name, seed)
            law, n = (replace(law, columns=law.columns[:3]), 5_000) if quick else (law, rows)
            for about, budget in product(relation or ("zero_out", "replace_one"), epsilon or (1.0, 3.0)):
                found, rejected = _fits(law, n, budget, about, 2 if quick else tables)
                kinds, parts = np.array(law.classes), []
                for kind in dict.fromkeys(law.classes):
                    some = found[:, kinds == kind]
                    shown = ~np.isnan(some)
                    rate = float(np.nanmean(some)) if shown.sum() >= FEWEST else np.nan
                    cells.setdefault((name, about, budget), []).append(rate)
                    parts.append(f"{kind} {rate:.2f} ({shown.mean():.2f})")
                    sizes = rejected[:, kinds == kind]
                    for key, group in (((name, about, budget), tests), (kind, kinds_tested)):
                        group.setdefault(key, []).extend(sizes[~np.isnan(sizes)].tolist())  # type: ignore[call-overload]
                console.print(f"{law.name}, {about}, epsilon {budget:g}: {'; '.join(parts)}", soft_wrap=True)
    every = _counts([rate for rates in cells.values() for rate in rates])
    console.print("{} kinds of columns; coverage {:.3f}, at least .93 in {:.0%}, below .88 in {}".format(*every))
    for title, group in (("model", tests), ("kind", kinds_tested)):
        parts = [f"{key if title == 'kind' else ', '.join(map(str, key))} {_size(some)}" for key, some in group.items()]
        console.print(f"size by {title}: {'; '.join(parts)}", soft_wrap=True)
    if page is not None:
        fits = f"{tables} tables of {rows:,} rows each, {laws} laws per model"
        lines = [
            f"| {name} | {about} | {budget:g} | {kinds} | "
            + (f"{mean:.3f} | {good:.0%} | {bad} | {least:.2f} |" if kinds else "– | – | – | – |")
            + f" {_size(tests[name, about, budget])} |"
            for (name, about, budget), rates in cells.items()
            for kinds, mean, good, bad, least in [_counts(rates)]
        ]
        rewrite(page, "\n".join([f"{fits}.", "", *HEAD, *lines]), "coverage")


def _fits(law: Ugly, n: int, epsilon: float, relation: str, tables: int) -> Array:
    """Return what is covered and what is rejected, table by table; a law that is refused three times is given up."""
    found: list[Array] = []
    for table in range(tables):
        found.append(covered(law, n, epsilon, relation, table, law.truth))
        if len(found) == 3 and np.isnan(found).all():
            break
    return np.stack(found, axis=1)


def _size(rejected: list[float]) -> str:
    """Return the share of tests that reject what is true, and its error; a dash without tests."""
    if not rejected:
        return "–"
    share = float(np.mean(rejected))
    return f"{share:.3f} ± {np.sqrt(max(share, LEVEL) * (1.0 - share) / len(rejected)):.3f} of {len(rejected)}"


def _counts(rates: list[float]) -> tuple[int, float, float, int, float]:
    """Return how many kinds are shown, their mean, the share with at least .93, how many below .88, and the least."""
    shown = np.array([rate for rate in rates if not np.isnan(rate)])
    least = float(shown.min(initial=1.0))
    mean, good = (float(part.sum() / max(1, len(shown))) for part in (shown, shown >= 0.93))
    return len(shown), mean, good, int((shown < 0.88).sum()), least
