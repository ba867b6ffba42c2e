"""``discreet demo``, ``selftest`` and ``version``: try this installation, check its noise, print what it rests on."""

import platform
import shlex
import shutil
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet import __version__
from discreet.cli.options import AsJson, echo_json, taken
from discreet.cli.terminal import NO, Refused, rich_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.cli.terminal import Console
    from discreet.curator import Check
    from discreet.models.compile import Compiled


ABOUT = """\
{rows:,} synthetic hospital stays: {private:,} play the part of private records, {public:,} are held out as public.
No row describes a real person. The commands below are the ones that you would type.\
"""
COMPARED = """
Accuracy on the held-out rows, which are declared public: without privacy (scikit-learn) {free:.1%}, always predicting
the majority class {majority:.1%}.\
"""
NO_EFFECTS = """
Too few rows for effects with standard errors (fit --inference sandwich): raise --rows or --epsilon.\
"""
DELTA = 1e-7
MARK = "made-by-discreet-demo.txt"


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files that are written.")] = Path(
        "build/demo"
    ),
    epsilon: Annotated[float, typer.Option(min=1e-3, max=100, help="The budget of the model.")] = 1.0,
    rows: Annotated[int, typer.Option(min=400, max=10_000_000, help="Synthetic rows; a quarter is held out.")] = 40_000,
) -> None:
    """Run everything once on synthetic data: a table, a schema, a budget, a private model, its report.

    The data are synthetic hospital stays with a codebook, and whether the patient came back. No real person is in it.
    The demo writes the table and its schema, opens a ledger, and runs the commands that you would: `schema check`,
    `budget`, `fit`, `verify` and `score`. The fit shows effects with standard errors, where rows and epsilon suffice.
    The last line names the report.

    Example: `discreet demo --epsilon 0.5 --out demo`
    """

    console, start = rich_console(markup=True, soft_wrap=True), time.perf_counter()
    clear(out)
    free, majority = _prepare(out, rows, console)
    names = ("patients.csv", "held-out.csv", "schema.toml", "budget.db", "model")
    table, held_out, schema, ledger, model = (str(out / name) for name in names)
    effects = _has_effects(Path(table), epsilon)
    commands = (
        ["schema", "check", schema, table],
        ["budget", "init", ledger],
        ["budget", "grant", "patients", "--epsilon", f"{2 * epsilon:g}", "--delta", "1e-6", "--ledger", ledger],
        ["fit", table, "--schema", schema, "--epsilon", f"{epsilon:g}", "--delta", f"{DELTA:g}",
         *(("--inference", "sandwich") if effects else ()), "--ledger", ledger, "--dataset", "patients",
         "--out", model, "--title", "A private model of readmission"],
        ["verify", model, "--ledger", ledger],
        ["score", model, held_out, "--public-data"],
        ["budget", "show", "--ledger", ledger],
    )  # fmt: skip
    for command in commands:
        _run(context.find_root().command, command, console)
    console.print(COMPARED.format(free=free, majority=majority))
    if not effects:
        console.print(NO_EFFECTS)
    console.print(f"\nDone in {time.perf_counter() - start:.0f} s. Next: discreet inspect {model}")
    console.print(f"[bold]Look at the report: {Path(model) / 'report.html'}[/bold]")


def clear(out: Path) -> None:
    """Make the folder; one that an earlier demo made is emptied, any other that is not empty is refused."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise taken(out)
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()) and not (out / MARK).is_file():
        raise Refused(f"{out}: this folder is not empty, and no demo made it: name another with --out")
    for path in out.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (out / MARK).write_text("Made by discreet demo, which empties this folder when it runs again.\n", encoding="utf-8")


def _prepare(out: Path, rows: int, console: "Console") -> tuple[float, float]:
    """Write the files; the accuracy without privacy and that of knowing nothing, on the rows that are public."""
    from discreet.datasets import hospital, references, schema_text, write_csv

    with console.status("Drawing synthetic patients"):
        table, private = hospital(rows), rows - rows // 4
        train, public = table.rows(0, private), table.rows(private, rows)
        write_csv(train, out / "patients.csv")
        write_csv(public, out / "held-out.csv")
        (out / "schema.toml").write_text(schema_text(), encoding="utf-8")
        reference = references(train, public)
    console.print(ABOUT.format(rows=rows, private=private, public=rows - private))
    return reference.non_private, reference.majority


def _has_effects(table: Path, epsilon: float) -> bool:
    """Return whether standard errors are estimated, by public facts: rows, columns and epsilon."""
    from discreet.datasets import schema_text
    from discreet.errors import Unsupported
    from discreet.models import DPLogisticRegression, TableModel
    from discreet.schema import Schema

    estimator = DPLogisticRegression(epsilon, DELTA, inference="sandwich", ledger=False)
    try:
        TableModel(Schema.from_toml(schema_text()), estimator).quote(table)
    except Unsupported:
        return False
    return True


def _run(discreet: Any, command: list[str], console: "Console") -> None:
    """One command, shown as it would be typed. Whatever it refuses ends the demo."""
    console.print(f"\n[bold cyan]$ discreet {shlex.join(command)}[/bold cyan]", markup=True)
    code = discreet.main(command, prog_name="discreet", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def selftest(
    draws: Annotated[int, typer.Option(min=10_000, max=10_000_000, help="How often each sampler is drawn.")] = 200_000,
    compile_first: Annotated[
        bool, typer.Option("--compile", help="First compile what fits run, into the compiler's cache: for images.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check this installation: compiled kernels, entropy, samplers.

    Kernels are compared with their own source, run as plain Python, exactly: this finds stale compiler caches.
    Samplers are drawn from the operating system's entropy and compared with their laws. A correct
    installation fails with a probability below one in a million; if a check fails, run it again.
    With --compile, what fits of the usual models run is compiled before: the first fit of an image then takes a
    second, not several.
    Exit code 1 if a check fails.
    """
    from discreet.curator import kernel_checks, sampler_checks

    compiled = [asdict(job) for job in _compiled(silent=as_json)] if compile_first else None
    checks: list[Check] = []
    for check in chain(kernel_checks(), sampler_checks(draws)):
        checks.append(check)
        if not as_json:
            typer.echo(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:<40}{check.found}")
    passed = all(check.passed for check in checks)
    if as_json:
        outcome = {"passed": passed, "checks": [asdict(check) for check in checks]}
        echo_json(outcome if compiled is None else {**outcome, "compiled": compiled})
    elif passed:
        typer.echo(f"{len(checks)} checks passed")
    else:
        typer.echo("do not fit private models with this installation", err=True)
    if not passed:
        raise typer.Exit(NO)


def _compiled(*, silent: bool) -> "Iterator[Compiled]":
    """Compile what fits run, one small fit after the other."""
    from discreet.models.compile import compile_kernels

    total = 0
    for job in compile_kernels():
        total += job.functions
        if not silent:
            typer.echo(f"      {job.name:<40}{job.functions} functions compiled, {job.seconds:.1f} s")
        yield job
    if not silent:
        typer.echo(f"{total} functions compiled")


TRUSTED = ("numpy", "scipy", "numba", "scikit-learn", "dp-accounting")
"""What a guarantee rests on, in addition to discreet itself."""


def version(as_json: AsJson = False) -> None:
    """Print the versions of discreet and of what its guarantees rest on."""
    versions = {"discreet": __version__, "python": platform.python_version()}
    for name in TRUSTED:
        try:
            versions[name] = installed(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    if as_json:
        echo_json(versions)
        return
    for name, number in versions.items():
        typer.echo(f"{name:<14}{number}")
