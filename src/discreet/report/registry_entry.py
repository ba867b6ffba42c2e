"""An entry for OpenDP's registry of deployments of differential privacy, from a certificate.

What a certificate knows is filled in; what only people know (the product, its use, who published it) is given, or left
as a text that says so. ``discreet.json_schemas.json_schema("deployments-registry")`` is the structure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from discreet.accounting.certificate import GIVEN, Certificate, not_covered
from discreet.json_schemas import Json

OPEN = "TODO: "
"""What begins a text that a person has to write."""

_RELATION = {
    "replace_one": "Two data sets are neighbors if one {unit} is replaced by any other; their number is public.",
    "zero_out": "Two data sets are neighbors if one {unit} is blanked; their number is public.",
    "add_remove": "Two data sets are neighbors if one {unit} is added or removed.",
}


@dataclass(frozen=True)
class Product:
    """What a certificate does not know of the data product."""

    name: str | None = None
    curators: tuple[str, ...] = ()
    description: str | None = None
    intended_use: str | None = None
    region: str | None = None
    sector: str | None = None
    published: str | None = None
    authors: tuple[str, ...] = ()


def registry_entry(certificate: Certificate, product: Product) -> Json:
    """Return the entry as plain values."""
    name = product.name or f"{OPEN}the name of the data product"
    deployment: Json = {
        "basic": _basic(certificate, product, name),
        "dp_variant": {
            "variant_name": "Pure DP" if certificate.delta == 0 else "Approximate DP",
            "data_domain": f"{OPEN}which data sets are protected; columns and ranges are those of the schema",
            "unprotected_quantities": _unprotected(certificate),
        },
        "privacy_loss": {
            "privacy_unit": "User-level" if certificate.unit == "person" else "Record-level",
            "privacy_unit_details": _RELATION[str(certificate.neighbors)].format(unit=certificate.unit),
            "privacy_parameters": {"epsilon": certificate.epsilon, "delta": certificate.delta},
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": _actors(certificate),
            "release_type": "One release",
            "release_type_details": _ledger(certificate),
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "Predictions clip features to declared ranges. Coefficients are rescaled to the "
            "columns' own units.",
            "composition": _composition(certificate),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": f"{OPEN}whether anything was tried on the data before this fit, "
            "and whether that was accounted for. Ranges and categories were declared, or estimated within this budget. "
            + " ".join(f"{note}." for note in certificate.notes),
            "mechanisms": _mechanisms(certificate),
            "justification": f"{OPEN}why this epsilon and this delta, and who decided",
        },
    }
    if product.authors:
        deployment["administrative"] = {"registry_authors": list(product.authors), "notes": _notes(certificate)}
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "entry"
    return {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment}


def _basic(certificate: Certificate, product: Product, name: str) -> Json:
    facts = {
        "name": name,
        "data_curators": list(product.curators) or [f"{OPEN}who publishes it"],
        "description": product.description or f"{OPEN}what it is. A {certificate.model} model.",
        "intended_use": product.intended_use or f"{OPEN}what it is for",
        "data_product_type": "Machine learning model",
        "data_product_region": product.region or f"{OPEN}which region the data describe",
        "publication_date": product.published or _day(certificate.created),
    }
    return facts | ({"data_product_sector": product.sector} if product.sector else {})


def _day(created: str | None) -> str:
    """Return the day on which a certificate was made; today where it does not say."""
    return date.today().isoformat() if created is None else date.fromisoformat(created).isoformat()


def _unprotected(certificate: Certificate) -> str:
    facts = certificate.assumed_public
    named = {
        "n": "the number of rows",
        "schema": "the schema: columns, ranges, categories and missing texts",
        "classes": "the classes",
        "target": "the range of the target",
        GIVEN: "numbers that were handed in, such as a start",
    }
    listed = [words for key, words in named.items() if key in facts]
    return f"Taken as public, and published: {'; '.join(listed)}." if listed else "Declared ranges."


def _actors(certificate: Certificate) -> str:
    keepers = certificate.assumed_public.get("kept")
    where = f" Rows were kept by {keepers}, which are trusted, too." if keepers else ""
    return (
        "The curator holds the rows, adds the noise, and is trusted. Everyone else, adversaries included, may see the "
        f"model and its certificate.{where}"
    )


def _ledger(certificate: Certificate) -> str:
    if certificate.ledger is None:
        return f"Not charged to a ledger: this is the loss of this model alone. {OPEN}other releases of these data"
    at = certificate.ledger
    return (
        f"Charged to a ledger as entry {at['entry']} of the data set {at['dataset']}, which has one cap for all "
        "releases together. The cap is never refreshed; requests beyond it are refused before data are read."
    )


def _composition(certificate: Certificate) -> str:
    priced = ", ".join(f"{name} {value:.4g}" for name, value in sorted(certificate.accountants.items()))
    return f"All releases of the fit are composed. Epsilon by accountant, at this delta: {priced}."


def _mechanisms(certificate: Certificate) -> str:
    counts: dict[str, int] = {}
    for event in certificate.events:
        counts[event.kind] = counts.get(event.kind, 0) + getattr(event, "count", 1)
    released = ", ".join(f"{count} x {kind.replace('_', ' ')}" for kind, count in counts.items())
    floats = {
        "exact lattice": "Noise is drawn exactly, on integers: the proof covers the bits that ran.",
        "idealized": "The proof is of real numbers, not of floating point.",
    }
    return (
        f"Library: discreet {certificate.library_version}. Mechanisms: {released}. {floats[certificate.arithmetic]} "
        f"Randomness: {certificate.entropy}. Timing is not protected."
    )


def _notes(certificate: Certificate) -> str:
    return f"Not covered: {'; '.join(not_covered(has_ledger=certificate.ledger is not None))}"


def to_yaml(value: Mapping[str, object], indent: int = 0) -> str:
    """Return plain values as YAML: mappings and lists of scalars as blocks, texts in quotes."""
    lines = []
    for key, item in value.items():
        space = " " * indent
        if isinstance(item, Mapping):
            lines.append(f"{space}{key}:\n{to_yaml(item, indent + 2)}")
        elif isinstance(item, list):
            lines.append(f"{space}{key}:\n" + "\n".join(f"{space}  - {_scalar(scalar)}" for scalar in item))
        else:
            lines.append(f"{space}{key}: {_scalar(item)}")
    return "\n".join(lines)


def _scalar(value: object) -> str:
    """Return a number or a text; floats always with a point, since YAML reads 1e-06 as a text."""
    if isinstance(value, float):
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    return json.dumps(value, ensure_ascii=True)
