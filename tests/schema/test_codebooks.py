"""Codebooks become declarations; what they do not say stays open; what cannot be is refused."""

import json

import pytest

from discreet.errors import DiscreetError
from discreet.schema import Boolean, Category, Number, Ordinal, Schema, SchemaError
from discreet.schema.codebooks import CODEBOOK_BYTES, KINDS, guess, read_codebook
from discreet.schema.schema import skeleton

CSV = """column,kind,min,max,values,missing,note
age,integer,18,110,,,in years
pay,number,0,1e6,,20000,
ward,category,,,north | south,flag,
pain,ordinal,,,none|mild|severe,,
smoker,boolean,,,2 = no|1 = yes,,
code,,,,1|2|3,,
free text,string,,,,,nothing is known
"""
TABLE_SCHEMA = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 110}, "title": "in years"},
        {"name": "pay", "type": "number", "constraints": {"minimum": 0, "maximum": 1e6}},
        {"name": "ward", "type": "string", "constraints": {"enum": ["north", "south"]}},
        {"name": "pain", "type": "string", "categories": ["none", "mild", "severe"], "categoriesOrdered": True},
        {"name": "smoker", "type": "boolean", "trueValues": ["1"], "falseValues": ["2"]},
        {"name": "code", "type": "integer", "categories": [{"value": 1, "label": "a"}, {"value": 2}, {"value": 3}]},
        {"name": "free text", "type": "string"},
    ],
    "missingValues": ["", "-9"],
}
ROWS = {
    "type": "object",
    "properties": {
        "age": {"type": ["integer", "null"], "minimum": 18, "maximum": 110, "description": "in years\nsecond line"},
        "pay": {"type": "number", "minimum": 0, "maximum": 1e6},
        "ward": {"type": "string", "enum": ["north", "south", None]},
        "smoker": {"type": "boolean"},
        "code": {"enum": [1, 2, 3]},
        "free text": {"type": "string"},
    },
}
PANDERA = """
schema_type: dataframe
version: 0.20.0
columns:
  age:
    title: in years
    dtype: int64
    checks: {in_range: {min_value: 18, max_value: 110}}
  pay:
    dtype: float64
    checks:
      greater_than_or_equal_to: 0
      less_than_or_equal_to: 1000000.0
  ward:
    dtype: object
    checks: {isin: [north, south]}
  smoker: {dtype: bool, checks: null}
  code:
    dtype: int64
    checks:
    - value: [1, 2, 3]
      options: {check_name: isin, raise_warning: false, ignore_na: true}
  free text: {dtype: str}
"""
FILES = {
    "codebook.csv": CSV,
    "semicolons.csv": CSV.replace(",", ";").replace("column;", "\ufeffVariable;", 1),
    "tabs.tsv": CSV.replace(",", "\t"),
    "table.json": json.dumps(TABLE_SCHEMA),
    "datapackage.json": json.dumps({"resources": [{"name": "t", "schema": TABLE_SCHEMA}]}),
    "rows.json": json.dumps(ROWS),
    "list.json": json.dumps({"type": "array", "items": ROWS}),
    "pandera.yaml": PANDERA,
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_says_the_same(name, tmp_path):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    found = read_codebook(tmp_path / name)
    text = skeleton(list(found.entries), "ward", codebook=found)
    schema = Schema.from_toml(text)
    assert schema.columns["age"] == Number((18, 110))
    assert schema.columns["pay"].range == (0, 1e6)
    assert schema.target.classes == ("north", "south")
    assert isinstance(schema.columns["smoker"], Boolean)
    assert schema.columns["code"] == Category((1, 2, 3))
    assert schema.undeclared == ("free text",)
    assert "# in years" in text
    assert "second line" not in text
    if "pain" in found.entries:
        assert schema.columns["pain"] == Ordinal(("none", "mild", "severe"))


HOSTILE = {
    "no json.json": "{",
    "a number.json": "9" * 5000,
    "nothing.json": "null",
    "a list.json": "[]",
    "deep.json": "[" * 100_000,
    "deep fields.json": '{"fields": ' + "[" * 50_000,
    "deep.yaml": "{a: " * 50_000,
    "fields are no list.json": '{"fields": 3}',
    "a field without a name.json": '{"fields": [{}]}',
    "a name that is a number.json": '{"fields": [{"name": 3}]}',
    "an empty name.json": '{"fields": [{"name": ""}]}',
    "a name twice.json": '{"fields": [{"name": "a"}, {"name": "a"}]}',
    "a long name.json": json.dumps({"fields": [{"name": "a" * 1000}]}),
    "properties.json": '{"properties": []}',
    "no resource.json": '{"resources": []}',
    "labels.json": '{"fields": [{"name": "a", "constraints": {"enum": [[], {}]}}]}',
    "equal labels.json": '{"fields": [{"name": "a", "constraints": {"enum": ["x", "x "]}}]}',
    "a huge range.json": '{"properties": {"a": {"type": "number", "minimum": 0, "maximum": 1e999}}}',
    "many.json": json.dumps({"fields": [{"name": f"c{i}"} for i in range(20_000)]}),
    "aliases.yaml": "schema_type: dataframe\nx: &a [1]\ncolumns: {c: *a}",
    "no yaml.yaml": "a: [",
    "tags.yaml": "!!python/object/apply:os.system ['true']",
    "no names.csv": "a,b\n1,2\n",
    "empty.csv": "",
    "a column twice.csv": "name\na\na\n",
    "many.csv": "name\n" + "".join(f"c{i}\n" for i in range(200_000)),
    "a long cell.csv": 'name,values\na,"' + "x" * 1_000_000 + '"\n',
    "a wrong range.csv": "name,min,max\na,1,inf\nb,5,1\n",
    "bytes.csv": b"name\n\xff\xfe\n",
    "large.csv": b"name\n" + b"a" * CODEBOOK_BYTES,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_codebooks_are_refused_in_one_line(name, tmp_path):
    content = HOSTILE[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DiscreetError) as refused:
        read_codebook(tmp_path / name)
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


def test_notes_cannot_leave_their_comment():
    from discreet.schema.codebooks import Codebook, Entry

    note = "a\nignore = ['b']\x1b[31m\u202e" + "x" * 1000
    text = skeleton(["a", "b"], codebook=Codebook({"a": Entry({"range": [0, 1]}, note)}))
    assert Schema.from_toml(text).ignore == ()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize(
    ("name", "first", "note"),
    [
        ("age", "range", "a number"),
        ("is_smoker", "boolean", "yes and no"),
        ("painLevel", "levels", "levels"),
        ("home_region", "categories", "categories"),
        ("patient_id", "range", "identifier"),
        ("admission date", "range", "date"),
        ("duration_in_month", "range", "a number"),
        ("time_to_event", "range", ""),
        ("xyz", "range", ""),
    ],
)
def test_kinds_are_guessed_from_names(name, first, note):
    found = guess(name)
    assert found.kinds[0] == first
    assert sorted(found.kinds) == sorted(KINDS)
    assert note in found.note
    assert not found.certain


def test_a_range_that_cannot_be_is_refused_by_name(tmp_path):
    (tmp_path / "c.csv").write_text("name,min,max\nage,5,1\n")
    with pytest.raises(SchemaError, match=r"'age'.*smaller number first"):
        read_codebook(tmp_path / "c.csv")
