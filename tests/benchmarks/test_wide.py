"""Wide tables: what is compared is what it says, and the command runs."""

import json

import numpy as np
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.wide import objective, run_ceiling, score
from benchmarks.problems.wide_tables import GENERATED


def test_the_model_without_privacy_is_near_the_least_objective(tmp_path):
    """A lasso's coefficients in the table's own units: no point nearby has a lower objective."""
    train, test = GENERATED["numbers 1,000 x 100, L1"](tmp_path).split(1)
    found, rng = run_ceiling("", train, test, 1), np.random.default_rng(0)
    w = np.linalg.lstsq(np.column_stack([train.X, np.ones(len(train.y))]), train.y, rcond=None)[0]
    assert found["objective"] <= objective(train, w[:-1], w[-1])
    assert found["objective"] < found["trivial"]
    assert score(test, test.X @ w[:-1] + w[-1]) > 0.8
    assert objective(train, w[:-1] + 0.1 * rng.normal(size=100), w[-1]) > found["objective"]


def test_the_command_writes_what_it_ran_and_goes_on_later(tmp_path):
    for _ in range(2):
        done = CliRunner().invoke(app, ["wide", "--quick", "--seeds", "1", "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
    runs = json.loads((tmp_path / "wide.json").read_text(encoding="utf-8"))
    assert len(runs) == 2 * (1 + 2)
    assert "Excess objective" in (tmp_path / "wide.md").read_text(encoding="utf-8")
