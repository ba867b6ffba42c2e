"""Private searches over rows on a cluster: the bits of memory, and rows that stay where they are."""

import numpy as np
import pytest

from discreet import DPLogisticRegression, DPRandomizedSearch
from discreet.curator.clusters import remote, tasks
from discreet.errors import ClusterFailed, Unsupported
from discreet.solvers import GradientDescent, StochasticGradientDescent
from discreet.testing import seeded
from tests.curator.clusters.parted import BINARY, N, X, bits, in_parts

NAMES = np.random.default_rng(3).integers(0, N // 3, N).astype(float)
CHEAP = {"solver": [GradientDescent(n_steps=2), StochasticGradientDescent(n_steps=2, sampling_probability=0.25)]}


def searched(model, y, parts=None, *, groups=None, candidates=CHEAP, seed=5, **settings):
    rows = (X, y, groups)
    if parts is not None:
        rows = tuple(None if column is None else in_parts(column, parts) for column in rows)
    with seeded(seed):
        words = {"epsilon": 4.0, "delta": 1e-6, "mean_runs": 3, "stopping": "geometric", **settings}
        return DPRandomizedSearch(model, candidates, **words).fit(*rows)


def released(search):
    return bits(search.best_estimator_), search.best_score_, search.certificate_.to_json()


LOGISTIC = DPLogisticRegression(bounds=1.0, classes=(0, 1))


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("groups", [None, NAMES, NAMES.astype(str)], ids=["records", "persons", "texts"])
def test_a_search_has_the_bits_of_memory(client, parts, groups):
    assert released(searched(LOGISTIC, BINARY, parts, groups=groups)) == released(
        searched(LOGISTIC, BINARY, groups=groups)
    )


def test_each_unit_is_in_one_of_the_two_parts(client, monkeypatch):
    """What is fitted on and what is scored on add up to all units, none in both."""
    chosen, honest = [], remote.ReadParts.chosen

    def watched(parts, units, stream):
        chosen.append(units)
        return honest(parts, units, stream)

    monkeypatch.setattr(remote.ReadParts, "chosen", watched)
    searched(LOGISTIC, BINARY, 3, groups=NAMES)
    fitting, scoring = chosen
    assert (fitting ^ scoring).all()
    assert len(fitting) == len(set(NAMES))


def test_parts_that_are_made_again_of_other_rows_end_the_search(client, monkeypatch, ledger):
    honest = tasks.Chosen.__init__

    def other(self, seal, units):
        honest(self, tasks.Seal(seal.units, b"other"), units)

    monkeypatch.setattr(tasks.Chosen, "__init__", other)
    with pytest.raises(ClusterFailed, match="not what it was"):
        searched(LOGISTIC, BINARY, 3, ledger=ledger, dataset="records", stopping="geometric")
    assert ledger.spent("records").fits == 1


def test_a_candidate_that_needs_all_rows_is_refused_before_the_charge(client, ledger):
    with pytest.raises(Unsupported, match="iterative one"):
        searched(LOGISTIC, BINARY, 3, candidates={"solver": ["gd", "output"]}, ledger=ledger, dataset="records")
    assert ledger.spent("records").fits == 0
