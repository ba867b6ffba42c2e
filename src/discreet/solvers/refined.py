"""Refine what a whitened solver found by filtered steps on unclipped gradients: the default for classes, with signal.

    v = what the inner solver found, in whitened coordinates z of unshrunk rows;    weight_i = min(1, (R / ||z_i||)^2)
    M = (1/n) [ sum_i weight_i z_i z_i^T + noise ];    V diag(l) V^T = .6 sup f'' (M + edge of its noise)
    for t < T:  q = V^T (1/n) [ sum_i weight_i z_i f'_i^T + noise ] E
                v <- v - V [ x / (l x + s^2) * q ] E^T + b (v - the last v)

The inner solver clips gradients and shrinks rows, which biases its coefficients. Here a row's weight depends on its
features alone, and no gradient is clipped: a slope of at most L and a weight of (R / ||z||)^2 make contributions of at
most L R. So the equation is centered at the model's coefficients (Mallows), and as signal widens R, at the minimizer of
the objective; R ends where declared ranges have no room for longer rows. The weighted Hessian is nowhere above sup f''
(M + edge), so a step overshoots the minimizer by at most .7 of the way in any direction: steps do not diverge, whatever
the table is. x is the prior variance under which the noisy q is likely (``newton.filter_weights``): where q is noise
nothing moves, and the inner solver's coefficients stay.
E is 1 for one output. For K outputs, v and f' have K columns and E is an orthonormal basis of contrasts, (K, K - 1): a
common shift of all margins changes no probability, so that what q says of it is noise alone: v adds up to 0 over the
classes. sup f'' is then the largest eigenvalue of the Hessian in the margins. K classes share the curvature, which is
mostly far below that, about 2 / K of it: momentum b makes steps 1 / (1 - b) times as long where it is. On a quadratic
they contract for every b (heavy ball: a step times the curvature is at most 1.7, below 2 (1 + b)).
Numbers and their reasons: ``whitened_classes``.

Privacy
-------
Relation and sensitivity: ``noisy_second_moment`` (B, sqrt(2) B under ``replace_one``) on rows shrunk to R, one more
than the inner solver asks for; ``noisy_weighted_gradient`` (B, 2 B), proven at the curator; the inner solver's releases
as its own docstring says. Mechanism: Gaussian noise. Event: one ``Gaussian`` each, with their shares of mu^2.
Conditions: those of ``stage``; all else is post-processing.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.bounds import Domain
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, Positive, Share, Weight, check_fields
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers import newton
from discreet.solvers.base import (
    UNWATCHED,
    Progress,
    Solution,
    Solver,
    count_release,
    public_count,
)
from discreet.solvers.center_and_scale import affine, knows_covariance, noise_of, shares_to_noise
from discreet.solvers.refinement import longest_row
from discreet.solvers.registry import register_part
from discreet.solvers.stage import COUNT_SHARE, Counted, Estimate, quadratic, release_weight
from discreet.solvers.uncertainty.stage_noise import DirectionsTrace, RefinedTrace, left_of_start
from discreet.solvers.whitened import Whitened
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

FARTHEST = 64.0
"""Rows longer than this many typical ones are shrunk: it bounds the lattice."""
STEEPNESS = 0.6
"""Curvature of the steps in units of the loss's largest; above 1/2, so that steps contract in every direction.

