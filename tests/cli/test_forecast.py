import json
import re

import pytest

from tests.cli.tables import NUMBERS, SCHEMA

SMALL = ("forecast", "--rows", 300, "--features", 4, "--seeds", 2)


def test_prints_the_answer_the_tables_and_the_remarks(run):
    result = run(*SMALL, "--epsilon", 2)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert text.startswith("At epsilon = 2 with 300 rows and 4 features, expect privacy to cost about ")
    for part in ("Other budgets, at 300 rows", "Other tables, at this epsilon", "Plan at epsilon = 2: ", "no data was"):
        assert part in text
    assert "0.2 " in text  # a tenth of the epsilon
    assert "3,000 " in text  # ten times the rows


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "score"),
    [
        (("--classes", 3, "--ceiling", 0.8), "accuracy"),
        (("--task", "regression", "--neighbors", "zero_out"), "R2"),
        (("--task", "counts"), "R2"),
        (("--neighbors", "add_remove", "--delta", 1e-5, "--solver", "gd"), "accuracy"),
    ],
)
def test_json_is_all_there_is_on_stdout(run, options, score):
    result = run(*SMALL, *options, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["score"] == score
    assert found["asked"]["n"] == 300
    assert len(found["over_epsilon"]) == len(found["over_n"]) == 7
    assert len(found["asked"]["gaps"]) == 2
    assert found["answer"].startswith("At epsilon = 1 ")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["f.png", "f.svg"])
def test_writes_a_picture(run, tmp_path, name):
    result = run(*SMALL, "--plot", tmp_path / name)
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).stat().st_size > 5000
    assert "Picture: " in result.stdout
    deep = run(*SMALL, "--plot", tmp_path / "deep" / name)
    assert (deep.exit_code, list(tmp_path.iterdir())) == (2, [tmp_path / name])
    assert "there is no such folder" in deep.stderr


def test_a_schema_stands_for_the_number_of_columns(run, tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "numbers.toml").write_text(NUMBERS)
    for name, score in (("schema.toml", "accuracy"), ("numbers.toml", "R2")):
        result = run("forecast", "--rows", 300, "--schema", tmp_path / name, "--seeds", 2, "--json")
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["score"] == score
        assert found["n_features"] == 6  # two numbers, three cells, one truth


def test_no_simulated_accuracy_is_quoted(run):
    """What a synthetic table's model reaches says nothing about anybody's own."""
    result = run(*SMALL)
    text = result.stdout.replace("85.0% (the ceiling)", "")
    predicted = re.compile(
        r"costs\s+about\s.*?\sless\s+than\s+[\d.]+%", re.DOTALL
    )  # of explain, from public facts alone
    assert predicted.search(text)
    assert "%" not in predicted.sub("", text)
    assert "without privacy on the same rows" in " ".join(text.split())


def test_standard_errors_are_forecast_without_simulation(run):
    words = ("forecast", "--rows", 20_000, "--features", 10, "--effects")
    text = " ".join(run(*words, "--standard-error", 0.02).stdout.split())
    assert text.startswith("At epsilon = 1 with 20,000 rows and 10 features, expect a standard error of ")
    assert "A standard error of 0.02 needs about " in text
    assert "no budget spent" in text
    found = json.loads(run(*words, "--task", "regression", "--json").stdout)
    assert found["mean"] is None
    assert found["asked"]["inflation"] > 1
