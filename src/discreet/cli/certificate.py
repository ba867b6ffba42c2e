"""``discreet certificate`` and ``discreet verify``: a certificate for others to read, and whether it holds.

An entry of OpenDP's registry of deployments is made of what a certificate knows; what only people know (the product,
its use, who published it) is given, or left as a text that says so.
``discreet.json_schemas.json_schema("deployments-registry")`` is its structure.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import AsJson, echo_json, write_new
from discreet.cli.terminal import NO, UNCHECKED, Refused, checkable
from discreet.errors import DiscreetError
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.ledger.ledger import Ledger


certificate = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


class Sector(StrEnum):
    """Sectors that the registry knows."""

    TECHNOLOGY = "Technology"
    HEALTHCARE = "Healthcare"
    EDUCATION = "Education"
    GOVERNMENT = "Government"
    ENERGY = "Energy"
    FINANCE = "Finance"


@certificate.callback()
def about() -> None:
    """Write what a certificate says in the form that others ask for. `discreet inspect` shows it."""


@certificate.command()
def registry(
    model: Annotated[Path, typer.Argument(help="A model's folder or file, its certificate (JSON) or report (HTML).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new file (YAML); - prints it.")] = Path("-"),
    name: Annotated[str | None, typer.Option(help="The name of the data product.")] = None,
    curator: Annotated[list[str] | None, typer.Option(help="Who publishes it; repeatable.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is.")] = None,
    intended_use: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    region: Annotated[str | None, typer.Option(help="Which region the data describe.")] = None,
    sector: Annotated[Sector | None, typer.Option(help="The domain.")] = None,
    published: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Default: when it was fitted.")] = None,
    author: Annotated[list[str] | None, typer.Option(help="Who wrote the entry; repeatable.")] = None,
) -> None:
    """Write an entry for OpenDP's registry of deployments of differential privacy, as a draft.

    What the certificate knows is filled in: epsilon, delta, what a neighbor is, which quantities are public, mechanisms
    and accounting. What it does not know, and you did not say, begins with TODO. Nothing is sent anywhere.

    Example: `discreet certificate registry model --name "Risk of return" --curator "City Hospital" --out entry.yaml`
    """
    from discreet.cli.options import read_contents

    if published is not None and not _is_date(published):
        raise Refused("--published must be a date: YYYY-MM-DD")
    issued = read_contents(model).certificate
    if not issued.is_private:
        raise Refused(f"there is no guarantee to register: {issued.stamp}")
    product = Product(name, tuple(curator or ()), description, intended_use, region, sector and str(sector), published,
                      tuple(author or ()))  # fmt: skip
    try:
        text = to_yaml(registry_entry(issued, product)) + "\n"
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):  # a file that somebody made up
        raise Refused("the certificate cannot be read: a part of it has the wrong form") from None
    if str(out) == "-":
        typer.echo(text, nl=False)
        return
    write_new(out, text)
    typer.echo(f"{out}: written; {text.count(OPEN)} texts begin with TODO", err=True)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


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


def registry_entry(certificate: "Certificate", product: Product) -> Json:
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
            "release_type_details": _charge(certificate),
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "post_processing": "Predictions clip features to declared ranges. Coefficients are rescaled to the "
            "columns' own units.",
            "composition": "All releases of the fit are composed. Epsilon by accountant, at this delta: "
            + ", ".join(f"{name} {value:.4g}" for name, value in sorted(certificate.accountants.items()))
            + ".",
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


def _basic(certificate: "Certificate", product: Product, name: str) -> Json:
    created = date.today() if certificate.created is None else date.fromisoformat(certificate.created)
    facts = {
        "name": name,
        "data_curators": list(product.curators) or [f"{OPEN}who publishes it"],
        "description": product.description or f"{OPEN}what it is. A {certificate.model} model.",
        "intended_use": product.intended_use or f"{OPEN}what it is for",
        "data_product_type": "Machine learning model",
        "data_product_region": product.region or f"{OPEN}which region the data describe",
        "publication_date": product.published or created.isoformat(),
    }
    return facts | ({"data_product_sector": product.sector} if product.sector else {})


def _unprotected(certificate: "Certificate") -> str:
    from discreet.accounting.certificate import GIVEN

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


def _actors(certificate: "Certificate") -> str:
    keepers = certificate.assumed_public.get("kept")
    where = f" Rows were kept by {keepers}, which are trusted, too." if keepers else ""
    return (
        "The curator holds the rows, adds the noise, and is trusted. Everyone else, adversaries included, may see the "
        f"model and its certificate.{where}"
    )


def _charge(certificate: "Certificate") -> str:
    if certificate.ledger is None:
        return f"Not charged to a ledger: this is the loss of this model alone. {OPEN}other releases of these data"
    at = certificate.ledger
    return (
        f"Charged to a ledger as entry {at['entry']} of the data set {at['dataset']}, which has one cap for all "
        "releases together. The cap is never refreshed; requests beyond it are refused before data are read."
    )


def _mechanisms(certificate: "Certificate") -> str:
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


def _notes(certificate: "Certificate") -> str:
    from discreet.accounting.certificate import not_covered

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


ALL = "all but what the fit itself released"
PARTLY = "releases, budget, unit and relation"
PAGE_TEXT = "the text of the page around its certificate: verify the model's folder"
ONLY_PARTLY = f"its entry does not know the certificate: only {PARTLY} were compared"


def verify(
    file: Annotated[
        Path,
        typer.Argument(
            help="A folder of discreet fit, a file of model.save, a certificate (JSON), or a report (HTML)."
        ),
    ],
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            "-l",
            metavar="ADDRESS",
            help="Look the charge up there. Default: the configured ledger, if any.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Price a certificate's events again, and compare with what it claims.

    Nothing but the file is needed: the certificate lists everything that was released, two accountants
    price it, and the claim must not be below. Of a folder, the sums of all files are compared, and the
    certificate and the schema with the model's own. Where a ledger is configured, or named with --ledger, the
    charge is looked up there, and all that was known when it was charged is compared: the claim, the model, the
    settings, the declared facts. What was not checked is listed: of a report, its text is not.
    Exit code 0: the claim holds. Exit code 1: it does not, a file was changed, or the certificate says
    NOT PRIVATE. Then do not rely on it. Exit code 2: it could not be checked, since something that the check
    needs is missing or out of reach: a library, the file, the ledger.

    What cannot be checked this way: that the listed events are what really happened, and that the facts
    listed as public were not measured from the data.
    """
    with checkable(as_json):
        verdict = _verified(file, ledger)
    if as_json:
        echo_json(verdict)
    elif verdict["holds"]:
        accountants = ", ".join(f"{name} {value}" for name, value in verdict["accountants"].items())
        claimed, price = (f"{verdict[name]:.6g}" for name in ("claimed", "price"))
        agreement = "as claimed" if claimed == price else f"at most the {claimed} that is claimed"
        typer.echo(f"Verified: the listed releases cost epsilon = {price}, {agreement}")
        typer.echo(
            f"          at delta = {verdict['delta']!r}, {verdict['neighbors']}, per {verdict['unit']} ({accountants})"
        )
        for reason in verdict["weaknesses"]:
            typer.echo(f"          weak: {reason}")
        if verdict["charged"]:
            typer.echo(f"          charged in the ledger to {verdict['charged']!r}, as the certificate says")
        if verdict["compared"] == PARTLY:
            typer.echo(f"          {ONLY_PARTLY}")
        for what in verdict["unchecked"]:
            typer.echo(f"          not checked: {what}")
    else:
        typer.echo(f"does not hold: {verdict['reason']}", err=True)
    if not verdict["holds"]:
        raise typer.Exit(NO)


