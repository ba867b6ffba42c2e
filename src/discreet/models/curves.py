"""What is made of curves once they are released: bends that are mostly noise shrink, monotone effects stay monotone.

All is post-processing of released and declared numbers: it costs no budget.

**Bends** of curves that a model chose shrink by what is noise and sampling error in them, so that lines stay lines.

The released coefficients a of standardized features are those of a curve's line and of its bends b. By what was
released, b is off by a normal error: the sampling error S of n records, and c times what noise did to it, N. Empirical
Bayes, column by column:

    b_hat = b + N(0, S + c N),     b ~ N(0, x I),     x ~ a mixture over a grid of variances with 0 in it
    b_new = E[b | b_hat],          line_new = line + f (b_hat - b_new)

The weights of the mixture are those under which the bends of all columns together are likeliest, as those of
``posterior_weights`` are for single coefficients. Where all effects are lines, the weight is at x = 0 and no bend is
left, so that a curve costs little more than a line; a clear bend is kept whole, and x grows against S + c N with the
signal. c is unknown: steps that noise keeps from coming to rest leave bends too small, so that shrinking them by all of
N would shrink twice, and where steps stop early bends are off by more. b_new is averaged over c, each by how likely it
makes the bends of all columns.

f regresses bends on their own line and on the constant, by the released second moment of the rows: what bends say of
the line is kept. Of that moment few entries are used, each with little noise; its inverse would use all of it. A line
that, by the noise of its entries, may be a constant is taken to vary by as much as that noise: it cannot say more.
A fit with ``inference``, and a curve that the schema declares, keep their coefficients.

**Monotone effects** come from the nearest model, by its predictions, with curves that never fall, or never rise.
A cubic spline whose B-spline coefficients never fall never falls: it is a constant plus a sum of I-splines (Ramsay
1988) with weights d >= 0. The coefficients w of such models are a convex cone, w_C = G d for the monotone columns C and
any w_F for the others. The released coefficients are replaced by the nearest of the cone,

    minimize  (w' - w)^T M (w' - w)     over w' in the cone,

where M is the released second moment of the records, so that it is the mean square of the difference of predictions;
without one, places of a range count alike. Least squares with a penalty that keeps d >= 0 has this minimizer, and in
this metric it is no farther from any monotone model than w was, from the true one among them (Lin and Dunson 2014).
This serves every loss and solver.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from discreet.bounds import Domain
from discreet.curator import Cone, Recoding
from discreet.errors import Unsupported
from discreet.losses.base import Loss
from discreet.schema.columns import Number
from discreet.schema.schema import Schema
from discreet.solvers.base import Solution, Trace
from discreet.solvers.calibration import mean_curvature
from discreet.solvers.coordinates import Estimate, filtered_mean
from discreet.solvers.propagation import ROUNDS, VARIANCES, affine
from discreet.solvers.traces import Spectrum, margins_of
from discreet.typing import Floats, Integers

PARTS = 2.0 ** np.arange(-7, 3)
"""Candidates for c: which part of the noise's variance, or how many times it, bends are off by."""
LEAST_RESIDUAL = 0.05
"""The least part of a number's variance that is taken to be left of it."""
CORRELATION = 0.3
"""How large the square of a correlation between a line and one of its bends is about, before the rows are looked at."""


@dataclass(frozen=True)
class SmoothedTrace:
    """A run of whose noise, in each coefficient, a part is left."""

    before: Solution
    left: Floats

    def deviations(self) -> Floats | None:
        """Return what is left in training coordinates."""
        return None if self.before.noise is None else self.left * self.before.noise

    def deviations_in(self, units: Recoding) -> Floats | None:
        """Return what is left for records before the map ``units``."""
        noise = self.before.noise_in(units)
        return None if noise is None else self.left * noise


@dataclass(frozen=True)
class Bends:
    """A curve's bends: their places and their line's, how they follow it, and the covariances of their two errors."""

    places: Integers
    own: Integers
    follow: Floats
    sampling: Floats
    noise: Floats


