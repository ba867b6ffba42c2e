"""What a command is given to read: a saved model, or a certificate alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import AccountingError

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate
    from discreet.models.base import DPLinearModel

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Contents:
    """A certificate, and the model that it belongs to where the file holds one."""

    certificate: "Certificate"
    model: "DPLinearModel | None"


def read(path: Path) -> Contents:
    """The contents of a saved model (a zip file) or of a certificate (JSON)."""
    with path.open("rb") as file:
        start = file.read(len(_ZIP))
    if start == _ZIP:
        from discreet.models.persistence import load

        model = load(path)
        return Contents(model.certificate_, model)
    from discreet.accounting.certificate import Certificate

    try:
        return Contents(Certificate.from_json(path.read_text(encoding="utf-8")), None)
    except (UnicodeDecodeError, RecursionError):
        raise AccountingError("this is neither a certificate nor a saved model") from None
