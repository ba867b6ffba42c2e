"""Private points: minimizers and samples of the whole objective, one answer a fit."""

import numpy as np
from numpy.typing import NDArray

from discreet.curator.queries import minimizers, sampling
from discreet.curator.queries.minimizers import Problem
from discreet.curator.wall import Wall


class Points(Wall):
    """Answers that are coefficients at once."""

    def noisy_minimizer(self, problem: Problem) -> NDArray[np.float64]:
        """Output perturbation: the minimizer of the mean loss + (regularization/2) ||w||^2, plus noise.

        The problem's radius projects the minimizer onto a ball before the noise.

        Privacy
        -------
        Sensitivity: with lambda = n regularization and gradients of norm at most C, neighbors' certified points are
        within (a C + 2 tau) / lambda (``one_shot``), attained by linear losses; rounding to the lattice adds
        3 ceil(sqrt(p)) steps, which are counted.
        Mechanism: point + round(2^m N(0, I)) in lattice steps; for pure budgets a vector of density
        exp(-||b|| / scale), whose length is a Gamma variable (floating point: the certificate says idealized).
        Event: ``Gaussian`` (``Laplace``, the same pure epsilon) at the planned multiplier.
        Conditions: convex loss; the problem's numbers are public or released. A minimizer is certified for
        every data set (``descent``).
        """
        session = self._session
        with session.lock:
            return minimizers.noisy_minimizer(session, self.loss, problem)

    def noisy_descent(self, problem: Problem, *, n_steps: int, step_size: float) -> NDArray[np.float64]:
        """Output perturbation of ``n_steps`` projected gradient steps from zero: needs no minimizer.

        Privacy
        -------
        Sensitivity: a step of size eta <= 2/(beta + 2 regularization) on a convex, beta-smooth mean loss is
        (1 - eta regularization)-Lipschitz, and one record moves it by eta a C / n; so T steps move the last point by
        eta (a C / n + 2 e) (1 + q + ... + q^(T-1)), q = 1 - eta regularization, where e bounds the rounding errors
        of a gradient: one that doubles cannot hold to it is computed exactly.
        Mechanism: as ``noisy_minimizer``.
        Event: ``Gaussian`` (``Laplace``) at the planned multiplier.
        Conditions: convex and smooth loss; the steps and sizes are fixed beforehand.
        """
        session = self._session
        with session.lock:
            return minimizers.noisy_descent(session, self.loss, problem, n_steps, step_size)

    def perturbed_minimizer(self, problem: Problem) -> NDArray[np.float64]:
        """Objective perturbation: the minimizer of the mean loss + (regularization/2) ||w||^2 + b.w / n, b random.

        The problem's radius projects the minimizer onto a ball afterwards.

        Privacy
        -------
        Sensitivity: of the sum of gradients, a C. The minimizer's density has a Jacobian, whose ratio for neighbors is
        at most 1 + beta/lambda for one row a record; the price of both: ``accounting/objective_perturbation.py``.
        Mechanism: b = round(2^m N(0, I)) in lattice steps (Gamma length for pure budgets), minimize, then noise on the
        point: its gradient is certified to be at most tau, so it is within (tau + ||rounding of b||) / lambda of the
        ideal minimizer for the ideal b, whatever the solver did, and the second noise covers twice that.
        Event: ``PerturbedMinimum`` for b, ``Gaussian`` (``Laplace``) for the second noise.
        Conditions: a convex loss of one linear score (or softmax), differentiable with a Lipschitz gradient; lambda > 0
        on every coordinate; one row a person; the planned curvature is that of what is minimized (checked). A
        minimizer is certified for every data set and every b (``descent``), and b is drawn once.
        """
        session = self._session
        with session.lock:
            return minimizers.perturbed_minimizer(session, self.loss, problem)

    def sample_minimizer(self, problem: Problem, *, sampler: str) -> NDArray[np.float64]:
        """The exponential mechanism: one draw from the density exp(-k (sum of losses + (lambda/2) ||w||^2)) on a ball.

        ``sampler`` is one of ``posterior``'s: ``"interval"``, ``"gaussian"``, ``"rejection"`` or ``"chain"``.

        Privacy
        -------
        Sensitivity: with G the bound on a record's gradient on the ball, exponents of neighbors differ by an
        (a G k)-Lipschitz function. Planned as exponential (lambda = 0): by at most k a G 2 radius in range.
        Mechanism: with lambda > 0 the exponent is (k lambda)-strongly convex, so a draw is a G sqrt(k/lambda)-Gaussian
        DP (Gopi, Lee & Liu 2022), and k = lambda / (multiplier a G)^2; else k = 1/(multiplier a G 2 radius).
        Event: ``Gaussian``, or ``BoundedRange`` of 1/multiplier; a chain adds ``TotalVariation``, an assumption.
        Conditions: convex losses, G-Lipschitz on the support; the problem's numbers are public or released;
        real arithmetic (the certificate says idealized). A sampler ends with a draw and in no other way.
        """
        session = self._session
        with session.lock:
            return sampling.sample(session, self.loss, problem, sampler)
