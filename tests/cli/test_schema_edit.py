"""``discreet schema new --codebook`` and ``discreet schema edit``: drafts from documents, and questions."""

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.schema import Boolean, Category, Number, Ordinal, Schema
from tests.cli.tables import MARK

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


def test_a_codebook_alone_makes_a_draft(ok, place):
    (place / "codebook.csv").write_text(CODEBOOK)
    ok("schema", "new", "--codebook", "codebook.csv", "--target", "label", "--out", "new.toml")
    assert Schema.load(place / "new.toml").problems() == []
    ok("schema", "check", "new.toml")


def test_new_refuses_in_one_line(refused, place):
    assert "--codebook" in refused("schema", "new")
    (place / "codebook.json").write_text('{"fields": 3}')
    assert "wrong form" in refused("schema", "new", "table.csv", "--codebook", "codebook.json", "--out", "new.toml")
    (place / "codebook.csv").write_text(CODEBOOK)
    assert "codebook has no column" in refused("schema", "new", "-c", "codebook.csv", "-t", "nothing", "-o", "new.toml")
    refused("schema", "new", "table.csv", "--codebook", "nowhere.csv", "--out", "new.toml")
    assert not (place / "new.toml").exists()


def test_names_are_guessed_in_comments(ok, place):
    text = ok("schema", "new", "table.csv", "--out", "-").stdout
    assert 'columns."name"]\n# its name looks like an identifier' in text
    assert 'columns."smoker"]\n# its name suggests yes and no\n# boolean = true' in text


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


def test_wrong_answers_are_asked_again(ok, place, answer):
    ok("schema", "new", "table.csv", "--target", "label", "--out", "new.toml")
    said = answer("new.toml", "low", "low, high", "x", "i", "n", "120, 0", "a, b", "0, 120", "", "", "", "s")
    found = Schema.load(place / "new.toml")
    assert found.ignore == ("name",)
    assert found.columns == {"age": Number((0, 120))}
    assert "Answer with one of" in said
    assert "smaller number first" in said
    assert "4 problems remain" in said


def test_an_end_of_input_keeps_what_was_answered(ok, place):
    ok("schema", "new", "table.csv", "--target", "label", "--out", "new.toml")
    done = CliRunner().invoke(app, ["schema", "edit", "new.toml"], input="low, high\n")
    assert done.exit_code == 1
    assert Schema.load(place / "new.toml").target.classes == ("low", "high")


def test_one_column_is_asked_again(place, answer):
    answer("schema.toml", "n", "0, 99", words=["--column", "age"])
    assert Schema.load(place / "schema.toml").columns["age"] == Number((0, 99))
    answer("schema.toml", "t", "", "0, 20", words=["--column", "visits"])
    found = Schema.load(place / "schema.toml")
    assert found.target.column == "visits"
    assert found.target.range == (0, 20)


def test_edit_refuses_in_one_line(refused, place):
    assert "no column 'x'" in refused("schema", "edit", "schema.toml", "--column", "x")
    refused("schema", "edit", "table.csv")
    refused("schema", "edit", "nowhere.toml")
