"""A progress bar of steps, which are public; never of losses, which are not."""

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.solvers.base import Progress


@contextmanager
def progress_bar(title: str, epsilon: float, wanted: bool) -> Iterator[Progress | None]:
    """A bar on the terminal while the block runs, where it is wanted."""
    if not wanted:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    steps = (MofNCompleteColumn(), TextColumn("steps"))
    with Bar(TextColumn("{task.description}"), BarColumn(), *steps, TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task(f"{title}, epsilon {epsilon:g}", total=None)

        def update(done: int, planned: int) -> None:
            bar.update(task, completed=done, total=planned)

        yield update
