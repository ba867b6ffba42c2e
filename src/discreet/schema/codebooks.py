"""Drafts of schemas from a data owner's own documents, and guesses from names. No table is read.

Codebooks may be CSV (one line per column, with its least and largest number or its labels), Frictionless Table Schema,
JSON Schema of a row, or pandera. Guesses use a column's name and storage type, which are public.
"""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingExtra
from discreet.json_schemas import Json
from discreet.schema.cell_meaning import MAX_COLUMNS, SchemaError, check_count, check_length, is_number_text
from discreet.schema.schema import column_of

if TYPE_CHECKING:
    import pyarrow as pa


CODEBOOK_BYTES = 1 << 24
"""The largest file that is read as a codebook."""
DEPTH = 60
"""The deepest nesting of a codebook."""


@dataclass(frozen=True)
class Entry:
    """What a codebook says of one column: a declaration as in the schema file, empty where it does not suffice."""

    declared: Json = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Codebook:
    """Entries by column, and texts that mean that nothing is there, where the document lists them."""

    entries: Mapping[str, Entry]
    missing_texts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_count(len(self.entries), MAX_COLUMNS, "columns")
        for name, entry in self.entries.items():
            if not (isinstance(name, str) and name):
                raise SchemaError("the codebook has a column without a name")
            check_length(name, "the name of a column")
            if entry.declared:
                column_of(name, entry.declared)  # an error that names the column, where it cannot be


