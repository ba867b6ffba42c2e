"""Griffe extension: docstrings of estimators as they are when imported, with the parameters that all of them share."""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe


class EstimatorDocstrings(griffe.Extension):
    """Fill in the docstrings of estimators."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring that is in the source."""
        if cls.docstring is not None and re.match(r"discreet\.models\.\w+\.DP", cls.path):
            module, name = cls.path.rsplit(".", 1)
            cls.docstring.value = inspect.getdoc(getattr(import_module(module), name)) or cls.docstring.value
