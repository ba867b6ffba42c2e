"""``discreet predict`` and ``score``: predictions for new rows, and how good they are on held-out ones."""

import json
import shlex
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.options import (
    AllowLargeDelta,
    AsJson,
    Dataset,
    Delta,
    LedgerAddress,
    Relation,
    account,
    check_budget,
    new_file,
    refuse_both,
)
from discreet.cli.terminal import Refused, number_of, stdout_for_data

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel
    from discreet.models.scores import PrivateScore
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


def score(
    model: Annotated[Path, typer.Argument(help="A folder that discreet fit wrote.")],
    table: Annotated[list[Path], typer.Argument(help="Held-out rows with the target: CSV or Parquet.")],
    private: Annotated[
        bool, typer.Option("--private", help="The rows are private: the score is noisy and costs --epsilon.")
    ] = False,
    public_data: Annotated[
        bool, typer.Option("--public-data", help="The rows are public: the score is exact and costs nothing.")
    ] = False,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "-m",
            help="auto, accuracy, balanced_accuracy, auc, brier, log_loss, calibration, confusion, r2, rmse or mae.",
        ),
    ] = "auto",
    by: Annotated[
        str | None,
        typer.Option(help="A category or yes/no column: scores its groups, too, at no extra price."),
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="What the score may cost.")] = 0.1,
    delta: Delta = None,
    neighbors: Relation = Neighbors.REPLACE_ONE,
    allow_large_delta: AllowLargeDelta = False,
    level: Annotated[float, typer.Option(min=0.5, max=0.9999, help="The level of the intervals.")] = 0.95,
    ledger: LedgerAddress = None,
    dataset: Dataset = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost; score nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Score a private model on rows that it was not fitted on: accuracy, AUC, log loss, calibration, R² and others.

    A score of people's rows reveals something about them, so it has noise and a price, like the model: say `--private`.
    It comes with two intervals: for the score of exactly these rows without the noise, and for rows like these. Use
    rows that were not in the fit; if they were, the two prices add up for them.

    With `--public-data` you declare the rows public: the score is exact and costs nothing.

    - `discreet score model held-out.csv --private --epsilon 0.1`

    - `discreet score model synthetic.csv --public-data --metric auc`
    """
    if private == public_data:
        from discreet.ledger.ledger import ledger_for

        raise Refused(_whose(model, table, needs_dataset=dataset is None and ledger_for(ledger) is not None))
    refuse_both(public_data, ledger, dataset)
    from discreet.cli.options import model_of, table_of

    table_model = model_of(model)
    if private:
        check_budget(epsilon, delta, neighbors, None)
    unit = "record" if table_model.schema.person is None else "person"
    charge = account(ledger, dataset, str(neighbors), unit, charged=private and not dry_run)
    rows, settings = table_of(table, table_model.schema), {"metric": metric, "level": level, "by": by}
    if private and neighbors.n_is_public and table_model.schema.person is None:
        _warn(table_model.estimator_, rows.count(), epsilon, delta, neighbors, metric, level)
    if dry_run:
        typer.echo(f"would cost epsilon = {epsilon:g}, {neighbors}, per {unit}" if private else "would cost nothing")
        return
    if private:
        charge |= {"epsilon": epsilon, "delta": delta, "neighbors": str(neighbors)}
        charge |= {"allow_large_delta": allow_large_delta}
        result = table_model.private_score(rows, **settings, **charge)
    else:
        result = table_model.public_score(rows, **settings)
    _show(result, as_json)


def _warn(
    model: "DPLinearModel", n: int, epsilon: float, delta: float | None, neighbors: Neighbors, metric: str, level: float
) -> None:
    """Say before the charge what public facts reveal of the score."""
    from discreet.models.scores import outlook

    said = outlook(model, n, metric=metric, epsilon=epsilon, delta=delta, neighbors=str(neighbors), level=level)
    if said is not None:
        typer.echo(f"note: {said}", err=True)


def _whose(model: Path, table: list[Path], *, needs_dataset: bool) -> str:
    """Say both commands that were possibly meant, whole."""
    command = f"discreet score {shlex.join(map(str, (model, *table)))}"
    named = " --dataset NAME" if needs_dataset else ""
    return (
        f"say whether the rows are private. If they are: `{command} --private --epsilon 0.1{named}`. "
        f"If they are public: `{command} --public-data`"
    )


def _show(score: "PrivateScore", as_json: bool) -> None:
    typer.echo(json.dumps(score.to_dict(), indent=2) if as_json else score.text())
