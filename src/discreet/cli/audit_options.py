"""What the commands of ``discreet audit`` share: options, what they refuse, and signs of life."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.budget import Neighbors
from discreet.cli.errors import Refused
from discreet.cli.options import check_claim
from discreet.cli.outputs import PICTURES, free

if TYPE_CHECKING:
    from discreet.audit.solver_cases import SolverCase

Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The claim that is audited.")]
Delta = Annotated[float, typer.Option("--delta", "-d", help="Its failure probability.")]
Relations = Annotated[
    list[Neighbors] | None, typer.Option("--neighbors", help="A relation; repeatable. Default: all three.")
]
Solver = Annotated[str, typer.Option("--solver", "-s", help="Whose fit: whitened, gd, cd, gcd, agd, output, ...")]
Solvers = Annotated[list[str] | None, typer.Option("--solver", "-s", help="Whose fit; repeatable. Default: all.")]
Runs = Annotated[int, typer.Option("--runs", "-n", min=50, help="On each side. The bound rises with them.")]
Confidence = Annotated[
    float, typer.Option("--confidence", help="The chance that a true claim is not refuted, at least.")
]
Figure = Annotated[Path | None, typer.Option("--figure", help="Write the picture of the runs: .png, .svg or .pdf.")]


def solver_cases() -> "tuple[SolverCase, ...]":
    """Return all that can be audited by name, plug-ins too."""
    from discreet.audit.solver_cases import solver_cases as all_cases
    from discreet.plugins import load_plugins

    load_plugins()
    return all_cases()


def named(solver: str) -> "SolverCase":
    """Return the subject of this name."""
    from discreet.audit.solver_cases import solver_case
    from discreet.cli.choices import registered_solvers

    if solver not in registered_solvers(wanted=solver):
        raise Refused(f"--solver must be one of {', '.join(registered_solvers())}")
    return solver_case(solver)


def claim(epsilon: float, delta: float) -> tuple[float, float]:
    """A claim that could be refuted."""
    check_claim(epsilon, delta)
    return epsilon, delta


def fitted_claim(epsilon: float, delta: float) -> tuple[float, float]:
    """The same for whole fits, whose bounds go by way of concentrated DP: it has nothing to say of delta = 0."""
    if delta == 0:
        raise Refused("--delta must be above 0 for whole fits: use `discreet audit gradient --mechanism laplace`")
    return claim(epsilon, delta)


def sure(confidence: float) -> float:
    """A confidence that says something."""
    if not 0.75 <= confidence < 1:
        raise Refused("--confidence must lie in [0.75, 1), such as 0.999")
    return confidence


def drawable(path: Path | None) -> Path | None:
    """A path for a picture, refused before the runs rather than after them."""
    return None if path is None else free(path, "--figure", endings=PICTURES)


@contextmanager
def counted(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, so that stdout holds the answer alone."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from discreet.cli.console import Console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A sign of life on stderr where the work has no steps to count."""
    from discreet.cli.console import Console

    console = Console(stderr=True)
    with console.status(title) if console.is_terminal else nullcontext():
        yield
