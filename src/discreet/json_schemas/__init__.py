"""JSON Schemas (draft 2020-12) of the files that discreet writes, for programs that read them without discreet.

``deployments-registry`` is the structure of an entry of OpenDP's registry of deployments, not a format of discreet's.
"""

import json
from importlib.resources import files
from typing import Any

NAMES = ("certificate", "deployments-registry", "ledger-entry", "ledger-statement", "model-folder", "schema-file")

Json = dict[str, Any]
"""A JSON object, or a table of a TOML file: plain values by name."""


def json_schema(name: str) -> Json:
    """Return the JSON Schema of a file format.

    Parameters
    ----------
    name : {"certificate", "deployments-registry", "ledger-entry", "ledger-statement", "model-folder", "schema-file"}
        Of ``certificate.json``, an entry of the deployments registry, a line of ``discreet budget export``, what
        ``discreet budget show --json`` prints, ``manifest.json``, and ``schema.toml`` as plain values.

    Examples
    --------
    >>> from discreet.json_schemas import json_schema
    >>> json_schema("certificate")["title"]
    'Certificate of a private model'
    """
    if name not in NAMES:
        raise ValueError(f"there is a JSON Schema of {', '.join(NAMES)}")
    schema: Json = json.loads(files("discreet.json_schemas").joinpath(f"{name}.json").read_text("utf-8"))
    return schema
