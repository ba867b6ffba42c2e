"""The coverage study: it runs, goes on where it stopped, and knows its truths."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.inference import DESIGNS, QUICK
from benchmarks.comparisons.published import PUBLISHED, uniform
from benchmarks.pages.inference import line
from benchmarks.pages.published import published
from benchmarks.problems.effects import SYNTHETIC, WIDTH, Design, kinds_of, plain_fit, source_of

PAGE = "".join(f"<!-- {name}: generated -->\nold\n<!-- {name}: end -->\n" for name in ("inference", "published"))


def test_the_quick_study_runs_and_goes_on(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    picture = tmp_path / "effects.png"
    words = ["inference", "--quick", "--out", str(tmp_path), "--page", str(page), "--figure", str(picture)]
    done = CliRunner().invoke(app, [*words, "--repetitions", "2"])
    assert done.exit_code == 0, done.output
    assert "| linear, right | 5,000 | 6 | 2, zero_out |" in page.read_text()
    assert "old" not in page.read_text()
    path = tmp_path / f"{QUICK[0].name}.json"
    first = json.loads(path.read_text())["tables"]
    assert len(first) == 2
    assert CliRunner().invoke(app, [*words, "--repetitions", "3"]).exit_code == 0
    again = json.loads(path.read_text())["tables"]
    assert again[:2] == first
    assert len(again) == 3
    assert picture.stat().st_size > 10_000
    other = CliRunner().invoke(app, [*words, "--first-seed", "7"])
    assert other.exit_code == 2, "tables of other seeds go to another folder"
    refused = CliRunner().invoke(app, ["inference", "--only", "nothing", "--out", str(tmp_path)])
    assert refused.exit_code != 0


def test_designs_have_every_class_of_coefficients():
    assert len({design.name for design in DESIGNS}) == len(DESIGNS) >= 12
    assert set(kinds_of(6)) == {"number", "pair", "rare", "cell", "intercept"}
    relations = {design.relation for design in DESIGNS}
    assert relations == {"replace_one", "zero_out", "add_remove"}
    assert len({design.data for design in DESIGNS} - set(SYNTHETIC)) >= 4


@pytest.mark.parametrize("model", ["logistic", "linear", "poisson"])
def test_truths_are_what_a_large_table_shows(model):
    source = source_of(Design(model, 0, 6, 1.0, "zero_out"), None)
    X, y = source.draw(np.random.default_rng(1), 60_000)
    found, se = plain_fit(X, y, model, WIDTH)
    assert np.all(np.abs(found - source.truth) < 5 * se)


def test_a_line_counts_what_is_covered_and_what_is_not():
    table = {"coef": [1.0, 0.1, 0.0], "se": [0.1, float("nan"), 0.1], "se_privacy": [0.0] * 3, "p": [0.0, 1.0, 1.0],
             "low": [0.8, -1.0, 0.3], "high": [1.2, 1.0, 0.5], "plain": [1.0, 0.0, 0.0],
             "plain_se": [0.05, 0.1, 0.1]}  # fmt: skip
    design = {"model": "linear", "data": "right", "n": 100, "p": 3, "epsilon": 1.0, "relation": "zero_out"}
    found = {"design": design, "truth": [1.0, 0.0, 0.0], "classes": ["number", "rare", "intercept"]}
    text = line({**found, "tables": [table, {"refused": "too little"}]})
    assert "0.500" in text
    assert "33% hidden" in text
    assert "1 of 2 refused" in text
    assert "refused: too little signal" in line({**found, "tables": [{"refused": "too little"}]})


def test_published_designs_are_next_to_what_was_published(tmp_path):
    table = {"low": [1.4, -2.1, 0.6, -1.0], "high": [1.6, -1.9, 0.8, 1.0], "p": [0.0, 0.0, 0.0, 0.9]}
    classes = ["number"] * 3 + ["intercept"]
    found = {"truth": [1.5, -2.0, 0.5, 0.0], "classes": classes, "tables": [table, {"refused": "too little"}]}
    (tmp_path / f"{uniform(1.0).name}.json").write_text(json.dumps(found))
    text = published(tmp_path)
    assert "| 1 | 0.667 (50% refused) | 0.200 (50% refused) | 0.931 | 0.291 |" in text
    assert "| 2 | – | – | 0.934 | 0.181 |" in text
    assert {design.relation for design in PUBLISHED} == {"replace_one"}


def test_persons_have_several_rows():
    source = source_of(Design("linear", 0, 6, 1.0, "zero_out", "persons"), None)
    groups = source.groups(8)
    assert groups is not None
    assert groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    X, y = source.draw(np.random.default_rng(0), 8_000)
    w, se = plain_fit(X, y, "linear", WIDTH, source.groups(8_000))
    assert np.all(np.abs(w - source.truth) < 5 * se)
    assert se[0] > 1.3 * plain_fit(X, y, "linear", WIDTH)[1][0], "a person's rows are alike"
