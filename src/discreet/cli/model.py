"""Commands of a saved model: ``predict``, ``score``, ``inspect``, ``effects``, ``report`` and ``export``."""

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.options import (
    PICTURES,
    AllowLargeDelta,
    AsJson,
    Dataset,
    Delta,
    LedgerAddress,
    Relation,
    account,
    check_budget,
    echo_json,
    free,
    new_file,
    refuse_both,
    write_new,
)
from discreet.cli.terminal import Refused, number_of, rich_console, stdout_for_data
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.cli.options import Contents
    from discreet.inference.summary import Summary
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
        str | None, typer.Option(help="A category or yes/no column: scores its groups, too, at no extra price.")
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


class Units(StrEnum):
    """Units of coefficients."""

    ORIGINAL = "original"
    ENCODED = "encoded"


def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            help="A folder of discreet fit, a file of model.save, a certificate (JSON), or a report (HTML)."
        ),
    ],
    units: Annotated[
        Units, typer.Option(help="Of coefficients, for a folder: the columns' own, or as the model sees them.")
    ] = Units.ORIGINAL,
    as_json: AsJson = False,
) -> None:
    """Show a saved model: its certificate and its coefficients.

    Everything in it was declared or released, so all of it may be shown. Coefficients are noisy: next to each stands
    ± the half-width of a 95% interval for the privacy noise alone, where that is known. They are in the columns' own
    units, rounded to the noise; `--json` has all digits. Fits with `--inference` show effects for a population instead.
    This does not check the price: see `discreet verify`.
    """
    from discreet.cli.options import read_contents
    from discreet.inference.intervals import LEVEL, covers
    from discreet.inference.summary import shown_effects

    contents = read_contents(file)
    coefficients = _coefficients(contents, str(units)) if contents.model is not None else None
    effects = shown_effects(contents.table or contents.model)
    summary, missing = (None, effects) if isinstance(effects, str) else (effects, None)
    if as_json:
        certificate = contents.certificate
        shown = {
            "headline": certificate.headline,
            "not_covered": certificate.not_covered,
            "certificate": json.loads(certificate.to_json()),
            "level": LEVEL,
            "coefficients": coefficients,
            "intervals": covers(),
        }
        if summary is not None:
            shown["coefficients"] = None  # one number per effect, and none for hidden ones
            shown["effects"] = summary.to_dict()
        if missing is not None:
            shown["no_effects"] = missing
        echo_json(shown)
        return
    typer.echo(contents.certificate.text())
    if summary is not None:
        typer.echo(f"\n{summary}")
    elif coefficients is not None:
        _print_table(coefficients)
        if missing is not None:
            typer.echo(f"\n{missing.rstrip('.')}.\nThe error of each coefficient due to noise is not known either.")


def _coefficients(contents: "Contents", units: str) -> dict[str, Json]:
    """Output -> feature (and the intercept) -> coefficient, and how far the noise may have moved it."""
    from discreet.inference.intervals import LEVEL, deviations
    from discreet.models.term_effects import plain_coefficients

    assert contents.model is not None
    width = deviations(LEVEL, pure=contents.certificate.delta == 0)
    table = contents.table
    named = plain_coefficients(contents.model) if table is None else table.coefficients(units=units)
    by_output: dict[str, Json] = {}
    for c in named:
        reach = None if c.noise is None else width * c.noise
        output = f"class {c.output}" if hasattr(contents.model, "classes_") else "prediction"
        by_output.setdefault(output, {})[c.name] = {"value": c.value, "half_width": reach, "unit": c.unit}
    return by_output


def _print_table(coefficients: dict[str, Json]) -> None:
    from rich.table import Table

    from discreet.inference.intervals import ALL_NOISE, INTERCEPT, all_noise, covers

    table = Table("", *coefficients, "", title="Coefficients", title_justify="left", box=None)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:-1]:
        column.justify = "right"
    for name, first in next(iter(coefficients.values())).items():
        cells = [_cell(values[name]) for values in coefficients.values()]
        table.add_row(name, *cells, first["unit"])
    console = rich_console()
    console.print()
    console.print(table)
    slopes = [slope for values in coefficients.values() for name, slope in values.items() if name != INTERCEPT]
    with_noise = [slope for slope in slopes if slope["half_width"] is not None]
    for said in [covers()] * bool(with_noise) + [ALL_NOISE] * all_noise(
        (slope["value"], slope["half_width"]) for slope in with_noise
    ):
        console.print(f"\n{said}")


def _cell(coefficient: Json) -> str:
    from discreet.inference.intervals import rounded

    value, half_width = rounded(coefficient["value"], coefficient["half_width"])
    return f"{value} ± {half_width}" if half_width else value


