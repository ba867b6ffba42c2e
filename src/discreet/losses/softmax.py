"""The softmax loss: multinomial logistic regression."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

from discreet.errors import Unsupported
from discreet.losses.base import (
    Loss,
    couplings,
    derivatives,
    exp_in_decimals,
    least,
    nothing,
    register_loss,
    slopes_in_decimals,
    values,
)
from discreet.losses.sigmoid import exp, quotient
from discreet.parameters import Count, checked


class _Fields(NamedTuple):
    n_classes: int


@register_loss("softmax")
class Softmax(_Fields, Loss):
    """log(sum_k exp(m_k)) - m_y for K margins and a target y, the index of a class.

    With p = softmax(m) the gradient is p - e_y. Its norm is at most sqrt(2): (1 - p_y)**2 + sum of the other p_k**2
    <= 2 (1 - p_y)**2. The Hessian is diag(p) - p p^T; v^T H v is the variance of v under p, at most
    (max v - min v)**2 / 4 <= ||v||**2 / 2. In one entry: |p_k - [k = y]| <= 1 and p_k (1 - p_k) <= 1/4.

    The Hessian is also the sum over k < l of p_k p_l (e_k - e_l) (e_k - e_l)^T. The couplings a_kl = p_k p_l have a
    norm of at most 1/4. With s = sum p_k**2: sum_{k<l} a_kl = (1 - s) / 2, so sum a_kl**2 <= (1 - s)**2 / 4, at most
    1/16 where s >= 1/2. Else 2 sum a_kl**2 = s**2 - sum p_k**4 <= s**2 - s**3 (the mean of p_k**3 under p is at least
    the cube of that of p_k), which increases up to s = 2/3: at most 1/8, its value at s = 1/2. Two classes reach it.

    Parameters
    ----------
    n_classes : int
        K, at least 2.

    Examples
    --------
    >>> from discreet.losses import Softmax
    >>> Softmax(n_classes=3).n_outputs
    3
    """

    __slots__ = ()
    task = "classification"
    lipschitz = math.sqrt(2)
    smoothness = 0.5
    entry_lipschitz = 1.0
    entry_smoothness = 0.25
    nonnegative = True
    proven = True
    softmax_link = True
    perturbation_slopes = "softmax"
    margin_name = "log-odds"

    @checked
    def __new__(cls, n_classes: Count) -> Self:
        if n_classes < 2:
            raise Unsupported("softmax needs a whole number of at least two classes, such as Softmax(n_classes=3)")
        return super().__new__(cls, int(n_classes))

    @property
    def n_outputs(self) -> int:
        """K, a margin for every class."""
        return self.n_classes

    def lipschitz_for(self, target_bound: float, margin_bound: float = float("inf")) -> float:
        """Return sqrt(2), whatever the margins."""
        return self.lipschitz

    def typical_slope(self, target_bound: float) -> float:
        """Return about sqrt(1 - 1/K), the slope at 0, for a few classes."""
        return 0.7


@values.of(Softmax)
def _values(loss, margins, target):  # type: ignore[no-untyped-def]
    top = 0
    for k in range(1, margins.shape[0]):
        if margins[k] > margins[top]:
            top = k
    others = 0.0
    chosen = margins[top]
    for k in range(margins.shape[0]):
        if k != top:
            others += exp(margins[k] - margins[top])
        if k == target:
            chosen = margins[k]
    return math.log1p(others) + (margins[top] - chosen)


@derivatives.of(Softmax)
def _derivatives(loss, margins, target, out):  # type: ignore[no-untyped-def]
    top = margins[0]
    for k in range(1, margins.shape[0]):
        top = margins[k] if margins[k] > top else top
    total = 0.0
    for k in range(margins.shape[0]):
        out[k] = exp(margins[k] - top)
        total += out[k]
    for k in range(margins.shape[0]):
        # comparing, rather than indexing by the target, keeps an impossible target inside the array
        out[k] = quotient(out[k], total) - (1.0 if k == target else 0.0)


@couplings.of(Softmax)
def _couplings(loss, margins, target, room, out):  # type: ignore[no-untyped-def]
    derivatives(loss, margins, -1.0, room)  # no class: the probabilities alone
    e = 0
    for k in range(margins.shape[0]):
        for other in range(k + 1, margins.shape[0]):
            out[e] = room[k] * room[other]
            e += 1


@slopes_in_decimals.register
def _slopes(loss: Softmax, margins: Sequence[Decimal], target: Decimal) -> list[Decimal]:
    top = max(margins)
    parts = [exp_in_decimals(margin - top) for margin in margins]
    total = sum(parts, Decimal(0))
    return [part / total - (1 if k == target else 0) for k, part in enumerate(parts)]


least.of(Softmax)(nothing)
