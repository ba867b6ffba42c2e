"""What the tests of every solver share: a window on exact answers, and the worst of many replays."""

from contextlib import contextmanager

from discreet.curator.session import observe
from discreet.testing import assert_replay


@contextmanager
def window():
    """The measurements inside the block; answers stay as they are."""
    seen = []

    def look(measurement):
        seen.append(measurement)
        return measurement.noisy

    with observe(look):
        yield seen


def worst_ratio(fit, pairs, relation):
    """The largest move over the sensitivity; any finding fails, with the pair's name."""
    ratio = 0.0
    for pair in pairs:
        try:
            ratio = max(ratio, assert_replay(fit, pair.data, pair.neighbor, relation).ratio)
        except AssertionError as error:
            raise AssertionError(f"{pair.name}: {error}") from None
    return ratio
