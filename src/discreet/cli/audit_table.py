"""``discreet audit table``: every solver under every relation, claimed against proved."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.budget import Neighbors
from discreet.cli.audit_options import Delta, Epsilon, Relations, Solvers, fitted_claim, named, solver_cases, sure
from discreet.cli.errors import NO
from discreet.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from discreet.audit import Audit
    from discreet.audit.solver_cases import SolverCase

_ROW = "{:<12} {:<12} {:<11} {:>7} {:>7} {:>7}  {}"


def table(
    solver: Solvers = None,
    neighbors: Relations = None,
    epsilon: Epsilon = 2.0,
    delta: Delta = 1e-5,
    runs: Annotated[int, typer.Option("--runs", "-n", min=50, help="On each side; slow solvers get a share.")] = 2000,
    confidence: Annotated[float, typer.Option(help="Of each line by itself.")] = 0.999,
    as_json: AsJson = False,
) -> None:
    """Audit every solver under every relation, each at the level that suits it.

    Fits on all records are audited by their transcripts, fits on samples and draws by their models. The proved epsilon
    is a lower bound that rises with --runs and stays below the claim of a correct solver, except with the
    chance that the confidence leaves. Takes minutes: 10 to 15 with 2000 runs.

    The tables that are fitted are synthetic: one feature and a handful of records, chosen so that a canary shows all
    it can.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from discreet.cli.console import Console

    settings = {"epsilon": fitted_claim(epsilon, delta)[0], "delta": delta, "confidence": sure(confidence)}
    chosen, relations = [named(one) for one in solver or ()], tuple(neighbors or Neighbors)
    console, start = Console(stderr=as_json, highlight=False, markup=False), time.perf_counter()
    if not as_json:
        console.print(f"Synthetic data, delta = {delta:g}, confidence {confidence:g} a line", soft_wrap=True)
        console.print(
            _ROW.format("solver", "relation", "level", "claimed", "proved", "runs", "verdict"), soft_wrap=True
        )
    found: list[Audit] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for one in _audits(chosen, relations, runs, settings, bar):
            if isinstance(one, str):
                bar.console.print(one, soft_wrap=True)
                continue
            found.append(one)
            if not as_json:
                bar.console.print(_line(one), soft_wrap=True)
    if as_json:
        echo_json([json.loads(one.to_json()) for one in found])
    else:
        refuted = sum(one.refuted for one in found)
        console.print(
            f"{refuted} of {len(found)} claims refuted in {time.perf_counter() - start:.0f} s", soft_wrap=True
        )
    if any(one.refuted for one in found):
        raise typer.Exit(NO)


def _audits(
    chosen: "list[SolverCase]",
    relations: tuple[Neighbors, ...],
    runs: int,
    settings: dict[str, float],
    bar: "Progress",
) -> "Iterator[Audit | str]":
    """An audit for each solver and relation, or the reason why there is none."""
    from discreet.audit.solver_table import audited
    from discreet.errors import DiscreetError

    task = bar.add_task("", total=None)
    for subject in chosen or solver_cases():
        for relation in relations:
            bar.reset(task, description=f"{subject.name}, {relation}", total=None)

            def progress(done: int, of: int) -> None:
                bar.update(task, completed=done, total=of)

            try:
                yield audited(subject, relation, runs=runs, progress=progress, **settings)
            except DiscreetError as refusal:  # a solver without a proof under this relation
                yield f"{subject.name:<12} {relation:<12} not served: {refusal}"


def _line(one: "Audit") -> str:
    bound = "-" if one.bound is None else f"{one.bound:.2f}"
    return _ROW.format(one.subject, one.neighbors, one.level, f"{one.claimed:g}", bound, one.runs, one.verdict)
