"""For people who write solvers: replayable noise, no noise, worst-case neighbors, the replay check.

    from discreet.testing import assert_replay, neighbor_pairs

    for pair in neighbor_pairs(X, y, relation="replace_one", bounds=bounds):
        assert_replay(fit, pair.data, pair.neighbor, "replace_one")

Everything fitted in these contexts is stamped NOT PRIVATE, and findings may name what they found:
use synthetic data.
"""

from discreet.audit.frozen import (
    Finding,
    ReplayReport,
    assert_fresh_noise,
    assert_replay,
    fresh_noise,
    replay,
)
from discreet.audit.neighbors import Data, Pair, neighbor_pairs
from discreet.testing.contexts import noiseless, seeded

__all__ = [
    "Data",
    "Finding",
    "Pair",
    "ReplayReport",
    "assert_fresh_noise",
    "assert_replay",
    "fresh_noise",
    "neighbor_pairs",
    "noiseless",
    "replay",
    "seeded",
]
