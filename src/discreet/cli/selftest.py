"""``discreet selftest`` and ``version``: check the noise of this installation, and print what it rests on."""

import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from discreet import __version__
from discreet.cli.options import AsJson, echo_json
from discreet.cli.terminal import NO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from discreet.curator import Check
    from discreet.models.compile import Compiled


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


def version(
    as_json: AsJson = False,
) -> None:
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
