"""The study of coverage on ugly tables: it runs, and its laws are what they say."""

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.problems import ugly as laws
from benchmarks.problems.ugly import MODELS, ugly


def test_the_quick_study_runs(monkeypatch):
    monkeypatch.setattr(laws, "LARGE", 5_000)
    done = CliRunner().invoke(app, ["coverage", "--quick", "--epsilon", "3"])
    assert done.exit_code == 0, done.output
    assert "kinds of columns; coverage" in done.output
    assert CliRunner().invoke(app, ["coverage", "--model", "none"]).exit_code == 2


@pytest.mark.parametrize("model", MODELS)
def test_tables_are_within_what_is_declared(model):
    for seed in range(6):
        law = ugly(model, seed)
        X, y = law.draw(np.random.default_rng(seed), 2_000)
        low, high = law.bounds.ranges(X.shape[1])
        assert np.all((low <= X) & (high >= X))
        assert len(law.classes) == (X.shape[1] + law.fit_intercept) * (2 if model == "softmax" else 1)
        if law.bounds.target is not None:
            assert law.bounds.target[0] <= y.min() <= y.max() <= law.bounds.target[1]
        again = ugly(model, seed).draw(np.random.default_rng(seed), 2_000)
        np.testing.assert_array_equal(again[1], y)
