"""Estimators by name: ``@register_model("ridge")`` above a class makes it known to ``--model`` and to saved models."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from discreet.registry import Registry

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel
    from discreet.schema.schema import Schema

M = TypeVar("M", bound="DPLinearModel")

MODELS: "Registry[type[DPLinearModel]]" = Registry("model", "discreet.models", "register_model")


def default_model(schema: "Schema") -> str:
    """Return the short name of the model that suits the target."""
    return "logistic" if schema.target is not None and schema.target.classes is not None else "ridge"


def register_model(name: str) -> Callable[[type[M]], type[M]]:
    """Declare an estimator's short name."""

    def declare(cls: type[M]) -> type[M]:
        MODELS.register(name)(cls)
        return cls

    return declare
