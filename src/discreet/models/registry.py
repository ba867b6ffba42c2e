"""Estimators by name: ``@register_model("ridge")`` above a class makes it known to ``--model`` and to saved models."""

from typing import TYPE_CHECKING

from discreet.registry import Registry

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel

MODELS: "Registry[type[DPLinearModel]]" = Registry("model", "discreet.models", "register_model")
register_model = MODELS.register
