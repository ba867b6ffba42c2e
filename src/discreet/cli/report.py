"""``discreet report``: the page about a model, with scores that were released later."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.errors import Refused
from discreet.cli.outputs import free, write_new

if TYPE_CHECKING:
    from discreet.report.scores_section import Score

SCORE_BYTES = 1 << 22
"""The largest file that is read as a score."""


def report(
    model: Annotated[Path, typer.Argument(help="A folder that discreet fit wrote.")],
    score: Annotated[
        list[Path] | None, typer.Option(help="A file that discreet score --json wrote; repeatable.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write; it must not be there yet.")] = Path(
        "report.html"
    ),
) -> None:
    """Write the page about a model: what is promised, scores, effects, the plan, what was taken as public.

    `discreet fit` writes one already. Scores that were released later are added here; each is priced again by its own
    certificate. Nothing is read but the model and the scores, so nothing is spent.

    - `discreet score model held-out.csv --private --metric calibration --json > calibration.json`

    - `discreet report model --score calibration.json --out for-the-board.html`
    """
    from discreet.cli.inputs import model_of

    free(out)
    known = model_of(model)
    shown = [_score(path) for path in score or ()]
    from discreet.report.table_report import report_of

    assert known.schema_.target is not None
    page = report_of(known, title or f"A private model of {known.schema_.target.column}", scores=shown).html()
    write_new(out, page)
    typer.echo(f"Written to {out}")


def _score(path: Path) -> "Score":
    from discreet.errors import Unsupported
    from discreet.report.scores_section import Score

    with path.open("rb") as file:
        text = file.read(SCORE_BYTES + 1)
    try:
        if len(text) > SCORE_BYTES:
            raise Unsupported("it is too large for a score")
        return Score.from_dict(json.loads(text))
    except (Unsupported, ValueError, RecursionError):
        raise Refused(f"{path}: this is not a score as `discreet score --json` writes it") from None
