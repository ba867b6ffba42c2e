"""Other settings of a solver: each of its own numbers, times a factor. Nothing is added that a user could not set."""

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

AXES = (
    ("n_steps", "n_rounds", "n_outer", "n_epochs"),
    ("clip", "relative_clip", "row_norm"),
    ("step_size", "largest_step", "relative_step"),
    ("regularization",),
    ("loss_bound",),
    ("n_inner",),
)
"""Of each line the first that a solver has set: how many steps, the clip, their length, and what few solvers have."""
INSIDE = ("geometry", "solver")
"""Where further settings are: of coordinates, and of the solver that a stage runs."""


def axes_of(solver: Any) -> list[tuple[str, ...]]:
    """The settings that can be varied, as paths of names; a stage's are those of its inner solver."""
    if "solver" in _names(solver):
        return [("solver", *path) for path in axes_of(solver.solver)]
    return [path for names in AXES if (path := _first(solver, names)) is not None]


def _names(given: Any) -> set[str]:
    return {made.name for made in fields(given)} if is_dataclass(given) else set()


def _first(solver: Any, names: tuple[str, ...]) -> tuple[str, ...] | None:
    for inside in ((), *((name,) for name in INSIDE if name in _names(solver))):
        holder = solver if not inside else getattr(solver, inside[0])
        for name in names:
            value = getattr(holder, name, None) if name in _names(holder) else None
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                return (*inside, name)
    return None


def scaled(solver: Any, path: tuple[str, ...], factor: float) -> Any:
    """The solver with one setting times a factor; counts stay whole and positive."""
    name, *rest = path
    value = getattr(solver, name)
    if rest:
        return replace(solver, **{name: scaled(value, tuple(rest), factor)})
    moved = value * factor
    return replace(solver, **{name: max(1, round(moved)) if isinstance(value, int) else moved})


def neighbors(solver: Any, path: tuple[str, ...], factors: tuple[float, ...]) -> Iterator[Any]:
    """The solver with one setting at every factor."""
    for factor in factors:
        yield scaled(solver, path, factor)
