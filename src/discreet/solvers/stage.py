"""A stage: estimate center, scale or covariance privately, recode every record, run any iterative solver there.

    1. z = a map of each record, made of released values (``Curator.recode``)
    2. v = what the inner solver finds on the recoded records
    3. w = Q v + c, the same linear predictor in training coordinates (``Recoding.coefficients``)

Privacy. Relation and sensitivity: the stage's releases are the curator's moments, each with its own proof; the recoding
maps neighboring tables to neighboring tables under every relation (``Curator.recode``), so each answer that the inner
solver asks for has the sensitivity that its own docstring proves, on the recoded records. Mechanism: the same curator
answers both, adaptively; the map back is post-processing. Event: the plan lists all releases, the stage's and the inner
solver's, and is priced as their composition. A release's event is one of its noise multiplier and its sampling alone,
never of its clip, so that clips may follow released lengths. Conditions: the map is made of public and released values
only; the inner solver asks nothing that the plan does not list (the curator refuses it).

Adaptive plans. Around a solver whose answers follow one another under a zCDP filter the stage's releases are charged to
the same filter, with the noise that their share of the total rho fixes: a Gaussian of multiplier z is 1/(2 z^2)-zCDP. A
filter bounds any sequence of answers, so it covers these too; the inner solver divides what they leave.

Shares. ``*_share`` are parts of mu^2, under a filter of the total rho, which is the same (rho = mu^2 / 2). The inner
solver's releases are scaled by one factor so that they get the rest: exactly where all are Gaussian; where some are
sampled or choices, by what they cost about (q^2 and 1/4 of a Gaussian's), while the price is exact all the same.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import AdaptivePlan, Plan, Release
from discreet.blas_threads import on_one_thread
from discreet.bounds import Domain, Typical
from discreet.curator import Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.penalties import NoPenalty
from discreet.penalties.base import Penalty
from discreet.penalties.rescaled import Quadratic, Rescaled
from discreet.solvers.base import UNWATCHED, Progress, Solution, Solver, count_release, public_count
from discreet.solvers.center_and_scale import TARGET_SHARE, Target, affine, shares_to_noise
from discreet.solvers.uncertainty.stage_noise import StageTrace
from discreet.solvers.uncertainty.whitened_noise import Spectrum

if TYPE_CHECKING:
    from discreet.curator import Curator


COUNT_SHARE = 0.02
"""What a count gets of mu^2, where n is private: one number with sensitivity 1 needs no more."""
ASKED = (
    *("noisy_gradient", "noisy_gradient_change", "noisy_coordinate_gradient", "noisy_share_within"),
    *("noisy_squared_norms", "select_coordinate", "noisy_count"),
)
"""What an inner solver may ask of recoded records."""


@dataclass(frozen=True)
class Estimate:
    """What a stage released, and the map that it makes of it."""

    recoding: Recoding
    typical: Typical
    spectrum: Spectrum | None = None
    target: Target = field(default_factory=Target)


class Inside:
    """The curator as an inner solver sees it: recoded facts, and a count that was already released.

    It adds nothing to what the curator answers, and takes no part in what is charged: post-processing.
    """

    def __init__(self, curator: "Curator", n: float, estimate: Estimate) -> None:
        self._curator, self._n, self._typical = curator, n, estimate.typical

    def __getattr__(self, name: str) -> object:
        return getattr(self._curator, name)

    @property
    def domain(self) -> Domain:
        """The recoded domain, with what the stage knows of typical rows."""
        return replace(self._curator.domain, typical=self._typical)

    def noisy_count(self) -> float:
        """Return the count that the stage released."""
        return self._n


class Counted:
    """The curator with a count that was already released. It adds nothing to what is answered: post-processing."""

    def __init__(self, curator: "Curator", n: float) -> None:
        self._curator, self._n = curator, n

    def __getattr__(self, name: str) -> object:
        return getattr(self._curator, name)

    def noisy_count(self) -> float:
        """Return the count that was released."""
        return self._n


@dataclass(frozen=True)
class Stage(ABC):
    """A solver around a solver; subclasses say what they release and which map they make of it."""

    solver: Solver
    name: ClassVar[str]
    asked: ClassVar[tuple[str, ...]] = ASKED
    takes_public_moments: ClassVar[bool] = False
    gives_shape: ClassVar[bool] = False
    """Whether what it estimates is the shape that inference starts from."""

    @abstractmethod
    def releases(self, domain: Domain, loss: Loss) -> tuple[Release, ...]:
        """List the stage's own releases, the count left out."""

    @abstractmethod
    def estimate(self, curator: "Curator", n: float) -> Estimate:
        """Ask for them, and make a map; the records are recoded afterwards."""

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the stage's releases, the inner solver's with the rest of mu^2, and a count where n is private."""
        self._check(domain, loss, penalty)
        own, made = self.releases(domain, loss), self._inner_plan(domain, loss, penalty)
        if isinstance(made, AdaptivePlan):
            return AdaptivePlan(
                (*own, *(replace(release, clip=None) for release in made.releases)), papers_total=made.papers_total
            )
        rest = 1.0 - sum(release.count / release.relative_noise**2 for release in own)
        inner = self._inner(domain, loss, penalty)
        scale = math.sqrt(sum(map(release_weight, inner)) / rest)
        scaled = (replace(release, relative_noise=release.relative_noise * scale) for release in inner)
        return Plan((*own, *scaled, *count_release(domain, shares_to_noise(COUNT_SHARE))))

    def _inner_plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """Return the inner solver's plan for recoded records, of which little is known yet."""
        p = domain.n_features
        typical = Typical(1.0, 1.0, np.ones(p))
        facts = replace(
            domain, feature_bounds=np.ones(p), row_norm=1.0, intercept=False, ranges=None, target_range=None,
            typical=typical, moments=None,
        )  # fmt: skip
        same = Recoding(np.zeros(p - domain.intercept), np.ones(p - domain.intercept))
        return self.solver.plan(facts, loss, self._penalty(penalty, same, domain))

    def _inner(self, domain: Domain, loss: Loss, penalty: Penalty) -> list[Release]:
        """Return the inner solver's releases: lengths of recoded rows are not known yet, so no clip is fixed."""
        plan = self._inner_plan(domain, loss, penalty)
        if plan.least_noise is not None or plan.total_variation:
            raise Unsupported("a stage runs a solver with a fixed plan of its own: use gd, sgd, svrg, cd or gcd in it")
        if any(release.query not in self.asked for release in plan.releases):
            raise Unsupported("a stage runs an iterative solver on recoded records: use gd, sgd, svrg, cd or gcd in it")
        return [replace(release, clip=None) for release in plan.releases if release.query != "noisy_count"]

    def _check(self, domain: Domain, loss: Loss, penalty: Penalty) -> None:
        """Refuse losses whose targets cannot follow a row that is shrunk, and solvers that cannot run in here."""
        if isinstance(self.solver, Stage):
            raise Unsupported(
                "a stage runs an iterative solver on recoded records, no stage: use gd, sgd, svrg, cd or gcd in it"
            )
        if loss.task == "regression" and not loss.movable_target:
            raise Unsupported(f"recoded coordinates know no {type(loss).__name__} loss: use solver='gd'")

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Estimate the map, recode the records, solve, and map the coefficients back."""
        with on_one_thread(curator.domain.n_features):
            n, admitted = public_count(curator), curator.domain
            estimate = self.estimate(curator, n)
            recoding, loss = estimate.recoding, curator.loss
            rescaled = loss.with_target_scale(recoding.target_scale) if loss.movable_target else None
            curator.recode(recoding, loss=rescaled)
            inside = cast("Curator", Inside(curator, n, estimate))
            found = self.solver.solve(inside, self._penalty(penalty, recoding, admitted), progress)
            return self._finished(curator, penalty, estimate, found, n, admitted)

    def _finished(
        self, curator: "Curator", penalty: Penalty, estimate: Estimate, found: Solution, n: float, admitted: Domain
    ) -> Solution:
        """Map the solution back."""
        smooth = penalty.ridge
        extra = 0.0 if smooth or not admitted.intercept else estimate.target.noise  # corners may keep a wrong center
        trace = StageTrace(found, estimate.recoding, admitted, curator.loss, estimate.spectrum, extra)
        w = estimate.recoding.coefficients(found.coefficients)
        return Solution(w if smooth else penalty.prox(w, 0.0), trace, estimate)  # into a box; moves nothing else

    def _penalty(self, penalty: Penalty, recoding: Recoding, admitted: Domain) -> Penalty:
        """Return the penalty in recoded coordinates: each on its own scale, the intercept at the center."""
        if penalty.ridge and penalty.strong_convexity == 0:
            return NoPenalty()
        if not penalty.separable:
            raise Unsupported(
                "only separable penalties (none, L1, L2, elastic net, a box) can be followed in other coordinates: use "
                "solver='gd' for this one"
            )
        units = np.append(1.0 / recoding.scale, recoding.constant)[: admitted.n_features] * recoding.target_scale
        return Rescaled(penalty, units, recoding.target_scale**2)

    def settings(self) -> dict[str, object]:
        """Return its public settings and the inner solver's, for the certificate."""
        own = {name: value for name, value in asdict(self).items() if name != "solver"}
        return {"name": self.name, **own, "solver": self.solver.settings()}


def check_shares(*shares: float, target: float | None = None) -> None:
    """Refuse shares that leave nothing to the inner solver; a target's may be 0 or left open."""
    if not sum(shares) + (TARGET_SHARE if target is None else target) < 1:
        raise Unsupported("the shares must leave some of the budget to the steps: their sum must be below 1")


def quadratic(penalty: Penalty, recoding: Recoding, admitted: Domain) -> Penalty:
    """Return a ridge penalty in other coordinates, exactly."""
    return Quadratic(*affine(recoding, admitted), penalty.strong_convexity / recoding.target_scale**2)


def release_weight(release: Release) -> float:
    """Return what a release costs about, in units of a Gaussian one of noise multiplier 1."""
    sampled = (release.sampling_numerator / SAMPLING_DENOMINATOR) ** 2
    return sampled * (0.25 if release.mechanism == "exponential" else 1.0) * release.count / release.relative_noise**2
