"""``discreet version``."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import typer

from discreet import __version__
from discreet.cli.options import AsJson, echo_json

TRUSTED = ("numpy", "scipy", "numba", "scikit-learn", "dp-accounting")
"""What a guarantee rests on, in addition to discreet itself."""


def version(
    as_json: AsJson = False,
) -> None:
    """Print the versions of discreet and of what its guarantees rest on."""
    found = {"discreet": __version__, "python": platform.python_version()}
    for name in TRUSTED:
        try:
            found[name] = installed(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    if as_json:
        echo_json(found)
        return
    for name, number in found.items():
        typer.echo(f"{name:<14}{number}")
