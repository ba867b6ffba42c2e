"""The open wall: answers exactly the planned queries, and refuses the rest. Each query's file has its proof.

From a priced plan to its certificate: what is promised before records are read, and what is issued afterwards.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from discreet.accounting.certificate import GIVEN, Certificate
from discreet.accounting.priced_plan import PricedPlan
from discreet.bounds import Domain, Moments, Typical
from discreet.curator.engines.base import Engine
from discreet.curator.known_answers import check_recoding_kernels
from discreet.curator.lattice.entropy import current_entropy
from discreet.curator.queries import choices, counts, gradients, minimizers, moments, sampling
from discreet.curator.queries import coordinates as coordinate_queries
from discreet.curator.queries import effects as effect_queries
from discreet.curator.queries.coordinates import CoordinateRun
from discreet.curator.queries.effects import Edges, Shells
from discreet.curator.queries.minimizers import Problem
from discreet.curator.records.recoding import Recoding, placement
from discreet.curator.records.storage import within_memory
from discreet.curator.session import Session, current_observer, doubts, idealized
from discreet.errors import PlanViolation, Unsupported
from discreet.json_schemas import Json
from discreet.ledger.reservation import Reservation
from discreet.losses.base import Loss
from discreet.typing import Floats, Integers


@dataclass(frozen=True)
class Claim:
    """What a certificate says of its release, in addition to the price.

    Parameters
    ----------
    model, solver, notes
        As in ``Certificate``.
    facts
        The declared facts, where they are not those of the records that are opened.
    given
        Numbers that the user handed in, in addition to those among the solver's settings: see ``given_with``.
    noise_multiplier, idealized
        Those of what is inside a selection; None: those of the priced plan.
    """

    model: str
    solver: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None
    noise_multiplier: float | None = None
    idealized: tuple[str, ...] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def promise(priced: PricedPlan, facts: Mapping[str, object], claim: Claim) -> Certificate:
    """Return the certificate as far as it is known before records are read: what a ledger is to expect."""
    entropy, reasons = current_entropy(), claim.idealized
    given = {**claim.given, **dict(_vectors(claim.solver))}
    return Certificate.of(
        priced,
        {**(facts if claim.facts is None else claim.facts), **({GIVEN: given} if given else {})},
        model=claim.model,
        solver=claim.solver,
        notes=claim.notes,
        idealized=idealized(priced.plan, priced.budget) if reasons is None else reasons,
        noise_multiplier=claim.noise_multiplier,
        entropy=entropy.name,
        not_private=doubts(entropy, observed=current_observer() is not None),
    )


def given_with(domain: Domain) -> Json:
    """Return the numbers that were handed in with the records, in training coordinates: a start, public moments."""
    start = {} if domain.start is None else {"start": domain.start.tolist()}
    return start if domain.moments is None else {**start, "public_moments": _listed(domain.moments)}


def _listed(moments: Moments) -> dict[str, object]:
    """Return moments for the certificate; of a covariance a digest of its p^2 numbers."""
    summary = {"mean": moments.mean.tolist(), "scale": moments.scale.tolist()}
    if moments.covariance is None:
        return summary
    return {**summary, "covariance_sha256": hashlib.sha256(moments.covariance.astype("<f8").tobytes()).hexdigest()}


def _vectors(settings: Mapping[str, object], within: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings that are vectors or tables of numbers: a solver computes none, so the user gave them."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _vectors(value, f"{within}{name}.")
        elif isinstance(value, (list, tuple, np.ndarray)) and _holds_numbers(value):
            yield f"{within}{name}", value


def _holds_numbers(value: object) -> bool:
    """Whether a number stands anywhere in nested sequences."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return any(_holds_numbers(item) for item in value)
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def issued(promised: Certificate, reservation: Reservation | None, session: Session | None = None) -> Certificate:
    """Return what was promised with what only the run tells: where its noise came from, who looked, its charge."""
    released: Json = {}
    if session is not None:
        trace = () if session.filter is None else session.filter.trace
        released = {
            "entropy": session.entropy.name,
            "not_private": doubts(session.entropy, observed=session.is_observed),
            "trace": trace,
        }
    reference = None if reservation is None else reservation.reference
    return replace(promised, created=date.today().isoformat(), ledger=reference, **released)


Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class Curator:
    """Holds the records of one reserved plan. ``PrivateData.open`` makes it; solvers ask it.

    Public: ``domain``, ``loss``, ``budget``, ``plan``, ``noise_multiplier``. All answers are noisy and were paid for. A
    sum's noise is drawn before records are read. It is never copied, and answers in its own process only.

    Parameters
    ----------
    engine : Engine
        Reads the admitted records.
    domain : Domain
        What is public of them, in training coordinates.
    loss : Loss
        Whose gradients and values are summed.
    priced : PricedPlan
        What will be answered, and with how much noise.
    facts : dict
        What was declared, for the certificate.
    reservation : Reservation or None, default=None
        The ledger's charge for it.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Bounds, Budget
    >>> from discreet.accounting import Plan, Release, price_plan
    >>> from discreet.curator import PrivateData
    >>> from discreet.losses import Logistic
    >>> data = PrivateData(np.zeros((10, 2)), [0, 1] * 5, Bounds(1.0, classes=(0, 1)), ledger=False)
    >>> priced = price_plan(Plan([Release("noisy_gradient", 1, clip=0.5)]), Budget(1.0, 1e-6))
    >>> data.open(priced, Logistic()).noisy_gradient(np.zeros(3), clip=0.5).shape
    (3,)
    """

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        loss: Loss,
        *,
        priced: PricedPlan,
        facts: Json,
        reservation: Reservation | None = None,
    ) -> None:
        self.reservation, self.priced, self._facts = reservation, priced, facts
        self.plan, self.budget, self.noise_multiplier = priced.plan, priced.budget, priced.noise_multiplier
        self._session = Session(engine, domain, self.plan, self.budget, self.noise_multiplier)
        self._session.loss = loss

    @property
    def domain(self) -> Domain:
        """What is public of the records, as they were recoded last."""
        return self._session.domain

    @property
    def loss(self) -> Loss:
        """The loss whose gradients and values are summed."""
        return self._session.loss

    def _ask(
        self, question: Callable[Concatenate[Session, Asked], Answer], *args: Asked.args, **words: Asked.kwargs
    ) -> Answer:
        with self._session.lock:
            return within_memory(lambda: question(self._session, *args, **words))

    def noisy_gradient(self, w: Floats, *, clip: float, rho: float | None = None) -> Floats:
        """Return the SUM over the (Poisson-sampled) records of the loss's gradients at ``w``, each clipped, plus noise.

        Divide it by n, or by the expected batch size: the declared ones, never the realized. Under an adaptive plan
        ``rho`` is what the answer may cost.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum; a record contributes at most ``clip``. Proof:
        ``queries.gradients.noisy_gradient``.
        """
        return self._ask(gradients.noisy_gradient, w, clip=clip, rho=rho)

    def noisy_gradient_change(self, w: Floats, anchor: Floats, *, clip: float) -> Floats:
        """Return the SUM over the (Poisson-sampled) records of the gradient's change from ``anchor`` to ``w``, noisy.

        Each record's change is clipped; beta ||w - anchor|| bounds it, and is public since both points are.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum; a record contributes at most ``clip``. Proof:
        ``queries.gradients.noisy_gradient_change``.
        """
        return self._ask(gradients.noisy_gradient_change, w, anchor, clip=clip)

    def noisy_coordinate_gradient(self, w: Floats, coordinates: object, *, clips: object) -> Floats:
        """Return entries of the gradient's SUM at ``w``: one coordinate or a block, each entry clipped, plus noise.

        Privacy
        -------
        Gaussian (Laplace) noise on integer sums; a record contributes at most the norm of ``clips``. Proof:
        ``queries.coordinates.noisy_coordinate_gradient``.
        """
        return self._ask(coordinate_queries.noisy_coordinate_gradient, w, coordinates, clips=clips)

    def noisy_coordinate_steps(
        self, w: Floats, coordinates: Any, *, clips: Any, steps: object, penalty: object, n: float
    ) -> CoordinateRun:
        """Take proximal coordinate steps w_j <- prox(w_j - step_j g_j), thousands in one compiled call.

        ``g_j`` is the noisy mean gradient entry (the sum over ``n``). ``clips`` and ``steps`` hold one number for
        every coordinate. Iterates live on a fixed dyadic grid (2^-24, 2^-17 for ``scale="global"``).

        Privacy
        -------
        One noisy sum of a single gradient entry per step, whatever its coordinate. Proof:
        ``queries.coordinates.noisy_coordinate_steps``.
        """
        words = {"clips": clips, "steps": steps, "penalty": penalty, "n": n}
        return self._ask(coordinate_queries.noisy_coordinate_steps, w, coordinates, **words)

    def noisy_share_within(self, w: Floats, coordinate: int, *, clip: float) -> float:
        """Return how many records' gradient entries lie within +-clip, less half of all records, plus noise.

        Privacy
        -------
        Gaussian (Laplace) noise on a sum of +-1/2 per record. Proof: ``queries.coordinates.noisy_share_within``.
        """
        return self._ask(coordinate_queries.noisy_share_within, w, coordinate, clip=clip)

    def select_coordinate(
        self, w: Floats, *, clips: Any, smoothness: Any, n: float, rule: str = "gs", penalty: Any = None, count: int = 1
    ) -> Integers:
        """Return the coordinate with (nearly) the best greedy score at ``w``: a private argmax; ``count``, in turn.

        Privacy
        -------
        An exact choice on integer scores, each of which a record moves by one common bound. Proof:
        ``queries.choices.select_coordinate``.
        """
        words = {"clips": clips, "smoothness": smoothness, "n": n, "rule": rule, "penalty": penalty, "count": count}
        return self._ask(choices.select_coordinate, w, **words)

    def select_candidate(
        self,
        points: Floats,
        *,
        loss_bound: float,
        offsets: Any = None,
        rho: float | None = None,
        score: str = "loss",
    ) -> int:
        """Return the index of the point with (nearly) the least sum of losses, each clipped to [0, loss_bound].

        ``offsets`` are public numbers added to the sums, such as n times the penalty at each point. Under an adaptive
        plan ``rho`` is what the answer may cost. ``score="zero_one"`` counts wrong classes in place of losses.

        Privacy
        -------
        An exact choice on integer scores whose differences a record moves within a range. Proof:
        ``queries.choices.select_candidate``.
        """
        words = {"loss_bound": loss_bound, "offsets": offsets, "rho": rho, "score": score}
        return self._ask(choices.select_candidate, points, **words)

    def noisy_score(self, w: Floats, *, error: float = 1.0) -> float:
        """Return how well ``w`` predicts: the SUM over records of 1/2 - bad, plus noise; bad is 1 for a wrong class.

        For numeric targets bad is the squared error over ``error`` squared, at most 1, in training coordinates.

        Privacy
        -------
        Gaussian (Laplace) noise on a sum of at most 1/2 per record. Proof: ``queries.choices.noisy_score``.
        """
        return self._ask(choices.noisy_score, w, error=error)

    def noisy_count(self) -> float:
        """Return the number of records (persons), plus noise: for ``add_remove``, where n is private.

        Privacy
        -------
        Gaussian (Laplace) noise on a sum of 1 per record. Proof: ``queries.counts.noisy_count``.
        """
        count = self._ask(counts.noisy_count)
        self._session.remember_count(count)
        return count

    def noisy_weight(self) -> float:
        """Return the sum of the records' weights, in units of the largest declared one, plus noise.

        Privacy
        -------
        Gaussian (Laplace) noise on a sum of at most 1 per record. Proof: ``queries.counts.noisy_weight``.
        """
        total = self._ask(counts.noisy_weight)
        self._session.remember_count(total)
        return total

    def noisy_mean(self, *, clip: float, n: float) -> Floats:
        """Return the sum of the records (their features, the constant among them), each shrunk to ``clip``, over ``n``.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum; a record contributes at most ``clip``. Proof:
        ``queries.moments.noisy_mean``.
        """
        return self._ask(moments.noisy_mean, clip=clip, n=n)

    def noisy_mean_squares(self, *, clip: float, n: float) -> Floats:
        """Return the sum of each squared feature over ``n``; a record's vector of squares is scaled to length ``clip``.

        The diagonal of ``noisy_second_moment``, for sparse and wide records too.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum of vectors without negative entries. Proof:
        ``queries.moments.noisy_mean_squares``.
        """
        return self._ask(moments.noisy_mean_squares, clip=clip, n=n)

    def noisy_second_moment(self, *, clip: float, n: float) -> Floats:
        """Return the sum of outer products x x^T over ``n``, symmetric, each scaled to a Frobenius norm of ``clip``.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum of positive semidefinite matrices. Proof:
        ``queries.moments.noisy_second_moment``.
        """
        return self._ask(moments.noisy_second_moment, clip=clip, n=n)

    def noisy_squared_norms(self, *, clip: float) -> Floats:
        """Return the SUM over records of each squared feature, plus noise; a record's squares have a total of clip^2.

        A release planned with ``mechanism="laplace"`` is the papers': each square relative to its own declared
        bound, Laplace noise; ``clip`` is then the declared row norm, and is not used.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum of vectors without negative entries. Proof:
        ``queries.moments.noisy_squared_norms``.
        """
        return self._ask(moments.noisy_squared_norms, clip=clip)

    def noisy_target_moments(self, *, n: float) -> tuple[float, float]:
        """Return the means of t and of t^2, t the target from the middle of its declared range, over half of it.

        Privacy
        -------
        Gaussian (Laplace) noise on an integer sum; a record contributes two numbers in [-1, 1]. Proof:
        ``queries.moments.noisy_target_moments``.
        """
        return self._ask(moments.noisy_target_moments, n=n)

    def noisy_weighted_gradient(self, w: Floats, *, clip: float, reach: float, slack: float = 1.0) -> Floats:
        """Return the SUM of gradients at ``w``, rows beyond ``reach`` counting less, each clipped, plus noise.

        Privacy
        -------
        Gaussian noise on an integer sum; a record contributes at most ``clip``. Proof:
        ``queries.effects.noisy_weighted_gradient``.
        """
        return self._ask(effect_queries.noisy_weighted_gradient, w, clip=clip, reach=reach, slack=slack)

    def noisy_curvature(self, w: Floats, *, clip: float, reach: float, slack: float = 1.0) -> Floats:
        """Return the SUM of the weighted Hessians at ``w``, each within a Frobenius norm of ``clip``, plus noise.

        Privacy
        -------
        Gaussian noise on an integer sum of positive semidefinite matrices. Proof: ``queries.effects.noisy_curvature``.
        """
        return self._ask(effect_queries.noisy_curvature, w, clip=clip, reach=reach, slack=slack)

    def noisy_score_covariance(self, w: Floats, *, clip: float, reach: float, slack: float = 1.0) -> Floats:
        """Return the SUM over records (persons) of s s^T, s the weighted gradient at ``w``, ||s||^2 <= clip, noisy.

        Privacy
        -------
        Gaussian noise on an integer sum of positive semidefinite matrices. Proof:
        ``queries.effects.noisy_score_covariance``.
        """
        return self._ask(effect_queries.noisy_score_covariance, w, clip=clip, reach=reach, slack=slack)

    def noisy_squared_slopes(self, w: Floats, *, clip: float) -> float:
        """Return the SUM of squared slopes of the loss at ``w``, each at most ``clip``, plus noise.

        Privacy
        -------
        Gaussian noise on a sum of at most ``clip`` per record. Proof: ``queries.effects.noisy_squared_slopes``.
        """
        return self._ask(effect_queries.noisy_squared_slopes, w, clip=clip)

    def noisy_shells(self, w: Floats, *, edges: Edges, reach: float, slack: float = 1.0) -> Shells:
        """Return how many records are in each shell of lengths, slopes, Hessians and scores at ``w``, plus noise.

        Privacy
        -------
        Gaussian noise on counts; a record is in one shell of each kind. Proof: ``queries.effects.noisy_shells``.
        """
        return self._ask(effect_queries.noisy_shells, w, edges=edges, reach=reach, slack=slack)

    def noisy_minimizer(self, problem: Problem) -> Floats:
        """Return the minimizer of the mean loss + (regularization/2) ||w||^2, plus noise: output perturbation.

        The problem's radius projects the minimizer onto a ball before the noise.

        Privacy
        -------
        Noise on a certified minimizer, which one record moves little. Proof: ``queries.minimizers.noisy_minimizer``.
        """
        return self._ask(minimizers.noisy_minimizer, problem)

    def noisy_descent(self, problem: Problem, *, n_steps: int, step_size: float) -> Floats:
        """Return the point after ``n_steps`` projected gradient steps from zero, plus noise: needs no minimizer.

        Privacy
        -------
        Noise on the last point of contracting steps. Proof: ``queries.minimizers.noisy_descent``.
        """
        return self._ask(minimizers.noisy_descent, problem, n_steps=n_steps, step_size=step_size)

    def perturbed_minimizer(self, problem: Problem) -> Floats:
        """Return the minimizer of the mean loss + (regularization/2) ||w||^2 + b.w / n, b random.

        Objective perturbation. The problem's radius projects the minimizer onto a ball afterwards.

        Privacy
        -------
        Noise inside the objective, and on the certified minimizer. Proof: ``queries.minimizers.perturbed_minimizer``.
        """
        return self._ask(minimizers.perturbed_minimizer, problem)

    def sample_minimizer(self, problem: Problem, *, sampler: str) -> Floats:
        """Return one draw from the density exp(-k (sum of losses + (lambda/2) ||w||^2)) on a ball.

        The exponential mechanism. ``sampler`` is ``"interval"``, ``"gaussian"``, ``"rejection"`` or ``"chain"``.

        Privacy
        -------
        A draw from a density whose exponent one record moves little. Proof: ``queries.sampling.sample_minimizer``.
        """
        return self._ask(sampling.sample_minimizer, problem, sampler=sampler)

    def recode(
        self, recoding: Recoding, *, loss: Loss | None = None, typical: Typical | None = None, once: bool = False
    ) -> None:
        """Put every record through a map, onto a new lattice; later questions live there. Free.

        Each recoding starts from the records as they were admitted, not from an earlier recoding. ``domain`` becomes
        the new one, with what was released of ``typical`` recoded rows; ``loss``, where given, replaces the loss (for a
        target on another scale). ``once`` says that one question will be asked of the recoded records: they are then
        made on the way, and not kept.

        Privacy
        -------
        Nothing is released. A record's image depends on that record and on the map alone, null records stay null, and
        persons keep their rows: neighboring tables become neighboring tables, under each relation.
        Conditions: the map and the loss are made of public and released values only; a new loss is of the same class,
        and a target is moved only where the loss's constants do not depend on it.
        """
        session = self._session
        check_recoding_kernels(sparse=session.admitted.is_sparse)
        with session.lock:
            numeric = session.loss.task == "regression"
            if loss is not None and type(loss) is not type(session.loss):
                raise PlanViolation("a recoding may rescale the loss, not replace it by another")
            if (recoding.target_center, recoding.target_scale) != (0.0, 1.0) and not session.loss.movable_target:
                raise Unsupported("only targets of losses of residuals (squared, Huber) can be centered and scaled")
            admitted, public = session.admitted, session.admitted_domain
            kind = {"sparse": admitted.is_sparse, "grouped": admitted.is_grouped, "numeric_target": numeric}
            placed = placement(recoding, public, **kind)
            recoded = within_memory(lambda: admitted.recoded(placed, once=once))
            session.see(recoded, replace(recoding.domain(public), typical=typical))
            session.loss = session.loss if loss is None else loss

    def public_integers(self, below: int, count: int) -> Integers:
        """Return ``count`` random whole numbers in [0, ``below``) that depend on no record: for random schedules. Free.

        Privacy
        -------
        Nothing of the data is in them.
        """
        words = self._session.entropy.words(count)
        if below & (below - 1) == 0:
            return (words >> np.uint64(65 - below.bit_length())).astype(np.int64)
        return ((words >> np.uint64(11)).astype(np.float64) * (2.0**-53 * below)).astype(np.int64)

    def next_round(self) -> None:
        """Begin the next round of an adaptive plan's budget trace. Free."""
        if self._session.filter is not None:
            self._session.filter.round += 1

    def certificate(self, *, model: str, solver: Json, notes: tuple[str, ...] = ()) -> Certificate:
        """Return what may be claimed of anything computed from this curator's answers."""
        claim = Claim(model, solver, notes, given=given_with(self._session.admitted_domain))
        return self.issued(promise(self.priced, self._facts, claim), self.reservation)

    def issued(self, promised: Certificate, reservation: Reservation | None) -> Certificate:
        """Return what was promised, with what only this curator tells: its noise's source, and who looked on."""
        return issued(promised, reservation, self._session)
