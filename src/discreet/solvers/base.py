"""What a solver is: a plan made without data, and a computation on a curator's answers.

One vocabulary, with one meaning and one type in every solver. None, where it is allowed, leaves a choice open:

================================  =====================================================================================
``solver: Solver``                what ``Preconditioned`` runs in its coordinates, or where inference starts
``n_steps: int``                  released gradients, or steps
``n_epochs``, ``n_outer: int``    outer iterations, where the paper has two loops
``n_inner: int``                  inner iterations of each outer one
``step_size: float | None``       absolute length of a step; None: by ``relative_step``
``relative_step: float``          length of a step in units of 1 / curvature
``step_schedule: str | tuple``    what the step is multiplied by over time: a name, or one factor per step. Free
``momentum: float | "nesterov"``  weight of the last move; 0.0 for none. Free
``average: str``                  which iterates are averaged: ``"last"`` (none), ``"uniform"`` (all), ``"suffix"``
                                  (from the middle one on), ``"tail"`` (after the middle one), ``"polynomial"`` (later
                                  ones weigh more). Free
``clip: float | None``            absolute bound on a record's gradient (L2; L1 for pure budgets); None: by
                                  ``relative_clip``, else what the loss and the declared bounds imply
``relative_clip: float | None``   the same bound in units of a typical row's length
``batch_size: float | None``      expected number of records in a sample
``sampling_probability``          instead of ``batch_size``: the probability with which a record joins a sample
``block_size: int``               coordinates that one step moves
``radius: float | None``          ball that iterates are projected onto; None: no projection
``row_norm: float | None``        rows longer than this are shrunk onto it; None: not, or as a rule says
``relative_row_norm``             the same bound in standard deviations per column, where these were estimated
``reach: float``                  how far rows count in full, in units of a typical row's length; longer ones weigh less
``regularization: float | None``  mu of (mu/2) ||w||^2, added to the penalty's own
``loss_bound: float | None``      bound on a record's loss, where losses are compared
``geometry: Geometry``            clips and smoothness of coordinates
``floor: float``                  what keeps noisy eigenvalues from 0, in units of their noise's edge: added
                                  (whitening), or the least (Newton steps)
``selection: str``                mechanism of a private choice
``calibration: str``              ``"tight"``: exact prices; else a publication's noise, which is more
``*_share: float``                share of the budget, in units of mu^2
================================  =====================================================================================

``@register("svrg")`` above a frozen dataclass with ``plan``, ``solve`` and ``settings``, in its own file, is all that a
solver needs: its name is then known to ``solver=`` of every estimator, to ``--solver``, to ``discreet audit`` and to
saved models. What it may bring in addition: ``Chooses``.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from discreet.accounting.plan import Plan, Release
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss
from discreet.parameters import check_fields
from discreet.penalties.base import Penalty
from discreet.registry import BUILT_IN_SOLVERS, Registry
from discreet.solvers.propagation import taken_back
from discreet.typing import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.curator import Curator, Recoding
    from discreet.solvers.coordinates import Estimate


COV_TYPES = ("model", "robust", "cluster")
"""What covariances inference estimates."""
SHOWN = 20
"""How often the progress of a compiled run of steps is shown."""


class Progress:
    """Iterate over steps: ``for t in progress(range(T))``. This one shows nothing."""

    def __call__(self, steps: range) -> Iterable[int]:
        """Iterate over the steps of a loop."""
        return steps

    def parts(self, steps: range, planned: int) -> Iterable[range]:
        """Iterate over consecutive parts of steps that run in one compiled call: one part where nobody watches."""
        return (steps,)


class Watched(Progress):
    """Progress that is reported as (steps done, steps planned), both public."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self._report = report

    def __call__(self, steps: range) -> Iterable[int]:
        """Report each step once it is done."""
        for done, step in enumerate(steps, start=1):
            yield step
            self._report(done, len(steps))

    def parts(self, steps: range, planned: int) -> Iterable[range]:
        """Report every twentieth of the steps."""
        size, longer = divmod(len(steps), SHOWN)
        cuts = [steps.start + size * k + min(k, longer) for k in range(SHOWN + 1)]
        for first, last in pairwise(cuts):
            if first < last:
                yield range(first, last)
                self._report(last, planned)


