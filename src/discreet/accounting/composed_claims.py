"""The price of mechanisms of which only (epsilon_i, delta_i) is known, next to events: for other programs' releases.

*Theorem* (after Kairouz, Oh and Viswanath 2015). Let mechanism i be (epsilon_i, delta_i)-DP and let the rest be known
by its events, all chosen adaptively, their parameters fixed. If the same with epsilon_i-DP mechanisms in place of
these is (epsilon, d)-DP, all of it is (epsilon, 1 - (1 - d) prod(1 - delta_i))-DP.
*Proof.* For neighbors with laws P and Q, P = (1 - delta_i) P' + delta_i P'' and Q = (1 - delta_i) Q' + delta_i Q'' with
P' and Q' within e^epsilon_i of each other both ways: so mechanism i is a post-processing of a coin that shows
everything with probability delta_i, and else of an epsilon_i-DP answer. The coins do not depend on the data or on each
other: none shows everything with probability prod(1 - delta_i), and then the composition is the one without them. QED
"""

import math
from collections.abc import Iterable

from discreet.accounting.events import Event, PureDP
from discreet.accounting.pricing import epsilon_of
from discreet.accounting.textbook import basic_composition
from discreet.budget import Neighbors
from discreet.errors import AccountingError


def composed_epsilon(
    claims: Iterable[tuple[float, float]],
    delta: float,
    events: Iterable[Event] = (),
    neighbors: Neighbors | str = Neighbors.REPLACE_ONE,
) -> float:
    """Return the epsilon of mechanisms that claim (epsilon_i, delta_i), and of events, all together.

    By the accountants of ``price``, hence never more than basic or advanced composition, up to rounding.

    Parameters
    ----------
    claims : iterable of (float, float)
        Each mechanism's epsilon and delta, equal or not, under the same relation and unit.
    delta : float
        Of all together: more than the sum of the claims' deltas, or 0 where all of these are 0.
    events : iterable of events, default=()
        What else was released, such as a certificate's ``events``.
    neighbors : Neighbors or str, default="replace_one"
        The relation.

    Returns
    -------
    float
        Epsilon.

    Raises
    ------
    AccountingError
        If the claims' deltas leave nothing of delta.

    Examples
    --------
    >>> from discreet.accounting import composed_epsilon
    >>> print(f"{composed_epsilon([(0.1, 1e-8)] * 100 + [(0.5, 1e-7)], 1e-5):.2f}")
    4.71
    """
    listed = list(claims)
    basic, _ = basic_composition(listed)  # which checks them
    rest = list(events)
    shown = -math.expm1(math.fsum(math.log1p(-share) if share < 1 else -math.inf for _, share in listed))
    left = delta - shown * (1 + 2.0**-50)  # at most (delta - shown) / (1 - shown), which the theorem allows
    if delta > 0 and left <= 0:
        raise AccountingError("the claims' deltas leave nothing of delta: ask for a larger one")
    if delta == 0 and any(share > 0 for _, share in listed):
        raise AccountingError("a mechanism with a delta has no pure guarantee: ask for a delta above their sum")
    pure = [PureDP(epsilon) for epsilon, _ in listed if epsilon > 0]
    found = epsilon_of([*pure, *rest], max(0.0, left), neighbors).epsilon
    return found if rest else min(found, basic * (1 + 2.0**-50))
