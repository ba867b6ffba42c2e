"""``python -m benchmarks scale``: fits beyond a machine."""

from typing import Annotated

import typer

from discreet.cli.console import Console


def scale(
    quick: Annotated[bool, typer.Option("--quick", help="Few rows: does it run?")] = False,
) -> None:
    """Measure fits on a Dask cluster of this machine: overhead per pass and part, and one against two workers."""
    from rich.table import Table

    from benchmarks.scale.dask import QUICK, Sizes, figures

    shown = Table(box=None, title="On a Dask cluster", title_justify="left", show_header=False)
    for figure in figures(QUICK if quick else Sizes()):
        shown.add_row(figure.name, f"{figure.value:.3g} {figure.unit}")
    Console(highlight=False).print(shown)
