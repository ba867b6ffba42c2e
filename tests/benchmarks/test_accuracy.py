"""The comparison of models as they come: runs, goes on where it stopped, and counts what it found."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.comparisons import accuracy
from benchmarks.comparisons.accuracy import Comparison, Protocol, run_key
from benchmarks.measures.gap import gap, learned
from benchmarks.pages.accuracy import Summary, against_trivial, markdown

NOWHERE = Path("nowhere")
FAST = Protocol(
    sets=accuracy.SYNTHETIC, solvers=("auto", "gd", "objective"), epsilons=(1.0,), relations=("zero_out",), seeds=2
)
LABELS = {
    "title": "Labels",
    "task": "classification",
    "rows": 80,
    "columns": 3,
    "splits": {"0": {"non_private": {"accuracy": 0.9, "auc": 0.9}, "trivial": {"accuracy": 0.5, "auc": 0.5}}},
}
SPLIT = LABELS["splits"]["0"]
LUCKY = {"non_private": {"accuracy": 0.52, "auc": 0.52}, "trivial": {"accuracy": 0.5, "auc": 0.5}}


def made(method, accuracy_, seed=1, epsilon=1.0, **facts):
    found = {"set": "s", "method": method, "epsilon": epsilon, "relation": "zero_out", "seed": seed}
    return {**found, "metrics": {"accuracy": accuracy_, "auc": accuracy_}, **facts}


@pytest.fixture(scope="module")
def results():
    return Comparison(FAST, NOWHERE).run()


@pytest.mark.thorough
def test_an_interrupted_run_goes_on(results):
    some = {**results, "runs": [run for run in results["runs"] if run["seed"] == 1 or run["method"] == "gd"]}
    assert Comparison(FAST, NOWHERE, results).left == 0
    going_on = Comparison(FAST, NOWHERE, some)
    assert going_on.left == 4
    again = going_on.run()
    strip = [{name: run[name] for name in run if name != "seconds"} for run in results["runs"]]
    assert all({name: run[name] for name in run if name != "seconds"} in strip for run in again["runs"])
    assert {run_key(run) for run in again["runs"]} == {run_key(run) for run in results["runs"]}


def test_gaps_are_zero_without_privacy_and_one_for_the_trivial():
    scale = learned([SPLIT])
    assert gap(SPLIT["non_private"], SPLIT, scale) == 0
    assert gap(SPLIT["trivial"], SPLIT, scale) == 1
    assert gap({"accuracy": 0.7, "auc": 0.9}, SPLIT, scale) == pytest.approx(0.25)


def test_over_splits_a_gap_is_a_ratio_of_means():
    facts = {**LABELS, "splits": {"1": SPLIT, "2": LUCKY}}
    runs = [made("gd", 0.8, seed=1, split=1), made("gd", 0.46, seed=2, split=2), made("gd", 0.1, seed=3, split=0)]
    summary = Summary({"references": {"s": facts}, "runs": runs})
    gaps = summary.gaps("s", "gd", 1.0, "zero_out")
    assert len(gaps) == 2  # no reference is known for the third
    assert np.mean(gaps) == pytest.approx(((0.9 - 0.8) + (0.52 - 0.46)) / ((0.9 - 0.5) + (0.52 - 0.5)))
    (point,) = against_trivial(summary, "classification", "gd")["s"]
    assert point.difference == pytest.approx(((0.8 - 0.5) + (0.46 - 0.5)) / 2)
    assert "| 0.710 | 0.500 |" in markdown(summary)
