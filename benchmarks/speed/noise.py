"""Exact randomness on one core (CPU time): samples of the rounded Gaussian, and the cost of a Poisson-sampled row."""

from collections.abc import Iterator

import numpy as np

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_least, at_most
from discreet.curator import SystemEntropy
from discreet.curator.lattice.noise import discrete_laplace, poisson_sample, rounded_gaussian

COUNT, M = 100_000, 40
N = 1_000_000


def run(rounds: int) -> Iterator[Row]:
    entropy = SystemEntropy()
    numpy_rng = np.random.default_rng(0)
    taken = interleaved(
        {
            "Gaussian": lambda: rounded_gaussian(COUNT, M, entropy),
            "Laplace": lambda: discrete_laplace(COUNT, M, entropy),
            "entropy": lambda: entropy.words(COUNT),
            "numpy": lambda: numpy_rng.standard_normal(COUNT),
        },
        rounds=rounds,
    )
    for law, goal in (("Gaussian", at_least(1.5, absolute=True)), ("Laplace", None)):
        ours = taken[law]
        yield Row(f"exact {law} samples", "M/s", COUNT / ours.cpu / 1e6, goal=goal, spread=ours.spread)
    per_word = 1e9 * taken["entropy"].cpu / COUNT
    yield Row("one 64-bit word of the system's entropy", "ns", per_word, spread=taken["entropy"].spread)
    yield Row("numpy's float normal, for scale", "M/s", None, COUNT / taken["numpy"].cpu / 1e6)
    for batch in (1000, 10_000):
        yield poisson(batch, rounds, entropy)


def poisson(batch: int, rounds: int, entropy: SystemEntropy) -> Row:
    numerator = round(batch / N * (1 << 16))
    taken = interleaved({"ours": lambda: poisson_sample(N, numerator, entropy)}, rounds=rounds)["ours"]
    per_row = 1e9 * taken.cpu / (N * numerator / (1 << 16))
    goal = at_most(10.0, absolute=True) if batch >= 10_000 else None
    return Row(
        f"Poisson sampling a selected row, n={N:.0e}, batch {batch}", "ns", per_row, goal=goal, spread=taken.spread
    )
