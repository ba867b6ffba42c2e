"""Samples on seeded streams stay what they were: speed may change how they are computed, never which they are."""

import hashlib

import numpy as np
import pytest

from discreet.curator.lattice.entropy import SeededEntropy
from discreet.curator.lattice.noise import discrete_laplace, poisson_sample, rounded_gaussian


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(values).tobytes() for values in arrays)).hexdigest()[:16]


@pytest.mark.parametrize(
    ("numerator", "samples", "after"),
    [
        (1, "9a0225a3fc16394d", "f85e065e570cc8c9"),
        (7, "526b64fd2e0299af", "f3b6ac9ff36d9758"),
        (66, "262c8205735bb629", "aaf19b768e59eae6"),
        (655, "4938f7bbf9b12eca", "81cfc7c7bbc88f7a"),
        (6554, "227306dd39ab6271", "3947702e4767bc78"),
        (1 << 15, "660cafd5ef912a6a", "961508638ac86474"),
        (60_000, "af76d021aea301b4", "70c8e3970ca41078"),
        ((1 << 16) - 1, "290672b9bd78ddc6", "ea2a9ac51163fb62"),
    ],
)
def test_poisson_samples(numerator, samples, after):
    source = SeededEntropy(3)
    assert digest([poisson_sample(n, numerator, source) for n in (0, 1, 10, 1000, 300_000)]) == samples
    assert digest([source.words(4)]) == after  # as many words were used


@pytest.mark.parametrize(
    ("m", "gaussian", "laplace"),
    [
        (1, "36bbedb93f277219", "abb8e2b3d2a4e329"),
        (20, "5e2ef39e21cbba0b", "8a02e23e81c52d10"),
        (40, "f470f46db2dcf600", "76324d857e1644bd"),
        (58, "a0edcf8c634833d6", "5ef94b5e918be939"),
    ],
)
def test_noise(m, gaussian, laplace):
    source = SeededEntropy(5)
    assert digest([rounded_gaussian(count, m, source) for count in (1, 10, 100, 20_000)]) == gaussian
    assert digest([discrete_laplace(count, min(m, 57), source) for count in (1, 10, 100, 20_000)]) == laplace
