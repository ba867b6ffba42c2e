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

Names are imported when they are first used: pytest loads the plug-in next to this file wherever discreet is installed,
and must not pay for a compiler that nobody asked for.
"""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.audit.neighbors import Data as Data
    from discreet.audit.neighbors import Pair as Pair
    from discreet.audit.neighbors import neighbor_pairs as neighbor_pairs
    from discreet.audit.replay_pair import Finding as Finding
    from discreet.audit.replay_pair import ReplayReport as ReplayReport
    from discreet.audit.replay_pair import assert_fresh_noise as assert_fresh_noise
    from discreet.audit.replay_pair import assert_replay as assert_replay
    from discreet.audit.replay_pair import fresh_noise as fresh_noise
    from discreet.audit.replay_pair import replay as replay
    from discreet.testing.checks import Privacy as Privacy
    from discreet.testing.checks import Refuted as Refuted
    from discreet.testing.checks import noiseless as noiseless
    from discreet.testing.checks import seeded as seeded

__getattr__, __dir__, __all__ = lazy_names(__spec__)
