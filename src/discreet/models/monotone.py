"""Monotone effects: the nearest model, by its predictions, with curves that never fall, or never rise.

A cubic spline whose B-spline coefficients never fall never falls: it is a constant plus a sum of I-splines (Ramsay
1988) with weights d >= 0. The coefficients w of such models are a convex cone, w_C = G d for the monotone columns C and
any w_F for the others. The released coefficients are replaced by the nearest of the cone,

    minimize  (w' - w)^T M (w' - w)     over w' in the cone,

where M is the released second moment of the records, so that it is the mean square of the difference of predictions;
without one, places of a range count alike. Least squares with a penalty that keeps d >= 0 has this minimizer, and in
this metric it is no farther from any monotone model than w was, from the true one among them (Lin and Dunson 2014).
Post-processing of released and declared numbers: it costs no budget, and serves every loss and solver.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from discreet.bounds import Domain
from discreet.curator import Cone
from discreet.errors import Unsupported
from discreet.schema.columns import Number
from discreet.schema.schema import Schema
from discreet.solvers.base import Solution
from discreet.solvers.propagation import affine
from discreet.typing import Floats

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
