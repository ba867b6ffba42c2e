"""``discreet predict``: a private model's predictions for new rows."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import new_file
from discreet.cli.terminal import Refused, number_of, stdout_for_data

if TYPE_CHECKING:
    from discreet.models.table_model import TableModel


def predict(
    model: Annotated[Path, typer.Argument(help="A folder that discreet fit wrote.")],
    table: Annotated[list[Path], typer.Argument(help="New rows: files, a folder or a 'pattern*' of CSV or Parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new file, .csv or .parquet; - prints CSV.")] = Path("-"),
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Also the probability of each class.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", "-k", help="A column to copy next to each prediction, such as an id.")
    ] = None,
) -> None:
    """Predict new rows with a private model, one line of the result per row, in their order.

    The columns that the model was fitted on must be there; others are not read. What is missing, unknown or beyond its
    range is treated as the schema says. A line of CSV with too many or too few cells is predicted as a row of missing
    cells, at the end of its file. Rows are read and written in blocks.

    The model may be published. Predictions for private rows may not: they reveal the rows.

    Example: `discreet predict model new.csv --keep patient --out predictions.csv`
    """
    from discreet.cli.options import model_of, table_of

    table_model = model_of(model)
    if probabilities and not hasattr(table_model.estimator_, "predict_proba"):
        raise Refused("this model has no probabilities: leave out --probabilities")
    source = table_of(table, table_model.schema)
    source.check(keep or ())
    rows = _blocks(table_model, source, probabilities, keep or [])
    if str(out) == "-":
        import pyarrow.csv

        _write(rows, lambda schema: pyarrow.csv.CSVWriter(stdout_for_data(), schema))
        return
    count = _to_file(rows, out)
    typer.echo(f"{number_of(count, 'prediction')} in {out}", err=True)


def _blocks(model: "TableModel", source: Any, probabilities: bool, keep: list[str]) -> Iterator[Any]:
    """Predictions as tables, block by block, with what is kept of the same rows."""
    import numpy as np
    import pyarrow as pa

    from discreet.curator import Keeping

    keeping = Keeping(source, keep)
    classes = getattr(model.estimator_, "classes_", None)
    for block in model.predictions(keeping, "predict_proba" if probabilities else "predict"):
        if not probabilities or classes is None:
            yield pa.table({**keeping.kept, "prediction": block})
            continue
        chosen = classes[np.argmax(block, axis=1)]
        chances = {f"probability of {label}": block[:, k] for k, label in enumerate(classes)}
        yield pa.table({**keeping.kept, "prediction": chosen, **chances})


def _to_file(rows: Iterator[object], out: Path) -> int:
    """Written next to its place, then put there: never a part of it."""
    import pyarrow.csv
    import pyarrow.parquet

    kinds = {".csv": pyarrow.csv.CSVWriter, ".parquet": pyarrow.parquet.ParquetWriter}
    if out.suffix.lower() not in kinds:
        raise Refused("--out ends in .csv or .parquet, or is -")
    with new_file(out) as scratch:
        return _write(rows, lambda schema: kinds[out.suffix.lower()](str(scratch), schema))


def _write(rows: Iterator[Any], opened: Any) -> int:
    first = next(rows, None)
    if first is None:
        raise Refused("the table has no rows")
    count = 0
    with opened(first.schema) as writer:
        for block in chain((first,), rows):
            writer.write_table(block)
            count += block.num_rows
    return count
