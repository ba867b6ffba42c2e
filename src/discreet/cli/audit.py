"""``discreet audit``: try to refute what the solvers of this installation claim."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.budget import Neighbors
from discreet.cli.options import PICTURES, AsJson, Relation, check_claim, echo_json, free, new_file
from discreet.cli.terminal import NO, Refused, rich_console

if TYPE_CHECKING:
    from rich.progress import Progress

    from discreet.audit import Audit
    from discreet.audit.guessing import SolverCase


Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The claim that is audited.")]
Delta = Annotated[float, typer.Option("--delta", "-d", help="Its failure probability.")]
Relations = Annotated[
    list[Neighbors] | None, typer.Option("--neighbors", help="A relation; repeatable. Default: all three.")
]
Solver = Annotated[str, typer.Option("--solver", "-s", help="Whose fit: recipe, gd, cd, gcd, agd, output, ...")]
Solvers = Annotated[list[str] | None, typer.Option("--solver", "-s", help="Whose fit; repeatable. Default: all.")]
Runs = Annotated[int, typer.Option("--runs", "-n", min=50, help="On each side. The bound rises with them.")]
Confidence = Annotated[
    float, typer.Option("--confidence", help="The chance that a true claim is not refuted, at least.")
]
Figure = Annotated[Path | None, typer.Option("--figure", help="Write the picture of the runs: .png, .svg or .pdf.")]


def solver_cases() -> "tuple[SolverCase, ...]":
    """Return all that can be audited by name, plug-ins too."""
    from discreet.audit.guessing import solver_cases as all_cases
    from discreet.registry import load_plugins

    load_plugins()
    return all_cases()


def named(solver: str) -> "SolverCase":
    """Return the subject of this name."""
    from discreet.audit.guessing import solver_case
    from discreet.cli.options import registered_solvers

    if solver not in registered_solvers(wanted=solver):
        raise Refused(f"--solver must be one of {', '.join(registered_solvers())}")
    return solver_case(solver)


def fitted_claim(epsilon: float, delta: float) -> tuple[float, float]:
    """Return a claim of whole fits, whose bounds go by way of concentrated DP: it has nothing to say of delta = 0."""
    if delta == 0:
        raise Refused("--delta must be above 0 for whole fits: use `discreet audit gradient --mechanism laplace`")
    check_claim(epsilon, delta)
    return epsilon, delta


def sure(confidence: float) -> float:
    """Return a confidence that says something."""
    if not 0.75 <= confidence < 1:
        raise Refused("--confidence must lie in [0.75, 1), such as 0.999")
    return confidence


def drawable(path: Path | None) -> Path | None:
    """Return a path for a picture, refused before the runs rather than after them."""
    return None if path is None else free(path, "--figure", endings=PICTURES)


@contextmanager
def counted(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, so that stdout holds the answer alone."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = rich_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A sign of life on stderr where the work has no steps to count."""
    console = rich_console(stderr=True)
    with console.status(title) if console.is_terminal else nullcontext():
        yield


audit = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


class Mechanism(StrEnum):
    """Whose noise is audited."""

    GAUSSIAN = "gaussian"
    SAMPLED = "sampled"
    LAPLACE = "laplace"


@audit.callback()
def _group() -> None:
    """Try to refute what this installation claims, on synthetic data.

    An audit runs a mechanism on two neighboring tables and asks how well its outputs tell them apart: better than
    the claim allows, and the claim is REFUTED. Else it is NOT REFUTED, which is no proof: the guarantee rests on the
    mechanisms' proofs, and an audit looks for places where the program is not what was proven.

    Exit code 0: not refuted. 1: refuted. 2: the request cannot be served.

    Begin with `discreet audit replay` (seconds, no statistics), then `discreet audit gradient`, then
    `discreet audit table` (minutes).
    """


