"""Private variance-reduced gradient descent: one full gradient an epoch, then sampled *changes* from it.

Source: Wang, Ye & Xu 2017, whose noise is given up to unspecified constants and whose inner steps read the anchor's
exact gradient again; here the anchor's gradient is released once, and the changes are clipped.

    for s = 1..S:   v = (sum_i clip_C(grad l_i(a)) + noise) / n                       a: the anchor
        for t = 1..m:   d = 0 where w = a, else sum over a Poisson sample of clip_D(grad l_i(w) - grad l_i(a)) + noise
                        w = Proj_R( prox_{eta psi}( w - eta (v + d / (q n)) ) )       D = min(2 C, beta ||w - a||)
        a = the last inner iterate (or their mean)

Released: S noisy gradients and the noisy changes. D is a function of released points, and the noise is D times a fixed
multiplier: each change is the same event, Poisson-sampled Gaussian. Privacy: the composition of both kinds, by their
privacy loss distributions. Cost: 1 + 2 q m passes an epoch. Utility: the noise of the changes vanishes as w nears the
anchor, so that what is left is the anchors'. Wins over sgd where many cheap steps are wanted; gd has an exact price and
less to set.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound, gradient_smoothness
from discreet.penalties.base import Penalty
from discreet.solvers import default_rules
from discreet.solvers.base import Progress, Solution, count_release, public_count
from discreet.solvers.gradient_loop import average_weights, nesterov_weight, project
from discreet.solvers.registry import CANARY_CLIP, SHORT_STEP, AuditCase, register
from discreet.solvers.uncertainty.propagation import noise_deviation, responses, tells_noise

if TYPE_CHECKING:
    from discreet.curator import Curator


@register("svrg")
@dataclass(frozen=True)
class VarianceReducedDescent:
    """DP-SVRG.

    Parameters
    ----------
    n_epochs, n_inner
        S anchors, and m inner steps from each.
    batch_size, sampling_probability
        The expected number of records in an inner step, or the probability with which a record joins it; give one.
    clip
        Bound on a record's gradient at the anchor. None: what the loss and the declared bounds imply.
    step_size
        None: 1/beta.
    anchor_share
        About which part of the budget the anchors' gradients get.
    momentum
        Nesterov's, over all inner steps; free.
    average
        Whether the next anchor is the mean of the inner iterates; else it is the last one.
    radius
        Project onto the ball of this radius after each step. None: no projection.
    """

    n_epochs: int = 5
    n_inner: int = 10
    batch_size: float | None = None
    sampling_probability: float | None = None
    clip: float | None = None
    step_size: float | None = None
    anchor_share: float = 0.5
    momentum: bool = False
    average: bool = False
    radius: float | None = None
    name: ClassVar[str] = "svrg"

    def __post_init__(self) -> None:
        for name in ("n_epochs", "n_inner"):
            value = getattr(self, name)
            if not (isinstance(value, (int, np.integer)) and value >= 1):
                raise Unsupported(f"{name} must be a positive whole number")
        if self.batch_size is not None and self.sampling_probability is not None:
            raise Unsupported("give batch_size or sampling_probability, not both")
        if not (isinstance(self.anchor_share, (int, float, np.number)) and 0 < self.anchor_share < 1):
            raise Unsupported("anchor_share must lie between 0 and 1")
        for name in ("batch_size", "sampling_probability", "clip", "step_size", "radius"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
                raise Unsupported(f"{name} must be a positive number, or None")

    def fraction(self, domain: Domain) -> float:
        """The probability with which a record joins an inner step."""
        if self.sampling_probability is not None:
            return min(1.0, self.sampling_probability)
        if self.batch_size is None:
            return 1.0
        if domain.n is None:
            raise Unsupported("n is private here: give sampling_probability, or declare Bounds(n=...)")
        return min(1.0, self.batch_size / domain.n)

    def _clip(self, domain: Domain, loss: Loss) -> float:
        return self.clip if self.clip is not None else gradient_bound(loss, domain, self.radius)

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """S gradients and the sampled changes; a change with probability q costs about q^2 of a gradient.

        From the anchor itself there is no change to ask: without momentum that is an epoch's first step.
        """
        q, share = self.fraction(domain), self.anchor_share
        count = self.n_epochs * self.n_inner - 1 if self.momentum else self.n_epochs * (self.n_inner - 1)
        relative = math.sqrt((1 - share) / share * self.n_epochs / max(1, count)) / q
        anchors = Release("noisy_gradient", self.n_epochs, clip=self._clip(domain, loss), relative_noise=relative)
        changes = Release("noisy_gradient_change", count, sampling_probability=q)
        return Plan((anchors, changes, *count_release(domain)))

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress | None = None) -> Solution:
        """Run the epochs from zero.

        ``noise`` is the bound for a loss that is flat but for its penalty (``spread``), in which an anchor's noise is
        in all of its epoch's steps; None where anchors are means, which is another recursion.
        """
        domain, loss = curator.domain, curator.loss
        n, clip, smoothness = public_count(curator), self._clip(domain, loss), gradient_smoothness(loss, domain)
        expected = n * math.ceil(self.fraction(domain) * SAMPLING_DENOMINATOR) / SAMPLING_DENOMINATOR
        step = self.step_size if self.step_size is not None else 1.0 / smoothness
        anchor = w = previous = np.zeros(domain.shape)
        momenta, reaches = np.zeros((2, self.n_epochs, self.n_inner))
        for epoch in range(self.n_epochs):
            full = curator.noisy_gradient(anchor, clip=clip) / n
            w, total = anchor, np.zeros(domain.shape)
            for inner in range(self.n_inner):
                weight = nesterov_weight(epoch * self.n_inner + inner, step, penalty.strong_convexity)
                point = w + weight * (w - previous) if self.momentum else w
                reach, change = (
                    min(2 * clip, smoothness * float(np.linalg.norm(point - anchor))),
                    np.zeros(domain.shape),
                )
                momenta[epoch, inner] = weight if self.momentum else 0.0
                if reach > LEAST_REACH:
                    reaches[epoch, inner] = reach
                    change = curator.noisy_gradient_change(point, anchor, clip=reach) / expected
                previous, w = w, project(penalty.prox(point - step * (full + change), step), self.radius)
                total += w
            anchor = total / self.n_inner if self.average else w
            if progress is not None:
                progress(epoch + 1, self.n_epochs)
        if self.average or not tells_noise(curator):
            return Solution(anchor)
        anchors, changes, *_ = self.plan(domain, loss, penalty).releases
        shrink = 1.0 / (1.0 + step * penalty.strong_convexity)
        weights = responses(momenta.ravel(), average_weights("last", momenta.size), shrink=shrink).reshape(
            momenta.shape
        )
        first = noise_deviation(curator, anchors, clip) / n * weights.sum(axis=1)
        others = noise_deviation(curator, changes, 1.0) / expected * reaches * weights
        deviation = step * math.sqrt(float(np.square(first).sum() + np.square(others).sum()))
        return Solution(anchor, np.full(domain.shape, deviation))

    def settings(self) -> dict[str, object]:
        """Public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """3 to 20 anchors; six inner steps from each, on a tenth of the records or the usual batch, with momentum."""
        if domain.n is None:
            raise Unsupported(
                "n is private here: configure VarianceReducedDescent(sampling_probability=...), or declare "
                "Bounds(n=...)"
            )
        if not budget.is_private:
            return cls(n_epochs=400, n_inner=20, batch_size=max(1.0, domain.n / 4))
        batch = float(min(domain.n, max(default_rules.BATCH, domain.n / 10)))
        epochs = max(3, min(20, round(default_rules.step_count(domain, budget) ** 2 / 2000)))
        return cls(n_epochs=epochs, n_inner=6, batch_size=batch, momentum=True)

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clip and the step size, where they are left open, for rows of typical length."""
        return replace(
            self,
            clip=default_rules.typical_clip(domain, loss, budget) if self.clip is None else self.clip,
            step_size=default_rules.typical_step(domain, loss, budget) if self.step_size is None else self.step_size,
        )

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Two epochs of short steps on half of the records each, which no transcript shows."""
        return AuditCase(
            cls(n_epochs=2, n_inner=2, clip=CANARY_CLIP, step_size=SHORT_STEP, sampling_probability=0.5), "model"
        )


LEAST_REACH = 1e-200
"""Below this the points are the same: there is no change to ask for."""
