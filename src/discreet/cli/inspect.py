"""``discreet inspect``: what is in a saved model."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import AsJson, echo_json

if TYPE_CHECKING:
    from discreet.cli.inputs import Contents


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
    from discreet.cli.inputs import read
    from discreet.models.inference.shown_effects import shown_effects
    from discreet.models.intervals import LEVEL, covers

    contents = read(file)
    coefficients = _coefficients(contents, str(units)) if contents.model is not None else None
    effects = shown_effects(contents.table or contents.model)
    summary, missing = (None, effects) if isinstance(effects, str) else (effects, None)
    if as_json:
        made = contents.certificate
        shown = {
            "headline": made.headline,
            "not_covered": made.not_covered,
            "certificate": json.loads(made.to_json()),
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
            typer.echo(f"\n{missing.rstrip('.')}.\nHow far noise moved each coefficient is not known, either.")


def _coefficients(contents: "Contents", units: str) -> dict[str, dict[str, Any]]:
    """Output -> feature (and the intercept) -> coefficient, and how far the noise may have moved it."""
    from discreet.models.intervals import LEVEL, deviations

    width = deviations(LEVEL, pure=contents.certificate.delta == 0)
    found: dict[str, dict[str, Any]] = {}
    for name, output, value, noise, unit in _named(contents, units):
        reach = None if noise is None else width * noise
        found.setdefault(output, {})[name] = {"value": value, "half_width": reach, "unit": unit}
    return found


def _named(contents: "Contents", units: str) -> list[tuple[str, str, float, float | None, str]]:
    if contents.table is not None:
        listed = contents.table.coefficients(units=units)
        numeric = getattr(contents.model, "classes_", None) is None
        return [(c.name, "prediction" if numeric else f"class {c.output}", c.value, c.noise, c.unit) for c in listed]
    import numpy as np

    model: Any = contents.model
    rows, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    noises = [None if part is None else np.atleast_1d(part) for part in (model.coef_noise_, model.intercept_noise_)]
    spreads = None if noises[0] is None else np.atleast_2d(noises[0])
    names = getattr(model, "feature_names_in_", [f"feature {j}" for j in range(rows.shape[1])])
    found = []
    for k, output in enumerate(_outputs(model, len(rows))):
        for j, name in enumerate(names):
            spread = None if spreads is None else float(spreads[k, j])
            found.append((str(name), output, float(rows[k, j]), spread, ""))
        own = None if noises[1] is None else float(noises[1][k])
        found.append(("(intercept)", output, float(intercepts[k]), own, ""))
    return found


def _outputs(model: Any, count: int) -> list[str]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return ["prediction"]
    return [f"class {label}" for label in (classes if count > 1 else classes[1:])]


def _print_table(coefficients: dict[str, dict[str, Any]]) -> None:
    from rich.table import Table

    from discreet.cli.console import Console
    from discreet.models.intervals import ALL_NOISE, INTERCEPT, all_noise, covers

    table = Table("", *coefficients, "", title="Coefficients", title_justify="left", box=None)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:-1]:
        column.justify = "right"
    for name, first in next(iter(coefficients.values())).items():
        cells = [_cell(values[name]) for values in coefficients.values()]
        table.add_row(name, *cells, first["unit"])
    console = Console(markup=False, highlight=False)
    console.print()
    console.print(table)
    slopes = [one for values in coefficients.values() for name, one in values.items() if name != INTERCEPT]
    known = [one for one in slopes if one["half_width"] is not None]
    for said in [covers()] * bool(known) + [ALL_NOISE] * all_noise((one["value"], one["half_width"]) for one in known):
        console.print(f"\n{said}")


def _cell(found: dict[str, Any]) -> str:
    from discreet.models.intervals import rounded

    value, half_width = rounded(found["value"], found["half_width"])
    return f"{value} ± {half_width}" if half_width else value
