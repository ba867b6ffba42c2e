"""Estimators by name: ``@register_model("ridge")`` above a class makes it known to ``--model`` and to saved models."""

from typing import TYPE_CHECKING

from discreet.registry import Registry

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel
    from discreet.schema.schema import Schema

MODELS: "Registry[type[DPLinearModel]]" = Registry("model", "discreet.models", "register_model")

register_model = MODELS.register


def default_model(schema: "Schema") -> str:
    """Return the short name of the model that suits the target."""
    return "logistic" if schema.target is not None and schema.target.classes is not None else "ridge"
