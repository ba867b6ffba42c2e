"""Private choices: the best coordinate, the best of several points."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.curator.queries import candidates, greedy
from discreet.curator.queries import coordinates as coordinates_of
from discreet.curator.wall import Wall
from discreet.penalties import NoPenalty


class Choices(Wall):
    """Answers that are one of finitely many things."""

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
        session = self._session
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

    def select_candidate(
        self, points: NDArray[np.float64], *, loss_bound: float, offsets: Any = None, rho: float | None = None
    ) -> int:
        """The index of the point with (nearly) the least sum of losses, each clipped to [0, loss_bound].

        ``offsets`` are public numbers added to the sums, such as n times the penalty at each point. Under an adaptive
        plan ``rho`` is what the answer may cost.

        Privacy
        -------
        Sensitivity: a record adds an integer in [0, B] to each score (a person's k rows B // k each, a null record
        0), so *differences* of scores move within a range of B, 2 B under ``replace_one`` (``candidates``).
        Mechanism: exponential with weight exp(-score / 2^m), a B / 2^m <= 1/multiplier; or the papers' noisy max,
        discrete Laplace noise of the same scale on each score.
        Event: ``BoundedRange`` (``PureDP`` for noisy max) of 1/multiplier; adaptive plans: rho-zCDP, charged first.
        Conditions: points and offsets depend on public and released values only. Noisy max: losses have one sign, so
        that a record more moves all scores in one direction.
        """
        session = self._session
        with session.lock:
            return candidates.select(session, self.loss, np.asarray(points, dtype=np.float64), loss_bound, offsets, rho)
