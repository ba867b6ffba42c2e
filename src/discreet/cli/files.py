"""What a command is given to read: the folder of a table's model, a saved model, or a certificate alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import AccountingError

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.models.base import DPLinearModel
    from discreet.tabular.model import TableModel

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Contents:
    """A certificate, the model that it belongs to, and that model's table, where there are any."""

    certificate: "Certificate"
    model: "DPLinearModel | None"
    table: "TableModel | None" = None


def read(path: Path) -> Contents:
    """The contents of a model's folder, of a saved model (a zip file), of a certificate (JSON) or of a report."""
    if path.is_dir():
        from discreet.cli.tables import model_of

        table = model_of(path)
        return Contents(table.certificate_, table.estimator_, table)
    with path.open("rb") as file:
        start = file.read(len(_ZIP))
    if start == _ZIP:
        from discreet.models.persistence import load

        model = load(path)
        return Contents(model.certificate_, model)
    from discreet.accounting.certificate import Certificate

    if path.suffix == ".html":
        from discreet.report.page import certificate_in

        return Contents(certificate_in(path.read_text(encoding="utf-8", errors="replace")), None)
    try:
        return Contents(Certificate.from_json(path.read_text(encoding="utf-8")), None)
    except (UnicodeDecodeError, RecursionError):
        raise AccountingError("this is neither a certificate nor a saved model") from None
