"""``PrivateScore``: a score with its intervals and its certificate."""

import json
import math
from dataclasses import dataclass
from typing import Any

from discreet.accounting.certificate import Certificate
from discreet.curator import METRICS


@dataclass(frozen=True)
class ScorePart:
    """One of several numbers of a score: a group's, a class's, a tenth's, or a cell of a confusion matrix.

    Parameters
    ----------
    name : str
        Such as ``"ward = a"``, ``"0.2 to 0.3"`` or ``"no predicted as yes"``.
    value, low, high : float
        The number, and its interval over the noise, at the score's level for each part by itself.
    population_low, population_high : float or None
        The same for rows like these; None for counts.

    Examples
    --------
    >>> from discreet.models import ScorePart
    >>> ScorePart("ward = a", 0.8, 0.7, 0.9, 0.6, 0.95).name
    'ward = a'
    """

    name: str
    value: float
    low: float
    high: float
    population_low: float | None
    population_high: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON: numbers that are not finite become None."""
        return {name: _finite(value) if isinstance(value, float) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class PrivateScore:
    """How well a model predicts some rows, with intervals.

    Parameters
    ----------
    metric : str
        Such as ``"accuracy"``, ``"auc"`` or ``"r2"``.
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
    parts : tuple of ScorePart
        The numbers of groups, classes, tenths or cells, where the score has some.

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
    parts: tuple[ScorePart, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether the release has a guarantee."""
        return self.certificate is not None and self.certificate.is_private

    def text(self) -> str:
        """Return the score as a text to read."""
        lines = [f"{words_of(self.metric)} {_shown(self.value)}"]
        if self.certificate is None:
            lines.append("  rows declared public: the score is exact, and nothing protects them")
        else:
            lines.append(f"  on these rows        {self._between(self.low, self.high)} (the noise)")
        lines.append(
            f"  on rows like these   {self._between(self.population_low, self.population_high)} "
            f"({'' if self.certificate is None else 'and '}their sampling, {self.sampling})"
        )
        width = max((len(part.name) for part in self.parts), default=0)
        lines += [f"  {part.name:<{width}}  {self._part(part)}" for part in self.parts]
        if self.certificate is not None:
            claim = self.certificate
            said = f"epsilon = {claim.epsilon:.6g}, delta = {claim.delta!r}, {claim.neighbors}, per {claim.unit}"
            lines.append(f"  {claim.stamp}: {said}" if claim.is_private else f"  {claim.stamp}")
            lines += [f"  weak: {reason}" for reason in claim.weaknesses]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON: numbers that are not finite become None."""
        numbers = ("value", "low", "high", "level", "population_low", "population_high")
        return {
            "metric": self.metric,
            **{name: _finite(getattr(self, name)) for name in numbers},
            "n": self.n,
            "sampling": self.sampling,
            "parts": [part.to_dict() for part in self.parts],
            "rows": "private" if self.certificate is not None else "declared public",
            "certificate": None if self.certificate is None else json.loads(self.certificate.to_json()),
        }

    def to_text(self) -> str:
        """Return all of it as a text, numbers to the last bit: what a ledger keeps under a charge's id."""
        certificate = None if self.certificate is None else self.certificate.to_json()
        return json.dumps({**vars(self), "certificate": certificate, "parts": [vars(part) for part in self.parts]})

    @classmethod
    def from_text(cls, text: str) -> "PrivateScore":
        """Return the score of a text that ``to_text`` made."""
        stored = json.loads(text)
        claim = stored["certificate"]
        stored["certificate"] = None if claim is None else Certificate.from_json(claim)
        return cls(**{**stored, "parts": tuple(ScorePart(**part) for part in stored["parts"])})

    def __str__(self) -> str:
        return self.text()

    def _part(self, part: ScorePart) -> str:
        shown = _shown if part.population_low is not None else _count
        if self.certificate is None:
            return shown(part.value)
        return f"{shown(part.value)}, {shown(part.low)} to {shown(part.high)}"

    def _between(self, low: float, high: float) -> str:
        return f"{_shown(low)} to {_shown(high)} at level {self.level:g}"


def words_of(metric: str) -> str:
    """Return what a metric is called."""
    return METRICS[metric].words


def _shown(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "unknown" if math.isnan(value) else f"{value:g}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
