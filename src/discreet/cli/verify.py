"""``discreet verify``: is the price on the certificate the price of what it lists?"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import NO, UNCHECKED, checkable
from discreet.cli.options import AsJson, echo_json
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.ledger.ledger import Ledger

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
        found = _verified(file, ledger)
    if as_json:
        echo_json(found)
    elif found["holds"]:
        accountants = ", ".join(f"{name} {value}" for name, value in found["accountants"].items())
        claimed, price = (f"{found[name]:.6g}" for name in ("claimed", "price"))
        agreement = "as claimed" if claimed == price else f"at most the {claimed} that is claimed"
        typer.echo(f"Verified: the listed releases cost epsilon = {price}, {agreement}")
        typer.echo(
            f"          at delta = {found['delta']!r}, {found['neighbors']}, per {found['unit']} ({accountants})"
        )
        for reason in found["weaknesses"]:
            typer.echo(f"          weak: {reason}")
        if found["charged"]:
            typer.echo(f"          charged in the ledger to {found['charged']!r}, as the certificate says")
        if found["compared"] == PARTLY:
            typer.echo(f"          {ONLY_PARTLY}")
        for what in found["unchecked"]:
            typer.echo(f"          not checked: {what}")
    else:
        typer.echo(f"does not hold: {found['reason']}", err=True)
    if not found["holds"]:
        raise typer.Exit(NO)


def _verified(file: Path, ledger: str | None) -> dict[str, Any]:
    from discreet.cli.inputs import read

    whole, unchecked = None, [PAGE_TEXT] if file.suffix == ".html" else []
    try:
        certificate = read(file).certificate
        found = certificate.verify()
        known, reason = _ledger_of(certificate, ledger)
        if known is not None:
            whole = known.verify(certificate).whole
    except UNCHECKED:
        raise
    except DiscreetError as error:
        return {"holds": False, "reason": str(error)}
    if not found.is_private:
        return {"holds": False, "reason": f"there is no guarantee: {certificate.stamp}"}
    return {
        "holds": True,
        "claimed": found.claimed,
        "price": found.epsilon,
        "delta": found.delta,
        "neighbors": str(certificate.neighbors),
        "unit": certificate.unit,
        "weaknesses": list(certificate.weaknesses),
        "accountants": {name: _plain(value) for name, value in found.accountants.items()},
        "charged": None if known is None or certificate.ledger is None else certificate.ledger["dataset"],
        "compared": None if whole is None else ALL if whole else PARTLY,
        "unchecked": unchecked + ([] if reason is None else [reason]),
    }


def _ledger_of(certificate: "Certificate", named: str | None) -> "tuple[Ledger | None, str | None]":
    """Return the ledger to look a charge up in: the named one, or the configured one; or why in none."""
    from discreet.ledger.default_ledger import default_address
    from discreet.ledger.ledger import Ledger

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
