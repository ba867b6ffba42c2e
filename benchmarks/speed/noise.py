"""Exact randomness on one core (CPU time): samples of the rounded Gaussian, and the cost of a Poisson-sampled row."""

import os
from collections.abc import Iterator

import numpy as np

from benchmarks.measures.timing import interleaved
from benchmarks.measures.timing_rows import Row, at_least, at_most
from benchmarks.sizes import size
from discreet.curator import SystemEntropy
from discreet.curator.noise import discrete_laplace, poisson_sample, rounded_gaussian

COUNT, FEW, M = size(100_000, 1000), 4, 40
N = size(1_000_000, 20_000)


def run(rounds: int) -> Iterator[Row]:
    entropy = SystemEntropy()
    numpy_rng = np.random.default_rng(0)
    taken = interleaved(
        {
            "Gaussian": lambda: rounded_gaussian(COUNT, M, entropy),
            "Laplace": lambda: discrete_laplace(COUNT, M, entropy),
            "entropy": lambda: entropy.words(COUNT),
            "few words": lambda: entropy.words(FEW),
            "os.urandom": lambda: os.urandom(8 * COUNT),
            "os.urandom, few": lambda: np.frombuffer(os.urandom(8 * FEW), dtype=np.uint64),
            "numpy": lambda: numpy_rng.standard_normal(COUNT),
        },
        rounds=rounds,
    )
    for law, goal in (("Gaussian", at_least(1.5, absolute=True)), ("Laplace", None)):
        ours = taken[law]
        yield Row(f"exact {law} samples", "M/s", COUNT / ours.cpu / 1e6, goal=goal, spread=ours.spread)
    title = "random words, {} per request, speed-up over os.urandom"
    yield Row.speed_up(title.format(COUNT), taken["entropy"], taken["os.urandom"], at_least(5), clock="cpu")
    yield Row.speed_up(title.format(FEW), taken["few words"], taken["os.urandom, few"], at_least(0.8), clock="cpu")
    yield Row("numpy's float normal, for scale", "M/s", None, COUNT / taken["numpy"].cpu / 1e6)
    for batch in (1000, 10_000):
        yield poisson(batch, rounds, entropy)


def poisson(batch: int, rounds: int, entropy: SystemEntropy) -> Row:
    numerator = round(batch / N * (1 << 16))
    taken = interleaved({"ours": lambda: poisson_sample(N, numerator, entropy)}, rounds=rounds)["ours"]
    per_row = 1e9 * taken.cpu / (N * numerator / (1 << 16))
    title = f"Poisson sampling per selected row, n={N:.0e}, batch {batch}"
    return Row(title, "ns", per_row, goal=at_most(15.0, absolute=True), spread=taken.spread)