UNWATCHED: Progress = Progress()


class Trace(Protocol):
    """What a run did, in public and released values: enough to tell what the privacy noise alone did."""

    def deviations(self) -> Floats | None:
        """Return the noise's standard deviation in each coefficient; None where there is no honest figure."""
        ...


MATRICES = ("covariance", "privacy", "metric", "blind", "design", "bias", "doubt", "sampling", "limited")
FIGURES = ("wobble", "mean_curvature", "steps", "deviation", "count", "reach", "slope", "far", "cut")


@dataclass(frozen=True)
class Effects:
    """What a solver reports on how far its coefficients are from a population's, in training coordinates.

    Matrices of all coefficients, released or made of released values. ``covariance`` counts sampling and every noise,
    ``privacy`` the noise alone. ``metric`` is the inverse of the noisy second moment, ``blind`` the part of it that
    lies in directions which noise hides; ``design`` is the inverse of the mean Hessian. ``wobble`` is how uncertain a
    variance is, in units of its privacy part, and ``mean_curvature`` the mean of the loss's curvature; ``steps`` tells
    how far the averaged steps went each, in units of the mean's deviation; ``deviation`` is a residual's, and ``count``
    the number of records as far as it is public.
    ``reach`` says beyond how many typical lengths rows count less, 0 where none do (declared ranges have no room);
    ``bias`` is the part of ``covariance`` that allows for what weights do to long columns where the model is wrong.
    ``slope`` says at how many deviations slopes are cut, 0 where none can be; ``far`` and ``cut`` are the noisy shares
    of rows beyond the reach and of slopes beyond that. ``doubt`` is the deviation of what the noise of the Hessian does
    to each variance, for scores with the Hessian as their covariance. ``sampling`` is about the covariance without
    privacy: ``covariance`` is as large as noise leaves open, this as near to the model's; ``limited`` the part of
    ``metric`` where it is not known, since columns go farther than rows count in full.
    For K classes matrices are of K - 1 blocks: differences of a class's coefficients from the first class's.
    """

    covariance: Floats
    privacy: Floats
    metric: Floats
    blind: Floats
    design: Floats
    wobble: float = 0.0
    mean_curvature: float = 1.0
    steps: float = 0.0
    deviation: float = 1.0
    count: float = 0.0
    reach: float = 0.0
    bias: Floats = None  # type: ignore[assignment]  # stands for zeros
    doubt: Floats = None  # type: ignore[assignment]  # stands for zeros
    limited: Floats = None  # type: ignore[assignment]  # stands for zeros
    sampling: Floats = None  # type: ignore[assignment]  # stands for what is neither noise nor bias
    slope: float = 0.0
    far: float = 0.0
    cut: float = 0.0

    def __post_init__(self) -> None:
        for name in ("bias", "doubt", "limited"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros_like(self.covariance))
        if self.sampling is None:
            object.__setattr__(self, "sampling", self.covariance - self.privacy - self.bias)

    def through(self, units: Floats) -> "Effects":
        """Return the same for coefficients that are multiplied by ``units``, or mapped by a matrix, in each block."""
        linear = np.diag(units) if units.ndim == 1 else units
        linear = np.asarray(np.kron(np.eye(len(self.covariance) // linear.shape[1]), linear), dtype=np.float64)
        moved = {name: linear @ getattr(self, name) @ linear.T for name in MATRICES}
        return replace(self, **moved)

    def blanked(self, hidden: "NDArray[np.bool_]") -> "Effects":
        """Return the same with NaN in place of the variances of some coefficients."""
        either = hidden[:, None] | hidden
        names = ("covariance", "privacy", "bias", "doubt", "sampling", "limited")
        moved: dict[str, Any] = {name: np.where(either, np.nan, getattr(self, name)) for name in names}
        return replace(self, **moved)

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> "Effects":
        """Return what ``to_dict`` was made of."""
        names = [name for name in MATRICES if name in stored]
        matrices: dict[str, Any] = {name: np.array(stored[name], dtype=np.float64) for name in names}
        figures: dict[str, Any] = {name: float(str(stored[name])) for name in FIGURES if name in stored}
        return cls(**matrices, **figures)


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the released coefficients, in training coordinates, (p,) or (p, K), and its trace.

    ``estimate`` is what was released of the shape of the records; ``effects`` are for a population.
    """

    coefficients: Floats
    trace: Trace | None = None
    estimate: "Estimate | None" = None
    effects: Effects | None = None

    @cached_property
    def noise(self) -> Floats | None:
        """Standard deviation, to first order, of what the privacy noise alone did to each coefficient.

        Made of public and released values, so free. None where there is no honest figure; the solver's trace says why.
        """
        return None if self.trace is None else self.trace.deviations()

    def noise_in(self, units: "Recoding") -> Floats | None:
        """Return ``noise`` for the coefficients of records before the map ``units``: the user's own.

        A trace that knows how noise is correlated maps it itself; else entries are taken for independent.
        """
        mapped: Callable[[Recoding], Floats | None] | None = getattr(self.trace, "deviations_in", None)
        if mapped is not None:
            return mapped(units)
        return None if self.noise is None else taken_back(units, np.square(self.noise))


@runtime_checkable
class Solver(Protocol):
    """One algorithm, configured. ``registry.Chooses`` has what it may bring in addition."""

    @property
    def name(self) -> str:
        """Its short name, as in ``solver="gd"``."""
        ...

    def plan(self, domain: Domain, loss: Loss, penalty: Penalty) -> Plan:
        """List the releases that a run will ask for, which are priced and charged before ``solve``. No data is read.

        What it does not serve, of loss, penalty or domain, is refused: ``Unsupported``.
        """
        ...

    def solve(self, curator: "Curator", penalty: Penalty, progress: Progress = UNWATCHED) -> Solution:
        """Ask for the planned releases, and compute; ``progress`` iterates over the steps, and may report them."""
        ...

    def settings(self) -> dict[str, object]:
        """Return its name and every parameter as it was planned with, all public: for the certificate."""
        ...


class Configured:
    """Solvers that check their fields by their types, and state them in the certificate."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_fields(self)

    def settings(self) -> dict[str, object]:
        """Return its public settings, for the certificate."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


def count_release(domain: Domain, relative_noise: float = 1.0) -> tuple[Release, ...]:
    """Plan what turns a sum into a mean: a noisy sum of weights, or a noisy count where n is private."""
    if domain.n is not None and not domain.weighted:
        return ()
    query = "noisy_weight" if domain.weighted else "noisy_count"
    return (Release(query, 1, relative_noise=relative_noise, clip=1.0, dimension=1),)


def public_count(curator: "Curator") -> float:
    """Return n as far as it is public, declared or agreed on by neighbors, else noisy; noisy weights have their sum.

    What was released is not asked for again. A number within twice its own noise hardly says how many there are: twice
    the noise then stands for it, as sums over too large a number are too small, and over too small a one without bound.
    """
    domain = curator.domain
    if domain.n is not None and not domain.weighted:
        return float(domain.n)
    count = domain.count
    if count is None:
        count = curator.noisy_weight() if domain.weighted else curator.noisy_count()
    return max(1.0, count, 2.0 * count_noise(curator))


def count_noise(curator: "Curator") -> float:
    """Return the deviation of the noise in a private count, or sum of weights; 0 where the plan asks for none."""
    query = "noisy_weight" if curator.domain.weighted else "noisy_count"
    unit = curator.noise_multiplier * (math.sqrt(2.0) if curator.budget.is_pure else 1.0)
    return max((unit * each.relative_noise for each in curator.plan.releases if each.query == query), default=0.0)


def refuse_weights(domain: Domain) -> None:
    """Refuse records with weights where the proof or the plan is for records that count alike."""
    if domain.weighted:
        raise Unsupported("records with weights are served by gradients and coordinates: use solver='auto' or 'gd'")


def planned(curator: "Curator", query: str) -> Release:
    """Return the release of this query in the curator's plan: of several that of most answers, or the last."""
    most = None
    for release in curator.plan.releases:
        if release.query == query and (most is None or release.count >= most.count):
            most = release
    if most is None:
        raise PlanViolation(f"the plan has no {query}: plan it before opening the data")
    return most


def _not_a_solver(cls: type) -> str | None:
    if is_dataclass(cls) and all(hasattr(cls, part) for part in ("plan", "solve", "settings")):
        return None
    return "a dataclass with plan, solve and settings: see solvers/base.py"


SOLVERS: Registry[type[Solver]] = Registry("solver", BUILT_IN_SOLVERS, _not_a_solver)
register = SOLVERS.register


def settings_class(name: str) -> type | None:
    """Return the solver, or the dataclass that is part of its settings, of this name: registered, or ours and public.

    Saved models name these. Nothing but what this package and the default's export is imported for a name.
    """
    for package in map(import_module, ("discreet.solvers", "discreet.default")):
        exported = getattr(package, name) if name in package.__all__ else None
        if isinstance(exported, type) and is_dataclass(exported):
            return exported
    return SOLVERS.class_named(name)


CANARY_CLIP = 0.25
"""The clip in audits: a canary's gradient near 0 is longer."""
SHORT_STEP = 1e-4
"""The step in audits: the weights stay near 0, where the canary contributes the whole sensitivity."""


@dataclass(frozen=True)
class AuditCase:
    """How a solver is audited.

    Parameters
    ----------
    solver : Solver or str
        Settings under which a canary shows all it can: few steps, ``CANARY_CLIP``, ``SHORT_STEP``.
    level : {"transcript", "model"}, default="transcript"
        ``"model"`` where no transcript shows all of the randomness (samples, noise inside an objective, draws).
    alpha : float, default=0.0
        The strength of an L2 penalty, where the solver needs one.
    effort : float, default=1.0
        The share of the asked runs that it gets: some fits take longer.
    replays : bool, default=True
        Whether there is a sum under noise that a replay can compare.
    """

    solver: Solver | str
    level: str = "transcript"
    alpha: float = 0.0
    effort: float = 1.0
    replays: bool = True


class Chooses(Protocol):
    """What a solver may bring in addition to ``Solver``'s methods. All of it follows from public facts."""

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return the solver that its name means, perhaps for ``filled``. Without it: the class without arguments."""
        ...

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Choose what was left open. Without it: the solver as it is."""
        ...

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Return few short steps that ``discreet audit`` runs. Without it: by its name, audited by its transcripts."""
        ...


def solver_named(name: str, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
    """Return the solver that a name means, complete, from public facts."""
    cls = SOLVERS[name]
    defaults: Callable[..., Solver] = getattr(cls, "defaults", lambda *facts: cls())
    return filled(defaults(domain, loss, penalty, budget), domain, loss, penalty, budget)


def filled(solver: Solver, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
    """Return a solver with what it leaves open filled by its own rule, where it has one."""
    fill: Callable[..., Solver] = getattr(solver, "filled", lambda *facts: solver)
    return fill(domain, loss, penalty, budget)


def audit_case(name: str) -> AuditCase:
    """Return how the solver of this name is audited."""
    case: Callable[[], AuditCase] = getattr(SOLVERS[name], "audit_case", lambda: AuditCase(name))
    return case()


SMALL = 512
"""Matrices of up to so many columns are factored about as fast by one thread."""


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def on_one_thread(columns: int) -> Iterator[None]:
    """Let BLAS run on one thread inside the block, if its matrices have few columns; afterwards as before.

    Its threads keep spinning for some milliseconds after each call. Where matrices are small that gains nothing, and
    spinning threads take the cores from passes over records.
    """
    if columns > SMALL:
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


def project(w: Floats, radius: float | None) -> Floats:
    """Project onto the ball: a point outside is shrunk, a point inside stays."""
    norm = float(np.linalg.norm(w))
    return w if radius is None or norm <= radius else w * (radius / norm)