@audit.command()
def replay(
    solver: Solvers = None,
    neighbors: Relations = None,
    epsilon: Epsilon = 2.0,
    delta: Delta = 1e-5,
    persons: Annotated[bool, typer.Option("--persons", help="Several rows per person, who is the neighbor.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replay fits on neighbors with the released answers frozen. Exact, without statistics.

    Every kind of nasty record (NaN, infinities, 1e308, strange labels, twins, nobody at all) is exchanged, blanked,
    or comes and goes, while the fit gets the answers that it got before. Then nothing may differ that is shown:
    coefficients, certificate, questions, messages. Every exact sum may move by its sensitivity and no more, its
    noise must be as large as was paid for, and no noise may come twice.

    It finds in one run what statistics would take millions for: a missing clip, a forgotten factor 2, a look at the
    data. It cannot see whether the noise has the right law (`discreet selftest` and `discreet audit gradient` do),
    nor time and memory. The sampler of `exponential` has no sum under noise: audit its model.
    """
    check_claim(epsilon, delta)
    chosen = [named(name) for name in solver] if solver else [case for case in solver_cases() if case.replays]
    audits: list[Audit] = []
    with counted("Replaying", len(chosen) * len(neighbors or Neighbors)) as done:
        for subject in chosen:
            for relation in neighbors or tuple(Neighbors):
                result = _replayed(subject, relation, (epsilon, delta), persons, skips=not solver)
                audits += [] if result is None else [result]
                done(1)
    if as_json:
        echo_json([json.loads(result.to_json()) for result in audits])
    elif len(audits) == 1:
        typer.echo(str(audits[0]))
    else:
        _list(audits)
    if any(result.refuted for result in audits):
        raise typer.Exit(NO)


def _replayed(
    subject: "SolverCase", relation: Neighbors, claimed: tuple[float, float], persons: bool, *, skips: bool
) -> "Audit | None":
    """One replay; ``skips`` leaves out what the solver refuses to serve, instead of saying why."""
    import numpy as np

    from discreet.accounting.events import PoissonSampled
    from discreet.audit import replay as audit_replay
    from discreet.audit.guessing import BOUNDS
    from discreet.errors import DiscreetError

    if not subject.replays:
        raise Refused(f"{subject.name} releases a draw, not a sum: use `discreet audit model --solver {subject.name}`")
    X, y = np.linspace(-1, 1, 12).reshape(6, 2), np.arange(6) % 2.0
    groups = np.arange(6) // 2 if persons else None
    fit = subject.fit(*claimed, relation)
    try:
        events = fit(X, y, groups).certificate_.events
    except DiscreetError:
        if skips:
            return None
        raise
    sampled = any(isinstance(event, PoissonSampled) for event in events)
    return audit_replay(
        fit, X, y, groups, bounds=BOUNDS, neighbors=str(relation), sampled=sampled, subject=subject.name
    )


def _list(audits: "list[Audit]") -> None:
    """A line for each audit, and everything about those that are refuted."""
    for audit in audits:
        typer.echo(f"{audit.verdict:<12}  {audit.subject:<12} {audit.neighbors:<12} {audit.runs:>3} pairs of neighbors")
    for audit in audits:
        if audit.refuted:
            typer.echo(f"\n{audit}")
    if not any(audit.refuted for audit in audits):
        typer.echo("Synthetic data, without statistics. This is no proof: a replay does not see the noise's law.")


@audit.command()
def gradient(
    mechanism: Annotated[Mechanism, typer.Option(help="The noise: on all records, on samples, or Laplace's.")] = (
        Mechanism.GAUSSIAN
    ),
    neighbors: Relation = Neighbors.REPLACE_ONE,
    epsilon: Epsilon = 2.0,
    delta: Delta = 1e-5,
    runs: Runs = 100_000,
    confidence: Confidence = 0.999,
    as_json: AsJson = False,
    figure: Figure = None,
) -> None:
    """Audit one noisy gradient: canaries at exactly the clip bound. About a second.

    The real admission, kernels, lattice and noise answer for records whose clipped gradients are as long as they may
    be, on either side. A threshold is fixed beforehand, and right guesses are counted. So a clip, a factor, a noise
    that are off by a tenth are found with 100,000 runs, by a factor 2 with 3,000.

    It sees one release. How releases add up in a fit, it does not: use `discreet audit transcript`.
    """
    from discreet.audit import gradient as audit_gradient

    checked, path = sure(confidence), drawable(figure)
    check_claim(epsilon, delta)
    with waiting("Releasing gradients"):
        result = audit_gradient(
            epsilon, delta, neighbors=str(neighbors), mechanism=mechanism, runs=runs, confidence=checked
        )
    _tell(result, as_json, path)


@audit.command()
def transcript(
    solver: Solver = "gd",
    neighbors: Relation = Neighbors.REPLACE_ONE,
    epsilon: Epsilon = 2.0,
    delta: Delta = 1e-5,
    runs: Runs = 2000,
    confidence: Confidence = 0.999,
    as_json: AsJson = False,
    figure: Figure = None,
) -> None:
    """Audit a whole fit by all that it released: likelihood ratios of its answers.

    Each run is fitted on one table and replayed on its neighbor with the same answers, which gives the likelihood of
    the whole history on both sides: the best score there is. So it sees how releases add up, a step that was not
    counted, noise that was used twice or is too small.

    It judges answers by the law that is announced for them. It cannot follow randomness that no answer shows: samples
    (`sgd`, `svrg`), noise inside an objective, draws (`exponential`). Audit their models.
    """
    if named(solver).level != "transcript":
        raise Refused(f"the transcript of {solver} does not show all of its randomness: use `discreet audit model`")
    _fits(
        "transcript", solver, neighbors, fitted_claim(epsilon, delta), runs, sure(confidence), as_json, drawable(figure)
    )


@audit.command()
def model(
    solver: Solver = "sgd",
    neighbors: Relation = Neighbors.REPLACE_ONE,
    epsilon: Epsilon = 2.0,
    delta: Delta = 1e-5,
    runs: Runs = 2000,
    confidence: Confidence = 0.999,
    as_json: AsJson = False,
    figure: Figure = None,
) -> None:
    """Audit fitted coefficients alone, as an outsider would: a black box.

    One half of the runs learns which way coefficients lean on either table, the other half is counted. It needs to
    know nothing of the solver, and `discreet.audit.model` does the same to anybody's fit function.

    What a model gives away is less than what its fit released, and the score is only a learned one: the bound is the
    lowest of all levels. It finds gross errors, such as a sum without noise.
    """
    _fits("model", solver, neighbors, fitted_claim(epsilon, delta), runs, sure(confidence), as_json, drawable(figure))


@audit.command("one-run")
def one_run(
    neighbors: Relation = Neighbors.REPLACE_ONE,
    epsilon: Epsilon = 2.0,
    delta: Delta = 1e-5,
    canaries: Annotated[int, typer.Option(min=10, max=20_000, help="As many features, and coins to guess.")] = 1000,
    confidence: Confidence = 0.999,
    as_json: AsJson = False,
    figure: Figure = None,
) -> None:
    """Audit a single release of a wide model: many canaries, each in or out by a coin.

    All coins are guessed from one noisy gradient with as many features as canaries. For models that take too long to
    run twice. The bound is valid whatever the mechanism, and low: it finds noise that is missing or much too
    small, and no error of a tenth.
    """
    from discreet.audit import one_run as audit_one_run

    checked, path = sure(confidence), drawable(figure)
    check_claim(epsilon, delta)
    with waiting("Releasing one gradient"):
        result = audit_one_run(epsilon, delta, neighbors=str(neighbors), canaries=canaries, confidence=checked)
    _tell(result, as_json, path)


def _fits(
    level: str,
    solver: str,
    relation: Neighbors,
    claimed: tuple[float, float],
    runs: int,
    confidence: float,
    as_json: bool,
    path: Path | None,
) -> None:
    """Audit a solver's fits at a level of the user's choice."""
    from dataclasses import replace

    from discreet.audit.guessing import audited

    subject = replace(named(solver), level=level, effort=1.0)
    epsilon, delta = claimed
    with counted(f"Fitting {solver}", runs) as done:
        result = audited(
            subject,
            relation,
            epsilon=epsilon,
            delta=delta,
            runs=runs,
            confidence=confidence,
            progress=lambda *_: done(1),
        )
    _tell(result, as_json, path)


def _tell(audit: "Audit", as_json: bool, path: Path | None) -> None:
    if path is not None:
        with new_file(path, "--figure") as scratch:
            audit.figure(scratch)
    typer.echo(audit.to_json() if as_json else str(audit))
    if path is not None and not as_json:
        typer.echo(f"  picture   {path}")
    if audit.refuted:
        raise typer.Exit(NO)


_ROW = "{:<12} {:<12} {:<11} {:>7} {:>7} {:>7}  {}"


@audit.command()
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

    settings = {"epsilon": fitted_claim(epsilon, delta)[0], "delta": delta, "confidence": sure(confidence)}
    chosen, relations = [named(result) for result in solver or ()], tuple(neighbors or Neighbors)
    console, start = rich_console(stderr=as_json), time.perf_counter()
    if not as_json:
        console.print(f"Synthetic data, delta = {delta:g}, confidence {confidence:g} a line", soft_wrap=True)
        console.print(
            _ROW.format("solver", "relation", "level", "claimed", "proved", "runs", "verdict"), soft_wrap=True
        )
    audits: list[Audit] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for result in _audits(chosen, relations, runs, settings, bar):
            if isinstance(result, str):
                bar.console.print(result, soft_wrap=True)
                continue
            audits.append(result)
            if not as_json:
                bar.console.print(_line(result), soft_wrap=True)
    if as_json:
        echo_json([json.loads(result.to_json()) for result in audits])
    else:
        refuted = sum(result.refuted for result in audits)
        console.print(
            f"{refuted} of {len(audits)} claims refuted in {time.perf_counter() - start:.0f} s", soft_wrap=True
        )
    if any(result.refuted for result in audits):
        raise typer.Exit(NO)


def _audits(
    chosen: "list[SolverCase]", relations: tuple[Neighbors, ...], runs: int, settings: dict[str, float], bar: "Progress"
) -> "Iterator[Audit | str]":
    """An audit for each solver and relation, or the reason why there is none."""
    from discreet.audit.guessing import audited
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


def _line(audit: "Audit") -> str:
    bound = "-" if audit.bound is None else f"{audit.bound:.2f}"
    return _ROW.format(
        audit.subject, audit.neighbors, audit.level, f"{audit.claimed:g}", bound, audit.runs, audit.verdict
    )
