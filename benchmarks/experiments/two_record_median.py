"""The lecture's median: noise inside an objective hides nothing where the loss has a corner and no regularizer.

Two records, {0, 100} or {0, 101}; the loss is the mean distance, so every point between them is a minimizer, and the
slope jumps by 1 at each record. Noise b w in the objective with |b| < 1/2 moves no minimizer off the records: the
smallest minimizer for b > 0 is 0, for b < 0 it is the larger record, which is then published as it is. The mechanism is
simulated in plain numpy, since the library refuses it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.experiments.harness import Claim, Experiment, Row, mean
from discreet.report.page import LIGHT, blank, frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWS = 2000


def points(quick: bool) -> list[Row]:
    """Noise from small to as wide as the slope's jump."""
    return [{"noise": noise, "other": other} for noise in (0.02, 0.1, 0.25) for other in (100.0, 101.0)]


def run(noise: float, other: float, seed: int) -> Row:
    """Return how often the second record itself comes out, and how often anything that is no record does."""
    b = noise * np.random.default_rng([seed, int(1000 * noise)]).normal(size=DRAWS)
    records, grid = np.array([0.0, other]), np.arange(-50.0, other + 50.5, 0.5)
    distance = np.abs(grid[:, None] - records).mean(axis=1)
    found = grid[(distance[:, None] + grid[:, None] * b).argmin(axis=0)]
    inside = np.abs(b) < 0.5  # beyond, the objective has no minimum
    return {
        "published": float(np.mean((found == other) & inside)),
        "elsewhere": float(np.mean(~np.isin(found, records) & inside)),
    }


def _published(rows: Sequence[Row]) -> float:
    return min(mean(rows, "published", noise=noise) for noise in {row["point"]["noise"] for row in rows})


def figure(rows: Sequence[Row]) -> "Figure":
    """How often the record comes out, by the noise, for either table."""
    drawn = blank(5.6, 3.4, LIGHT)
    drawn.set_layout_engine("constrained")
    axes = drawn.subplots()
    for other, color, line, size in ((100.0, LIGHT.private, "o-", 9), (101.0, LIGHT.reference, "s--", 5)):
        noises = sorted({row["point"]["noise"] for row in rows})
        shares = [mean(rows, "published", noise=noise, other=other) for noise in noises]
        look: dict[str, Any] = {"color": color, "markersize": size}
        axes.plot(noises, shares, line, **look, label=f"table {{0, {other:g}}}: {other:g} comes out")
    axes.set_ylim(0, 1)
    axes.set_xlabel("deviation of the noise in the slope", color=LIGHT.ink)
    axes.legend(frameon=False, fontsize=9)
    axes.set_title("The median publishes a record half of the time", loc="left", fontsize=12, color=LIGHT.ink)
    frame(axes, LIGHT)
    return drawn


EXPERIMENT = Experiment(
    "two_record_median",
    "The median, where objective perturbation fails",
    "What does noise inside an objective without a regularizer and with corners give away?",
    points,
    run,
    (
        Claim("the exact record comes out with a probability of about 1/2", _published, low=0.45, high=0.55),
        Claim("nothing but records comes out", lambda rows: mean(rows, "elsewhere"), high=0.0),
    ),
    figure,
    seeds=5,
)
