"""Estimators by name: ``@register_model("ridge")`` above a class makes it known to ``--model`` and to saved models."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from discreet.registry import Registry

if TYPE_CHECKING:
    from discreet.models.base import DPLinearModel

M = TypeVar("M", bound="DPLinearModel")

MODELS: "Registry[type[DPLinearModel]]" = Registry("model", "discreet.models", "register_model")


def register_model(name: str) -> Callable[[type[M]], type[M]]:
    """Declare an estimator's short name."""

    def declare(cls: type[M]) -> type[M]:
        MODELS.register(name)(cls)
        return cls

    return declare
