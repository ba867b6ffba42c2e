"""The shape of the data: noisy moments, and records recoded by what they showed."""

import numpy as np
from numpy.typing import NDArray

from discreet.curator.engines.choice import engine_for
from discreet.curator.known_answers.moments import check_shape_kernels
from discreet.curator.queries import moments
from discreet.curator.records.recode import recoded
from discreet.curator.records.recoding import Recoding
from discreet.curator.wall import Wall
from discreet.errors import PlanViolation, Unsupported
from discreet.losses.base import Loss


class Shapes(Wall):
    """Answers about features and targets alone, and the map that they allow."""

    def noisy_mean(self, *, clip: float, n: float) -> NDArray[np.float64]:
        """The sum of the records (their features, the constant among them), each shrunk to ``clip``, over ``n``.

        Privacy
        -------
        Sensitivity: a record contributes c x with an integer c <= B // r, r >= ||x|| (``lattice``), a person's k rows
        with c <= (B // k) // r each, a null record 0: B, and 2 B under ``replace_one``. L1 norms for pure budgets.
        Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
        Conditions: clip and n are public or released.
        """
        with self._session.lock:
            return moments.noisy_mean(self._session, clip, n)

    def noisy_mean_squares(self, *, clip: float, n: float) -> NDArray[np.float64]:
        """The sum of each squared feature over ``n``; a record's vector of squares is scaled to a length of ``clip``.

        The diagonal of ``noisy_second_moment``, for sparse and wide records too.

        Privacy
        -------
        Sensitivity: a record contributes c s, s its vector of squares (low bits cut off) and c an integer <= B // r,
        r >= ||s||; a person's k rows B // k each; a null record 0. So B under ``zero_out`` and ``add_remove``; under
        ``replace_one`` no entry is negative, so ||q - q'||^2 <= ||q||^2 + ||q'||^2 <= 2 B^2: sqrt(2) B (2 B in L1,
        for pure budgets). There is no factor of p.
        Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
        Conditions: clip and n are public or released.
        """
        with self._session.lock:
            return moments.noisy_mean_squares(self._session, clip, n)

    def noisy_second_moment(self, *, clip: float, n: float) -> NDArray[np.float64]:
        """The sum of outer products x x^T over ``n``, symmetric, each scaled to a Frobenius norm of at most ``clip``.

        Privacy
        -------
        Sensitivity: a record contributes c x x^T with an integer c <= B // r^2, r >= ||x||, and ||x x^T||_F = ||x||^2;
        a person's k rows B // k each; a null record 0. So B under ``zero_out`` and ``add_remove``. Under
        ``replace_one`` contributions P and Q are positive semidefinite, so <P, Q> >= 0 and ||P - Q||^2 <= ||P||^2 +
        ||Q||^2 <= 2 B^2: sqrt(2) B. In L1, for pure budgets, 2 B.
        Mechanism: sum + round(2^m N(0, I)) with p^2 independent entries, or discrete Laplace of scale 2^m; making the
        noisy matrix symmetric is post-processing. The sum is exact: in double precision, of integers below 2^53
        (``engines/moments.py``).
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
        Conditions: clip and n are public or released.
        """
        with self._session.lock:
            return moments.noisy_second_moment(self._session, clip, n)

    def noisy_target_moments(self, *, n: float) -> tuple[float, float]:
        """The means of t and of t^2, t the numeric target from the middle of its declared range, over half of it.

        Privacy
        -------
        Sensitivity: a record contributes two integers toward zero from (t b, t^2 b), |t| <= 1, with b the root of
        B^2 / 2 (B / 2 in L1), so a vector of norm at most B; a person's k rows b // k each; a null record 0: B, and
        2 B under ``replace_one`` (loose: sqrt(2) B would do).
        Mechanism: sum + round(2^m N(0, I)), or discrete Laplace of scale 2^m.
        Event: ``Gaussian`` (``Laplace``) at 2^m / sensitivity >= the planned multiplier.
        Conditions: n is public or released; asked before records are recoded.
        """
        with self._session.lock:
            return moments.noisy_target_moments(self._session, n)

    def recode(self, recoding: Recoding, *, loss: Loss | None = None) -> None:
        """Put every record through a map, onto a new lattice; later questions live there. Free.

        Each recoding starts from the records as they were admitted, not from an earlier recoding. ``domain`` becomes
        the new one; ``loss``, where given, replaces the loss (for a target on another scale).

        Privacy
        -------
        Nothing is released. A record's image depends on that record and on the map alone, null records stay null, and
        persons keep their rows: neighboring tables become neighboring tables, under each relation.
        Conditions: the map and the loss are made of public and released values only; a new loss is of the same class,
        and a target is moved only where the loss's constants do not depend on it.
        """
        session = self._session
        check_shape_kernels(sparse=session.admitted.sparse is not None)
        with session.lock:
            numeric = self.loss.task == "regression"
            if loss is not None and type(loss) is not type(self.loss):
                raise PlanViolation("a recoding may rescale the loss, not replace it by another")
            if (recoding.target_center, recoding.target_scale) != (0.0, 1.0) and not self.loss.movable_target:
                raise Unsupported(
                    "only the targets of losses of residuals, such as squared and Huber, can be centered and scaled"
                )
            new = recoded(session.admitted, recoding, session.admitted_domain, numeric_target=numeric)
            session.engine, session.domain = engine_for(new), recoding.domain(session.admitted_domain)
            self.domain, self.loss = session.domain, self.loss if loss is None else loss
