"""What a metric is, and what its measurement gives back."""

from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import ndtri

from discreet.typing import Floats


@dataclass(frozen=True)
class Part:
    """One of several numbers of a score: a group's, a class's, a cell's."""

    name: str
    value: float
    low: float
    high: float
    sampling: float
    most: float | None = None
    """The most that it can be, where that is not the score's."""


@dataclass(frozen=True)
class Measured:
    """A score, its interval over the noise, the half width that the rows' sampling adds, and its parts."""

    value: float
    low: float
    high: float
    sampling: float
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A metric: what it needs of each row, and how it makes a score of noisy sums of that.

    Parameters
    ----------
    words
        What it is called.
    row_values
        Maps the model, margins and targets to what is kept of each row; NaN: a row that is not scored.
    measure
        Maps the model, these values, the noisy sums, a level and names of groups to a ``Measured``.
    sampling
        How the sampling error is estimated.
    shares
        The part of the budget of each release.
    least, most
        The least and the most that a score can be.
    by_group, probabilities, two_classes, numbers
        Whether it can be taken by group, needs predicted probabilities, is for two classes, is for numeric targets.
    """

    words: str
    row_values: Callable[..., Floats]
    measure: Callable[..., Measured]
    sampling: str
    shares: tuple[float, ...] = (1.0,)
    least: float = 0.0
    most: float = 1.0
    by_group: bool = False
    probabilities: bool = False
    two_classes: bool = False
    numbers: bool = False


def half_width(level: float) -> float:
    """Of a normal variable's interval, in standard deviations."""
    return float(ndtri((1 + level) / 2))
