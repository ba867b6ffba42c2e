"""For people who write solvers, losses and mechanisms: replayable noise, worst neighbors, checks for their tests.

In pytest, the plug-in's fixture does all of it:

    def test_my_solver(privacy):
        privacy.check(MySolver())

Elsewhere:

    from discreet.testing import assert_replay, neighbor_pairs

    for pair in neighbor_pairs(X, y, relation="replace_one", bounds=bounds):
        assert_replay(fit, pair.data, pair.neighbor, "replace_one")

Everything fitted in these contexts is stamped NOT PRIVATE, and findings may name what they found:
use synthetic data.

Names are imported when they are first used: pytest loads the plug-in beside this file wherever discreet is installed,
and must not pay for a compiler that nobody asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.audit.neighbors import Data, Pair, neighbor_pairs
    from discreet.audit.replay_pair import Finding, ReplayReport, assert_fresh_noise, assert_replay, fresh_noise, replay
    from discreet.testing.checks import Privacy, Refuted
    from discreet.testing.contexts import noiseless, seeded

_HOME = {
    "Data": "discreet.audit.neighbors",
    "Finding": "discreet.audit.replay_pair",
    "Pair": "discreet.audit.neighbors",
    "Privacy": "discreet.testing.checks",
    "Refuted": "discreet.testing.checks",
    "ReplayReport": "discreet.audit.replay_pair",
    "assert_fresh_noise": "discreet.audit.replay_pair",
    "assert_replay": "discreet.audit.replay_pair",
    "fresh_noise": "discreet.audit.replay_pair",
    "neighbor_pairs": "discreet.audit.neighbors",
    "noiseless": "discreet.testing.contexts",
    "replay": "discreet.audit.replay_pair",
    "seeded": "discreet.testing.contexts",
}

__all__ = [
    "Data",
    "Finding",
    "Pair",
    "Privacy",
    "Refuted",
    "ReplayReport",
    "assert_fresh_noise",
    "assert_replay",
    "fresh_noise",
    "neighbor_pairs",
    "noiseless",
    "replay",
    "seeded",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'discreet.testing' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
