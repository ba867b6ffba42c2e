"""The open wall: answers exactly the planned queries, each with its proof, and refuses the rest."""

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import __version__
from discreet.accounting.certificate import Certificate
from discreet.accounting.plan import Plan
from discreet.accounting.pricing import epsilon_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import coordinates as coordinates_of
from discreet.curator import greedy
from discreet.curator.coordinates import CoordinateRun
from discreet.curator.engines.base import Engine, GradientQuery
from discreet.curator.lattice import place_weights
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported
from discreet.penalties import NoPenalty


class Curator:
    """Holds the records of one reserved plan. ``PrivateData.open`` makes it; solvers ask it.

    Public: ``domain``, ``loss``, ``budget``, ``plan``, ``noise_multiplier``. Everything a method returns
    is noisy and was paid for. A sum's noise is drawn before the records are read. A curator is neither copied
    nor pickled, and answers only in the process that opened it.
    """

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        loss: Any,
        *,
        plan: Plan,
        budget: Budget,
        noise_multiplier: float,
        facts: dict[str, Any],
    ) -> None:
        self.domain, self.loss, self.plan, self.budget = domain, loss, plan, budget
        self.noise_multiplier = noise_multiplier
        self.__session = Session(engine, domain, plan, budget, noise_multiplier)
        self.__facts = facts

    def noisy_gradient(self, w: NDArray[np.float64], *, clip: float) -> NDArray[np.float64]:
        """The SUM over the (Poisson-sampled) records of the loss's gradients at ``w``, each clipped, plus noise.

        Divide it by n, or by the expected batch size: the declared ones, never the realized.

        Privacy
        -------
        Sensitivity: a record (a person) contributes an integer vector q with ||q|| <= B exactly
        (``lattice``: |c| <= B // r, r >= ||x||; a person's k rows B // k each; several outputs
        ||c|| ||x|| <= B); ``clip`` is B in real units. A null record contributes 0. Hence the sum moves
        by at most B under ``zero_out`` and ``add_remove`` and by 2 B under ``replace_one``.
        Mechanism: sum + round(2^m N(0, I)), the ideal Gaussian mechanism rounded; for pure budgets the
        norm is L1 and the noise discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier;
        ``PoissonSampled`` where the plan samples, each record (person) by its own exact coin.
        Conditions: w depends on released values only; both norms are of integers, checked in integers.
        """
        session = self.__session
        if w.shape != self.domain.shape:
            raise PlanViolation(f"weights must have shape {self.domain.shape}")
        with session.lock:
            release = session.spend("noisy_gradient", clip)
            unit = session.unit(release, clip)
            drawn = session.noise(release, unit, w.size)
            grid = session.engine.grid
            query = GradientQuery(
                weights=place_weights(w, grid),
                loss=self.loss,
                bound=unit.bound,
                scale=unit.coefficient_scale(grid),
                use_l1=session.uses_l1(release),
                units=session.sample(release),
            )
            exact = session.engine.gradient_sum(query)
            released = session.release(release, unit, exact, exact + drawn.reshape(exact.shape))
        answer = np.ascontiguousarray(released.T, dtype=np.float64).reshape(w.shape)
        return answer * unit.step

    def noisy_count(self) -> float:
        """The number of records (persons), plus noise: for ``add_remove``, where n is private.

        Privacy
        -------
        Sensitivity: every record adds B lattice steps, so one more or less moves the sum by B.
        Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m for pure budgets.
        Event: ``Gaussian`` (``Laplace``) at 2^m / B >= the planned multiplier.
        Conditions: none. Under the other relations n is public and need not be bought.
        """
        if self.budget.neighbors.n_is_public:
            raise Unsupported("n is public under this relation: use the declared n")
        session = self.__session
        with session.lock:
            release = session.spend("noisy_count", 1.0)
            unit = session.unit(release, 1.0)
            drawn = session.noise(release, unit, 1)
            exact = np.array([unit.bound * session.engine.n_units], dtype=np.int64)
            released = session.release(release, unit, exact, exact + drawn)
        return float(released[0] * unit.step)

    def noisy_coordinate_gradient(self, w: NDArray[np.float64], coordinates: Any, *, clips: Any) -> NDArray[np.float64]:
        """Entries of the gradient's SUM at ``w``: one coordinate or a block, each record's entry clipped, plus noise.

        Privacy
        -------
        Sensitivity: a record's entry is the integer round(clip(f'(margin) x_j / step, +-B_j)); for one
        coordinate B_j = B, for a block the B_j are in proportion to ``clips`` with sum B_j^2 <= B^2 (L1: sum
        B_j <= B), checked in integers; a person's k rows get B_j // k each. The block moves by at most B,
        2 B under ``replace_one``.
        Mechanism: sum + round(2^m N(0, I)); discrete Laplace of scale 2^m for pure budgets and Laplace releases.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier, whatever the coordinates.
        Conditions: w, coordinates and clips depend on public and released values only.
        """
        session = self.__session
        columns, limits = coordinates_of.checked(session, w, coordinates, clips)
        with session.lock:
            return coordinates_of.block_gradient(session, self.loss, w, columns, limits)

    def noisy_coordinate_steps(
        self, w: NDArray[np.float64], coordinates: Any, *, clips: Any, steps: Any, penalty: Any, n: float
    ) -> CoordinateRun:
        """Proximal coordinate steps w_j <- prox(w_j - step_j g_j), thousands in one compiled call.

        ``g_j`` is the noisy mean gradient entry (the sum over ``n``). ``clips`` and ``steps`` hold one number for
        every coordinate. Iterates live on a fixed dyadic grid (2^-24, 2^-17 for ``scale="global"``).

        Privacy
        -------
        Sensitivity: that of ``noisy_coordinate_gradient`` with one coordinate, for each step in turn.
        Mechanism: the same; all noise is drawn before the first record is read. The fused kernel does the
        arithmetic of a loop of single sums on exact integer margins: the same bits.
        Event: one ``Gaussian`` (``Laplace``) a step, whatever its coordinate.
        Conditions: the coordinates are fixed beforehand; a step's w comes from earlier noisy sums only.
        """
        session = self.__session
        columns, limits = coordinates_of.checked(session, w, coordinates, clips)
        with session.lock:
            return coordinates_of.run_steps(
                session, self.loss, w, columns, clips=limits, steps=steps, penalty=penalty, n=n
            )

    def select_coordinate(
        self,
        w: NDArray[np.float64],
        *,
        clips: Any,
        smoothness: Any,
        n: float,
        rule: str = "gs",
        penalty: Any = None,
        count: int = 1,
    ) -> NDArray[np.int64]:
        """The coordinate with (nearly) the best greedy score at ``w``: a private argmax; ``count`` of them, in turn.

        Privacy
        -------
        Sensitivity: each score is 1/sqrt(M_j)-Lipschitz in the mean clipped gradient entry (``greedy``), so one
        record moves every score by at most s = max_j a clip_j / (n sqrt(M_j)); on the lattice of scores by at
        most S + 2 (rounding included).
        Mechanism: exponential with weight exp(score / 2^m), 2 (S + 2) / 2^m <= 1/multiplier; permute-and-flip
        with the same scale for pure budgets; the papers' noisy max where it is sound.
        Event: ``BoundedRange`` (``PureDP``) of 1/multiplier, once for each coordinate picked.
        Conditions: w, clips, smoothness and n are public or released; one common scale for all coordinates.
        """
        session = self.__session
        _, limits = coordinates_of.checked(session, w, np.arange(w.size), clips)
        with session.lock:
            return greedy.select(
                session,
                self.loss,
                w,
                clips=limits,
                smoothness=np.asarray(smoothness, dtype=np.float64),
                rule=rule,
                penalty=NoPenalty() if penalty is None else penalty,
                n=n,
                count=count,
            )

    def noisy_share_within(self, w: NDArray[np.float64], coordinate: int, *, clip: float) -> float:
        """How many records' gradient entries lie within +-clip, less half of all records, plus noise.

        Privacy
        -------
        Sensitivity: a record adds +B or -B lattice steps (1/2 in real units), a null record 0, a person's k rows
        +-(B // k) each: B, 2 B under ``replace_one``.
        Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
        Conditions: w, coordinate and clip are public or released.
        """
        session = self.__session
        columns, limits = coordinates_of.checked(session, w, coordinate, clip)
        with session.lock:
            return coordinates_of.share_within(session, self.loss, w, columns, float(limits[0]))

    def noisy_squared_norms(self, *, clip: float) -> NDArray[np.float64]:
        """The SUM over records of each squared feature, plus noise; a record's squares are scaled to a total of clip^2.

        A release planned with ``mechanism="laplace"`` is the papers': each square relative to its own declared
        bound, Laplace noise; ``clip`` is then the declared row norm, and is not used.

        Privacy
        -------
        Sensitivity: a record contributes a vector q >= 0 with ||q||_2 <= ||q||_1 <= B, checked in integers. B under
        ``zero_out`` and ``add_remove``; under ``replace_one`` ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2, so
        sqrt(2) B (2 B in L1). The papers' version: p entries in [0, B/p] each, so the sum moves by at most B in L1
        under every relation.
        Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier. The joint version
        has no factor of p.
        Conditions: none.
        """
        session = self.__session
        with session.lock:
            return coordinates_of.squared_norms(session, clip)

    def public_coins(self, sides: int, count: int) -> NDArray[np.int64]:
        """``count`` uniform numbers below ``sides`` that depend on no record: for random schedules. Free.

        Privacy
        -------
        Nothing of the data is in them.
        """
        words = self.__session.entropy.words(count)
        if sides & (sides - 1) == 0:
            return (words >> np.uint64(65 - sides.bit_length())).astype(np.int64)
        return ((words >> np.uint64(11)).astype(np.float64) * (2.0**-53 * sides)).astype(np.int64)

    def certificate(self, *, model: str, solver: dict[str, Any], notes: tuple[str, ...] = ()) -> Certificate:
        """What may be claimed of anything computed from this curator's answers."""
        events = self.plan.events(self.noise_multiplier, pure=self.budget.is_pure)
        price = epsilon_of(events, self.budget.delta, self.budget.neighbors)
        return Certificate(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            neighbors=self.budget.neighbors,
            events=events,
            unit=self.__facts["unit"],
            model=model,
            solver=solver,
            accountants=price.accountants,
            assumed_public={key: value for key, value in self.__facts.items() if key != "unit" and value is not None},
            noise_multiplier=self.noise_multiplier,
            entropy=self.__session.entropy.name,
            library_version=__version__,
            notes=notes,
            created=date.today().isoformat(),
            not_private=tuple(self.__session.reasons()),
        )
