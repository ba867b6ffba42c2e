"""Noisy counts of cells that do not hold what was declared, as a certificate keeps them, and what they tell.

A wrong schema gives a poor model and no error: a category that is spelled otherwise is *other*, a text in a column of
numbers is missing. A small part of the budget counts such cells. The counts are released with noise under the
certificate; everything here is post-processing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CHECKED = "noisy_checks"
"""Among a certificate's facts: the noisy counts."""
ESTIMATED_RANGES = "estimated_ranges"
"""Among a certificate's facts: ranges that were released with noise, under this certificate."""
ESTIMATED = (ESTIMATED_RANGES, CHECKED)
"""Among a certificate's facts: what was estimated with privacy budget, and not declared."""
QUERY, CHECKS = "noisy_counts", "noisy_checks"
"""Releases: counts for private ranges; counts of cells that do not hold what was declared."""
NULL = "null_records"
_SURE, _MANY = 4.0, 0.02
"""A count stands out above this many standard deviations of its noise, and above this part of all records."""
MEANING = {
    "empty": "are empty",
    "no_number": "are empty or no number",
    "outside": "lie outside the declared range, and were clipped to it",
    "unknown": "hold none of the declared labels",
}


@dataclass(frozen=True)
class Checked:
    """Noisy counts: records that count as null, and cells per column by what is wrong with them.

    ``noise`` is the standard deviation of each count, ``n`` the number of records (persons) where it is public. A
    person counts as the mean of their rows.
    """

    noise: float
    null: float
    columns: Mapping[str, Mapping[str, float]]
    n: int | None
    unit: str = "record"

    @property
    def alarms(self) -> list[str]:
        """Return what stands out, in words, the largest count first."""
        cells = "cells" if self.unit == "record" else f"{self.unit}s' cells"
        candidates = [
            (self.null, f"{self._about(self.null)} {self.unit}s count as null: they taught the model nothing")
        ]
        candidates += [
            (count, f"{name}: {self._about(count)} {cells} {MEANING.get(what, what)}")
            for name, counts in self.columns.items()
            for what, count in counts.items()
        ]
        noticeable = [(count, text) for count, text in candidates if self._stands_out(count)]
        return [text for _, text in sorted(noticeable, key=lambda item: -item[0])]

    @property
    def scale(self) -> str:
        """Return how far noise alone may move a count, in words."""
        return f"noise moves each count by about ± {self._within} (95 %)"

    @property
    def _within(self) -> str:
        return f"{max(1.0, 2 * self.noise):,.0f}"

    def lines(self) -> list[str]:
        """Return the result in a few sentences."""
        if self.n is not None and _SURE * self.noise > self.n:
            return [f"Too few {self.unit}s for this budget to tell what the cells hold: {self.scale}."]
        if not self.alarms:
            return [f"No column has noticeably many invalid cells (counts are accurate to about ± {self._within})."]
        return [*(f"{alarm}." for alarm in self.alarms), f"Compare schema and table; {self.scale}."]

    def _stands_out(self, count: float) -> bool:
        return count > max(_SURE * self.noise, 0.0 if self.n is None else _MANY * self.n)

    def _about(self, count: float) -> str:
        if self.n is None:
            return f"about {count:,.0f}"
        return f"about {min(count, self.n):,.0f} of {self.n:,} ({min(1.0, count / self.n):.0%})"


def checked_in(public: Mapping[str, Any], unit: str = "record") -> Checked | None:
    """Return the counts among a certificate's facts; None where there are none, or none that make sense."""
    stored = public.get(CHECKED)
    try:
        if stored is None:
            return None
        columns = {
            str(name): {str(k): float(v) for k, v in counts.items()} for name, counts in stored["columns"].items()
        }
        n = public.get("n")
        return Checked(float(stored["noise"]), float(stored[NULL]), columns, None if n is None else int(n), unit)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
