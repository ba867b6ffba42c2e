"""Which slopes and which curvature a loss has inside objective perturbation: what its price is made of.

With R the bound on a row's norm, C the clip on a record's gradient and lambda the regularization of the sum:

* logistic of sharpness k: |f'| = v C/r for a row of norm r <= R with v in [0, 1], and f'' = k |f'| (1 - |f'|), so
  f'' r^2 <= k C^2 v (r/C - v) <= k C^2 v (q - v) with q = max(1, R/C); beyond the clip the curvature is 0.
* the others: f'' r^2 <= sup f'' R^2, whatever the slope; the record fixes the sign of f' where ``one_signed``.
* softmax: the Hessian is (diag(p) - p p^T) (x) x x^T, with eigenvalues at most R^2/2.
"""

from discreet.accounting.plan import Perturbation
from discreet.bounds import Domain
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.losses.constants import gradient_bound


def record_bound(loss: Loss, domain: Domain, clip: float | None) -> float:
    """The bound on a record's gradient: the clip, or what the declared bounds imply where that is less."""
    if clip is None:
        return _up(gradient_bound(loss, domain))
    return _up(min(clip, loss.lipschitz_for(domain.target_bound) * domain.row_norm))


def perturbation_of(loss: Loss, domain: Domain, clip: float | None, regularization: float) -> Perturbation:
    """The curvature beta/lambda and the slopes at ``regularization`` lambda > 0, in the form of the sum."""
    bound, slopes = record_bound(loss, domain, clip), loss.perturbation_slopes
    if loss.n_outputs > 1:
        if slopes != "softmax":
            raise Unsupported("objective perturbation is proven for one output and for softmax: use solver='gd'")
        if clip is not None and clip < gradient_bound(loss, domain):
            raise Unsupported(
                "clipped softmax gradients are no gradients of a convex loss, which objective perturbation needs: "
                "leave out the clip, or declare a smaller row_norm"
            )
    curvature = _up(loss.perturbed_curvature(domain.row_norm, bound) / regularization)
    reach = max(1.0, domain.row_norm / bound) if slopes == "logistic" else 1.0
    return Perturbation(curvature, slopes, reach=reach, outputs=loss.n_outputs)


def _up(value: float) -> float:
    """Above the exact quotient, whose few roundings are less than 2^-50."""
    return value * (1 + 2.0**-50)
