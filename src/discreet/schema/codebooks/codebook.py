"""``Codebook``: what a data owner's own document says of columns, as declarations of a schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import MissingExtra
from discreet.schema.limits import MAX_COLUMNS, SchemaError, check_count, check_length
from discreet.schema.parsing import column_of

CODEBOOK_BYTES = 1 << 24
"""The largest file that is read as a codebook."""
DEPTH = 60
"""The deepest nesting of a codebook."""


@dataclass(frozen=True)
class Entry:
    """What a codebook says of one column: a declaration as in the schema file, empty where it does not suffice."""

    declared: Mapping[str, Any] = field(default_factory=dict)
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
        from discreet.schema.codebooks.csv_codebook import from_csv

        return from_csv(text)
    return _from_document(_yaml(text) if path.suffix.lower() in (".yaml", ".yml") else _json(text))


def _from_document(stored: Any) -> Codebook:
    from discreet.schema.codebooks.frictionless import from_frictionless
    from discreet.schema.codebooks.json_schema import from_json_schema
    from discreet.schema.codebooks.pandera import from_pandera

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
