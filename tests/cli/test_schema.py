"""``discreet schema``: drafts from names and codebooks, checks, and questions."""

import gzip
import json
import re

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.schema import Boolean, Category, Number, Ordinal, Schema
from tests.cli.tables import HEADER, MARK, SCHEMA, poison, write_parquet

NEW = ("schema", "new")
CHECK = ("schema", "check")


def filled_in(text, **columns):
    """As a person would: a line or two uncommented below the target and below each column."""
    lines, where, wanted = [], "", {}
    for line in text.splitlines():
        section = re.match(r'\[(?:columns\.)?"?([^"]*)"?\]', line)
        if section:
            where, wanted = section[1], dict.fromkeys(columns.get(section[1], ()))
        bare = line.removeprefix("# ")
        if where in columns and bare.split(" = ")[0] in wanted:
            line = bare
        lines.append(line)
    return "\n".join(lines) + "\n"


# --- new --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [None, "label"])
def test_the_first_day(ok, run, place, target):
    """As a newcomer does it: only lines that the draft offers are filled in, blocks of other roles stay."""
    told = ok(*NEW, "table.csv", "-o", "new.toml", *(() if target is None else ("--target", target))).stdout
    assert told.index("[target]") < told.index("ignore") < told.index("block of each") < told.index("Then:")
    text = (place / "new.toml").read_text()
    assert ('[columns."label"]' in text) == (target is None)
    left = run(*CHECK, "new.toml", "table.csv")
    assert left.exit_code == 1
    assert left.stdout.count("nothing is declared") == 7 - (target is not None)
    assert ("no target" in left.stdout) == (target is None)
    assert ("label: it is to be predicted: fill in its classes" in left.stdout) == (target is not None)
    blocks = {"age": ("range",), "income": ("range",), "color": ("categories",), "smoker": ("boolean",)}
    text = filled_in(text, target=("classes",) if target else ("column", "classes"), visits=("levels",), **blocks)
    text = text.replace('column = "outcome"', 'column = "label"').replace("ignore = []", 'ignore = ["name"]')
    (place / "new.toml").write_text(text)
    ready = ok(*CHECK, "new.toml", "table.csv").stdout
    assert ready.startswith("Ready")
    assert "Next: discreet fit table.csv --schema new.toml" in ready
    ok("fit", "table.csv", "-s", "new.toml", "-o", "new", "--dry-run")


@pytest.mark.parametrize("name", ["poisoned.csv", "poisoned.csv.gz", "poisoned.parquet"])
def test_values_are_not_read(ok, place, name):
    """Lines that no reader would survive, and pages that hold nothing: only the names are looked at."""
    if name.endswith(".parquet"):
        poison(write_parquet(place / name))
    else:
        content = (",".join(HEADER) + "\n").encode() + f'"{MARK}\x00,,\r"\n{MARK}'.encode() + b"\xff\xfe" * 50
        (place / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    found = ok(*NEW, place / name, "-o", "-")
    assert Schema.from_toml(found.stdout).undeclared == HEADER
    ok(*CHECK, "schema.toml", name)


# --- check ------------------------------------------------------------------------------------------


def test_what_a_schema_makes_of_a_table(ok, place):
    told = ok(*CHECK, "schema.toml", "table.csv").stdout
    assert told.startswith("Ready")
    assert "to predict: label, one of low, high" in told
    assert "protected: each row" in told
    assert "6 features; a row's norm is at most 2" in told
    assert ok(*CHECK, "schema.toml").stdout == told.replace("fit table.csv", "fit TABLE")
    found = json.loads(ok(*CHECK, "schema.toml", "table.csv", "--json").stdout)
    assert found["ready"] is True
    assert found["problems"] == []
    assert [feature["column"] for feature in found["features"]] == ["age", "income", *["color"] * 3, "smoker"]
    assert found["row_norm"] == pytest.approx(2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["no target", "no columns"]),
        (SCHEMA.replace("income", "salary"), ["salary: not in the table", "income: in the table, but neither"]),
        (SCHEMA.replace("range = [0, 120]", "") + "\n[columns.more]\n", ["age: nothing", "more: nothing"]),
    ],
)
def test_what_is_missing_is_an_answer_and_no_error(run, place, text, told):
    (place / "s.toml").write_text(text)
    result = run(*CHECK, "s.toml", "table.csv")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert MARK not in result.stdout
    assert all(line in result.stdout for line in told)
    assert f"s.toml: {len(result.stdout.splitlines()) - 1} problems remain" in result.stdout
    as_json = run(*CHECK, "s.toml", "table.csv", "--json")
    assert as_json.exit_code == 1
    found = json.loads(as_json.stdout)
    assert found["ready"] is False
    assert [f"- {problem}" for problem in found["problems"]] == result.stdout.splitlines()[:-1]


CODEBOOK = """column,kind,min,max,values
age,number,0,120,
color,category,,,red|blue
label,category,,,low|high
old,number,0,1,
"""


@pytest.fixture
def answer():
    def invoke(file, *answers, words=(), code=0):
        done = CliRunner().invoke(app, ["schema", "edit", str(file), *words], input="\n".join(answers) + "\n")
        assert done.exit_code == code, done.output
        assert MARK not in done.output
        return done.output

    return invoke


def test_a_codebook_fills_in_a_draft(ok, place):
    (place / "codebook.csv").write_text(CODEBOOK)
    said = ok(
        "schema", "new", "table.csv", "--codebook", "codebook.csv", "--target", "label", "--out", "new.toml"
    ).stdout
    found = Schema.load(place / "new.toml")
    assert found.target.classes == ("low", "high")
    assert found.columns["age"] == Number((0, 120))
    assert found.columns["color"] == Category(("red", "blue"))
    assert set(found.undeclared) == {"name", "income", "smoker", "visits"}
    assert "2 columns were filled in" in said
    assert "Only in the codebook, and left out: 'old'" in said


def test_questions_fill_in_a_schema(ok, place, answer):
    ok("schema", "new", "table.csv", "--target", "label", "--out", "new.toml")
    said = answer(
        "new.toml", "low, high", "p", "n", "0, 120", "n", "private", "0, 1e6", "c", "red, blue", "b", "l", "0, 1, 2, 3"
    )
    found = Schema.load(place / "new.toml")
    assert found.target.classes == ("low", "high")
    assert found.person == "name"
    assert found.columns == {
        "age": Number((0, 120)),
        "income": Number("private", within=(0, 1e6)),
        "color": Category(("red", "blue")),
        "smoker": Boolean(),
        "visits": Ordinal((0, 1, 2, 3)),
    }
    assert "complete" in said


def test_an_end_of_input_keeps_what_was_answered(ok, place):
    ok("schema", "new", "table.csv", "--target", "label", "--out", "new.toml")
    done = CliRunner().invoke(app, ["schema", "edit", "new.toml"], input="low, high\n")
    assert done.exit_code == 1
    assert Schema.load(place / "new.toml").target.classes == ("low", "high")