def read_codebook(path: Path) -> Codebook:
    """Read a codebook: CSV by its ending, else JSON or YAML by what stands in it."""
    text = _text(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return from_csv(text)
    return _from_document(_yaml(text) if path.suffix.lower() in (".yaml", ".yml") else _json(text))


def _from_document(stored: object) -> Codebook:

    try:
        if isinstance(stored, Mapping):
            if "fields" in stored or "resources" in stored:
                return from_frictionless(stored)
            if "properties" in stored or "items" in stored:
                return from_json_schema(stored)
            if stored.get("schema_type") == "dataframe":
                return from_pandera(stored)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("the codebook cannot be read: a part of it has the wrong form") from None
    raise SchemaError(
        "this is not a codebook that discreet knows: a CSV file with a column of names, a Frictionless Table Schema "
        "(fields), a JSON Schema (properties), or a schema of pandera (schema_type: dataframe)"
    )


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(CODEBOOK_BYTES + 1)
    if len(content) > CODEBOOK_BYTES:
        raise SchemaError(f"the file is too large for a codebook: {CODEBOOK_BYTES:,} bytes at most")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError("the codebook is not a text in UTF-8: save it as UTF-8") from None


def _json(text: str) -> Any:
    _check_depth(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError("the codebook is not valid JSON; codebooks of CSV end in .csv, of YAML in .yaml") from None


def _yaml(text: str) -> Any:
    """Return a YAML document; aliases, which can grow without bound, are refused."""
    try:
        import yaml
    except ImportError:
        raise MissingExtra("codebooks of YAML need pyyaml: pip install pyyaml; or save the codebook as JSON") from None
    _check_depth(text)
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise SchemaError("the codebook has aliases (*name): write them out")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("the codebook is not valid YAML") from None


def _check_depth(text: str) -> None:
    """Refuse brackets that are nested deeply, by their number alone, those within texts included."""
    depth = deepest = 0
    for sign in text:
        depth += (sign in "[{") - (sign in "]}" and depth > 0)
        deepest = max(deepest, depth)
    if deepest > DEPTH:
        raise SchemaError("the codebook is nested too deeply")


def declared_by(
    kind: str,
    *,
    low: Any = None,
    high: Any = None,
    labels: Sequence[Any] | None = None,
    ordered: bool = False,
    words: Mapping[str, object] | None = None,
) -> Json:
    """Return the declaration of a column of this kind (number, text, boolean, other), empty where facts are missing."""
    labels = [label for label in labels or () if label is not None]
    if not all(isinstance(label, (str, bool, int, float)) for label in labels):
        raise SchemaError("the codebook lists labels that are neither texts nor numbers")
    if kind == "boolean" or (labels and all(isinstance(label, bool) for label in labels)):
        return {"boolean": True, **(words or {})}
    if labels:
        same = all(isinstance(label, str) for label in labels) or all(type(label) in (int, float) for label in labels)
        return {"levels" if ordered and len(labels) > 1 else "categories": labels if same else list(map(str, labels))}
    if kind == "number" and _is_number(low) and _is_number(high) and low < high:
        return {"range": [float(low), float(high)]}
    return {}


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def first_line(*texts: object) -> str:
    """Return the first line of the first text there is."""
    text_given = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return text_given.strip().splitlines()[0] if text_given else ""


_HEADINGS = {
    "column": ("column", "name", "variable", "field", "feature", "column_name", "variable_name"),
    "kind": ("kind", "type", "dtype", "data_type", "format"),
    "low": ("min", "minimum", "low", "lower", "least", "from"),
    "high": ("max", "maximum", "high", "upper", "largest", "to"),
    "range": ("range",),
    "values": ("values", "categories", "levels", "labels", "codes", "enum", "allowed", "choices"),
    "missing": ("missing",),
    "note": ("note", "notes", "description", "label", "comment"),
}
_KINDS = {
    "range": ("number", "numeric", "integer", "int", "float", "double", "real", "decimal", "continuous", "count"),
    "categories": ("category", "categorical", "nominal", "text", "string", "str", "factor", "enum", "code"),
    "levels": ("levels", "level", "ordinal", "ordered"),
    "boolean": ("boolean", "bool", "logical", "truth", "binary"),
}
_RANGE = re.compile(r"[\[(]?\s*([+-]?[0-9.eE]+)\s*(?:-|–|to|\.\.|,|;)\s*([+-]?[0-9.eE]+)\s*[\])]?")


def from_csv(text: str) -> Codebook:
    """Return what a codebook in CSV says."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), _dialect(text)))
    except csv.Error:
        raise SchemaError("the codebook is not CSV that can be read") from None
    if len(lines) > MAX_COLUMNS + 1:
        raise SchemaError(f"too many columns in the codebook: {MAX_COLUMNS:,} is the most")
    places = _places(lines[0] if lines else [])
    entries: dict[str, Entry] = {}
    for line in lines[1:]:
        row = {key: line[at].strip() for key, at in places.items() if at < len(line)}
        name = row.get("column", "")
        if not name:
            continue
        if name in entries:
            raise SchemaError("the codebook names a column twice")
        entries[name] = Entry(_csv_declaration(row), row.get("note", ""))
    return Codebook(entries)


def _dialect(text: str) -> type[csv.Dialect]:
    first = text.split("\n", 1)[0]

    class Read(csv.excel):
        delimiter = max(",;\t", key=first.count)

    return Read


def _places(header: list[str]) -> dict[str, int]:
    words = [re.sub(r"[\s-]+", "_", heading.strip().lower()) for heading in header]
    places: dict[str, int] = {}
    for key, spellings in _HEADINGS.items():
        at = next((words.index(word) for word in spellings if word in words), None)
        if at is not None and at not in places.values():
            places[key] = at
    if "column" not in places:
        raise SchemaError("the codebook's first line names no column 'column': call it column, name or variable")
    return places


def _csv_declaration(row: dict[str, str]) -> Json:
    """Return the declaration that a line makes, empty where it does not suffice."""
    word = row.get("kind", "").lower()
    kind = next((key for key, words in _KINDS.items() if word in words), None)
    ends = [row.get("low", ""), row.get("high", "")]
    if not all(map(is_number_text, ends)) and (both := _RANGE.fullmatch(row.get("range", ""))):
        ends = [both[1], both[2]]
    labels = _labels(row.get("values", ""))
    declaration: Json = {}
    if kind == "boolean":
        declaration = {"boolean": True}
        if len(labels) == 2:
            declaration |= {"false": [str(labels[0])], "true": [str(labels[1])]}
    elif kind in ("categories", "levels") or (kind is None and labels):
        declaration = {kind or "categories": labels} if labels else {}
    elif all(map(is_number_text, ends)):
        declaration = {"range": [float(end) for end in ends]}
    missing = row.get("missing", "")
    return (
        {**declaration, "missing": float(missing) if is_number_text(missing) else missing}
        if declaration and missing
        else declaration
    )


def _labels(text: str) -> list[Any]:
    """Return labels between bars, semicolons or commas; of ``1 = yes`` the code, and codes as numbers if all are."""
    sign = next((sign for sign in "|;," if sign in text), "|")
    words = [part.split("=", 1)[0].strip() for part in text.split(sign)]
    words = list(dict.fromkeys(word for word in words if word))
    whole = all(re.fullmatch(r"[+-]?[0-9]{1,15}", word) for word in words)
    return [int(word) for word in words] if whole else list(words)


_FRICTIONLESS_TYPES = {
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "year": "number",
    "string": "text",
}


def from_frictionless(stored: Mapping[str, Any]) -> Codebook:
    """Return what a Table Schema says."""
    if "resources" in stored:
        resources = stored["resources"]
        if len(resources) != 1:
            raise SchemaError("the data package has several resources: save the schema of one of them")
        stored = resources[0]["schema"]
    entries: dict[str, Entry] = {}
    for column in stored["fields"]:
        if column["name"] in entries:
            raise SchemaError("the codebook names a column twice")
        entries[column["name"]] = Entry(
            _field_declaration(column), first_line(column.get("title"), column.get("description"))
        )
    missing = stored.get("missingValues")
    return Codebook(entries, None if missing is None else tuple(map(str, missing)))


def _field_declaration(column: Json) -> Json:
    facts = dict(column.get("constraints") or {})
    labels = facts.get("enum")
    if "categories" in column:
        labels = [label["value"] if isinstance(label, Mapping) else label for label in column["categories"]]
    words = {"true": column.get("trueValues"), "false": column.get("falseValues")}
    return declared_by(
        _FRICTIONLESS_TYPES.get(str(column.get("type")), "other"),
        low=facts.get("minimum", facts.get("exclusiveMinimum")),
        high=facts.get("maximum", facts.get("exclusiveMaximum")),
        labels=labels,
        ordered=column.get("categoriesOrdered") is True,
        words={key: list(map(str, value)) for key, value in words.items() if value},
    )


_JSON_TYPES = {"boolean": "boolean", "integer": "number", "number": "number", "string": "text"}


def from_json_schema(stored: Mapping[str, Any]) -> Codebook:
    """Return what the properties say; references and combinations (``$ref``, ``allOf``) are left open."""
    rows = stored if "properties" in stored else stored["items"]
    entries = {
        name: Entry(_property_declaration(column), first_line(column.get("title"), column.get("description")))
        for name, column in rows["properties"].items()
    }
    return Codebook(entries)


def _property_declaration(column: Json) -> Json:
    named = column.get("type")
    types = [named] if isinstance(named, str) else [word for word in named or () if word != "null"]
    return declared_by(
        _JSON_TYPES.get(types[0], "other") if len(types) == 1 else "other",
        low=column.get("minimum", column.get("exclusiveMinimum")),
        high=column.get("maximum", column.get("exclusiveMaximum")),
        labels=column.get("enum"),
    )


_LOW = ("greater_than_or_equal_to", "greater_than", "ge", "gt")
_HIGH = ("less_than_or_equal_to", "less_than", "le", "lt")


def from_pandera(stored: Mapping[str, Any]) -> Codebook:
    """Return what the columns say."""
    entries = {
        name: Entry(_pandera_declaration(column), first_line(column.get("title"), column.get("description")))
        for name, column in stored["columns"].items()
    }
    return Codebook(entries)


def _pandera_declaration(column: Mapping[str, object]) -> Json:
    named, checks = str(column.get("dtype") or "").lower(), _checks(column.get("checks"))
    kind = (
        "boolean" if "bool" in named else "number" if named.startswith(("int", "uint", "float", "decimal")) else "text"
    )
    between = checks.get("in_range", {})
    low = between.get("min_value") if isinstance(between, Mapping) else None
    high = between.get("max_value") if isinstance(between, Mapping) else None
    return declared_by(
        kind,
        low=next((_plain(checks[name]) for name in _LOW if name in checks), low),
        high=next((_plain(checks[name]) for name in _HIGH if name in checks), high),
        labels=_plain(checks.get("isin")),
    )


def _checks(stored: Any) -> Json:
    """Return checks by name: a mapping in older files, a list with options in newer ones."""
    if isinstance(stored, Mapping):
        return dict(stored)
    return {
        check["options"]["check_name"]: check
        for check in stored or ()
        if isinstance(check, Mapping) and "options" in check
    }


def _plain(value: object) -> Any:
    """Return the argument of a check with one argument."""
    if isinstance(value, Mapping):
        rest = [item for key, item in value.items() if key != "options"]
        return rest[0] if len(rest) == 1 else None
    return value


KINDS = ("range", "categories", "levels", "boolean")

_NAMES = {
    "boolean": r"is|has|had|was|flag|indicator|smoker|yes|consent|active|married|deceased|died",
    "levels": r"level|grade|stage|severity|rank|education|degree|rating|class|tier|order|likert|agree",
    "range": r"age|year|years|count|num|number|total|sum|pct|percent|rate|ratio|score|amount|price|cost|income"
    r"|salary|wage|height|weight|bmi|length|width|size|distance|duration|days|hours|minutes|months|dose|temp|temperature|pressure"
    r"|glucose|cholesterol|hr|bp|lat|lon|balance|debt|visits|n",
    "categories": r"sex|gender|type|category|region|state|country|city|ward|department|status|code|race|ethnicity|group"
    r"|kind|brand|color|language|religion|occupation|job|diagnosis|drug|reason|mode|channel|zip|icd",
}
_IDENTIFIER = (
    r"id|ids|uid|uuid|guid|key|name|surname|firstname|lastname|email|mail|phone|ssn|mrn|address|url|row|rownum"
)
_MOMENT = r"date|datetime|time|timestamp|day|month|dob|birthdate|created|updated"
_DURATION = r"duration|in|to|since|until"  # time_in_hospital, time_to_event


@dataclass(frozen=True)
class Guess:
    """Kinds that a column may be of, likeliest first, why, and whether its storage type alone decides."""

    kinds: tuple[str, ...] = KINDS
    note: str = ""
    certain: bool = False


def guess(name: str, stored: "Sequence[pa.DataType]" = ()) -> Guess:
    """Return what a column may be, from its name and from how it is stored."""
    import pyarrow as pa

    if stored and all(pa.types.is_boolean(kind) for kind in stored):
        return Guess(("boolean",), "stored as true and false", certain=True)
    words = re.findall(r"[a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())
    if _matches(_IDENTIFIER, words):
        return Guess(note="its name looks like an identifier: list it in ignore, or as person")
    if _matches(_MOMENT, words) and not _matches(_DURATION, words):
        return Guess(note="its name looks like a date: ignore full dates; months and weekdays are categories")
    named = next((kind for kind, pattern in _NAMES.items() if _matches(pattern, words)), None)
    numeric = bool(stored) and all(map(_is_numeric, stored))
    if numeric and named in (None, "range"):
        return Guess(("range", "categories"), "stored as numbers")
    if named is None:
        return Guess()
    rest = tuple(kind for kind in KINDS if kind != named)
    return Guess((named, *rest), f"its name suggests {_SAID[named]}")


_SAID = {"range": "a number", "categories": "categories", "levels": "levels", "boolean": "yes and no"}


def _matches(pattern: str, words: list[str]) -> bool:
    return any(re.fullmatch(pattern, word) for word in words)


def _is_numeric(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