def smoothed(solution: Solution, curves: Sequence[Integers], domain: Domain, loss: Loss) -> Solution:
    """Return the solution with the bends of ``curves`` (places of the line and of its bends) shrunk.

    Nothing changes where the error of the coefficients is not known: without a released second moment, of several
    outputs, and with a log link.
    """
    estimate = solution.estimate
    if estimate is None or estimate.spectrum is None or estimate.noise is None or loss.log_link:
        return solution
    matrix = estimate.recoding.matrix
    assert matrix is not None
    linear, offset = affine(estimate.recoding, domain)
    linear = linear @ np.linalg.inv(matrix)
    a = np.asarray(np.linalg.solve(linear, solution.coefficients - offset), dtype=np.float64)
    noise = matrix @ estimate.noise() @ matrix
    v = np.asarray(np.linalg.solve(matrix, a), dtype=np.float64)
    records = _information(estimate, estimate.spectrum, v, loss)
    bends = [_bends(curve, estimate.spectrum, noise, records, domain) for curve in curves]
    moved = np.eye(len(a))
    for curve, lost in zip(bends, _lost(bends, a), strict=True):
        moved[np.ix_(curve.places, curve.places)] -= lost
        moved[np.ix_(curve.own, curve.places)] += curve.follow @ lost
    before, after = (((map_ @ noise) * map_).sum(axis=1) for map_ in (linear, linear @ moved))
    left = np.sqrt(np.divide(after, before, out=np.ones_like(before), where=before > 0))
    trace: Trace | None = None if solution.trace is None else SmoothedTrace(solution, left)
    back = np.linalg.solve(matrix, moved)
    smooth = replace(estimate, noise=lambda: back @ noise @ back.T)
    return replace(solution, coefficients=linear @ (moved @ a) + offset, trace=trace, estimate=smooth)


def _information(estimate: Estimate, spectrum: Spectrum, v: Floats, loss: Loss) -> float:
    """Return how much n records say of a coefficient of rows of length 1: n over the variance of a slope's error.

    At least as much as one record says: where margins are steep, curvatures are 0 in double precision.
    """
    mean, deviation = margins_of(spectrum, v)
    if loss.task == "classification":
        return max(1.0, estimate.count * mean_curvature(mean, deviation))
    return estimate.count / max(1.0 - deviation**2, LEAST_RESIDUAL)


def _bends(curve: Integers, spectrum: Spectrum, noise: Floats, records: float, domain: Domain) -> Bends:
    """Return a curve's bends, with how they follow its line by released moments, and their errors' covariance."""
    line, places, moment, entry = int(curve[0]), curve[1:], spectrum.standard, spectrum.deviation
    lengths = np.maximum(np.diag(moment), max(entry, np.finfo(np.float64).tiny))
    likely = CORRELATION * lengths[line] * lengths[places]
    with_line = moment[line, places] * likely / (likely + entry**2)
    own, block, cross = np.array([line]), lengths[[line]][:, None], with_line[None, :]
    if domain.intercept:
        mean = filtered_mean(moment, entry)
        own, cross = np.append(own, len(moment) - 1), np.stack([with_line, mean[places]])
        length = max(lengths[line], mean[line] ** 2 / mean[-1] + 2.0 * entry)
        block = np.array([[length, mean[line]], [mean[line], mean[-1]]])
    follow = np.linalg.solve(block, cross)
    varied, axes = np.linalg.eigh(moment[np.ix_(places, places)] - cross.T @ follow)
    varied = np.maximum(varied, max(2.0 * entry * math.sqrt(len(places)), np.finfo(np.float64).tiny))
    return Bends(places, own, follow, (axes / (varied * records)) @ axes.T, noise[np.ix_(places, places)])


def _lost(bends: Sequence[Bends], a: Floats) -> list[Floats]:
    """Return what is taken from each curve's bends, as a matrix. All curves have as many knots."""
    errors = np.array([[curve.sampling + part * curve.noise for curve in bends] for part in PARTS])
    values, vectors = np.linalg.eigh(errors)
    values = np.maximum(values, np.finfo(np.float64).tiny)
    along = np.einsum("pcji,cj->pci", vectors, np.array([a[curve.places] for curve in bends]))
    x = VARIANCES * float(np.median(values[PARTS == 1.0]))
    variances = x[:, None] + values[:, :, None, :]
    logs = -0.5 * (np.log(variances) + np.square(along)[:, :, None, :] / variances).sum(axis=-1)
    largest = logs.max(axis=-1, keepdims=True)
    likelihood, weights = np.exp(logs - largest), np.full((len(PARTS), 1, len(x)), 1.0 / len(x))
    for _ in range(ROUNDS):
        joint = weights * likelihood
        total = joint.sum(axis=-1, keepdims=True)
        posterior = joint / total
        weights = posterior.mean(axis=1, keepdims=True)
    evidence = (np.log(total) + largest).sum(axis=(1, 2))
    parts = np.exp(evidence - evidence.max())
    taken = (posterior[:, :, None, :] @ (values[:, :, None, :] / variances))[:, :, 0, :]
    lost = (vectors * taken[:, :, None, :]) @ np.swapaxes(vectors, -1, -2)
    return list(np.tensordot(parts / parts.sum(), lost, axes=1))


