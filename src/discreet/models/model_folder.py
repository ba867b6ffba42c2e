"""A fitted table model as a folder: made next to its place, then put there in one step.

    model.discreet      the model of the encoded features (models/persistence.py)
    schema.toml         the schema that it was fitted by
    certificate.json    what may be claimed of it
    report.html         for people, where a report was made
    manifest.json       the SHA-256 of each other file

Anyone who reads the folder finds all of it or none. The sums find damage and careless edits; they are no signature.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.accounting.cell_counts import ESTIMATED_RANGES
from discreet.atomic_files import passing, sync
from discreet.curator import FEATURES, Layout
from discreet.errors import Unsupported
from discreet.models.persistence import UnreadableModel
from discreet.models.persistence import load as load_estimator
from discreet.models.persistence import save as save_estimator
from discreet.schema.limits import SchemaError
from discreet.schema.schema import Schema

if TYPE_CHECKING:
    from discreet.models.table_model import TableModel

FORMAT = 1
MODEL, SCHEMA, CERTIFICATE = "model.discreet", "schema.toml", "certificate.json"
REPORT, MANIFEST = "report.html", "manifest.json"
FILES: tuple[str, ...] = (MANIFEST, MODEL, SCHEMA, CERTIFICATE)
"""What every folder holds; a report is added where one was made."""
_NEEDED = {MODEL, SCHEMA, CERTIFICATE}


def is_folder(path: Path) -> bool:
    """Whether this is a folder with a table model in it."""
    return (path / MANIFEST).is_file()


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """A folder to write into, which becomes ``place`` when the block ends, and vanishes where it fails.

    That the place is free and can be written to is found out at once: before anything is charged or read.
    """
    if place.exists() or place.is_symlink():
        raise Unsupported(f"{place}: there is something already: choose another folder, or remove this one")
    place.parent.mkdir(parents=True, exist_ok=True)
    with passing(place, folder=True) as made:
        yield made
        for path in (*made.iterdir(), made):
            sync(path)
        try:
            os.rename(made, place)
        except OSError:  # somebody made it meanwhile: what was paid for is not thrown away
            spare = place.with_name(f"{place.name}-{secrets.token_hex(4)}")
            os.rename(made, spare)
            raise Unsupported(f"{place}: it was made meanwhile by somebody else; the model is in {spare}") from None
        sync(place.parent)


def save(model: "TableModel", place: Path) -> Path:
    """The model in a new folder."""
    with new_folder(place) as folder:
        write(model, folder)
    return place


def write(model: "TableModel", folder: Path, extra: Mapping[str, str] | None = None) -> None:
    """All files of a fitted model, and further texts by name, into a folder that is empty."""
    save_estimator(model.estimator_, folder / MODEL)
    texts = {SCHEMA: model.schema_.to_toml(), CERTIFICATE: model.certificate_.to_json() + "\n", **(extra or {})}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    sums = {path.name: _sum(path) for path in sorted(folder.iterdir())}
    manifest = {"format": FORMAT, "sha256": sums}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(folder: Path) -> "TableModel":
    """The model in a folder, its files checked against their sums and against each other."""
    from sklearn.base import clone

    from discreet.models.table_model import TableModel

    check_files(folder)
    estimator = load_estimator(folder / MODEL)
    if (estimator.certificate_.to_json() + "\n").encode() != (folder / CERTIFICATE).read_bytes():
        raise UnreadableModel("the folder's certificate is not the model's")
    try:
        schema = Schema.load(folder / SCHEMA)
        unfitted = clone(estimator).set_params(bounds=None)
        model = TableModel(schema, unfitted, terms="linear")  # what was a curve is declared as one
        model.estimator_, model.schema_ = estimator, schema
        features, names = len(model.coefficients()), [feature.name for feature in Layout(schema).features]
    except SchemaError:
        raise UnreadableModel("the folder's schema cannot be read") from None
    except (IndexError, ValueError):
        features, names = -1, []
    public = estimator.certificate_.assumed_public
    if features < 0 or (_declared(public), public.get(FEATURES)) != (schema.to_dict(), names):
        raise UnreadableModel("the folder's schema is not the one that the model was fitted by")
    return model


def check_files(folder: Path) -> None:
    """Raise where a file is missing, unknown, or not what was written."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("format") != FORMAT:
            raise UnreadableModel(
                f"the folder has another format than {FORMAT}: read it with the version that wrote it"
            )
        sums: dict[str, str] = dict(manifest["sha256"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnreadableModel(f"{folder}: this is not the folder of a model: its {MANIFEST} cannot be read") from None
    found = {path.name for path in folder.iterdir()} - {MANIFEST}
    if not set(sums) >= _NEEDED or found != set(sums) or not all((folder / name).is_file() for name in sums):
        raise UnreadableModel(f"{folder}: files are missing from the model, or were added to it")
    changed = [name for name, expected in sorted(sums.items()) if _sum(folder / name) != expected]
    if changed:
        raise UnreadableModel(f"{folder}: {', '.join(changed)} is not what was written: it was changed or damaged")


def _declared(public: Mapping[str, Any]) -> Any:
    """The schema in a certificate, with its estimated ranges, as plain values."""
    stored = public.get("schema", {})
    estimated = {name: (low, high) for name, (low, high) in public.get(ESTIMATED_RANGES, {}).items()}
    schema = Schema.from_dict(stored)
    return (schema.with_ranges(estimated) if schema.private_columns else schema).to_dict()


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
