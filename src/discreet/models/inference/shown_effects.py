"""What is shown of a fitted model: effects where a part of the budget was reserved for them, else coefficients."""

from typing import TYPE_CHECKING, Any

from discreet.errors import Unsupported

if TYPE_CHECKING:
    from discreet.models.inference.summary import Summary


def shown_effects(model: Any) -> "Summary | str | None":
    """Return a fitted model's effects, or why there are none; None where the fit reserved nothing for them.

    Where there are effects, coefficients are not shown next to them: there is one number per effect, and none for
    those that noise hides.
    """
    if getattr(getattr(model, "estimator_", model), "effects_", None) is None:
        return None
    try:
        summary: Summary = model.summary()
    except Unsupported as reason:
        return str(reason)
    return summary
