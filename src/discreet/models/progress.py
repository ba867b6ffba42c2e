"""A progress bar of rows read and steps taken, which are public; never of losses, which are not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


class Bars:
    """One bar for each kind of work, shown once it begins."""

    def __init__(self, bar: "Bar", title: str) -> None:
        self._bar, self._title = bar, title
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, done: int, planned: int) -> None:
        """Steps of a solver."""
        self._show("steps", done, planned)

    def rows(self, done: int, in_all: int) -> None:
        """Rows of a table as they are read: only where their number is public."""
        self._show("rows", done, in_all)

    def _show(self, unit: str, done: int, planned: int) -> None:
        if unit not in self._tasks:
            self._tasks[unit] = self._bar.add_task(self._title, total=planned, unit=unit)
        self._bar.update(self._tasks[unit], completed=done, total=planned)


@contextmanager
def progress_bar(title: str, epsilon: float, wanted: bool) -> Iterator[Bars | None]:
    """Bars on the terminal while the block runs, where they are wanted: on stderr, out of the way of results."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[unit]}"))
    with Bar(*columns, TimeRemainingColumn(), transient=True, console=Console(stderr=True)) as bar:
        yield Bars(bar, f"{title}, epsilon {epsilon:g}")
