"""Noisy sums over records: each contribution is clipped, the sum gets noise."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.base import GradientQuery
from discreet.curator.engines.sparse import SparseEngine
from discreet.curator.known_answers.gradients import check_change_kernels
from discreet.curator.lattice.lattice import place_weights
from discreet.curator.queries import coordinates as coordinates_of
from discreet.curator.queries import scores
from discreet.curator.queries.coordinates import CoordinateRun
from discreet.curator.wall import Wall
from discreet.errors import PlanViolation, Unsupported


class Sums(Wall):
    """Answers that are sums plus noise."""

    def noisy_gradient(self, w: NDArray[np.float64], *, clip: float, rho: float | None = None) -> NDArray[np.float64]:
        """The SUM over the (Poisson-sampled) records of the loss's gradients at ``w``, each clipped, plus noise.

        Divide it by n, or by the expected batch size: the declared ones, never the realized. Under an adaptive plan
        ``rho`` is what the answer may cost.

        Privacy
        -------
        Sensitivity: a record (a person) contributes an integer vector q with ||q|| <= B exactly
        (``lattice``: |c| <= B // r, r >= ||x||; a person's k rows B // k each; several outputs
        ||c|| ||x|| <= B); ``clip`` is B in real units. A null record contributes 0. Hence the sum moves
        by at most B under ``zero_out`` and ``add_remove`` and by 2 B under ``replace_one``.
        Mechanism: sum + round(2^m N(0, I)), the ideal Gaussian mechanism rounded; for pure budgets the
        norm is L1 and the noise discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier;
        ``PoissonSampled`` where the plan samples, each record (person) by its own exact coin. Adaptive plans: rho-zCDP,
        charged to the filter first.
        Conditions: w depends on released values only; both norms are of integers, checked in integers.
        """
        return self._gradient("noisy_gradient", w, None, clip, rho)

    def noisy_gradient_change(
        self, w: NDArray[np.float64], anchor: NDArray[np.float64], *, clip: float
    ) -> NDArray[np.float64]:
        """The SUM over the (Poisson-sampled) records of the gradient's change from ``anchor`` to ``w``, plus noise.

        Each record's change is clipped; beta ||w - anchor|| bounds it, and is public since both points are.

        Privacy
        -------
        Sensitivity: a record's change is (f'(x.w) - f'(x.anchor)) x, an integer coefficient times x, and is clipped on
        the lattice exactly like a gradient: B, 2 B under ``replace_one``. It is the executed clip, not the
        smoothness, that the proof rests on.
        Mechanism: as ``noisy_gradient``.
        Event: ``Gaussian`` (``Laplace``) at the planned multiplier, ``PoissonSampled`` where the plan samples: noise
        is in proportion to the clip, so the event is the same for every clip.
        Conditions: w, anchor and clip depend on released values only.
        """
        if anchor.shape != w.shape:
            raise PlanViolation(f"the anchor must have shape {self.domain.shape}")
        check_change_kernels(self.loss, sparse=isinstance(self._session.engine, SparseEngine))
        return self._gradient("noisy_gradient_change", w, anchor, clip, None)

    def _gradient(
        self, name: str, w: NDArray[np.float64], anchor: NDArray[np.float64] | None, clip: float, rho: float | None
    ) -> NDArray[np.float64]:
        session = self._session
        with session.lock:
            if w.shape != self.domain.shape:
                raise PlanViolation(f"weights must have shape {self.domain.shape}")
            release = session.spend(name, clip, rho=rho)
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
                anchor=None if anchor is None else place_weights(anchor, grid),
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
        session = self._session
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
        session = self._session
        with session.lock:
            columns, limits = coordinates_of.checked(session, w, coordinates, clips)
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
        session = self._session
        with session.lock:
            columns, limits = coordinates_of.checked(session, w, coordinates, clips)
            return coordinates_of.run_steps(
                session, self.loss, w, columns, clips=limits, steps=steps, penalty=penalty, n=n
            )

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
        session = self._session
        with session.lock:
            return coordinates_of.squared_norms(session, clip)

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
        session = self._session
        with session.lock:
            columns, limits = coordinates_of.checked(session, w, coordinate, clip)
            return coordinates_of.share_within(session, self.loss, w, columns, float(limits[0]))

    def noisy_score(self, w: NDArray[np.float64], *, error: float = 1.0) -> float:
        """How well ``w`` predicts: the SUM over records of 1/2 - bad, plus noise; bad is 1 for a wrong class.

        For numeric targets bad is the squared error over ``error`` squared, at most 1, in training coordinates.

        Privacy
        -------
        Sensitivity: a record adds an integer within +-B lattice steps (1/2 in real units; ``scores``), a null record 0,
        a person's k rows +-(B // k) each: B, 2 B under ``replace_one``.
        Mechanism: sum + round(2^m N(0, 1)), or discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
        Conditions: w and error are public or released; here the model was fitted on other records, so that both may
        cost the whole budget of a run (``parts``).
        """
        session = self._session
        with session.lock:
            return scores.noisy_score(session, self.loss, w, error)
