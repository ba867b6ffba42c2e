"""How sampled methods learn with which probability a record joins a sample: public facts only."""

import math
from fractions import Fraction

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.bounds import Domain
from discreet.errors import Unsupported


def fraction_of(batch_size: float | None, sampling_probability: float | None, domain: Domain) -> float:
    """Return the probability with which a record joins a sample, as given or from the expected batch size."""
    if sampling_probability is not None:
        return min(1.0, sampling_probability)
    if batch_size is None:
        raise Unsupported("say how to sample: give a batch_size or a sampling_probability")
    if domain.n is None:
        raise Unsupported("n is private here: give a sampling_probability, or declare Bounds(n=...)")
    return min(1.0, batch_size / domain.n)


def check_sampling(batch_size: float | None, sampling_probability: float | None) -> None:
    """Refuse both at once."""
    if batch_size is not None and sampling_probability is not None:
        raise Unsupported("give batch_size or sampling_probability, not both")


def drawn(probability: float) -> float:
    """Return the probability as the curator draws and prices it: rounded up to a multiple of 2^-16."""
    return math.ceil(Fraction(probability) * SAMPLING_DENOMINATOR) / SAMPLING_DENOMINATOR
