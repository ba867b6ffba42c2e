"""The open wall: answers exactly the planned queries, each with its proof, and refuses the rest."""

import math
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import __version__
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import SAMPLING_DENOMINATOR
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import epsilon_of
from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.curator import noise
from discreet.curator.engines.base import Engine, GradientQuery
from discreet.curator.entropy import current_entropy
from discreet.curator.lattice import PRIVATE_N_CAP, Unit, place_weights, unit_for
from discreet.curator.observation import Measurement, current_observer
from discreet.errors import PlanViolation, Unsupported


class Curator:
    """Holds the records of one reserved plan. ``PrivateData.open`` makes it; solvers ask it.

    Public: ``domain``, ``loss``, ``budget``, ``plan``, ``noise_multiplier``. Everything a method returns
    is noisy and was paid for. Noise is drawn before the records are read.
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
        self.__engine = engine
        self.__facts = facts
        self.__left = {release.query: release.count for release in plan.releases}
        self.__releases = {release.query: release for release in plan.releases}
        self.__sampling = {release.query: release.sampling_numerator for release in plan.releases}
        if len(self.__releases) != len(plan.releases):
            raise PlanViolation("a plan names each query once: merge the releases of one query")
        self.__units: dict[tuple[str, float], Unit] = {}
        self.__entropy = current_entropy()
        self.__observed = current_observer() is not None

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
        release = self.__spend("noisy_gradient", clip)
        if w.shape != self.domain.shape:
            raise PlanViolation(f"weights must have shape {self.domain.shape}")
        unit = self.__unit(release, clip)
        drawn = self.__noise(unit, w.size)
        units = self.__sample(release)
        grid = self.__engine.grid
        query = GradientQuery(
            weights=place_weights(w, grid),
            loss=self.loss,
            bound=unit.bound,
            scale=unit.coefficient_scale(grid),
            use_l1=self.budget.is_pure,
            units=units,
        )
        exact = self.__engine.gradient_sum(query)
        released = self.__release(release, unit, exact, drawn.reshape(exact.shape))
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
        release = self.__spend("noisy_count", 1.0)
        unit = self.__unit(release, 1.0)
        drawn = self.__noise(unit, 1)
        exact = np.array([unit.bound * self.__engine.n_units], dtype=np.int64)
        return float(self.__release(release, unit, exact, drawn)[0] * unit.step)

    def certificate(self, *, model: str, solver: dict[str, Any], notes: tuple[str, ...] = ()) -> Certificate:
        """What may be claimed of anything computed from this curator's answers."""
        reasons = []
        if not self.__entropy.is_private:
            reasons.append("the noise came from a test generator with a public seed")
        if self.__observed or current_observer() is not None:
            reasons.append("an observer saw the exact sums")
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
            entropy=self.__entropy.name,
            library_version=__version__,
            notes=notes,
            created=date.today().isoformat(),
            not_private=tuple(reasons),
        )

    def __spend(self, query: str, clip: float | None) -> Release:
        """Take one answer off the plan before anything else happens; what was planned is what is answered."""
        if self.__left.get(query, 0) < 1:
            raise PlanViolation(f"the plan has no (further) {query}: plan it before opening the data")
        release = self.__releases[query]
        if clip is not None and not (math.isfinite(clip) and clip > 0):
            raise PlanViolation("the clip must be positive and finite")
        if release.clip is not None and clip != release.clip:
            raise PlanViolation(f"{query} was planned with another clip")
        self.__left[query] -= 1
        return release

    def __unit(self, release: Release, clip: float) -> Unit:
        key = (release.query, clip)
        if key not in self.__units:
            n = self.domain.n if self.budget.neighbors.n_is_public else None
            multiplier = self.noise_multiplier * release.relative_noise
            self.__units[key] = unit_for(multiplier, self.budget.neighbors.sum_factor, clip, n or PRIVATE_N_CAP)
        return self.__units[key]

    def __noise(self, unit: Unit, count: int) -> NDArray[np.int64]:
        if unit.m is None:
            return np.zeros(count, dtype=np.int64)
        draw = noise.discrete_laplace if self.budget.is_pure else noise.rounded_gaussian
        return draw(count, unit.m, self.__entropy)

    def __sample(self, release: Release) -> NDArray[np.int64] | None:
        numerator = self.__sampling[release.query]
        if numerator == SAMPLING_DENOMINATOR:
            return None
        return noise.poisson_sample(self.__engine.n_units, numerator, self.__entropy)

    def __release(
        self, release: Release, unit: Unit, exact: NDArray[np.int64], drawn: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        noisy = exact + drawn
        observer = current_observer()
        if observer is None:
            return noisy
        self.__observed = True
        norm = "l1" if self.budget.is_pure else "l2"
        factor = self.budget.neighbors.sum_factor
        return observer(Measurement(release.query, exact, noisy, norm, factor, unit))
