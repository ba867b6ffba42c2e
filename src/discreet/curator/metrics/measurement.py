"""What a metric's measurement gives back."""

from dataclasses import dataclass

from scipy.special import ndtri


@dataclass(frozen=True)
class Measured:
    """A score, its interval over the noise, and the half width that the rows' sampling adds."""

    value: float
    low: float
    high: float
    sampling: float


def half_width(level: float) -> float:
    """Of a normal variable's interval, in standard deviations."""
    return float(ndtri((1 + level) / 2))
