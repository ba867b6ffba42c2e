"""A picture of what was spent over time: the reading of the ledger after each charge, against the cap."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from discreet.ledger.ledger import Ledger
from discreet.ledger.privacy_filters import FREE

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 220, 48, 14, 12, 28


@dataclass(frozen=True)
class Picture:
    """Places of an SVG: a line of steps, one dot per charge with its text, and the axis."""

    path: str
    dots: tuple[tuple[float, float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    first: str
    last: str
    words: str
    size: tuple[int, int] = (WIDTH, HEIGHT)


def spending_picture(ledger: Ledger, dataset: str) -> Picture:
    """Draw how much of a data set's cap was spent, charge by charge."""
    account = ledger.account(dataset)
    state = replace(account, parent=None, spent=FREE, charges=0, adds=False)
    points: list[tuple[float, float, str]] = []
    for entry in ledger.entries(dataset):
        if entry.kind == "charge":
            state = state.charged(entry.charge)
            time = datetime.fromisoformat(entry.contents["time"])
            who = (entry.charge_id or "").partition("/")[0] or "outside of the service"
            share = state.statement().share
            points.append(
                (time.timestamp(), share, f"{who}, {time:%Y-%m-%d %H:%M} UTC: {share:.0%} of the cap is spent")
            )
    start = points[0][0] if points else 0.0
    length = max(1.0, points[-1][0] - start) if points else 1.0
    dots = tuple((round(_x((at - start) / length), 1), round(_y(share), 1), text) for at, share, text in points)
    path, height = f"M{LEFT} {_y(0):g}", _y(0)
    for x, y, _ in dots:
        path, height = f"{path} L{x:g} {height:g} L{x:g} {y:g}", y
    path += f" L{WIDTH - RIGHT} {height:g}"
    ticks = tuple((_y(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0))
    first, last = [f"{datetime.fromtimestamp(points[i][0], UTC):%Y-%m-%d}" for i in (0, -1)] if points else ["", ""]
    spent = points[-1][1] if points else 0.0
    words = f"{len(points)} charges to {dataset}; {spent:.0%} of the cap (epsilon {account.epsilon:g}) is spent"
    return Picture(path, dots, ticks, first, last, words)


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
