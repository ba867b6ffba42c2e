"""The default against solvers by name: what is compared is what it says, and the command runs."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons import defaults
from benchmarks.comparisons.defaults import REFERENCE, Cell, Variation, compared, run_cell, run_reference
from benchmarks.pages.defaults import markdown, summary
from benchmarks.problems.generated import problem

FACTS = {"loss": "logistic", "intercept": True, "ranges": "fitting", "strength": "weak"}
KNOWN = {
    "problem": 1, "solver": REFERENCE, "facts": FACTS,
    "objective": 0.5, "trivial objective": 0.6, "zeros objective": 0.7,
}  # fmt: skip


def runs(**values):
    made = [
        {"problem": 1, "solver": solver, "epsilon": 1.0, "relation": "zero_out", "seed": seed, "objective": value}
        for solver, some in values.items()
        for seed, value in enumerate(some)
    ]
    return [KNOWN, *made]


def test_a_ratio_is_of_mean_excesses():
    (cell,) = compared(runs(auto=[0.53, 0.55], gd=[0.51, 0.53], cd=[0.7, 0.8]), "objective")
    assert cell.best == "gd"
    assert cell.negligible == pytest.approx(0.002)  # of 0.1 that can be gained
    assert cell.ratio() == pytest.approx(0.042 / 0.022)
    assert not cell.worse_than_trivial
    assert "within 1.5 times the best solver by name in 0 % of them" in summary([cell])


def test_worse_than_trivial_is_beyond_two_errors():
    for values, expected in (([0.65, 0.66], True), ([0.5, 0.8], False)):
        (cell,) = compared(runs(auto=values, gd=[0.51, 0.51]), "objective")
        assert cell.worse_than_trivial is expected


def test_a_variation_is_run_and_shown(monkeypatch):
    monkeypatch.setattr(defaults, "VARIATIONS", (Variation("plain", lambda problem, epsilon, relation: "gd"),))
    made = problem(2)
    found = run_cell(Cell(2, "plain", 1.0, "zero_out", 1), made)
    assert "objective" in found
    others = [run_cell(Cell(2, solver, 1.0, "zero_out", 1), made) for solver in ("auto", "gd")]
    assert "| plain | 1 |" in markdown([run_reference(made), found, *others])


def test_the_command_writes_what_it_ran_and_goes_on_later(tmp_path):
    for _ in range(2):
        done = CliRunner().invoke(app, ["defaults", "--quick", "--seeds", "1", "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "defaults.json").read_text(encoding="utf-8"))
    assert len(found) == 2 * (1 + 2 * 3)
    assert "Choosing" in (tmp_path / "defaults.md").read_text(encoding="utf-8")
    assert CliRunner().invoke(app, ["defaults", "--half", "other", "--out", str(tmp_path)]).exit_code != 0