def _verified(file: Path, ledger: str | None) -> Json:
    from discreet.cli.options import read_contents

    whole, unchecked = None, [PAGE_TEXT] if file.suffix == ".html" else []
    try:
        certificate = read_contents(file).certificate
        verification = certificate.verify()
        named_ledger, reason = _ledger_of(certificate, ledger)
        if named_ledger is not None:
            whole = named_ledger.verify(certificate).whole
    except UNCHECKED:
        raise
    except DiscreetError as error:
        return {"holds": False, "reason": str(error)}
    if not verification.is_private:
        return {"holds": False, "reason": f"there is no guarantee: {certificate.stamp}"}
    return {
        "holds": True,
        "claimed": verification.claimed,
        "price": verification.epsilon,
        "delta": verification.delta,
        "neighbors": str(certificate.neighbors),
        "unit": certificate.unit,
        "weaknesses": list(certificate.weaknesses),
        "accountants": {name: _plain(value) for name, value in verification.accountants.items()},
        "charged": None if named_ledger is None or certificate.ledger is None else certificate.ledger["dataset"],
        "compared": None if whole is None else ALL if whole else PARTLY,
        "unchecked": unchecked + ([] if reason is None else [reason]),
    }


def _ledger_of(certificate: "Certificate", named: str | None) -> "tuple[Ledger | None, str | None]":
    """Return the ledger to look a charge up in: the named one, or the configured one; or why in none."""
    from discreet.ledger.ledger import Ledger, default_address

    if named is not None:
        return Ledger(named), None
    if certificate.ledger is None:
        return None, None
    address = default_address()
    if address is None:
        return None, "the charge, as no ledger is configured: name the ledger with --ledger"
    ledger = Ledger(address)
    if ledger.name != certificate.ledger["ledger"]:
        return None, "the charge, which is in another ledger than the configured one: name it with --ledger"
    return ledger, None


def _plain(value: float) -> float | str:
    """JSON has no infinity."""
    return float(f"{value:.8g}") if math.isfinite(value) else str(value)
