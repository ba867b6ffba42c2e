"""The privacy loss random variable as an object: its distribution, what it implies, and a picture.

For two neighboring tables with output laws P and Q the privacy loss is W = log(P/Q) at an output drawn from P.

*Theorem.* If W <= epsilon with probability at least 1 - delta, for every pair of neighbors in both orders, then the
mechanism is (epsilon, delta)-DP. Proof: P(S) <= P(S and W <= epsilon) + delta <= e^epsilon Q(S) + delta.
*The converse is false*: the exact delta is E(1 - e^(epsilon - W))_+, which is less than P(W > epsilon). A Gaussian
answer of noise multiplier 3.73 is (1, 1e-5)-DP, while its loss exceeds 1 with a larger probability (see the example).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtr

from discreet.accounting import gaussian, objective_perturbation
from discreet.accounting.events import Event, Gaussian, Laplace, PerturbedMinimum, merged
from discreet.accounting.root_finding import bracketed
from discreet.budget import Neighbors
from discreet.errors import AccountingError, Unsupported
from discreet.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PrivacyLoss:
    """The privacy loss between a worst pair of neighbors, or a variable stochastically above it (``is_bound``).

    Make one with ``PrivacyLoss.of``.

    Parameters
    ----------
    survival : callable
        t to P(W > t), an array for an array.
    delta : callable
        epsilon to the least delta.
    reach : float
        A loss beyond which next to nothing lies.
    is_bound : bool, default=False
        Whether this is an upper bound, and not the loss itself.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.accounting import PrivacyLoss
    >>> from discreet.accounting.events import Gaussian
    >>> loss = PrivacyLoss.of([Gaussian(3.7306317)])
    >>> f"{loss.delta(1.0):.1e} {float(loss.survival(np.array(1.0))):.1e}"
    '1.0e-05 1.6e-04'
    """

    survival: Callable[[Floats], Floats]
    delta: Callable[[float], float]
    reach: float
    is_bound: bool = False

    @classmethod
    def of(cls, events: Iterable[Event], neighbors: Neighbors | str = Neighbors.REPLACE_ONE) -> Self:
        """Return the loss of what was released: Gaussian answers, one Laplace answer, or one perturbed minimum.

        Parameters
        ----------
        events : iterable of events
            As in a certificate.
        neighbors : Neighbors or str, default="replace_one"
            The relation.

        Returns
        -------
        PrivacyLoss
            Exact for Gaussian and scalar Laplace answers; an upper bound for a perturbed minimum.

        Examples
        --------
        >>> from discreet.accounting import PrivacyLoss
        >>> from discreet.accounting.events import Laplace
        >>> PrivacyLoss.of([Laplace(2.0, dimension=1)]).delta(0.5)
        0.0
        """
        listed = merged(events)
        if listed and all(isinstance(event, Gaussian) for event in listed):
            return cls._gaussian(
                gaussian.mu_of_noise((e.count, e.noise_multiplier) for e in listed if isinstance(e, Gaussian))
            )
        if len(listed) == 1 and isinstance(listed[0], Laplace) and listed[0].count == listed[0].dimension == 1:
            return cls._laplace(listed[0].epsilon)
        if len(listed) == 1 and isinstance(listed[0], PerturbedMinimum) and listed[0].noise == "gaussian":
            bound = objective_perturbation.loss_bound(listed[0], Neighbors(neighbors))
            far = max(tail.shift + tail.mu * (6.0 + tail.mu) for tail in bound.tails)
            return cls(lambda t: bound.survival(np.atleast_1d(t)), bound.delta_of, far, is_bound=True)
        raise Unsupported(
            "a privacy loss can be shown for Gaussian answers, one Laplace answer of one number, or one perturbed "
            "minimum: use price for other events"
        )

    @classmethod
    def _gaussian(cls, mu: float) -> Self:
        """Return N(mu^2/2, mu^2)."""
        return cls(
            lambda t: np.asarray(ndtr(mu / 2 - np.asarray(t) / mu)),
            lambda epsilon: gaussian.delta_of(epsilon, mu),
            mu * mu / 2 + 5 * mu,
        )

    @classmethod
    def _laplace(cls, epsilon: float) -> Self:
        """Return the loss of one number: P(W > t) = 1 - e^((t - epsilon)/2)/2 for |t| < epsilon."""

        def survival(t: Floats) -> Floats:
            inside = 1.0 - 0.5 * np.exp((np.asarray(t) - epsilon) / 2)
            return np.where(np.asarray(t) >= epsilon, 0.0, np.where(np.asarray(t) < -epsilon, 1.0, inside))

        return cls(survival, lambda e: max(0.0, -math.expm1((e - epsilon) / 2)), epsilon * 1.2)

    def cdf(self, t: Floats) -> Floats:
        """Return P(W <= t)."""
        return 1.0 - self.survival(t)

    def quantile(self, delta: float) -> float:
        """Return the least epsilon with P(W > epsilon) <= delta: what the theorem claims, more than is needed.

        Parameters
        ----------
        delta : float
            Within (0, 1).

        Returns
        -------
        float
            To one part in a million.

        Examples
        --------
        >>> from discreet.accounting import PrivacyLoss
        >>> from discreet.accounting.events import Gaussian
        >>> round(PrivacyLoss.of([Gaussian(3.7306317)]).quantile(1e-5), 3)
        1.179
        """
        if not 0 < delta < 1:
            raise AccountingError("delta lies between 0 and 1")
        low, high = 0.0, bracketed(lambda t: self._beyond(t) <= delta, max(self.reach, 1e-9))
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(middle) > delta else (low, middle)
        return high

    def _beyond(self, t: float) -> float:
        return float(np.ravel(self.survival(np.array([t])))[0])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw P(W > t) and the delta at epsilon = t. Needs matplotlib (``pip install "discreet[plot]"``).

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None: on a new figure.

        Returns
        -------
        matplotlib Axes
            With both curves.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 4)).subplots()
        t = np.linspace(0.0, self.reach, 400)
        ax.semilogy(t, np.maximum(self.survival(t), 1e-16), label="P(loss > t)")
        ax.semilogy(t, [max(self.delta(float(e)), 1e-16) for e in t], label="delta at epsilon = t")
        ax.set_xlabel("t")
        ax.set_ylim(1e-12, 1.0)
        ax.legend()
        return ax
