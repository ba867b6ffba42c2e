"""Schemas: TOML there and back, and a remedy for everything that is declared amiss."""

import contextlib
import datetime
import math

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from discreet.schema.columns import Boolean, Category, Number, Ordinal, SchemaError, Target
from discreet.schema.schema import Schema, describe
from tests.curator.tables.declarations import schemas, targets

WEIRD = [
    *("a.b", 'say "x"', "it's", "two\nlines", "tab\t", "\u00e9\u4e2d\U0001f600", "\x7f", "\x01", " "),
    *("a]b", "#", "=", "\\", "\u2028", "\x85"),
]
names = st.one_of(st.sampled_from(WEIRD), st.text(min_size=1, max_size=5).filter(lambda name: name.isprintable()))


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    schemas(names=names),
    st.none() | targets,
    st.none() | names,
    st.lists(names, max_size=2, unique=True),
    st.none() | st.integers(1, 10**12),
    st.none() | st.lists(st.sampled_from(["", "?", "-9", '"', "\n"]), unique=True),
    st.sampled_from([None, ";", ",", "\t", "|"]),
)
@example(Schema({"a": Number((0, 1))}), None, None, [], None, [], None)
def test_there_and_back(features, target, person, ignore, rows, missing, separator):
    roles = [*features.columns, *ignore, *([person] if person else []), *([target.column] if target else [])]
    assume(len(set(roles)) == len(roles))
    given_texts = {} if missing is None else {"missing_texts": tuple(missing)}
    try:
        schema = Schema(
            features.columns,
            target,
            person=person,
            ignore=tuple(ignore),
            interactions=features.interactions,
            rows=rows,
            separator=separator,
            **given_texts,
        )
    except SchemaError:  # such as a label that means missing
        assume(False)
    text = schema.to_toml()
    again = Schema.from_toml(text)
    assert again == schema
    assert list(again.columns) == list(schema.columns)
    assert again.to_toml() == text
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_toml(text.encode().decode()) == schema


@pytest.mark.parametrize("name", ["", *WEIRD])
def test_any_column_of_a_table_can_be_ignored(name):
    schema = Schema.from_toml(Schema({"x": Number((0, 1))}, Target("y", classes=(0, 1)), ignore=(name,)).to_toml())
    schema.check([name, "x", "y"])


# ---------------------------------------------------------------------------------------------------- declarations

plain = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
        st.sampled_from(
            [datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 1), datetime.time(1), 10**400, "private"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    *("range", "within", "missing", "knots", "categories", "other", "levels", "boolean", "true", "false"),
    *("column", "classes", "kind"),
]
declared = st.dictionaries(st.sampled_from(KEYS), plain, max_size=4)
TOP = ["target", "person", "ignore", "rows", "missing_texts", "separator", "columns", "interactions", "undeclared", "x"]


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(TOP), plain, max_size=4))
def test_any_contents_of_a_file_are_a_schema_or_a_word_about_it(stored):
    with contextlib.suppress(SchemaError):
        Schema.from_dict(stored)


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(min_size=1, max_size=4), declared)
@example("a", {"boolean": True, "true": 1})
@example("a", {"boolean": True, "false": [1]})
@example("a", {"boolean": True, "missing": []})
@example("a", {"range": [0, 1], "missing": {}})
@example("a", {"range": [0, 10**400]})
@example("a", {"range": "private", "within": "private"})
@example("a", {"categories": ["a", "a "]})
@example("a", {"categories": [True, False]})
@example("a", {"categories": [["a"]]})
@example("a", {"categories": ["a"], "missing": [1]})
def test_a_bad_column_is_named(name, table):
    assume(table)
    told = refusal({"columns": {name: table}})
    assert not told or repr(name) in told
    assert "left out" not in told or not {"range", "categories", "levels", "boolean"} & set(table)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(declared)
@example({"classes": [1, 2]})
@example({"column": "", "classes": [1, 2]})
@example({"column": 1, "range": [0, 1]})
@example({"column": "y", "range": "private"})
def test_a_bad_target_is_named(table):
    assume(table)
    told = refusal({"target": table})
    assert not told or "target" in told


def refusal(stored):
    """What is said of the contents of a file; nothing where they are a schema."""
    try:
        Schema.from_dict(stored)
    except SchemaError as error:
        return str(error)
    return ""


