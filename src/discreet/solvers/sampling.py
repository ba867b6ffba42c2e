"""How sampled methods learn with which probability a record joins a sample: public facts only."""

import math
from fractions import Fraction
from typing import Protocol

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.solvers.base import check_positive


class Sampled(Protocol):
    """A solver that says how it samples."""

    @property
    def batch_size(self) -> float | None:
        """The expected number of records in a sample."""

    @property
    def sampling_probability(self) -> float | None:
        """The probability with which a record joins, instead."""


def check_sampling(solver: Sampled) -> None:
    """Refuse sizes and probabilities that are none, and both at once."""
    check_positive(solver, "batch_size", "sampling_probability", open_too=True)
    if solver.batch_size is not None and solver.sampling_probability is not None:
        raise Unsupported("give batch_size or sampling_probability, not both")


def fraction_of(solver: Sampled, domain: Domain, name: str) -> float:
    """Return the probability with which a record joins a sample."""
    if solver.sampling_probability is not None:
        return min(1.0, solver.sampling_probability)
    if solver.batch_size is None:
        raise Unsupported(f"give {name} a batch_size or a sampling_probability")
    if domain.n is None:
        raise Unsupported(f"n is private here: give {name} a sampling_probability, or declare Bounds(n=...)")
    return min(1.0, solver.batch_size / domain.n)


def drawn(probability: float) -> float:
    """Return the probability as the curator draws and prices it: rounded up to a multiple of 2^-16."""
    return math.ceil(Fraction(probability) * SAMPLING_DENOMINATOR) / SAMPLING_DENOMINATOR
