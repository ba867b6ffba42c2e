"""Private greedy coordinate descent, DP-GCD: choose the best coordinate privately, then step on it.

Source: Mangold, Bellet, Salmon & Tommasi, AISTATS 2023.

    for t < T:  j = private argmax of the greedy score (GS, GS-s, GS-r or GS-q) at w
                w_j <- prox_{gamma_j psi_j}( w_j - gamma_j [ sum_i clip_{C_j}(grad_j l_i) + noise ] / n )

Released: T choices, each of bounded range eps_s (eps_s^2/8-zCDP), and T noisy sums of one entry. Cost: one
pass over all columns per step. After T steps from zero at most T (times ``block_size``) coefficients are not zero.
Wins on wide problems with few relevant features: its error depends on log p.

The poster's report-noisy-max claims eps' where it spends 2 eps', and takes noise in proportion to each
coordinate's own sensitivity, which is not private when these differ. Here one common scale is used;
``calibration="paper"`` runs the poster's noise where it is sound (plain GS, clips in proportion to sqrt(M_j)).
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.parameters import Count, OneOf, Positive, Share
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty
from discreet.solvers import settings
from discreet.solvers.base import (
    CANARY_CLIP,
    SHORT_STEP,
    UNWATCHED,
    AuditCase,
    Configured,
    Progress,
    Solution,
    Solver,
    count_release,
    public_count,
)
from discreet.solvers.cd import prox_one
from discreet.solvers.coordinate_geometry import (
    Coordinates,
    Geometry,
    GreedyErrors,
    greedy_convex_bound,
    greedy_strong_bound,
    lower_order,
)
from discreet.solvers.risk_bounds import RiskBound, excess_of_zeros
from discreet.solvers.traces import GreedyTrace, Noise
from discreet.typing import Floats

if TYPE_CHECKING:
    from discreet.curator import Curator

RULES = ("gs", "gs-s", "gs-r", "gs-q")
SELECTIONS = ("exponential", "permute_and_flip")
LARGEST = 2.0**14
"""The largest sum of coefficients in coordinates of length about 1."""


@dataclass(frozen=True)
class GreedyCoordinateDescent(Configured):
    """Private greedy coordinate descent, smooth or proximal.

    Parameters
    ----------
    n_steps : int, default=8
        T.
    geometry : Geometry
        Clips and smoothness, declared or estimated. Clips by ``"smoothness"`` make all scaled sensitivities equal.
    rule : {"gs", "gs-s", "gs-r", "gs-q"}, default="gs-q"
        The greedy score; for L1 penalties the last three take the penalty into account.
    selection : {"exponential", "permute_and_flip"}, default="exponential"
        How coordinates are chosen; the second is for pure budgets.
    selection_share : float, default=0.5
        The choice's share of a step's budget.
    block_size : int, default=1
        Coordinates chosen, one after the other, from one pass over the data, and then updated together with steps
        shortened by their number: for wide data, where passes are expensive.
    relative_step : float, default=1.0
        gamma: steps are gamma / M_j. Scores are those of such steps where they are longer than 1 / M_j, else of these.
    calibration : {"tight", "paper"}, default="tight"
        Exact prices, or the larger noise of the poster.
    backtrack : bool, default=False
        In declared coordinates of ``Preconditioned``: start from the M_j of columns that are all alike, and double M_j
        where a step was too long, that is where the coordinate's noisy gradient changed its sign. Free: it looks at
        released numbers only.

    Examples
    --------
    >>> from discreet import DPLasso
    >>> from discreet.solvers import GreedyCoordinateDescent
    >>> DPLasso(bounds=1.0, target=(0, 1), solver=GreedyCoordinateDescent(n_steps=5)).solver.name
    'gcd'
    """

    n_steps: Count = 8
    geometry: Geometry = field(default_factory=Geometry)
    rule: Annotated[str, OneOf(*RULES)] = "gs-q"
    selection: Annotated[str, OneOf(*SELECTIONS)] = "exponential"
    selection_share: Share = 0.5
    block_size: Count = 1
    relative_step: Positive = 1.0
    calibration: Annotated[str, OneOf("tight", "paper")] = "tight"
    backtrack: bool = False
    name: ClassVar[str] = "gcd"

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List T (times ``block_size``) choices and T noisy sums, squared norms and a count where they are needed."""
        if penalty.l1_l2 is None:
            raise Unsupported("greedy selection knows the penalties none, L1, L2 and elastic net: use solver='gd'")
        if domain.n_outputs > 1:
            raise Unsupported("coordinate methods know one output: use solver='gd' for softmax")
        choices, share = self.n_steps * min(self.block_size, domain.n_features), self.selection_share
        norms = self.geometry.releases(domain, self.n_steps / (1 - share))
        if self.calibration == "paper":
            if self.rule != "gs" or self.geometry.clip_rule != "smoothness":
                raise Unsupported(
                    "the poster's noise is private for rule='gs' and clips by smoothness only: use calibration='tight'"
                )
            # the poster adds Lap(Delta / eps') to both: the choice costs 2 eps', the update eps'
            select = Release("select_coordinate", choices, relative_noise=0.5, mechanism="noisy_max")
            update = Release("noisy_coordinate_gradient", self.n_steps, mechanism="laplace")
            return Plan((select, update, *norms, *count_release(domain)), self._published_noise)
        # rho: eps_s^2 / 8 a choice, 1 / (2 z^2) an update; their sums are to be share : 1 - share
        relative = 0.5 * math.sqrt((1 - share) / share * choices / self.n_steps)
        select = Release("select_coordinate", choices, relative_noise=relative, mechanism=self.selection)
        update = Release("noisy_coordinate_gradient", self.n_steps, dimension=self.block_size)
        return Plan((select, update, *norms, *count_release(domain)))

    def _published_noise(self, budget: Budget) -> float:
        """1/eps' of the poster: sqrt(16 T ln(1/delta)) / epsilon."""
        if budget.is_pure or budget.epsilon > 1:
            raise Unsupported("the poster's constants hold for epsilon <= 1 and delta > 0: use calibration='tight'")
        return math.sqrt(16 * self.n_steps * math.log(1 / budget.delta)) / budget.epsilon

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Run the algorithm from zero."""
        n, size = public_count(curator), min(self.block_size, curator.domain.n_features)
        M, longer = self.geometry.measure(curator, n), max(1.0, self.relative_step)
        most, M = M, self._start(curator, M)
        C, before = self.geometry.clips(curator.domain, curator.loss, M), np.zeros_like(M)
        w, steps = curator.domain.starting_point, []
        for _ in progress(range(self.n_steps)):
            chosen = curator.select_coordinate(
                w, clips=C, smoothness=M / longer, n=n, rule=self.rule, penalty=penalty, count=size
            )
            g = curator.noisy_coordinate_gradient(w, chosen, clips=C[chosen]) / n
            steps.append(chosen)
            if self.backtrack:
                too_long = chosen[before[chosen] * g < 0]
                M[too_long] = np.minimum(2.0 * M[too_long], most[too_long])
                before[chosen] = g
            gamma = self.relative_step / (size * M[chosen])
            for j, moved, step in zip(chosen.tolist(), w[chosen] - gamma * g, gamma, strict=True):
                w[j] = prox_one(penalty, moved, step, j)
            w *= min(1.0, LARGEST / max(float(np.abs(w).sum()), 1.0))  # mere noise, and more than margins have room for
        noise = Noise.of(curator, "noisy_coordinate_gradient")
        return Solution(w, GreedyTrace([steps], C, M, self.relative_step, n, noise, "last"))

    def _start(self, curator: "Curator", bound: Floats) -> Floats:
        """Return the M_j to start from: as bounded, or as for columns that are all alike."""
        typical = curator.domain.typical
        if not self.backtrack or typical is None or typical.likely is None:
            return bound
        return np.minimum(bound, np.maximum(curator.loss.smoothness * typical.likely, 1e-12))

    def bound(
        self,
        domain: Domain,
        loss: Loss,
        budget: Budget,
        *,
        radius: float,
        confidence: float | None = 0.95,
        penalty: Penalty | None = None,
        quasi_sparse: tuple[float, int] | None = None,
        moduli: tuple[float, float] | None = None,
    ) -> RiskBound:
        """Bound the excess risk of this run with a probability of ``confidence``, for declared constants.

        Convex: ``radius`` bounds ||w - w*||_1 wherever F is no larger than at the start w0 or than this bound
        (``greedy_convex_bound``). With an L2 penalty (part of F), or ``moduli`` = (mu_{M,1}, mu_{M,2}) of F that are
        publicly known, ``radius`` bounds ||w* - w0||_1 alone, ``confidence`` may be None (in expectation), and
        ``quasi_sparse`` = (alpha, tau), at most tau of |w*_j - w0_j| above alpha, makes it tighter
        (``greedy_strong_bound``). For single steps 1/M_j, chosen by the exponential mechanism on GS-q, and clips
        C_j >= L_j.
        Lower: the order of what one coordinate cannot avoid, L_min radius / (n epsilon).
        """
        penalty = NoPenalty() if penalty is None else penalty
        plain = self.rule == "gs-q" or (self.rule == "gs" and penalty.strong_convexity == 0)
        exact = self.selection == "exponential" and self.calibration == "tight"
        if self.block_size > 1 or self.backtrack or self.relative_step != 1 or not (plain and exact):
            raise Unsupported(
                "the bound is for single steps 1 / M_j, rule='gs-q', selection='exponential' and no backtrack"
            )
        at = Coordinates.of(self.geometry, self.relative_step, domain, loss, penalty, budget, moduli)
        longest = radius + float(np.abs(at.start).sum())
        trivial = min(longest * float(at.slopes.max()), excess_of_zeros(loss, domain, longest))
        B = self._errors(at, domain, loss, penalty, budget).per_step(confidence)
        if at.strong[1] > 0:
            initial = at.initial(radius * float(at.slopes.max()), trivial)
            upper = greedy_strong_bound(at, B, self.n_steps, initial, quasi_sparse)
        elif confidence is None or quasi_sparse is not None:
            raise Unsupported(
                "a bound in expectation or by quasi_sparse needs strong convexity: give an L2 penalty or moduli"
            )
        else:
            upper = greedy_convex_bound(B, self.n_steps, radius * math.sqrt(float(at.curvature.max())))
        lower = lower_order(at, float(at.slopes.min()), longest)
        return RiskBound(upper, min(lower, trivial), trivial, confidence)

    def _errors(self, at: Coordinates, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> GreedyErrors:
        """Return how far choices and steps fall short: scores move by at most max_j a C_j / (n sqrt(M_j))."""
        plan = self.plan(domain, loss, penalty)
        multiplier, select = price_plan(plan, budget).noise_multiplier, plan.releases[0]
        moved = at.factor * float((at.clips / np.sqrt(at.smoothness)).max()) / at.n
        scale = 2.0 * moved * select.relative_noise * multiplier
        return GreedyErrors(scale, float(at.noise(multiplier).max()), self.n_steps, domain.n_features)

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return what ``gcd`` stands for (``settings``)."""
        return settings.gcd(settings.Facts(domain, loss, penalty, budget))

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Self:
        """Choose the clips, where they are left open, as ``defaults`` does."""
        if self.geometry.has_clips:
            return self
        plain = settings.plain_gcd(settings.Facts(domain, loss, NoPenalty(), budget)).geometry
        return replace(self, geometry=replace(self.geometry, clip=plain.clip, relative_clip=plain.relative_clip))

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Take four short steps."""
        return AuditCase(cls(n_steps=4, geometry=Geometry(clip=CANARY_CLIP), relative_step=SHORT_STEP))
