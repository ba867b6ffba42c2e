"""Estimators by name, for ``--model`` and saved models; ``@register_model("mine")`` adds one."""

from typing import TYPE_CHECKING

from discreet.registry import BUILT_IN_MODELS, Registry

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel
    from discreet.schema.schema import Schema

MODELS: "Registry[type[DPLinearModel]]" = Registry("model", BUILT_IN_MODELS)

register_model = MODELS.register


def default_model(schema: "Schema") -> str:
    """Return the short name of the model that suits the target."""
    return "logistic" if schema.target is not None and schema.target.classes is not None else "ridge"
