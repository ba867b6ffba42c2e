"""Step sizes over time: eta_t = eta factor_t, by name or as given. Public, so free.

``constant``  1
``sqrt``      1 / sqrt(t + 1), for convex losses
``inverse``   1 / (t + 1), for strongly convex ones
``linear``    1 - t / T, which averages the last steps' noise out without an average
``cosine``    (1 + cos(pi t / T)) / 2
"""

import numpy as np

from discreet.errors import Unsupported
from discreet.parameters import Positive, conforms
from discreet.typing import Floats

SCHEDULES = ("constant", "sqrt", "inverse", "linear", "cosine")
Schedule = str | tuple[float, ...]


def step_factors(schedule: Schedule, n_steps: int) -> Floats:
    """Return what the step size is multiplied by in each of the steps."""
    if not isinstance(schedule, str):
        return np.asarray(schedule, dtype=np.float64)
    t = np.arange(n_steps)
    made = {
        "constant": np.ones(n_steps),
        "sqrt": 1.0 / np.sqrt(t + 1.0),
        "inverse": 1.0 / (t + 1.0),
        "linear": 1.0 - t / n_steps,
        "cosine": 0.5 * (1.0 + np.cos(np.pi * t / n_steps)),
    }
    return np.asarray(made[schedule])


def check_schedule(schedule: object, n_steps: int) -> None:
    """Refuse what is neither a name nor one positive factor per step."""
    if isinstance(schedule, str) and schedule in SCHEDULES:
        return
    given = schedule if isinstance(schedule, tuple) else ()
    if len(given) != n_steps or not all(conforms(factor, Positive) for factor in given):
        raise Unsupported(
            f"step_schedule must be one of {', '.join(SCHEDULES)}, or a tuple of n_steps = {n_steps} positive factors"
        )
