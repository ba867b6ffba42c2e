"""``discreet export``: a model for other tools."""

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.errors import Refused
from discreet.cli.outputs import free, new_file


def export(
    model: Annotated[Path, typer.Argument(help="A folder of discreet fit, or a file of model.save.")],
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an ONNX graph here.")] = None,
    sklearn: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a scikit-learn pipeline here, with joblib.")
    ] = None,
) -> None:
    """Write a model for other tools: an ONNX graph, or a plain scikit-learn pipeline. Neither needs discreet to run.

    Both predict the same numbers, clip to declared ranges, and treat what is missing or unknown as the schema says. An
    ONNX graph computes in single precision, and its metadata hold epsilon, delta and the digest of the certificate.
    joblib's files run code when they are opened: open only those that you trust, with the same scikit-learn.

    - `discreet export model --onnx model.onnx`

    - `discreet export model --sklearn model.joblib`
    """
    from discreet.cli.inputs import read

    named = {"--onnx": onnx, "--sklearn": sklearn}
    places = {option: place for option, place in named.items() if place is not None}
    if not places:
        raise Refused("say what to write: --onnx FILE, --sklearn FILE, or both")
    for option, place in places.items():
        free(place, option)
    contents = read(model)
    found: Any = contents.table or contents.model
    if found is None:
        raise Refused(f"{model}: this is a certificate, and no model: name the model's folder or file")
    if onnx is not None:
        with new_file(onnx, "--onnx") as made:
            found.to_onnx(made)
    if sklearn is not None:
        import joblib

        with new_file(sklearn, "--sklearn") as made:
            joblib.dump(found.to_sklearn(), made)
    typer.echo("\n".join(f"{place}: written" for place in places.values()), err=True)