With 1/2, and .35 of the edge, 40 steps on Covertype at epsilon 256 lost a third of what can be learned."""


@register_part("Refined")
@dataclass(frozen=True)
class Refined:
    """Refine what ``solver`` finds by filtered steps on weighted, unclipped gradients of unshrunk rows.

    Parameters
    ----------
    solver : Solver
        Where to start: ``Whitened`` gradient steps, for classes and a loss with a bounded slope.
    n_steps : int, default=8
        Gradients to release.
    reach : float, default=1.25
        Rows longer than this many typical ones count less.
    start_share : float, default=0.5
        Share of mu^2 for the inner solver and the second moment; the steps get the rest.
    heavy_ball : float, default=0.0
        The part of the last step that is repeated: its momentum.

    Examples
    --------
    >>> from discreet.solvers import GradientDescent, Refined, Whitened
    >>> Refined(Whitened(GradientDescent(n_steps=8)), n_steps=12).name
    'refined'
    """

    solver: Solver
    n_steps: Count = 8
    reach: Positive = 1.25
    start_share: Share = 0.5
    heavy_ball: Weight = 0.0
    name: ClassVar[str] = "refined"

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.solver, Whitened):
            raise Unsupported("refined steps start from whitened ones: use Refined(Whitened(...))")

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the inner solver's releases with one more second moment, and the steps with the rest of mu^2."""
        if loss.task != "classification" or not math.isfinite(loss.lipschitz):
            raise Unsupported("refined steps are for losses of classes: use Whitened(...) alone for others")
        inner = self.solver.plan(domain, loss, penalty)
        if isinstance(inner, AdaptivePlan):
            raise Unsupported("refined steps start from a solver with a fixed plan: use gd, sgd or svrg in Whitened")
        asked = [
            replace(release, count=release.count + (release.query == "noisy_second_moment"))
            for release in inner.releases
            if release.query != "noisy_count"
        ]
        if knows_covariance(domain, loss):  # of rows that are not shrunk it is estimated all the same
            assert isinstance(self.solver, Whitened)
            asked.append(Release("noisy_second_moment", 1, relative_noise=shares_to_noise(self.solver.moment_share)))
        scale = math.sqrt(sum(map(release_weight, asked)) / self.start_share)
        scaled = (replace(release, relative_noise=release.relative_noise * scale) for release in asked)
        noise = shares_to_noise(1.0 - self.start_share, self.n_steps)
        steps = Release("noisy_weighted_gradient", self.n_steps, relative_noise=noise)
        return Plan((*scaled, steps, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the inner solver, and take the steps from what it found."""
        n, admitted, loss = public_count(curator), curator.domain, curator.loss
        found = self.solver.solve(cast("Curator", Counted(curator, n)), penalty, progress)
        assert found.estimate is not None
        recoding, reach = self._unshrunk(found.estimate, admitted)
        second, edge = _second_moment(curator, replace(recoding, reach=reach), n)
        curator.recode(recoding)
        v = recoding.recoded(found.coefficients)
        assert v is not None
        basis = contrasts(loss.n_outputs) if v.ndim == 2 else np.ones((1, 1))
        v = v @ basis @ basis.T if v.ndim == 2 else v
        inside = quadratic(penalty, recoding, admitted) if penalty.strong_convexity > 0 else NoPenalty()
        steep = STEEPNESS * loss.smoothness
        hessian = inside.hessian
        values, vectors = np.linalg.eigh(steep * second if hessian is None else steep * second + hessian)
        above = max(steep * edge, 1e-9 * max(float(values[-1]), 1e-300))
        safe = np.maximum(values, 0.0) + above
        clip = loss.lipschitz * reach
        noise = noise_of(curator, "noisy_weighted_gradient", clip, float(curator.budget.neighbors.sum_factor)) / n
        used, last = [], v
        for _ in progress(range(self.n_steps)):
            g = curator.noisy_weighted_gradient(v, clip=clip, reach=reach) / n
            g = g if hessian is None else g + inside.gradient(v)
            q = vectors.T @ g.reshape(len(g), -1) @ basis
            weights = newton.filter_weights(q.ravel(), np.repeat(safe, q.shape[1]), noise, steep * edge + above)
            step = vectors @ (weights.reshape(q.shape) * q) @ basis.T
            v, last = v - step.reshape(v.shape) + self.heavy_ball * (v - last), v
            used.append(np.sqrt(np.mean(np.square(weights.reshape(q.shape)), axis=1)))
        bend = min(1.0, 1.0 / (loss.n_outputs * loss.smoothness)) if v.ndim == 2 else 1.0  # K classes share it
        curved = np.where(values >= steep * edge, bend * values, 0.0)
        steps = DirectionsTrace.of_steps(vectors, used, curved, noise, 1.0, self.heavy_ball)
        kept = left_of_start(used, curved, self.heavy_ball)
        trace = RefinedTrace(found, steps, kept, affine(recoding, admitted)[0])
        return Solution(recoding.coefficients(v), trace, found.estimate)

    def _unshrunk(self, estimate: Estimate, admitted: Domain) -> tuple[Recoding, float]:
        """Return the map to whitened rows that are not shrunk, and how far they count in full."""
        assert estimate.spectrum is not None
        length = estimate.spectrum.length
        recoding = replace(estimate.recoding, row_norm=math.inf, reach=FARTHEST * length)
        longest = longest_row(affine(recoding, admitted)[0], admitted)
        return recoding, min(self.reach * length, FARTHEST * length, longest)

    def settings(self) -> dict[str, object]:
        """Return its public settings and the inner solver's, for the certificate."""
        own = {name: value for name, value in asdict(self).items() if name != "solver"}
        return {"name": self.name, **own, "solver": self.solver.settings()}


def contrasts(outputs: int) -> Floats:
    """Return an orthonormal basis of the vectors that add up to 0, (K, K - 1): Helmert's."""
    columns = [np.append(np.ones(k), -k) / math.sqrt(k * (k + 1)) for k in range(1, outputs)]
    return np.column_stack([np.pad(column, (0, outputs - len(column))) for column in columns])


def _second_moment(curator: "Curator", recoding: Recoding, n: float) -> tuple[Floats, float]:
    """Return M and the edge of its noise's spectrum: shrinking rows to R weighs their squares by (R / length)^2."""
    curator.recode(recoding, once=True)
    clip = curator.domain.row_norm**2
    second = curator.noisy_second_moment(clip=clip, n=n)
    noise = noise_of(curator, "noisy_second_moment", clip, curator.budget.neighbors.sum_factor**0.5)
    return second, noise / n * math.sqrt(2.0 * len(second))
