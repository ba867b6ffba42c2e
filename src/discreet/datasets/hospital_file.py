"""The synthetic hospital stays as a file that a hospital might have: words for yes and no, and cells that are empty."""

import csv
from importlib.resources import files
from pathlib import Path

from discreet.datasets.hospital_stays import OUTCOME, Table

WORDS = ("no", "yes")
_TRUTHS = ("smoker", "diabetic", "lives_alone")
_EMPTY_EVERY = 17  # stays without a body mass index


def schema_text() -> str:
    """Return what is publicly known of the file, as its owner would write it.

    Returns
    -------
    str
        A schema in TOML.

    Examples
    --------
    >>> from discreet import Schema
    >>> from discreet.datasets import schema_text
    >>> Schema.from_toml(schema_text()).target.column
    'readmitted'
    """
    return files("discreet.datasets").joinpath("hospital_schema.toml").read_text(encoding="utf-8")


def write_csv(table: Table, path: Path) -> Path:
    """Write the rows as CSV: words for yes and no, and some cells empty.

    Parameters
    ----------
    table : Table
        The stays.
    path : Path
        The file.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from discreet.datasets import hospital, write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     len(write_csv(hospital(10), Path(folder) / "stays.csv").read_text().splitlines())
    11
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        header = ["admission" if name == "emergency" else name for name in table.names]
        writer.writerow(["stay", *header, OUTCOME])
        for i, (row, outcome) in enumerate(zip(table.X.tolist(), table.y.tolist(), strict=True)):
            cells = [_cell(name, value, i) for name, value in zip(table.names, row, strict=True)]
            writer.writerow([i + 1, *cells, WORDS[outcome]])
    return path


def _cell(name: str, value: float, i: int) -> str:
    if name == "emergency":
        return "emergency" if value else "planned"
    if name in _TRUTHS:
        return WORDS[int(value)]
    if name == "bmi" and i % _EMPTY_EVERY == 0:
        return ""
    return f"{value:g}"
