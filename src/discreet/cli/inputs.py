"""The table that a command is about, and the model in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.errors import Refused

if TYPE_CHECKING:
    from discreet.curator import Source
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema


def table_of(paths: Sequence[Path], schema: "Schema | None" = None) -> "Source":
    """The files as one table."""
    from discreet.curator import open_table

    return open_table(list(paths), None if schema is None else schema.separator)


def model_of(folder: Path) -> "TableModel":
    """The model that `discreet fit` wrote."""
    from discreet.models.model_folder import MANIFEST, is_folder

    if not is_folder(folder):
        raise Refused(f"{folder}: this is not a model's folder, as discreet fit writes it: it has no {MANIFEST}")
    from discreet.models.table_model import TableModel
    from discreet.plugins import load_plugins

    load_plugins()
    return TableModel.load(folder)
