"""What a command is given to read: a table, the folder of its model, a saved model, or a certificate alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from discreet.cli.errors import Refused
from discreet.errors import AccountingError, DiscreetError

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.curator import Source
    from discreet.models.base import DPLinearModel
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema

CERTIFICATE_BYTES = 1 << 26
"""The largest file that is read as a certificate, or as a page that holds one."""
_ZIP = b"PK\x03\x04"


def table_of(paths: Sequence[Path], schema: "Schema | None" = None) -> "Source":
    """The files as one table: as this machine sees them, or as a cluster's workers do, where one was reached."""
    from discreet.curator import source_of

    return source_of(list(paths), None if schema is None else schema.separator)


def reach(command: typer.Context, cluster: str | None) -> None:
    """Connect to a cluster for the rest of the command; nothing for None."""
    if cluster is not None:
        from discreet.scale import cluster as connected

        command.with_resource(connected(cluster))


def model_of(folder: Path) -> "TableModel":
    """The model that `discreet fit` wrote."""
    from discreet.models.model_folder import MANIFEST, is_folder

    if not is_folder(folder):
        raise Refused(f"{folder}: this is not a model's folder, as discreet fit writes it: it has no {MANIFEST}")
    from discreet.models.table_model import TableModel
    from discreet.plugins import load_plugins

    load_plugins()
    return TableModel.load(folder)


def start_of(path: Path, declared: "Schema") -> tuple[Any, Any]:
    """The coefficients and intercept of a released model, to start from: of the same features, and with a guarantee."""
    from discreet.curator import Layout

    found = read(path)
    if found.model is None:
        raise Refused(f"{path}: a start is a model's folder or a saved model, and this holds a certificate alone")
    if not found.certificate.is_private:
        raise Refused(f"{path}: a start is declared public, and this model is {found.certificate.stamp}")
    ours, theirs = (
        schema and [one.name for one in Layout(schema).features]
        for schema in (declared, found.table and found.table.schema_)
    )
    if theirs is not None and ours != theirs:
        raise Refused(f"{path}: this model has other features than the schema makes: start from one with the same")
    return found.model.coef_, found.model.intercept_


@dataclass(frozen=True)
class Contents:
    """A certificate, the model that it belongs to, and that model's table, where there are any."""

    certificate: "Certificate"
    model: "DPLinearModel | None"
    table: "TableModel | None" = None


def read(path: Path) -> Contents:
    """The contents of a model's folder, of a saved model (a zip file), of a certificate (JSON) or of a report.

    What cannot be shown, since a part of it has another form than discreet writes, is refused here.
    """
    try:
        contents = _read(path)
        contents.certificate.text()
    except DiscreetError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
        raise AccountingError("this is neither a certificate nor a saved model: a part has the wrong form") from None
    return contents


def _read(path: Path) -> Contents:
    if path.is_dir():
        table = model_of(path)
        return Contents(table.certificate_, table.estimator_, table)
    with path.open("rb") as file:
        start = file.read(len(_ZIP))
    if start == _ZIP:
        from discreet.models.persistence import load
        from discreet.plugins import load_plugins

        load_plugins()
        model = load(path)
        return Contents(model.certificate_, model)
    from discreet.accounting.certificate import Certificate

    with path.open("rb") as file:
        content = file.read(CERTIFICATE_BYTES + 1)
    if len(content) > CERTIFICATE_BYTES:
        raise AccountingError(f"the file is too large for a certificate: {CERTIFICATE_BYTES:,} bytes at most")
    if path.suffix == ".html":
        from discreet.report.page import certificate_in

        return Contents(certificate_in(content.decode(errors="replace")), None)
    return Contents(Certificate.from_json(content.decode()), None)
