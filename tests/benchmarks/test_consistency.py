"""The default against its minimizer: the minimizer is one, and the command shows how the distance falls."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.accuracy import SYNTHETIC, synthetic
from benchmarks.comparisons.consistency import minimizer, objective, optimum
from benchmarks.problems.declared_tables import split


@pytest.mark.parametrize("name", SYNTHETIC)
def test_no_point_nearby_is_better(name):
    table, rng = synthetic(name), np.random.default_rng(0)
    w = minimizer(table)
    least = objective(table, w)
    low, high = table.bounds.ranges(table.X.shape[1])
    units = np.append(1.0 / np.maximum(np.abs(low), np.abs(high)), 1.0)
    for size in (1e-3, 1e-2, 1.0):
        assert objective(table, w + size * units * rng.normal(size=w.size)) > least
    best = optimum(*split(table))
    assert best.objective < best.trivial


def test_the_command_shows_a_distance_that_falls(tmp_path):
    done = CliRunner().invoke(
        app, ["consistency", "--quick", "--out", str(tmp_path), "--figure", str(tmp_path / "curves.png")]
    )
    assert done.exit_code == 0, done.output
    runs = json.loads((tmp_path / "consistency.json").read_text(encoding="utf-8"))
    shares = {one: np.mean([run["share"] for run in runs if run["epsilon"] == one]) for one in (4.0, 64.0)}
    assert 0 <= shares[64.0] < shares[4.0]
    assert "excess objective" in (tmp_path / "consistency.md").read_text(encoding="utf-8")
    assert (tmp_path / "curves.png").stat().st_size > 10_000
