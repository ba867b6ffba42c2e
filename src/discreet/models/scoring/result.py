"""``PrivateScore``: a score with its intervals and its certificate."""

import json
import math
from dataclasses import dataclass
from typing import Any

from discreet.accounting.certificate import Certificate

WORDS = {"accuracy": "accuracy", "auc": "area under the ROC curve", "r2": "R2"}


@dataclass(frozen=True)
class PrivateScore:
    """How well a model predicts some rows, with intervals.

    Parameters
    ----------
    metric : str
        ``"accuracy"``, ``"auc"`` or ``"r2"``.
    value : float
        The score. NaN where the noise leaves nothing to say.
    low, high : float
        With at least the probability ``level`` over the noise, the score of exactly these rows, computed without noise,
        lies within. Equal to the value where the rows are not private.
    level : float
        The level of the intervals.
    population_low, population_high : float
        The same for rows yet unseen of the same kind: the sampling error of these rows is added, which is an
        approximation.
    certificate : Certificate or None
        What may be claimed of the release. None: the rows were declared public, and nothing protects them.
    n : int or None
        The number of rows (persons); None where it is private.
    sampling : str
        How the sampling error was estimated.

    Examples
    --------
    ``private_score`` and ``public_score`` return one:

    >>> from discreet.models import PrivateScore
    >>> PrivateScore("accuracy", 0.8, 0.7, 0.9, 0.95, 0.6, 0.95, None, 100, "Wilson").is_private
    False
    """

    metric: str
    value: float
    low: float
    high: float
    level: float
    population_low: float
    population_high: float
    certificate: Certificate | None
    n: int | None
    sampling: str

    @property
    def is_private(self) -> bool:
        """Whether the release has a guarantee."""
        return self.certificate is not None and self.certificate.is_private

    def text(self) -> str:
        """The score for a person."""
        lines = [f"{WORDS[self.metric]} {_shown(self.value)}"]
        if self.certificate is None:
            lines.append("  rows declared public: the score is exact, and nothing protects them")
        else:
            lines.append(f"  on these rows        {self._between(self.low, self.high)} (the noise)")
        lines.append(
            f"  on rows like these   {self._between(self.population_low, self.population_high)} "
            f"({'' if self.certificate is None else 'and '}their sampling, {self.sampling})"
        )
        if self.certificate is not None:
            claim = self.certificate
            said = f"epsilon = {claim.epsilon:.6g}, delta = {claim.delta!r}, {claim.neighbors}, per {claim.unit}"
            lines.append(f"  {claim.stamp}: {said}" if claim.is_private else f"  {claim.stamp}")
            lines += [f"  weak: {reason}" for reason in claim.weaknesses]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite become None."""
        numbers = ("value", "low", "high", "level", "population_low", "population_high")
        return {
            "metric": self.metric,
            **{name: _finite(getattr(self, name)) for name in numbers},
            "n": self.n,
            "sampling": self.sampling,
            "rows": "private" if self.certificate is not None else "declared public",
            "certificate": None if self.certificate is None else json.loads(self.certificate.to_json()),
        }

    def __str__(self) -> str:
        return self.text()

    def _between(self, low: float, high: float) -> str:
        return f"{_shown(low)} to {_shown(high)} at level {self.level:g}"


def _shown(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "unknown" if math.isnan(value) else f"{value:g}"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
