"""Noisy counts of cells in a session of their own, from blocks that are read as they are counted."""

from itertools import repeat

from discreet.accounting.certificate import QUERY
from discreet.curator.queries.counts import planned_counts
from tests.priced import at_noise


def count_once(plan, budget, noise_multiplier, cells, size, per_record, *, n, shares=None, query=QUERY):
    counts = planned_counts(at_noise(plan, budget, noise_multiplier), n, size, per_record, query=query)
    if callable(cells):
        counts.add_counts(cells())
    else:
        for block, share in zip(cells, repeat(None) if shares is None else shares, strict=shares is not None):
            counts.add(block, share)
    return counts.released()
