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
from discreet.curator.engines.base import Engine, GradientQuery
from discreet.curator.lattice import place_weights
from discreet.curator.session import Session
from discreet.errors import PlanViolation, Unsupported


class Curator:
    """Holds the records of one reserved plan. ``PrivateData.open`` makes it; solvers ask it.

    Public: ``domain``, ``loss``, ``budget``, ``plan``, ``noise_multiplier``. Everything a method returns
    is noisy and was paid for. Noise is drawn before the records are read. A curator is neither copied
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
            drawn = session.noise(unit, w.size)
            grid = session.engine.grid
            query = GradientQuery(
                weights=place_weights(w, grid),
                loss=self.loss,
                bound=unit.bound,
                scale=unit.coefficient_scale(grid),
                use_l1=self.budget.is_pure,
                units=session.sample(release),
            )
            exact = session.engine.gradient_sum(query)
            released = session.release(release.query, unit, exact, exact + drawn.reshape(exact.shape))
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
            drawn = session.noise(unit, 1)
            exact = np.array([unit.bound * session.engine.n_units], dtype=np.int64)
            released = session.release(release.query, unit, exact, exact + drawn)
        return float(released[0] * unit.step)

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
