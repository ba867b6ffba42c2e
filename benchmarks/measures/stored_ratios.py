"""Ratios of an earlier run, and which of them have moved since.

Seconds change with the machine; a ratio to a peer that ran in the same rounds changes little. How little, both runs say
themselves: a ratio has moved where it is beyond the product of their spreads (median over best round) and a tolerance.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STORED = Path(__file__).parents[1] / "speed" / "ratios.json"
TOLERANCE = 1.15
"""What two runs on an idle machine may differ by: where pages lie, the clock of the processor."""


@dataclass(frozen=True)
class Moved:
    """A ratio that is not what it was; ``change`` is by how much slower, below 1 by how much faster."""

    what: str
    before: float
    now: float
    change: float
    allowed: float

    @property
    def is_slower(self) -> bool:
        return self.change > 1.0

    def __str__(self) -> str:
        word, size = ("slower", self.change) if self.is_slower else ("faster", 1.0 / self.change)
        ratios = f"{self.before:.3g}x before, {self.now:.3g}x now"
        return f"{word} by {size:.2f} (spreads allow {self.allowed:.2f}): {self.what}: {ratios}"


def moved(stored: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[int, list[Moved]]:
    """Return how many ratios both runs have, and those that differ by more than the runs' spreads explain."""
    before, now = dict(_ratios(stored)), dict(_ratios(found))
    common = [what for what in now if what in before]
    changes = (_change(what, before[what], now[what]) for what in common)
    return len(common), sorted(filter(None, changes), key=lambda one: -one.change)


def is_compared(row: Mapping[str, Any]) -> bool:
    """Say whether a row is a time against a peer's; some are other figures, and some have no peer."""
    return row["unit"] == "ms" and row["ratio"] is not None


def _ratios(groups: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for group in groups.values():
        yield from ((row["what"], row) for row in group["rows"] if is_compared(row))


def _change(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Moved | None:
    change = now["ratio"] / before["ratio"]
    change = 1.0 / change if now["higher_is_faster"] else change
    allowed = TOLERANCE * (before["spread"] or 1.0) * (now["spread"] or 1.0)
    inside = 1.0 / allowed <= change <= allowed
    return None if inside else Moved(what, before["ratio"], now["ratio"], change, allowed)


def load(path: Path = STORED) -> dict[str, Any]:
    """Return the stored groups."""
    groups: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return groups


def store(groups: Mapping[str, Any], path: Path = STORED) -> None:
    """Put these groups in place of their stored ones; others stay."""
    path.write_text(json.dumps({**load(path), **groups}, indent=2) + "\n", encoding="utf-8")
