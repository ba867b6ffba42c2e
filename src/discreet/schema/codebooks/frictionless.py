"""Frictionless Table Schema: ``fields`` with types and constraints; or the first resource of a data package."""

from collections.abc import Mapping
from typing import Any

from discreet.schema.codebooks.codebook import Codebook, Entry
from discreet.schema.codebooks.constraints import declared_by, first_line
from discreet.schema.limits import SchemaError

_TYPES = {"boolean": "boolean", "integer": "number", "number": "number", "year": "number", "string": "text"}


def from_frictionless(stored: Mapping[str, Any]) -> Codebook:
    """Return what a Table Schema says."""
    if "resources" in stored:
        resources = stored["resources"]
        if len(resources) != 1:
            raise SchemaError("the data package has several resources: save the schema of one of them")
        stored = resources[0]["schema"]
    entries: dict[str, Entry] = {}
    for one in stored["fields"]:
        if one["name"] in entries:
            raise SchemaError("the codebook names a column twice")
        entries[one["name"]] = Entry(_declared(one), first_line(one.get("title"), one.get("description")))
    missing = stored.get("missingValues")
    return Codebook(entries, None if missing is None else tuple(map(str, missing)))


def _declared(one: Mapping[str, Any]) -> dict[str, Any]:
    facts = dict(one.get("constraints") or {})
    labels = facts.get("enum")
    if "categories" in one:
        labels = [label["value"] if isinstance(label, Mapping) else label for label in one["categories"]]
    words = {"true": one.get("trueValues"), "false": one.get("falseValues")}
    return declared_by(
        _TYPES.get(str(one.get("type")), "other"),
        low=facts.get("minimum", facts.get("exclusiveMinimum")),
        high=facts.get("maximum", facts.get("exclusiveMaximum")),
        labels=labels,
        ordered=one.get("categoriesOrdered") is True,
        words={key: list(map(str, value)) for key, value in words.items() if value},
    )