SCORE_BYTES = 1 << 22
"""The largest file that is read as a score."""


def report(
    model: Annotated[Path, typer.Argument(help="A folder that discreet fit wrote.")],
    score: Annotated[
        list[Path] | None, typer.Option(help="A file that discreet score --json wrote; repeatable.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="New file to write.")] = Path("report.html"),
) -> None:
    """Write the HTML report of a model: guarantee, scores, effects, plan, and facts taken as public.

    `discreet fit` writes one already. Scores that were released later are added here; each is priced again by its own
    certificate. Nothing is read but the model and the scores, so nothing is spent.

    - `discreet score model held-out.csv --private --metric calibration --json > calibration.json`

    - `discreet report model --score calibration.json --out for-the-board.html`
    """
    from discreet.cli.options import model_of

    free(out)
    table_model = model_of(model)
    shown = [_score_in(path) for path in score or ()]
    from discreet.report.model_report import report_of

    assert table_model.schema_.target is not None
    page = report_of(
        table_model, title or f"A private model of {table_model.schema_.target.column}", scores=shown
    ).html()
    write_new(out, page)
    typer.echo(f"Written to {out}")


def _score_in(path: Path) -> "PrivateScore":
    from discreet.errors import Unsupported
    from discreet.models.scores import PrivateScore

    with path.open("rb") as file:
        text = file.read(SCORE_BYTES + 1)
    try:
        if len(text) > SCORE_BYTES:
            raise Unsupported("it is too large for a score")
        return PrivateScore.from_dict(json.loads(text))
    except (Unsupported, ValueError, RecursionError):
        raise Refused(f"{path}: this is not a score as `discreet score --json` writes it") from None


def export(
    model: Annotated[Path, typer.Argument(help="A folder of discreet fit, or a file of model.save.")],
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an ONNX graph here.")] = None,
    sklearn: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a scikit-learn pipeline here, with joblib.")
    ] = None,
) -> None:
    """Write a model for other tools: an ONNX graph, or a plain scikit-learn pipeline. Neither needs discreet to run.

    Both predict the same numbers, clip to declared ranges, and treat what is missing or unknown as the schema says. An
    ONNX graph takes and returns single precision; its metadata hold epsilon, delta and the digest of the certificate.
    joblib's files run code when they are opened: open only those that you trust, with the same scikit-learn.

    - `discreet export model --onnx model.onnx`

    - `discreet export model --sklearn model.joblib`
    """
    from discreet.cli.options import read_contents

    named = {"--onnx": onnx, "--sklearn": sklearn}
    places = {option: place for option, place in named.items() if place is not None}
    if not places:
        raise Refused("say what to write: --onnx FILE, --sklearn FILE, or both")
    for option, place in places.items():
        free(place, option)
    contents = read_contents(model)
    fitted: Any = contents.table or contents.model
    if fitted is None:
        raise Refused(f"{model}: this is a certificate, not a model: name the model's folder or file")
    if onnx is not None:
        with new_file(onnx, "--onnx") as scratch:
            fitted.to_onnx(scratch)
    if sklearn is not None:
        import joblib

        with new_file(sklearn, "--sklearn") as scratch:
            joblib.dump(fitted.to_sklearn(), scratch)
    typer.echo("\n".join(f"{place}: written" for place in places.values()), err=True)


class Format(StrEnum):
    """How a table is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    HTML = "html"
    JSON = "json"


class Below(StrEnum):
    """What stands below an effect, side by side."""

    SE = "se"
    INTERVAL = "interval"
    P = "p"


def effects(
    models: Annotated[list[Path], typer.Argument(help="Folders of discreet fit --inference, or files of model.save.")],
    test: Annotated[
        list[str] | None,
        typer.Option(help="A column, a product, or a combination to test, such as age or 'a - b = 0'; repeatable."),
    ] = None,
    contrast: Annotated[
        list[str] | None, typer.Option(help="A combination of effects to show, such as 'a - b'; repeatable.")
    ] = None,
    ratios: Annotated[bool, typer.Option("--ratios", help="Side by side: ratios in place of coefficients.")] = False,
    show: Annotated[Below | None, typer.Option(help="Side by side: what stands below each effect.")] = None,
    level: Annotated[float, typer.Option(help="That of the intervals.")] = 0.95,
    plot: Annotated[Path | None, typer.Option(help="Draw a forest plot of one model: .png, .svg or .pdf.")] = None,
    curve: Annotated[str | None, typer.Option(help="With --plot: draw the curve of this column instead.")] = None,
    form: Annotated[Format, typer.Option("--format", help="How tables are written.")] = Format.TEXT,
) -> None:
    """Show the effects of models for a population: a summary, or several models side by side.

    Everything shown was released with the models, so nothing is read but them, and nothing is spent. Effects that noise
    hides have a dash.

    - `discreet effects model --test age --contrast "ward = b - ward = c"`

    - `discreet effects small large --ratios --format latex > table.tex`
    """
    if plot is not None:
        free(plot, "--plot", endings=PICTURES)
    if len(models) > 1 and (test or contrast or plot is not None or form is Format.JSON):
        raise Refused("--test, --contrast, --plot and --format json are for one model: name one")
    if curve is not None and plot is None:
        raise Refused("--curve says what --plot draws: name the picture with --plot")
    summaries = [_summary(path, level) for path in models]
    if form is Format.JSON:
        typer.echo(json.dumps(_listed(summaries[0], test or [], contrast or []), indent=2, allow_nan=False))
    else:
        typer.echo("\n\n".join(_texts(summaries, test or [], contrast or [], form, ratios, show)))
    if plot is not None:
        _draw(summaries[0], curve, plot)


def _summary(path: Path, level: float) -> "Summary":
    from discreet.cli.options import read_contents
    from discreet.errors import Unsupported

    contents = read_contents(path)
    model: Any = contents.table or contents.model
    if model is None:
        raise Refused(f"{path}: effects are of a model: name its folder, or a file of model.save")
    if not hasattr(model, "summary"):
        raise Refused(f"{path}: this model has no effects with standard errors")
    try:
        summary: Summary = model.summary(level)
    except Unsupported as error:
        raise Refused(f"{path}: {error}") from None
    return summary


def _texts(
    summaries: "Sequence[Summary]",
    tests: Sequence[str],
    contrasts: Sequence[str],
    form: Format,
    ratios: bool,
    show: Below | None,
) -> list[str]:
    """Return the tables, one after the other."""
    from discreet.inference.text import etable, html_table, latex_table, markdown_table, plain_lines

    first = summaries[0]
    table: Any = first
    if len(summaries) > 1 or ratios or show is not None:
        table = etable(summaries, ratios=ratios, show=None if show is None else show.value)
    writers: dict[Format, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
        Format.TEXT: (str, lambda rows: "\n".join(plain_lines(rows))),
        Format.MARKDOWN: (lambda shown: shown.to_markdown(), markdown_table),
        Format.LATEX: (lambda shown: shown.to_latex(), latex_table),
        Format.HTML: (lambda shown: shown.to_html(), html_table),
    }
    write, write_rows = writers[form]
    texts = [write(table)]
    if contrasts:
        texts.append(write_rows(_contrast_rows(first, contrasts)))
    if tests:
        texts.append(write_rows(_test_rows(first, tests)))
    return texts


def _contrast_rows(summary: "Summary", contrasts: Sequence[str]) -> list[list[str]]:
    from discreet.inference.text import number_text

    rows = [["contrast", "coef", "se", "p", "low", "high"]]
    for text in contrasts:
        columns = summary.combinations.columns(summary.combination(text), summary.level)
        rows.append([text, *(number_text(name, float(columns[name][0])) for name in rows[0][1:])])
    return rows


def _test_rows(summary: "Summary", tests: Sequence[str]) -> list[list[str]]:
    from discreet.inference.text import number_text

    rows = [["test", "statistic", "df", "p", "not tested (hidden)"]]
    for text in tests:
        test = summary.wald_test(text)
        shown = [number_text("statistic", test.statistic), str(test.df), number_text("p", test.p)]
        rows.append([text, *shown, ", ".join(test.left_out)])
    return rows


def _listed(summary: "Summary", tests: Sequence[str], contrasts: Sequence[str]) -> Json:
    """Return all numbers, for programs: null for effects that noise hides."""

    def finite(values: Iterable[float]) -> list[float | None]:
        return [float(value) if math.isfinite(value) else None for value in values]

    contrasted = {text: summary.combinations.columns(summary.combination(text), summary.level) for text in contrasts}
    return {
        "facts": summary.facts,
        "level": summary.level,
        "effects": summary.to_dict(),
        "contrasts": {
            text: {name: finite(values)[0] for name, values in row.items()} for text, row in contrasted.items()
        },
        "tests": {text: summary.wald_test(text)._asdict() for text in tests},
    }


def _draw(summary: "Summary", curve: str | None, place: Path) -> None:
    figure: Any = summary.plot(curve).figure
    with new_file(place, "--plot") as file:
        figure.savefig(file, dpi=160)
    typer.echo(f"Written to {place}", err=True)
