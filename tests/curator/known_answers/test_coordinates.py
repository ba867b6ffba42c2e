"""Sums of coordinates and of squares give their known answers before they see a record."""

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.accounting import Plan, Release, price_plan
from discreet.curator import PrivateData, known_answers
from discreet.curator.queries.coordinates import CoordinateQuery
from discreet.curator.queries.moments import SquareQuery
from discreet.errors import StaleKernels
from discreet.losses import Logistic


@pytest.mark.parametrize(
    ("owner", "query", "ask"),
    [
        (
            CoordinateQuery,
            "noisy_coordinate_gradient",
            lambda c: c.noisy_coordinate_gradient(np.zeros(3), 0, clips=1.0),
        ),
        (SquareQuery, "noisy_squared_norms", lambda c: c.noisy_squared_norms(clip=1.0)),
    ],
    ids=["coordinates", "squares"],
)
def test_a_stale_sum_is_asked_nothing(monkeypatch, owner, query, ask):
    data = PrivateData(np.ones((5, 2)), [0, 1, 0, 1, 1], Bounds(1.0, classes=(0, 1)), ledger=False)
    curator = data.open(price_plan(Plan([Release(query, 1)]), Budget(1.0, 1e-6)), Logistic())
    monkeypatch.setattr(known_answers, "_passed", set())
    honest, read = owner.over, []

    def stale(self, engine):
        read.append(engine.records.n_rows)
        return honest(self, engine) + 1

    monkeypatch.setattr(owner, "over", stale)
    with pytest.raises(StaleKernels, match="disagrees with its source"):
        ask(curator)
    assert read == [len(known_answers.ROWS)]
    monkeypatch.setattr(owner, "over", honest)
    ask(curator)  # nothing was spent
