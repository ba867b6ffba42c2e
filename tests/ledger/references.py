"""What caps and charges must come to: plain fractions and 60-digit arithmetic, which call nothing of what is tested."""

from fractions import Fraction
from functools import cache

import mpmath

from discreet.accounting.events import (
    ZCDP,
    BoundedRange,
    Gaussian,
    Laplace,
    PerturbedMinimum,
    PoissonSampled,
    PureDP,
    RepeatedSelection,
)


def exactly(function):
    """Work in 60 digits."""

    def inside(*args):
        with mpmath.workdps(60):
            return function(*args)

    return inside


def gaussian_delta(epsilon, mu):
    """The delta of mu-GDP, in digits that do not cancel."""
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@cache
@exactly
def reference_mu(epsilon, delta):
    """The largest mu that is (epsilon, delta)-DP, by bisection."""
    epsilon, low, high = mpmath.mpf(epsilon), mpmath.mpf(0), mpmath.mpf(1)
    while gaussian_delta(epsilon, high) <= delta:
        high *= 2
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


@exactly
def reference_limit(epsilon, delta, order):
    """The divergence D with exp((a - 1)(D - epsilon)) (1 - 1/a)^a / (a - 1) = delta."""
    a = mpmath.mpf(order)
    return mpmath.mpf(epsilon) + (mpmath.log(mpmath.mpf(delta) * (a - 1)) - a * mpmath.log(1 - 1 / a)) / (a - 1)


def response(epsilon, order):
    """The divergence of randomized response."""
    e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
    p = 1 / (1 + mpmath.exp(-e))
    return mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


def laplace(epsilon, order):
    """The divergence of scalar Laplace noise, its three pieces integrated by hand."""
    e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
    between = (mpmath.exp((a - 1) * e) - mpmath.exp(-a * e)) / (2 * (2 * a - 1))
    return mpmath.log(mpmath.exp((a - 1) * e) / 2 + mpmath.exp(-a * e) / 2 + between) / (a - 1)


def sampled_gaussian(q, z, order):
    """The divergence of a sampled Gaussian from the base, order by order of the binomial."""
    q, a = mpmath.mpf(q.numerator) / q.denominator, int(order)
    term, total = (1 - q) ** a, mpmath.mpf(0)
    for k in range(a + 1):
        total += term * mpmath.exp(mpmath.mpf(k * (k - 1)) / (2 * mpmath.mpf(z) ** 2))
        term *= (a - k) * q / ((k + 1) * (1 - q))
    return mpmath.log(total) / (a - 1)


def replaced_gaussian(q, z, order):
    """The same under replace_one, by way of the table without the record."""
    a = mpmath.mpf(order)
    there, back = sampled_gaussian(q, 2 * z, 2 * order), sampled_gaussian(q, 2 * z, 2 * order - 1)
    return (a - mpmath.mpf(1) / 2) / (a - 1) * there + back


def one_signed_minimum(z, curvature, order):
    """E e^{(a-1) U} for U = log(1 + c) + max(0, G), G ~ N(mu^2/2, mu^2): the moment of the vertices' bound."""
    t, mu = mpmath.mpf(order) - 1, 1 / mpmath.mpf(z)
    above = mpmath.exp(t * (t + 1) * mu * mu / 2) * mpmath.ncdf((t + mpmath.mpf(1) / 2) * mu)
    return mpmath.log1p(curvature) + mpmath.log(above + mpmath.ncdf(-mu / 2)) / t


def geometric_selection(z, mean, order):
    """Papernot and Steinke's Theorem 2 for shape 1, whose best second order for Gaussian runs is known."""
    rho, log_mean = 1 / (2 * mpmath.mpf(z) ** 2), mpmath.log(mean)
    # the least of (1 - 1/b) rho b + log(mean)/b over b >= 1
    b = max(mpmath.mpf(1), mpmath.sqrt(log_mean / rho))
    return rho * order + 2 * ((b - 1) * rho + log_mean / b) + log_mean / (order - 1)


Q = Fraction(655, 2**16)
REFERENCES = {
    "gaussian": (Gaussian(7.3, 11), "add_remove", lambda a: 11 * mpmath.mpf(a) / (2 * mpmath.mpf(7.3) ** 2)),
    "zcdp": (ZCDP(0.003), "add_remove", lambda a: a * mpmath.mpf(0.003)),
    "pure": (PureDP(0.3, 4), "replace_one", lambda a: 4 * response(0.3, a)),
    "large pure": (PureDP(9.0), "replace_one", lambda a: response(9.0, a)),
    "vector laplace": (Laplace(4.0, 3), "replace_one", lambda a: 3 * response(0.25, a)),
    "scalar laplace": (Laplace(4.0, 3, 1), "replace_one", lambda a: 3 * laplace(0.25, a)),
    "choice": (BoundedRange(0.1, 5), "add_remove", lambda a: 5 * min(a * mpmath.mpf(0.1) ** 2 / 8, response(0.1, a))),
    "sampled": (PoissonSampled(655, Gaussian(1.5, 20)), "add_remove", lambda a: 20 * sampled_gaussian(Q, 1.5, a)),
    "blanked": (PoissonSampled(655, Gaussian(1.5, 20)), "zero_out", lambda a: 20 * sampled_gaussian(Q, 1.5, a)),
    "replaced": (PoissonSampled(655, Gaussian(1.5, 20)), "replace_one", lambda a: 20 * replaced_gaussian(Q, 1.5, a)),
    "sampled pure": (
        PoissonSampled(655, PureDP(0.5, 7)),
        "replace_one",
        lambda a: 7 * response(mpmath.log1p(mpmath.expm1(mpmath.mpf(0.5)) * 655 / 2**16), a),
    ),
    "minimum": (
        PerturbedMinimum(5.0, 0.05, "one_signed"),
        "zero_out",
        lambda a: one_signed_minimum(5.0, mpmath.mpf(0.05), a),
    ),
    "selection": (
        RepeatedSelection(((Gaussian(12.0),),), 8.0, 1.0),
        "zero_out",
        lambda a: geometric_selection(12.0, mpmath.mpf(8), a),
    ),
}
SLACK = {"minimum": 2e-3, "selection": 1e-3}
"""Where the charge is an upper sum or a minimum over a grid, and not a closed form."""