HIDDEN = 0.2
"""The second moment of whitened rows in directions that noise hides, about: these are moved first."""
ROUNDING = 1e-9
"""Added to the second moment of even places, so that it can be inverted."""


def refuse_monotone(schema: Schema, estimator: object) -> None:
    """Refuse monotone effects where they mean nothing, or are not proven. Free: declared facts only."""
    names = [name for name, kind in schema.columns.items() if isinstance(kind, Number) and kind.monotone is not None]
    if not names:
        return
    if getattr(estimator, "inference", None):
        raise Unsupported("standard errors of monotone effects are not proven: leave monotone or inference out")
    if schema.target is not None and len(schema.target.classes or ()) > 2:
        raise Unsupported("a monotone effect is one on a number or on one of two classes: leave monotone out")
    if any(name in group for group in schema.interactions for name in names):
        raise Unsupported("a column with a monotone effect is in no product: leave monotone or the product out")


def monotone(solution: Solution, cones: Sequence[Cone], domain: Domain, scale: Floats) -> Solution:
    """Return the nearest solution whose effects are in the cones; ``scale`` are the features' in training units."""
    w, moment = solution.coefficients, _moment(solution, cones, domain, scale)
    bound = np.concatenate([cone.columns for cone in cones])
    generators = np.zeros((len(bound), sum(cone.generators.shape[1] for cone in cones)))
    row = column = 0
    for cone in cones:
        rows, columns = cone.generators.shape
        generators[row : row + rows, column : column + columns] = scale[cone.columns, np.newaxis] * cone.generators
        row, column = row + rows, column + columns
    free = np.setdiff1d(np.arange(len(w)), bound)
    follow = np.linalg.solve(moment[np.ix_(free, free)], moment[np.ix_(free, bound)])
    left = moment[np.ix_(bound, bound)] - moment[np.ix_(bound, free)] @ follow
    root = np.linalg.cholesky(left).T
    moved = generators @ nnls(root @ generators, root @ w[bound])[0] - w[bound]
    nearest = w.copy()
    nearest[bound] += moved
    nearest[free] -= follow @ moved
    return replace(solution, coefficients=nearest)


def _moment(solution: Solution, cones: Sequence[Cone], domain: Domain, scale: Floats) -> Floats:
    """Return the second moment of records in training coordinates, as released, or of even places of each range."""
    estimate = solution.estimate
    if estimate is not None and estimate.spectrum is not None:
        back = np.linalg.inv(affine(estimate.recoding, domain)[0])
        vectors, shares = estimate.spectrum.vectors, np.maximum(estimate.spectrum.shares, HIDDEN)
        return np.asarray(back.T @ (vectors * shares) @ vectors.T @ back)
    moment = np.eye(domain.n_features)
    for cone in cones:
        features = cone.features / scale[cone.columns]
        moment[np.ix_(cone.columns, cone.columns)] = features.T @ features / len(features)
        if domain.intercept:
            moment[cone.columns, -1] = moment[-1, cone.columns] = features.mean(axis=0)
    return moment + ROUNDING * np.eye(len(moment))


def noise_correlations(solution: Solution, domain: Domain, together: Sequence[slice]) -> Floats | None:
    """Return the correlations of what noise did to coefficients j and j + d that make one effect, as entries (j, d).

    None where they are not known: of several outputs, and without coordinates that were estimated. Changes of units do
    not change them.
    """
    estimate = solution.estimate
    if estimate is None or estimate.noise is None:
        return None
    linear = affine(estimate.recoding, domain)[0]
    covariance = linear @ estimate.noise() @ linear.T
    found = np.zeros((domain.n_features - domain.intercept, max(place.stop - place.start for place in together)))
    found[:, 0] = 1.0
    for place in together:
        block = covariance[place, place]
        scale = np.sqrt(np.maximum(np.diag(block), np.finfo(np.float64).tiny))
        block = np.clip(block / np.outer(scale, scale), -1.0, 1.0)
        for d in range(1, len(block)):
            found[place.start : place.stop - d, d] = np.diagonal(block, d)
    return found
