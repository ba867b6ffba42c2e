"""Schemas from formulas: which terms they stand for, and what is refused with which remedy."""

import builtins
import json

import pytest

from discreet import Schema
from discreet.schema import Boolean, Category, Number, Ordinal, SchemaError, Target

pytest.importorskip("formulaic")

COLUMNS = {
    "age": Number((18, 110)),
    "sex": Category(("f", "m")),
    "ward": Category(("a", "b")),
    "blood pressure": Number((50, 250)),
    "stage": Ordinal((1, 2, 3)),
    "smoker": Boolean(),
    "days": Number((0, 60)),
    "pay": Number((0, 10), knots=(5,)),
}


def made(formula):
    return Schema.from_formula(formula, COLUMNS)


def test_curves_lines_categories_and_products():
    schema = made("smoker ~ s(age) * sex + C(ward) + days")
    assert schema.columns == {
        "age": Number((18, 110), term="curve"),
        "sex": COLUMNS["sex"],
        "ward": COLUMNS["ward"],
        "days": Number((0, 60), term="linear"),
    }
    assert schema.interactions == (("age", "sex"),)
    assert schema.target == Target("smoker", classes=("false", "true"))
    assert schema.ignore == ("blood pressure", "stage", "pay")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("formula", "name", "kind"),
    [
        ("days ~ s(age, 6)", "age", Number((18, 110), term="curve", knots=6)),
        ("days ~ s(age, knots=6)", "age", Number((18, 110), term="curve", knots=6)),
        ("days ~ s(age, knots=[30, 65])", "age", Number((18, 110), term="curve", knots=(30, 65))),
        ("days ~ C(ward, Treatment('b'))", "ward", Category(("a", "b"), base="b")),
        ("days ~ C(ward, Treatment(reference='b'))", "ward", Category(("a", "b"), base="b")),
        ("days ~ `blood pressure`", "blood pressure", Number((50, 250), term="linear")),
        ("days ~ Q('blood pressure')", "blood pressure", Number((50, 250), term="linear")),
        ("days ~ s(Q('blood pressure'))", "blood pressure", Number((50, 250), term="curve")),
        ("days ~ C(smoker)", "smoker", COLUMNS["smoker"]),
        ("days ~ pay", "pay", COLUMNS["pay"]),
        ("days ~ stage", "stage", COLUMNS["stage"]),
    ],
)
def test_forms(formula, name, kind):
    assert made(formula).columns == {name: kind}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("days ~ bs(age, df=4)", r"bs\(\) takes what it needs from the data.*write s\(age\)"),
        ("days ~ poly(age, 2)", r"poly\(\) takes.*write s\(age\)"),
        ("days ~ center(age)", r"center\(\) takes.*declare the range of age"),
        ("days ~ standardize(age)", "declare the range of age"),
        ("days ~ np.log(age)", r"np.log\(\) is not part of a schema: compute the column"),
        ("days ~ I(age ** 2)", "compute the column"),
        ("days ~ {age + 1}", "compute the column"),
        ("days ~ age + offset(log(pay))", "an exposure is positive"),
        ("days ~ age - 1", "fit_intercept=False"),
        ("days ~ 0 + age", "fit_intercept=False"),
        ("days ~ age:sex", r"write a \* b"),
        ("days ~ age / sex", r"'sex' is in a product only"),
        ("days ~ height", "'height' is not declared"),
        ("height ~ age", "'height' is to be predicted"),
        ("log(days) ~ age", "compute the column"),
        ("s(days) ~ age", "the target is a column as it is"),
        ("days ~ C(age)", "categories"),
        ("days ~ s(age (years))", r"s\(Q\('my name'\)\)"),
        ("days ~ C(ward + sex)", r"C\(Q\('my name'\)\)"),
        ("days ~ C(smoker, Treatment('true'))", "categories"),
        ("days ~ s(sex)", "a range"),
        ("days ~ age + s(age)", "two forms"),
        ("days ~ days", "not two"),
        ("days + age ~ sex", "one target"),
        ("days ~ C(ward, Sum)", "Treatment"),
        ("days ~ s(age, knots=places)", "knots"),
        ("days ~ s(age, knots=1)", "column 'age': knots must be"),
        ("days ~ s(age, degree=2)", r"s\(age, knots=6\)"),
        ("days ~ (age + sex)**99999999999999", "power of at most 4"),
        *((text, "not a formula that can be read") for text in ("", "age", "days ~ .", "days ~ age | sex", "days ~ +")),
        ("days ~ __import__('os').system('true')", "not a formula"),
        ("days ~ " + "(" * 9_000, "not a formula"),
        ("days ~ age" + " " * 10_000, "at most 10,000"),
        (7, "at most 10,000"),
    ],
)
def test_refusals_name_a_remedy(formula, said):
    with pytest.raises(SchemaError, match=said):
        made(formula)


def test_nothing_is_evaluated(monkeypatch):
    def never(*_):
        raise AssertionError("a formula was evaluated")

    monkeypatch.setattr(builtins, "eval", never)
    monkeypatch.setattr(builtins, "exec", never)
    with pytest.raises(SchemaError, match="not part of a schema"):
        made("days ~ exit(age)")


def test_a_schema_keeps_what_else_it_declares(tmp_path):
    whole = Schema(
        COLUMNS, Target("back", classes=(0, 1)), person="who", rows=100, missing_texts=("-9",), ignore=("id",)
    )
    schema = Schema.from_formula("back ~ age", whole)
    assert (schema.person, schema.rows, schema.missing_texts, schema.target) == ("who", 100, ("-9",), whole.target)
    assert "id" in schema.ignore
    other = Schema.from_formula("days ~ age", whole)
    assert other.target == Target("days", range=(0, 60))
    assert "back" in other.ignore
    (tmp_path / "schema.toml").write_text(whole.to_toml())
    assert Schema.from_formula("back ~ age", tmp_path / "schema.toml") == schema


def test_codebooks_and_plain_declarations(tmp_path):
    plain = {"age": {"range": [0, 120]}, "ill": {"categories": ["no", "yes"]}}
    schema = Schema.from_formula("ill ~ s(age)", plain)
    assert schema.target == Target("ill", classes=("no", "yes"))
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "ill", "type": "string", "constraints": {"enum": ["no", "yes"]}},
    ]
    (tmp_path / "book.json").write_text(json.dumps({"fields": fields}))
    assert Schema.from_formula("ill ~ s(age)", str(tmp_path / "book.json")).columns == schema.columns
    with pytest.raises(SchemaError, match="a codebook is"):
        Schema.from_formula("ill ~ age", 7)
