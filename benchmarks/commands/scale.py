"""``python -m benchmarks scale [name ...]``: fits beyond memory, and beyond one machine."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.sizes import VARIABLE
from discreet.cli.terminal import Refused, rich_console

if TYPE_CHECKING:
    from benchmarks.scale.dask import Figure

NAMES = ("dask", "workers", "persons", "disk", "peer")
DEFAULT = NAMES[:2]


def scale(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of: {', '.join(NAMES)}. Default: {', '.join(DEFAULT)}.")
    ] = None,
    rows: Annotated[
        float, typer.Option(help="workers, persons, disk: rows of the table, which is made in parts.")
    ] = 1e6,
    columns: Annotated[int, typer.Option(min=1, help="workers, persons, disk: columns of the table.")] = 20,
    memory: Annotated[
        str | None,
        typer.Option(help="disk: how much memory encoded rows may take, default 0B; persons: a worker's, default 1GB."),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="disk: where the table and scratch files are made.")] = None,
    quick: Annotated[bool, typer.Option("--quick", envvar=VARIABLE, help="Few rows: does it run?")] = False,
) -> None:
    """Measure fits from disk (time by stage, memory), on a Dask cluster of this machine, and against dask-ml there."""
    from rich.table import Table

    unknown = set(names or ()) - set(NAMES)
    if unknown:
        raise Refused(f"there is no {', '.join(sorted(unknown))}: name any of {', '.join(NAMES)}")
    size = 20_000 if quick else int(rows)
    for name in names or DEFAULT:
        found = (
            _disk(size, columns, memory or "0B", folder)
            if name == "disk"
            else _cluster(name, size, columns, memory or "1GB", quick)
        )
        shown = Table(box=None, title=name, title_justify="left", show_header=False)
        for figure in found:
            shown.add_row(figure.name, f"{figure.value:.4g} {figure.unit}")
        rich_console(markup=True).print(shown)


def _cluster(name: str, rows: int, columns: int, memory: str, quick: bool) -> "list[Figure]":
    from benchmarks.scale import dask

    passes = dask.QUICK if quick else dask.Passes()
    if name == "dask":
        return dask.overhead((1, 4) if quick else (1, 8, 64), passes)
    if name == "workers":
        return dask.second_worker(rows, columns, passes if quick else dask.MANY)
    if name == "persons":
        from benchmarks.scale import persons

        return persons.figures(rows, columns, memory)
    from benchmarks.scale import peer

    sizes = peer.QUICK if quick else (peer.ROWS, peer.COLUMNS, peer.PART, peer.PASSES)
    return peer.figures(*sizes)


def _disk(rows: int, columns: int, memory: str, folder: Path | None) -> "list[Figure]":
    from benchmarks.scale import on_disk
    from benchmarks.scale.dask import Figure

    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "table.parquet"
        on_disk.write(file, rows, columns)
        size = file.stat().st_size / 1e9
        found = on_disk.fit(file, rows, columns, memory=memory, scratch=Path(place))
    stages = [Figure(stage, seconds, "s") for stage, seconds in found.stages.items()]
    return [
        Figure(f"Parquet file of {rows:,} x {columns}", size, "GB"),
        Figure("whole fit", found.seconds, "s"),
        Figure("whole fit, processor", found.cpu, "s"),
        *stages,
        Figure("memory beyond imports, the process' own", found.anonymous_mb, "MB"),
        Figure("memory beyond imports, pages of scratch files", found.mapped_mb, "MB"),
        Figure("distance from the true coefficients, relative", found.distance, ""),
    ]
