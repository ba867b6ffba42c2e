import json

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


@pytest.mark.parametrize(
    "arguments",
    [
        ("--rows", 1, "--features", 4),
        ("--rows", 300, "--features", 0),
        ("--rows", 300, "--features", 4, "--epsilon", 0),
        ("--rows", 300, "--features", 4, "--epsilon", "inf"),
        ("--rows", 300, "--features", 4, "--epsilon", "nan"),
        ("--rows", 300, "--features", 4, "--delta", 1),
        ("--rows", 300, "--features", 4, "--classes", 1),
        ("--rows", 300, "--features", 4, "--seeds", 1),
        ("--rows", 300, "--features", 4, "--plot", "f.doc"),
        ("--rows", 300, "--features", 4, "--ceiling", 0.4),
        ("--rows", 300, "--features", 4, "--neighbors", "add_remove"),
        ("--rows", 300, "--features", 4, "--task", "regression", "--classes", 3),
    ],
)
def test_nonsense_is_refused_in_one_line(run, arguments):
    result = run("forecast", *arguments)
    assert result.exit_code == 2
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("discreet: ")
    assert "Traceback" not in result.output
    assert not result.stdout.strip()


def test_options_of_the_wrong_type_are_usage_errors(run):
    assert run("forecast", "--rows", "many", "--features", 4).exit_code == 2
    assert run("forecast", "--rows", 10).exit_code == 2
    assert run(*SMALL, "--task", "poetry").exit_code == 2
    unknown = run(*SMALL, "--solver", "magic")
    assert unknown.exit_code == 2
    assert "is not one of 'auto', 'recipe', 'gd'" in unknown.stderr  # as fit says it


def test_a_schema_stands_for_the_number_of_columns(run, tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "numbers.toml").write_text(NUMBERS)
    for name, score in (("schema.toml", "accuracy"), ("numbers.toml", "R2")):
        result = run("forecast", "--rows", 300, "--schema", tmp_path / name, "--seeds", 2, "--json")
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["score"] == score
        assert found["n_features"] == 6  # two numbers, three cells, one truth


def test_the_ceiling_moves_what_there_is_to_lose(run):
    low, high = (json.loads(run(*SMALL, "--ceiling", ceiling, "--json").stdout) for ceiling in (0.65, 0.95))
    assert low["ceiling"] < 0.7 < 0.9 < high["ceiling"]
    assert "set to 65.0% (the ceiling)" in low["remarks"][0]


def test_no_simulated_accuracy_is_quoted(run):
    """What a synthetic table's model reaches says nothing about anybody's own."""
    result = run(*SMALL)
    text = result.stdout.replace("85.0% (the ceiling)", "")
    assert "%" not in text
    assert "without privacy on the same rows" in " ".join(text.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--rows", 300),
        ("--rows", 300, "--features", 4, "--schema", "schema.toml"),
        ("--rows", 300, "--schema", "schema.toml", "--task", "regression"),
        ("--rows", 300, "--features", 4, "--delta", 0.5),
    ],
)
def test_refuses_what_says_too_little_too_much_or_promises_nothing(run, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    result = run("forecast", *arguments)
    assert result.exit_code == 2
    assert "--schema" in result.stderr or "--allow-large-delta" in result.stderr


def test_standard_errors_are_forecast_without_simulation(run):
    words = ("forecast", "--rows", 20_000, "--features", 10, "--effects")
    text = " ".join(run(*words, "--standard-error", 0.02).stdout.split())
    assert text.startswith("At epsilon = 1 with 20,000 rows and 10 features, expect a standard error of ")
    assert "A standard error of 0.02 needs about " in text
    assert "no budget spent" in text
    found = json.loads(run(*words, "--task", "regression", "--json").stdout)
    assert found["mean"] is None
    assert found["asked"]["inflation"] > 1


@pytest.mark.parametrize("words", [("--standard-error", 0.1), ("--mean", 0.1), ("--effects", "--ceiling", 0.7)])
def test_options_of_one_forecast_are_not_those_of_the_other(run, words):
    assert run(*SMALL, *words).exit_code == 2
