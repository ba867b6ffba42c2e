"""Audit without statistics: neighbors of the nastiest kinds, with the mechanisms' outputs frozen."""

import math
from collections.abc import Callable, Sequence

from discreet.audit.neighbors import neighbor_pairs
from discreet.audit.replay_pair import fresh_noise
from discreet.audit.replay_pair import replay as replay_pair
from discreet.audit.result import SYNTHETIC, Audit
from discreet.bounds import Bounds
from discreet.budget import Neighbors


def replay(
    fit: Callable[..., object],
    X: object,
    y: object,
    groups: object = None,
    *,
    bounds: Bounds,
    neighbors: str = "replace_one",
    sampled: bool = False,
    private: Sequence[str] = (),
    subject: str = "a fit",
    named: str = SYNTHETIC,
) -> Audit:
    """Replay a fit on every kind of worst neighbor, and look for noise that is missing or comes twice.

    Parameters
    ----------
    fit : callable
        ``fit(X, y, groups)`` returns the fitted object.
    X, y, groups : array-like
        A small data set: a few rows are enough.
    bounds : Bounds
        The declared ranges, with classes or target: what is extreme.
    neighbors : str, default="replace_one"
        The relation.
    sampled : bool, default=False
        For fits that draw Poisson samples.
    private : sequence of str, default=()
        Patterns of attributes that are not public and may differ.
    subject : str, default="a fit"
        What is audited, for the result.
    named : str, default="synthetic"
        What the data are called in the result; they should be synthetic.

    Returns
    -------
    Audit
        Its findings and its verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Bounds, DPLogisticRegression, audit
    >>> from discreet.solvers import GradientDescent
    >>> bounds = Bounds(features=1.0, classes=(0, 1))
    >>> model = DPLogisticRegression(delta=1e-6, bounds=bounds, solver=GradientDescent(n_steps=2))
    >>> audit.replay(model.fit, np.eye(4), np.array([0, 1, 0, 1]), bounds=bounds).refuted
    False
    """
    relation = Neighbors(neighbors)
    findings: list[str] = []
    pairs = list(neighbor_pairs(X, y, groups, relation=str(relation), bounds=bounds, sampled=sampled))
    claim = getattr(fit(*pairs[0].data), "certificate_", None)  # a fit that is refused is no finding: it raises here
    for pair in pairs:
        report = replay_pair(fit, pair.data, pair.neighbor, str(relation), private=private)
        findings += [f"{pair.name}: {finding}" for finding in report.findings]
    findings += [str(finding) for finding in fresh_noise(fit, pairs[0].data).findings]
    return Audit(
        level="replay",
        subject=subject,
        neighbors=str(relation),
        claimed=math.inf if claim is None else claim.epsilon,
        delta=0.0 if claim is None else claim.delta,
        runs=len(pairs),
        findings=tuple(dict.fromkeys(findings)),
        data=named,
    )
