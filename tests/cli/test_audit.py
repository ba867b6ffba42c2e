import json
import math

import pytest

from discreet import audit
from discreet.cli.terminal import NO, UNSERVED
from tests.priced import at_noise


def answer(run, *arguments):
    result = run("audit", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_without_a_level_the_levels_are_listed(run):
    shown = run("audit").output
    for level in ("replay", "gradient", "transcript", "model", "one-run", "table"):
        assert level in shown
    assert "no proof" in run("audit", "--help").stdout


@pytest.mark.parametrize("level", ["replay", "gradient", "transcript", "model", "one-run", "table"])
def test_help_says_what_a_level_does(run, level):
    result = run("audit", level, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_gradient(run, tmp_path):
    found = answer(run, "gradient", "--runs", 2000, "--epsilon", 3, "--figure", tmp_path / "runs.png")
    assert (found["level"], found["claimed"], found["verdict"], found["data"]) == (
        "gradient",
        3,
        "NOT REFUTED",
        "synthetic",
    )
    assert 0 < found["bound"] < 3
    assert (tmp_path / "runs.png").stat().st_size > 1000


def test_gradient_in_words(run):
    shown = run("audit", "gradient", "--runs", 500, "--mechanism", "laplace", "--neighbors", "zero_out").stdout
    assert "NOT REFUTED: one noisy gradient (laplace), gradient, zero_out" in shown
    assert "synthetic data" in shown
    assert "no proof" in shown


def test_one_run(run):
    assert answer(run, "one-run", "--canaries", 100, "--epsilon", 4)["settings"]["canaries"] == 100


def test_transcript_and_model(run):
    found = answer(run, "transcript", "--solver", "cd", "--runs", 50, "--neighbors", "add_remove")
    assert (found["subject"], found["level"], found["neighbors"], found["runs"]) == (
        "cd",
        "transcript",
        "add_remove",
        50,
    )
    assert answer(run, "model", "--solver", "gd", "--runs", 50)["level"] == "model"


def test_replay_of_one(run):
    result = run("audit", "replay", "--solver", "gd", "--neighbors", "zero_out")
    assert result.exit_code == 0
    assert "NOT REFUTED: gd, replay, zero_out" in result.stdout


@pytest.mark.thorough
def test_replay_of_several(run):
    result = run("audit", "replay", "-s", "gd", "-s", "output", "--neighbors", "replace_one", "--persons")
    assert result.exit_code == 0
    assert result.stdout.count("NOT REFUTED") == 2
    assert len(answer(run, "replay", "-s", "gd", "--neighbors", "zero_out", "--neighbors", "add_remove")) == 2


def test_a_refuted_claim_is_a_no(run, monkeypatch, tmp_path):
    """Whatever the level, the exit code is 1."""
    found = audit.Audit(level="x", subject="y", neighbors="z", claimed=1.0, delta=0.0, bound=2.0, runs=5)
    for place in ("gradient", "one_run", "replay"):
        monkeypatch.setattr(audit, place, lambda *_, **__: found)
    monkeypatch.setattr("discreet.audit.solver_cases.audited", lambda *_, **__: found)
    one = ("--solver", "gd", "--neighbors", "zero_out")
    for command in (("gradient",), ("one-run",), ("replay", *one), ("transcript",), ("model",), ("table", *one)):
        result = run("audit", *command)
        assert result.exit_code == NO, command
        assert "REFUTED" in result.stdout
        assert "no proof" not in result.stdout


def test_noise_that_is_half_of_what_was_claimed_is_refuted(run, monkeypatch):
    from discreet.audit import guessing

    honest = guessing.price_plan

    def halved(plan, budget):
        return at_noise(plan, budget, honest(plan, budget).noise_multiplier / (2 if budget.is_private else 1))

    monkeypatch.setattr(guessing, "price_plan", halved)
    result = run("audit", "gradient", "--runs", 3000, "--mechanism", "laplace", "--confidence", 1 - 1e-6)
    assert result.exit_code == NO
    assert result.stdout.startswith("REFUTED")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("transcript", "--solver", "sgd"), "audit model"),
        (("transcript", "--solver", "objective"), "audit model"),
        (("replay", "--solver", "exponential"), "audit model"),
        (("replay", "--solver", "objective", "--persons"), "use solver='gd'"),
        (("model", "--solver", "magic"), "--solver must be one of recipe, gd"),
        (("table", "--solver", "magic"), "--solver must be one of recipe, gd"),
        (("gradient", "--epsilon", 0), "--epsilon must be positive"),
        (("gradient", "--epsilon", math.inf), "--epsilon must be positive"),
        (("one-run", "--delta", 1.5), "--delta must lie in [0, 1)"),
        (("gradient", "--delta", 0), "for delta=0 use Laplace"),
        (("transcript", "--delta", 0), "--mechanism laplace"),
        (("table", "--delta", 0), "--mechanism laplace"),
        (("model", "--confidence", 1), "--confidence must lie in"),
        (("gradient", "--figure", "runs.txt"), "ends in .png"),
        (("gradient", "--figure", "nowhere/runs.png"), "no such folder"),
    ],
)
def test_what_cannot_be_served(run, arguments, remedy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("audit", *arguments)
    assert result.exit_code == UNSERVED, result.output
    assert remedy in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_table_says_what_is_not_served(run, monkeypatch):
    from discreet.errors import Unsupported

    def refuse(*_, **__):
        raise Unsupported("there is no proof for this")

    monkeypatch.setattr("discreet.audit.solver_cases.audited", refuse)
    result = run("audit", "table", "-s", "gd", "--neighbors", "zero_out")
    assert result.exit_code == 0
    assert "not served: there is no proof for this" in result.stdout
    assert "0 of 0 claims refuted" in result.stdout


def test_table_as_json(run):
    (found,) = answer(run, "table", "--runs", 50, "-s", "gd", "--neighbors", "zero_out")
    assert (found["subject"], found["neighbors"]) == ("gd", "zero_out")
