"""Griffe extension: estimators as they are when imported, with constructors and docstrings made of their fields."""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

_KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
}


class EstimatorDocstrings(griffe.Extension):
    """Fill in the docstrings and the constructors of estimators."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Replace the docstring that is in the source, and the fields of a class by its constructor."""
        if cls.docstring is None or not re.match(r"discreet\.models\.\w+\.(DP|Private|WithInference)", cls.path):
            return
        module, name = cls.path.rsplit(".", 1)
        estimator = getattr(import_module(module), name)
        cls.docstring.value = inspect.getdoc(estimator) or cls.docstring.value
        cls.set_member("__init__", _constructor(inspect.signature(estimator.__init__)))
        for field in getattr(estimator, "__dataclass_fields__", {}):
            cls.members.pop(field, None)


def _constructor(signature: inspect.Signature) -> griffe.Function:
    parameters = [
        griffe.Parameter(
            parameter.name,
            kind=_KINDS[parameter.kind],
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in signature.parameters.values()
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(*parameters))
