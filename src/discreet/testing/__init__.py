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

from discreet.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__spec__)