@pytest.mark.whole
@pytest.mark.parametrize(
    "make",
    [
        lambda: Boolean(true=()),
        lambda: Boolean(true=("yes",), false=("YES ",)),
        lambda: Number((0, 1), unit=0),
        lambda: Number((0, 1), knots=1),
        lambda: Number((0, 1), knots=101),
        lambda: Number((0, 1), term="linear", knots=6),
        lambda: Number((0, 1), term="curve", knots=(0.5, 0.5001)),
        lambda: Number("private", within=(0, 1), knots=(0.5,)),
        lambda: Number((0, 1), knots=(0.5, 0.5)),
        lambda: Number((0, 1), missing=2),
        lambda: Number((0, math.inf)),
        lambda: Number((1, 0)),
        lambda: Number("private"),
        lambda: Category("abc"),
        lambda: Category(()),
        lambda: Category(("a", "a ")),
        lambda: Category(("",)),
        lambda: Category(("\0",)),
        lambda: Category((1, 1.0)),
        lambda: Category((math.nan,)),
        lambda: Category(("a", 1)),
        lambda: Category(("a",), missing="b"),
        lambda: Ordinal(("a",)),
        lambda: Ordinal(("a", "b"), missing="other"),
        lambda: Target("y"),
        lambda: Target("y", classes=("a",)),
        lambda: Target("y", classes=("a", "b"), range=(0, 1)),
        lambda: Target("y", range="private"),
        lambda: Schema({"": Number((0, 1))}),
        lambda: Schema({"a": Number((0, 1))}, Target("a", classes=(0, 1))),
        lambda: Schema({"a": Number((0, 1))}, person="a"),
        lambda: Schema({"a": Number((0, 1))}, person=""),
        lambda: Schema({"a": Number((0, 1))}, ignore=("b", "b")),
        lambda: Schema({"a": Number((0, 1))}, interactions=(("a", "a"),)),
        lambda: Schema({"a": Number((0, 1))}, interactions=(("a", "b"),)),
        lambda: Schema({"a": Number((0, 1)), "b": Number((0, 1))}, interactions=(("a", "b"), ("b", "a"))),
        lambda: Schema({"a": Number((0, 1))}, rows=0),
        lambda: Schema.from_toml("a = "),
        lambda: Schema.from_toml("[columns]\na = 1"),
        lambda: Schema.from_toml("interactions = 'ab'"),
    ],
)
def test_what_cannot_be_is_a_schema_error(make):
    with pytest.raises(SchemaError):
        make()


@pytest.mark.parametrize("label", ["None", "NA", "?"])
def test_a_label_that_means_missing_is_refused_with_a_remedy(label):
    """Else all its rows would silently count as missing, and as null where it is a class."""
    for target, kind in (
        (Target("y", classes=(label, "Mild")), Number((0, 1))),
        (None, Category((label, "b"))),
        (None, Ordinal((label, "b"))),
    ):
        with pytest.raises(SchemaError, match="missing_texts"):
            Schema({"a": kind}, target)
        Schema({"a": kind}, target, missing_texts=("",))


def test_a_name_that_no_file_can_hold_is_refused_at_once():
    """Not by an error when the paid model is written."""
    for make in (
        lambda: Schema({"\ud800": Number((0, 1))}),
        lambda: Schema({"a": Category(("\ud800", "b"))}),
        lambda: Schema({"a": Number((0, 1))}, ignore=("\udc80",)),
    ):
        with pytest.raises(SchemaError):
            make()


# ------------------------------------------------------------------------------------------------------ an object

SCHEMA = Schema(
    {"a": Number((0, 1), knots=(0.5,)), "b": Category(("x", "y")), "c": Boolean(), "d": Ordinal((1, 2))},
    Target("t", classes=("n", "p")),
    person="who",
    interactions=(("a", "b"),),
)


def test_problems_name_columns_and_never_more():
    found = SCHEMA.problems(["a", "b", "c", "c", "t", "extra"])
    assert [text.split(":")[0] for text in found] == ["d", "who", "c", "extra"]


def test_a_key_of_a_column_without_a_kind_is_named():
    with pytest.raises(SchemaError, match="'values' is no key"):
        Schema.from_dict({"target": {"column": "y", "classes": [0, 1]}, "columns": {"a": {"values": ["b", "c"]}}})


@pytest.mark.parametrize("wrong", [0, None, "0 to 9", {0: 9}], ids=str)
def test_a_range_that_is_no_pair_is_answered_with_one(wrong):
    with pytest.raises(SchemaError, match=r"range needs two numbers, the least and the largest, such as \[0, 120\]$"):
        Number(wrong)


def test_names_that_are_not_listed_are_said_to_count_as_the_base():
    assert describe(Category(("a", "b"), base="a", other=False)).text.endswith("any other value counts as a")
    assert describe(Category(("a", "b"), other=False)).text.endswith("any other value has no feature")
    assert describe(Category(("a", "b"), base="a")).text == "one of a, b, or another; against a"
