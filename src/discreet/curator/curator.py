"""The open wall: answers exactly the planned queries, and refuses the rest. Each query's file has its proof.

From a priced plan to its certificate: what is promised before records are read, and what is issued afterwards.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from discreet.accounting.certificate import GIVEN, Certificate
from discreet.accounting.pricing import PricedPlan
from discreet.bounds import Domain, Moments, Typical
from discreet.curator.engines import Engine
from discreet.curator.known_answers import check_recoding_kernels
from discreet.curator.noise import current_entropy
from discreet.curator.queries import choices, counts, effects, gradients, minimizers, moments
from discreet.curator.records.recoding import Recoding, placement
from discreet.curator.records.storage import within_memory
from discreet.curator.session import Session, current_observer, doubts, idealized
from discreet.errors import PlanViolation, Unsupported
from discreet.json_schemas import Json
from discreet.ledger.ledger import Reservation
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
    solver: Mapping[str, object]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] | None = None
    noise_multiplier: float | None = None
    idealized: tuple[str, ...] | None = None
    given: Mapping[str, object] = field(default_factory=dict)


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


Words = ParamSpec("Words")
Answer = TypeVar("Answer")


def _method(question: Callable[Concatenate[Session, Words], Answer]) -> Callable[Concatenate["Curator", Words], Answer]:
    """Return a question as a method that asks it of the curator's session, one question at a time."""

    @wraps(question)
    def answer(self: "Curator", /, *args: Words.args, **words: Words.kwargs) -> Answer:
        with self._session.lock:
            return within_memory(lambda: question(self._session, *args, **words))

    return answer


class Curator:
    """Holds the records of one reserved plan. ``PrivateData.open`` makes it; solvers ask it.

    Public: ``domain``, ``loss``, ``budget``, ``plan``, ``noise_multiplier``. All answers are noisy and were paid for:
    each is a question of ``queries/``, whose docstring has the proof, without its session. A sum's noise is drawn
    before records are read. A curator is never copied, and answers in its own process only.

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

    noisy_gradient = _method(gradients.noisy_gradient)
    noisy_gradient_change = _method(gradients.noisy_gradient_change)
    noisy_coordinate_gradient = _method(gradients.noisy_coordinate_gradient)
    noisy_coordinate_steps = _method(gradients.noisy_coordinate_steps)
    noisy_share_within = _method(gradients.noisy_share_within)
    select_coordinate = _method(choices.select_coordinate)
    select_candidate = _method(choices.select_candidate)
    noisy_score = _method(choices.noisy_score)
    noisy_count = _method(counts.noisy_count)
    noisy_weight = _method(counts.noisy_weight)
    noisy_mean = _method(moments.noisy_mean)
    noisy_mean_squares = _method(moments.noisy_mean_squares)
    noisy_magnitudes = _method(moments.noisy_magnitudes)
    noisy_second_moment = _method(moments.noisy_second_moment)
    noisy_squared_norms = _method(moments.noisy_squared_norms)
    noisy_target_moments = _method(moments.noisy_target_moments)
    noisy_weighted_gradient = _method(effects.noisy_weighted_gradient)
    noisy_curvature = _method(effects.noisy_curvature)
    noisy_score_covariance = _method(effects.noisy_score_covariance)
    noisy_squared_slopes = _method(effects.noisy_squared_slopes)
    noisy_shells = _method(effects.noisy_shells)
    noisy_minimizer = _method(minimizers.noisy_minimizer)
    noisy_descent = _method(minimizers.noisy_descent)
    exact_minimizer = _method(minimizers.exact_minimizer)
    perturbed_minimizer = _method(minimizers.perturbed_minimizer)
    sample_minimizer = _method(minimizers.sample_minimizer)

    def recode(
        self, recoding: Recoding, *, loss: Loss | None = None, typical: Typical | None = None, once: bool = False
    ) -> None:
        """Put every record through a map, onto a new lattice; later questions live there. Free.

        Each recoding starts from the records as they were admitted, not from an earlier recoding. ``domain`` becomes
        the new one, with what was released of ``typical`` recoded rows; ``loss``, where given, replaces the loss (for a
        target on another scale). ``once`` says that one question follows, so that rows may be mapped as it passes them.

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
            if not once:
                session.see(admitted, public)  # there is room for what one map makes of the records
            recoded = within_memory(lambda: admitted.recoded(placed, once=once))
            session.see(recoded, replace(recoding.domain(public), typical=typical))
            session.loss = session.loss if loss is None else loss

    def start_at(self, w: Floats) -> None:
        """Let later steps start from coefficients of the records as they are now. Free.

        Privacy
        -------
        Nothing is released. Conditions: the coefficients are public or made of released values.
        """
        session = self._session
        session.see(session.engine, replace(session.domain, start=np.array(w, dtype=np.float64)))

    @contextmanager
    def recoded(self, recoding: Recoding, *, loss: Loss | None = None) -> Iterator[None]:
        """Ask a question of records through a map, made on the way, then go on with the records from before. Free.

        Privacy
        -------
        Nothing is released: as ``recode``, under the same conditions, there and back.
        """
        session = self._session
        before, loss_before = (session.engine, session.domain), session.loss
        self.recode(recoding, loss=loss, once=True)
        try:
            yield
        finally:
            session.see(*before)
            session.loss = loss_before

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
