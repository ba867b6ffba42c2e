"""``discreet effects``: effects of saved models for a population, side by side, with tests and contrasts."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import PICTURES, free, new_file
from discreet.cli.terminal import Refused
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.inference.summary import Summary


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

    contents = read_contents(path)
    model: Any = contents.table or contents.model
    if model is None:
        raise Refused(f"{path}: effects are of a model: name its folder, or a file of model.save")
    if not hasattr(model, "summary"):
        raise Refused(f"{path}: this model has no effects with standard errors")
    summary: Summary = model.summary(level)
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
