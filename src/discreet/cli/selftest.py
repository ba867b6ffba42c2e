"""``discreet selftest``: is the noise of this installation what the proofs take it to be?"""

from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.errors import NO
from discreet.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from discreet.curator import Check


def selftest(
    draws: Annotated[int, typer.Option(min=10_000, max=10_000_000, help="How often each sampler is drawn.")] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Check this installation: compiled kernels, entropy, samplers.

    Kernels are compared with the same sums in plain Python integers, exactly (this also finds stale compiler caches).
    Samplers are drawn from the operating system's entropy and compared with their laws. A correct
    installation fails with a probability below one in a million; then run it again.
    Exit code 1 if a check fails.
    """
    from discreet.curator import kernel_checks, sampler_checks

    found: list[Check] = []
    for check in chain(kernel_checks(), sampler_checks(draws)):
        found.append(check)
        if not as_json:
            typer.echo(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:<40}{check.found}")
    passed = all(check.passed for check in found)
    if as_json:
        echo_json({"passed": passed, "checks": [asdict(check) for check in found]})
    elif passed:
        typer.echo(f"{len(found)} checks passed")
    else:
        typer.echo("do not fit models with this installation", err=True)
    if not passed:
        raise typer.Exit(NO)
