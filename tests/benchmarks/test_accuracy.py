"""The comparison of models as they come: runs, goes on where it stopped, and counts what it found."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons import accuracy
from benchmarks.comparisons.accuracy import Comparison, Point, Protocol, parts, private_run, run_key
from benchmarks.measures.gap import gap, learned, scores
from benchmarks.pages.accuracy import Mean, Summary, against_trivial, compared, markdown
from discreet.errors import Unsupported

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


def test_results_are_plain_numbers_and_refusals_are_recorded(results):
    assert json.loads(json.dumps(results))["runs"] == results["runs"]
    assert len(results["runs"]) == 2 * 6
    assert results["absent"] == []
    refused = Protocol(**{**FAST.__dict__, "sets": ("synthetic_number",), "solvers": ("exponential",)})
    absent = Comparison(refused, NOWHERE).run()["absent"]
    assert [(point["set"], point["method"]) for point in absent] == [("synthetic_number", "exponential")]
    splits = results["references"]["synthetic_number"]["splits"]
    assert list(splits) == ["1", "2"]
    assert all(split["non_private"]["r2"] > 0.9 for split in splits.values())
    assert {(run["seed"], run["split"]) for run in results["runs"]} == {(1, 1), (2, 2)}
    assert {run["chosen"] for run in results["runs"] if run["method"] == "gd"} == {"preconditioned"}


def test_an_interrupted_run_goes_on(results):
    some = {**results, "runs": [run for run in results["runs"] if run["seed"] == 1 or run["method"] == "gd"]}
    assert Comparison(FAST, NOWHERE, results).left == 0
    going_on = Comparison(FAST, NOWHERE, some)
    assert going_on.left == 4
    again = going_on.run()
    strip = [{name: run[name] for name in run if name != "seconds"} for run in results["runs"]]
    assert all({name: run[name] for name in run if name != "seconds"} in strip for run in again["runs"])
    assert {run_key(run) for run in again["runs"]} == {run_key(run) for run in results["runs"]}


def test_more_seeds_add_splits_and_runs_of_another_split_do_not_count(results):
    more = Protocol(**{**FAST.__dict__, "sets": ("synthetic",), "solvers": ("gd",), "seeds": 3})
    going_on = Comparison(more, NOWHERE, results)
    assert going_on.left == 2  # a reference and a run
    again = going_on.run()
    assert list(again["references"]["synthetic"]["splits"]) == ["1", "2", "3"]
    assert again["references"]["synthetic_number"] == results["references"]["synthetic_number"]
    shared = [{name: run[name] for name in run if name != "split"} for run in results["runs"]]
    stale = Comparison(FAST, NOWHERE, {**results, "runs": shared})
    assert stale.results["runs"] == []
    assert stale.left == 6
    alone = Comparison(FAST, NOWHERE, {**results, "references": {"synthetic": {"task": "classification", **SPLIT}}})
    assert alone.results["references"] == {}
    assert alone.left == 2


def test_small_tables_are_split_for_each_seed_and_others_once():
    assert [accuracy.split_seed("german_credit", seed) for seed in (1, 2)] == [1, 2]
    assert [accuracy.split_seed("adult", seed) for seed in (1, 2)] == [0, 0]
    assert Point("adult", "gd", 1.0, "zero_out").key(2)[-2:] == (2, 0)
    assert Point("spambase", "gd", 1.0, "zero_out").key(2)[-2:] == (2, 2)
    (_, first), (_, second) = (parts("synthetic", NOWHERE, seed) for seed in (1, 2))
    assert not np.array_equal(first.X, second.X)


def test_small_tables_have_more_seeds_and_other_solvers_at_most_as_many():
    protocol = Protocol(seeds=5, large_seeds=2)
    assert [len(protocol.runs(*point)) for point in (("synthetic",), ("german_credit", "gd"), ("adult", "gd"))] == [
        5,
        5,
        2,
    ]
    fewer = Protocol(seeds=5, large_seeds=2, solver_seeds=3)
    counts = [len(fewer.runs(name, solver)) for name in ("spambase", "adult") for solver in ("auto", "gd")]
    assert counts == [5, 3, 2, 2]
    assert (Protocol().seeds, Protocol().large_seeds) == (40, 3)


def test_a_run_goes_on_with_the_seeds_of_each_table_and_solver(results):
    more = Protocol(**{**FAST.__dict__, "solvers": ("auto", "gd"), "seeds": 3, "solver_seeds": 2})
    going_on = Comparison(more, NOWHERE, results)
    assert going_on.left == 4  # a reference and a run of the default on each table: gd has its two
    again = going_on.run()
    new = [(run["set"], run["method"], run["seed"]) for run in again["runs"] if run not in results["runs"]]
    assert new == [(name, "auto", 3) for name in accuracy.SYNTHETIC]
    assert again["protocol"]["solver_seeds"] == 2
    large = Protocol(sets=("adult",), solvers=("auto",), epsilons=(1.0,), relations=("zero_out",), large_seeds=2)
    known = {"references": {"adult": {**LABELS}}, "runs": [made("auto", 0.9, set="adult", split=0)]}
    ((_, point, seeds, _),) = Comparison(large, NOWHERE, known)._tasks
    assert (point.set, seeds) == ("adult", [2])


def test_noise_is_the_same_for_two_names_of_a_solver_and_not_for_two_seeds():
    point = Point("synthetic", "auto", 1.0, "zero_out")
    assert point.noise(1) == Point("synthetic", "gd", 1.0, "zero_out").noise(1)
    assert len({point.noise(1), point.noise(2), Point("synthetic", "auto", 4.0, "zero_out").noise(1)}) == 3


def test_ranges_are_widened_for_the_default_solver_at_one_epsilon():
    points = [point for point in Protocol(sets=("synthetic_number",), widen=3.0).points() if point.ranges != "declared"]
    assert {(point.method, point.epsilon) for point in points} == {("auto", 1.0)}
    assert {point.ranges for point in points} == {"3x", "3x, target too"}
    train, _ = parts("synthetic_number", NOWHERE, 1)
    features, both = (point.table(train).bounds for point in points[::2])
    assert features.features[0] == (18 - 92, 110 + 92)
    assert features.target == (0.0, 50.0)
    assert both.target == (-50.0, 100.0)
    smoker = train.names.index("smoker")
    assert features.features[smoker] == (0.0, 1.0)


def test_a_slow_sampler_is_left_out():
    train, _ = parts("synthetic", NOWHERE, 1)
    point = Point("synthetic", "exponential", 1.0, "zero_out")
    assert accuracy.why_left_out(point, train) is None
    wide = accuracy.DeclaredTable("w", "w", np.zeros((5, 21)), train.y[:5], (), train.bounds, train.numeric)
    assert "20 columns" in (accuracy.why_left_out(point, wide) or "")


@pytest.mark.parametrize(
    "wrong",
    [{"sets": ("iris",)}, {"solvers": ("newton",)}, {"epsilons": (0.0,)}, {"relations": ("x",)}, {"widen": 0.5}],
)
def test_impossible_protocols_are_refused(wrong):
    with pytest.raises(Unsupported):
        Protocol(**wrong)


def test_predictions_are_clipped_and_scores_survive_what_is_no_number():
    _, test = parts("synthetic_number", NOWHERE, 1)
    assert scores(test, np.full(len(test.y), 1e9)) == scores(test, np.full(len(test.y), 50.0))
    _, test = parts("synthetic", NOWHERE, 1)
    margins = np.full(len(test.y), np.nan)
    assert scores(test, margins > 0, margins)["auc"] == 0.5


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


def test_a_method_with_fewer_seeds_has_a_rank():
    runs = [made("auto", 0.9, seed) for seed in range(1, 9)] + [made("peer", 0.8)]
    summary = Summary({"references": {"s": LABELS}, "runs": runs})
    assert summary.ranks("classification", "zero_out") == {"auto": 1.0, "peer": 2.0}


def test_ranks_are_among_those_that_ran_everywhere_and_equals_share():
    runs = [made("auto", 0.9), made("gd", 0.9), made("sgd", 0.8), made("auto", 0.8, epsilon=4.0)]
    runs += [made("gd", 0.7, epsilon=4.0), made("sgd", 0.9, epsilon=4.0), made("rare", 0.9)]
    summary = Summary({"references": {"s": LABELS}, "runs": runs, "absent": []})
    assert summary.ranks("classification", "zero_out") == {"auto": 1.5, "gd": 2.0, "sgd": 2.0}
    text = markdown(summary)
    assert "| auto | **0.000 ± 0.000** | 0.250 ± 0.000 | 0.125 | 1.5 | 1 of 1 |" in text
    assert "rare" not in text


def test_means_carry_the_error_of_their_seeds():
    mean = Mean.over([[0.0, 2.0], [3.0, 3.0]])
    assert (mean.value, mean.error) == (2.0, 0.5)


def test_the_worst_point_against_the_trivial_predictor_comes_first():
    runs = [made("auto", 0.6), made("auto", 0.7, 2), made("auto", 0.45, 1, 0.1), made("auto", 0.47, 2, 0.1)]
    points = against_trivial(Summary({"references": {"s": LABELS}, "runs": runs}), "classification")["s"]
    assert [point.epsilon for point in points] == [0.1, 1.0]
    assert points[0].difference == pytest.approx(-0.04)
    assert points[0].error == pytest.approx(0.01)
    assert [point.is_below for point in points] == [True, False]


def test_other_programs_are_merged_and_never_replace_a_run():
    ours = {"references": {"s": LABELS}, "runs": [made("auto", 0.9)]}
    theirs = {"runs": [made("auto", 0.5), made("peer", 0.7), made("peer", 0.7, set="unknown")]}
    summary = Summary(ours, [theirs])
    assert summary.gaps("s", "auto", 1.0, "zero_out") == [0.0]
    assert summary.gaps("s", "peer", 1.0, "zero_out") == [pytest.approx(0.5)]
    assert summary.ranks("classification", "zero_out") == {"auto": 1.0, "peer": 2.0}


def by_name(summary):
    text = markdown(summary)
    return text[text.index("**Every solver by name**") :] if "**Every solver by name**" in text else ""


def test_solvers_are_compared_by_name_where_others_than_the_default_were_run():
    facts = {name: {**LABELS, "title": name.upper()} for name in ("s", "t", "u")}
    runs = [made("auto", score, set=name) for name, score in zip("stu", (0.9, 0.7, 0.9), strict=True)]
    runs += [made("gd", 0.9), made("gd", 0.5, set="t"), made("peer", 0.9)]
    runs += [made("exponential", 0.9), made("auto", 0.9, epsilon=4.0)]
    slow = [{**made("exponential", 0), "set": "t", "why": "too slow"}]
    wide = [{**made("auto", 0), "ranges": "3x, target too", "why": "a label has no range"}]
    text = by_name(Summary({"references": facts, "runs": runs, "absent": slow + wide}))
    assert text.count("**Every solver by name**") == 1
    assert "epsilon = 1, `zero_out`: mean gap over 2 of 3 tables with labels." in text
    assert (
        "| solver | labels | without T |\n|---|---|---|\n| `auto` | 0.250 | 0.000 |\n| `gd` | 0.500 | 0.000 |\n\n"
        in text
    )
    assert "Solvers differ most for labels on T, from 0.50 (`auto`) to 1.00 (`gd`)." in text
    assert by_name(Summary({"references": facts, "runs": [run for run in runs if run["method"] != "gd"]})) != ""
    assert (
        by_name(Summary({"references": facts, "runs": [run for run in runs if run["method"] in ("auto", "peer")]}))
        == ""
    )


def test_solvers_by_name_have_errors_where_every_point_was_repeated():
    runs = [made(method, score, seed) for method in ("auto", "gd") for seed, score in ((1, 0.9), (2, 0.7))]
    numbers = {"title": "N", "task": "regression", "rows": 20_000, "columns": 3}
    splits = {"0": {"non_private": {"r2": 0.8}, "trivial": {"r2": 0.0}}}
    runs += [{**made(method, 0, set="n"), "metrics": {"r2": 0.4}} for method in ("auto", "gd", "sgd")]
    text = by_name(Summary({"references": {"s": LABELS, "n": {**numbers, "splits": splits}}, "runs": runs}))
    assert "1 of 1 tables with labels and 1 of 1 tables with numbers." in text
    assert "| `auto` | 0.250 ± 0.250 | 0.500 |" in text
    assert "| `sgd` | – | 0.500 |" in text
    assert "| method | runs of a point on tables with fewer than 10,000 rows | on others |" in text
    assert "| auto, gd | 2 | 1 |\n| sgd | – | 1 |" in text


def test_the_short_comparison_has_those_that_were_run_on_every_table():
    facts = dict.fromkeys(("s", "t"), LABELS)
    runs = [made("auto", 0.8, set=name, relation=relation) for name in "st" for relation in ("zero_out", "replace_one")]
    runs += [made("opacus", 0.7), made("opacus", 0.5, set="t"), made("diffprivlib", 0.7)]
    lines = compared(Summary({"references": facts, "runs": runs})).splitlines()
    assert lines[0].startswith("| epsilon | discreet, `replace_one` | discreet, `zero_out` | Opacus")
    assert lines[2:] == ["| 1 | 0.250 | 0.250 | 0.750 | – |"]


def test_a_private_fit_learns_something_with_nothing_set():
    train, test = parts("synthetic", NOWHERE, 1)
    run = private_run(Point("synthetic", "gd", 100.0, "zero_out"), train, test, seed=1)
    assert run["metrics"]["auc"] > 0.7


def test_one_command_writes_numbers_and_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- accuracy: generated -->\nold\n<!-- accuracy: end -->\n")
    short = tmp_path / "short.md"
    short.write_text("Before\n<!-- accuracy: generated -->\nold\n<!-- accuracy: end -->\n")
    peer = tmp_path / "peer.json"
    peer.write_text(json.dumps({"runs": [{**made("peer", 0.7, split=1), "set": "synthetic"}]}))
    words = ["accuracy", "--quick", "--jobs", "1", "--seeds", "1", "--solver", "auto", "--epsilon", "1"]
    words += ["--widen", "3", "--peers", str(peer), "--page", str(page), "--compared", str(short)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "build/accuracy/accuracy.md").read_text()
    assert "| peer |" in text
    assert "**Ranges declared too wide**" in text
    assert "old" not in page.read_text()
    assert "old" not in short.read_text()
    assert "| epsilon | discreet, `replace_one` |" in short.read_text()
    stored = json.loads((tmp_path / "build/accuracy/accuracy.json").read_text())
    assert {run["method"] for run in stored["runs"]} == {"auto"}
    refused = CliRunner().invoke(app, ["accuracy", "--data", str(tmp_path), "--set", "adult", "--jobs", "1"])
    assert refused.exit_code == 2
    assert "adult.csv.gz" in refused.output
