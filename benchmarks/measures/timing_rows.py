"""What a benchmark reports: rows with a ratio and a goal, printed as a table or as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.measures.timing import Timing

INSTALL = "not installed: pip install -r benchmarks/requirements.txt"


@dataclass(frozen=True)
class Goal:
    """At most, or at least, a value: of the ratio or, where ``absolute``, of our own figure."""

    sense: str
    value: float
    absolute: bool = False

    def is_met(self, figure: float) -> bool:
        return figure <= self.value if self.sense == "<=" else figure >= self.value


def at_most(value: float, *, absolute: bool = False) -> Goal:
    return Goal("<=", value, absolute)


def at_least(value: float, *, absolute: bool = False) -> Goal:
    return Goal(">=", value, absolute)


@dataclass(frozen=True)
class Row:
    """One comparison. ``spread`` is the larger median-over-best of the two: how noisy the run was.

    A ratio with a least value as its goal is higher where it is faster, too.
    """

    what: str
    unit: str
    ours: float | None
    peer: float | None = None
    ratio: float | None = None
    goal: Goal | None = None
    spread: float | None = None
    note: str = ""
    higher_is_faster: bool = False

    @classmethod
    def faster(cls, what: str, ours: Timing, peer: Timing, goal: Goal | None, *, clock: str = "wall") -> Self:
        """Our time over the peer's: below 1 is faster. ``clock``: wall, or cpu where both run one thread."""
        a, b = getattr(ours, clock), getattr(peer, clock)
        return cls(what, "ms", 1e3 * a, 1e3 * b, a / b, goal, max(ours.spread, peer.spread))

    @classmethod
    def speed_up(
        cls, what: str, ours: Timing, peer: Timing, goal: Goal | None, *, clock: str = "wall", note: str = ""
    ) -> Self:
        """The peer's time over ours: above 1 is faster."""
        a, b = getattr(ours, clock), getattr(peer, clock)
        return cls(what, "ms", 1e3 * a, 1e3 * b, b / a, goal, max(ours.spread, peer.spread), note, True)

    @property
    def is_met(self) -> bool | None:
        if self.goal is None:
            return None
        figure = self.ours if self.goal.absolute else self.ratio
        return None if figure is None else self.goal.is_met(figure)

    def cells(self) -> tuple[str, ...]:
        goal = ""
        if self.goal is not None:
            goal = f"{self.goal.sense} {self.goal.value:g}" + (f" {self.unit}" if self.goal.absolute else "x")
        met = {True: "met", False: "MISSED", None: ""}[self.is_met]
        ratio = "" if self.ratio is None else f"{self.ratio:.3g}x"
        spread = "" if self.spread is None else f"{self.spread:.2f}"
        return (self.what, self._figure(self.ours), self._figure(self.peer), ratio, goal, met, spread, self.note)

    def _figure(self, value: float | None) -> str:
        return "" if value is None else f"{value:.4g} {self.unit}"

    def as_dict(self) -> dict[str, Any]:
        higher = self.higher_is_faster or (self.goal is not None and self.goal.sense == ">=")
        return {**asdict(self), "higher_is_faster": higher, "met": self.is_met}


HEADERS = ("what", "ours", "peer", "ratio", "target", "met", "spread", "note")


def table(title: str, rows: Sequence[Row]) -> str:
    """Plain text, one line a row."""
    cells = [HEADERS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADERS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([title, lines[0], "-" * len(lines[0]), *lines[1:], ""])
