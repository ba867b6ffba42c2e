import json
import math

import pytest

from discreet.cli.terminal import NO, UNSERVED
from tests.priced import at_noise


def answer(run, *arguments):
    result = run("audit", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


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


def test_transcript_and_model(run):
    found = answer(run, "transcript", "--solver", "cd", "--runs", 50, "--neighbors", "add_remove")
    assert (found["subject"], found["level"], found["neighbors"], found["runs"]) == (
        "cd",
        "transcript",
        "add_remove",
        50,
    )
    assert answer(run, "model", "--solver", "gd", "--runs", 50)["level"] == "model"


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
