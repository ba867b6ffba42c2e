"""Experiments: results are kept and gone on with, figures come from files, and a claim that does not hold fails."""

import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.experiments import harness
from benchmarks.experiments.harness import NAMES, Claim, experiment, mean, run


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_and_is_drawn(name, tmp_path):
    pytest.importorskip("matplotlib")
    found = CliRunner().invoke(app, ["experiments", name, "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    assert experiment(name).title in found.output
    assert (tmp_path / "quick" / f"{name}.png").stat().st_size > 5000
    assert all(claim.text for claim in experiment(name).claims)


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    first = run("two_record_median", tmp_path, quick=True)
    path = tmp_path / "two_record_median.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])  # killed while it wrote
    asked = []
    honest = harness.run_point
    monkeypatch.setattr(harness, "run_point", lambda *given: asked.append(given) or honest(*given))
    assert run("two_record_median", tmp_path, quick=True) == first
    assert len(asked) == len(lines) - 3


def test_a_claim_that_does_not_hold_fails_the_check(tmp_path, monkeypatch):
    made = experiment("two_record_median")
    arguments = ["experiments", "two_record_median", "--quick", "--check", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    false = Claim("the record never comes out", made.claims[0].statistic, high=0.0)
    for claim in (false, Claim("nothing was measured", lambda rows: math.nan, high=1.0)):
        planted = replace(made, claims=(claim,))
        monkeypatch.setattr("benchmarks.commands.experiments.experiment", lambda name, planted=planted: planted)
        failed = CliRunner().invoke(app, arguments)
        assert failed.exit_code == 1
        assert claim.text in failed.output


def test_two_seeds_that_disagree_support_no_claim():
    rows = [{"point": {}, "seed": seed, "excess": value} for seed, value in enumerate((-3.0, 15.0))]
    claim = Claim("text", lambda some: mean(some, "excess"), low=0.0)
    assert claim.value(rows) == pytest.approx(6.0)
    assert claim.verdict(rows) == "too few seeds to tell"
    assert claim.verdict(rows[1:]) == "too few seeds to tell"
    many = [{**row, "seed": 2 * at + row["seed"]} for at in range(50) for row in rows]
    assert claim.verdict(many) == "yes"
    assert Claim("text", lambda some: mean(some, "excess"), high=0.0).verdict(many) == "**no**"
    same = [{**row, "excess": 0.0} for row in many]
    assert claim.verdict(same) == "yes"  # at its limit, and without an error
    assert claim.verdict(same[:2]) == "too few seeds to tell"  # two that agree are no evidence
