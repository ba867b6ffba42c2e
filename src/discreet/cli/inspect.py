"""``discreet inspect``: what is in a saved model."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def inspect(
    file: Annotated[Path, typer.Argument(help="A model that was saved with model.save, or a certificate (JSON).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a saved model: its certificate and its coefficients.

    Everything in the file was declared or released, so all of it may be shown. Coefficients are in the
    units of the features; they are noisy, and a small one may be nothing but noise. This does not check the price:
    see `discreet verify`.
    """
    from discreet.cli.files import read

    contents = read(file)
    coefficients = _coefficients(contents.model) if contents.model is not None else None
    if as_json:
        shown = {"certificate": json.loads(contents.certificate.to_json()), "coefficients": coefficients}
        typer.echo(json.dumps(shown, indent=2))
        return
    typer.echo(contents.certificate.text())
    if coefficients is not None:
        _print_table(coefficients)


def _coefficients(model: Any) -> dict[str, dict[str, float]]:
    """Output -> feature (and the intercept) -> coefficient."""
    import numpy as np

    rows, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    features = getattr(model, "feature_names_in_", None)
    names = [f"feature {j}" for j in range(rows.shape[1])] if features is None else [str(name) for name in features]
    return {
        output: {**dict(zip(names, map(float, row), strict=True)), "(intercept)": float(intercept)}
        for output, row, intercept in zip(_outputs(model, len(rows)), rows, intercepts, strict=True)
    }


def _outputs(model: Any, count: int) -> list[str]:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return ["prediction"]
    return [f"class {label}" for label in (classes if count > 1 else classes[1:])]


def _print_table(coefficients: dict[str, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", *(f"{output}" for output in coefficients), title="Coefficients", title_justify="left", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in next(iter(coefficients.values())):
        table.add_row(name, *(f"{values[name]:.6g}" for values in coefficients.values()))
    console = Console(markup=False, highlight=False)
    console.print()
    console.print(table)
