"""The coverage study: it runs, goes on where it stopped, and knows its truths."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.comparisons.inference import DESIGNS, QUICK, one_table
from benchmarks.comparisons.published import PUBLISHED, uniform
from benchmarks.pages.inference import line
from benchmarks.pages.published import published
from benchmarks.problems.class_effects import class_fit
from benchmarks.problems.declared_tables import declarations
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


@pytest.mark.parametrize("model", ["logistic", "softmax", "linear", "poisson"])
def test_truths_are_what_a_large_table_shows(model):
    source = source_of(Design(model, 0, 6, 1.0, "zero_out"), None)
    X, y = source.draw(np.random.default_rng(1), 60_000)
    found, se = plain_fit(X, y, model, WIDTH)
    assert np.all(np.abs(found - source.truth) < 5 * se)


def test_maximum_likelihood_of_classes_is_that_of_two_where_there_are_two():
    X, y = source_of(Design("logistic", 0, 6, 1.0, "zero_out"), None).draw(np.random.default_rng(2), 5_000)
    for of_classes, of_two in zip(class_fit(X, y), plain_fit(X, y, "logistic", WIDTH), strict=True):
        np.testing.assert_allclose(of_classes, of_two, rtol=1e-6, atol=1e-9)


def test_maximum_likelihood_of_three_classes_has_no_slope_left():
    """Its score is 0; standard errors are how much estimates of 60 tables differ, within a third."""
    source = source_of(Design("softmax", 0, 6, 1.0, "zero_out"), None)
    assert source.classes == kinds_of(6) * 2
    rng, fits = np.random.default_rng(3), []
    for _ in range(60):
        X, y = source.draw(rng, 4_000)
        fits.append(class_fit(X, y))
    w, Z = fits[-1][0].reshape(2, -1), np.column_stack([X, np.ones(len(X))])
    margins = np.column_stack([np.zeros(len(X)), Z @ w.T])
    chances = softmax(margins, axis=1)[:, 1:]
    assert np.abs(((y[:, None] == [1, 2]) - chances).T @ Z).max() < 1e-6
    found, se = (np.array(part) for part in zip(*fits, strict=True))
    np.testing.assert_allclose(found.std(axis=0), se.mean(axis=0), rtol=0.33)


def test_one_table_of_classes_has_an_effect_per_class_and_column():
    table = one_table(Design("softmax", 8_000, 6, 8.0, "zero_out"), 5000, None)
    assert {len(values) for values in table.values()} == {12}
    truth = source_of(Design("softmax", 0, 6, 1.0, "zero_out"), None).truth
    assert np.all(np.abs(np.array(table["coef"]) - truth) < 6 * np.array(table["se"]))


def test_a_category_is_an_outcome_and_no_column(tmp_path):
    facts = declarations()["bank_marketing"]
    rng, n = np.random.default_rng(4), 300
    columns = {name: rng.uniform(*ends, n) for name, ends in facts["numeric"].items()}
    columns |= {name: rng.choice(cells, n) for name, cells in facts["categories"].items()}
    columns |= {name: rng.integers(0, 2, n) for name in facts.get("flags", ())}
    table = pd.DataFrame(columns | {"target": rng.integers(0, 2, n)})
    table.to_csv(tmp_path / facts["file"], index=False)
    source = source_of(Design("softmax", n, 7, 4.0, "replace_one", "marital"), tmp_path)
    assert source.bounds.classes == (0, 1, 2)
    assert len(source.classes) == len(source.truth) == 14
    _, y = source.draw(np.random.default_rng(5), 20_000)
    shares = table["marital"].value_counts(normalize=True)[facts["categories"]["marital"]]
    np.testing.assert_allclose(np.bincount(y.astype(int)) / len(y), shares, atol=0.02)


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
