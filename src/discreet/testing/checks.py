"""Checks of privacy that raise (the ``privacy`` fixture, as good without pytest), and contexts for repeatable fits."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import audit
from discreet.accounting.certificate import Certificate
from discreet.accounting.events import PerturbedMinimum, PoissonSampled
from discreet.audit import Audit
from discreet.audit.replay_pair import Fit
from discreet.bounds import Bounds
from discreet.budget import Neighbors
from discreet.curator import Measurement, SeededEntropy, observe, use_entropy
from discreet.json_schemas import Json
from discreet.losses import Logistic, Loss
from discreet.losses.proofs import wrong_constants
from discreet.models.fit import FitSettings, RowExtras, fit_model
from discreet.penalties import NoPenalty
from discreet.solvers.gd import GradientDescent
from discreet.typing import Floats, Integers

RUNS = 100
CONFIDENCE = 1 - 1e-6
"""A check that fails by chance once in a million runs is one that people believe."""

_HIDDEN = (PoissonSampled, PerturbedMinimum)
"""What has randomness that no transcript shows, and so no likelihood ratio."""

Table = tuple[Floats, Floats]


class Refuted(AssertionError):
    """A claim does not hold. ``audit`` is the audit that found it, where it was one."""

    def __init__(self, text: str, audit: Audit | None = None) -> None:
        super().__init__(text)
        self.audit = audit


@dataclass(frozen=True)
class _Model:
    """What a fit shows: in the words that audits know."""

    coef_: Floats
    intercept_: Floats
    certificate_: Certificate


class Privacy:
    """Try to refute a claim, and raise ``Refuted`` where that succeeds. Nothing here proves a claim.

    Examples
    --------
    In pytest, the fixture ``privacy`` is one:

    >>> from discreet.solvers import GradientDescent
    >>> from discreet.testing import Privacy
    >>> found = Privacy().check(GradientDescent(n_steps=2), relations=["zero_out"], runs=0)
    >>> any(audit.refuted for audit in found)
    False
    """

    def require(self, audit: Audit) -> Audit:
        """Fail if this audit refutes its claim; else give it back."""
        __tracebackhide__ = True
        if audit.refuted:
            raise Refuted(str(audit), audit)
        return audit

    def check(
        self,
        solver: object = None,
        *,
        loss: Loss | None = None,
        penalty: object = None,
        bounds: Bounds | None = None,
        relations: Iterable[Neighbors | str] = tuple(Neighbors),
        epsilon: float = 2.0,
        delta: float = 1e-5,
        runs: int = RUNS,
        confidence: float = CONFIDENCE,
    ) -> list[Audit]:
        """Check a solver, a loss or a penalty of your own on small synthetic tables, under every relation.

        A loss's declared constants are compared with its derivatives. Then, for each relation, fits are replayed on
        the worst neighbors, their noise is looked at, and their transcripts are audited, unless samples or noise
        inside an objective hide from those.

        Parameters
        ----------
        solver
            As an estimator takes it: an object or a name. None: three steps of gradient descent. A run of a few
            steps is as good as a long one, and quicker.
        loss, penalty
            None: logistic, no penalty.
        bounds
            Of the synthetic tables. None: features within [-1, 1]; for a regression, targets within [0, 1].
        relations
            Those that the solver serves; a refusal of one that is listed fails the check.
        epsilon, delta
            The budget of each fit.
        runs
            Of the transcripts, on each side. 0 leaves them out: then only what is exact is checked.
        """
        __tracebackhide__ = True
        loss = Logistic() if loss is None else loss
        named = getattr(solver, "name", solver) or type(loss).__name__
        _agree(f"{type(loss).__name__} is not what it declares", wrong_constants(loss))
        audits: list[Audit] = []
        for relation in map(Neighbors, relations):
            declared = _declared(loss, bounds, relation)
            fit = _fit_of(solver, loss, penalty, declared, epsilon, delta, relation)
            table = _table(declared)
            claim: Certificate = fit(*table).certificate_
            _agree(f"the certificate of {named} under {relation}", _overclaimed(claim, epsilon, delta))
            sampled = any(isinstance(event, PoissonSampled) for event in claim.events)
            settings: Json = {"neighbors": str(relation), "bounds": declared, "subject": str(named)}
            audits.append(self.replay(fit, *table, sampled=sampled, **settings))
            if runs and not any(isinstance(event, _HIDDEN) for event in claim.events):
                sides = _sides(declared, relation)
                ran = audit.transcript(fit, *sides, runs=runs, confidence=confidence, subject=str(named))
                audits.append(self.require(ran))
        return audits

    def replay(
        self, fit: Fit, X: object, y: object, groups: object = None, *, bounds: Bounds, **settings: Any
    ) -> Audit:
        """Run ``discreet.audit.replay`` on any fit through discreet's curator; fail if it is refuted."""
        __tracebackhide__ = True
        return self.require(audit.replay(fit, X, y, groups, bounds=bounds, **settings))

    def transcript(self, fit: Fit, data: Sequence[object], neighbor: Sequence[object], **settings: Any) -> Audit:
        """Run ``discreet.audit.transcript`` at a confidence that suits tests; fail if it is refuted."""
        __tracebackhide__ = True
        given = {"runs": RUNS, "confidence": CONFIDENCE, **settings}
        return self.require(audit.transcript(fit, data, neighbor, **given))

    def audit(
        self,
        fit: Fit,
        data: Sequence[object],
        neighbor: Sequence[object],
        *,
        epsilon: float,
        delta: float = 0.0,
        **settings: Any,
    ) -> Audit:
        """Run ``discreet.audit.model`` on anybody's fit function; fail if it is refuted."""
        __tracebackhide__ = True
        given = {"runs": 10 * RUNS, "confidence": CONFIDENCE, **settings}
        return self.require(audit.model(fit, data, neighbor, epsilon=epsilon, delta=delta, **given))


def _declared(loss: Loss, bounds: Bounds | None, relation: Neighbors) -> Bounds:
    """What the synthetic tables are declared to be; n only where the relation hides it."""
    if bounds is None and loss.task == "regression":
        bounds = Bounds(1.0, target=(0.0, 1.0))
    elif bounds is None:
        bounds = Bounds(1.0, classes=tuple(range(max(2, loss.n_outputs))))
    return bounds if relation.n_is_public or bounds.n is not None else bounds.with_facts(n=6)


def _targets(bounds: Bounds) -> tuple[Any, Any]:
    if bounds.target is not None:
        return bounds.target
    classes = bounds.classes or (0, 1)
    return classes[0], classes[-1]


def _table(bounds: Bounds) -> Table:
    """Six records within the declared ranges, the last of them with the rarer target."""
    low, high = bounds.ranges(2)
    X = low + (high - low) * np.linspace(0, 1, 12).reshape(6, 2)
    first, last = _targets(bounds)
    return X, np.array([first, last, first, first, first, last])


def _sides(bounds: Bounds, relation: Neighbors) -> tuple[Table, Table]:
    """Two tables in which the first record, at the edge of its range, has the other target, is blank, or is gone."""
    X, y = _table(bounds)
    X = np.tile(bounds.ranges(2)[1], (6, 1))
    first, last = _targets(bounds)
    y[:] = last
    if relation is Neighbors.ADD_REMOVE:
        return (X, y), (X[1:], y[1:])
    other, target = X.copy(), y.copy()
    if relation is Neighbors.ZERO_OUT:
        other[0] = np.nan
    else:
        target[0] = first
    return (X, y), (other, target)


def _fit_of(
    solver: object, loss: Loss, penalty: Any, bounds: Bounds, epsilon: float, delta: float, relation: Neighbors
) -> Fit:
    steps = GradientDescent(n_steps=3) if solver is None else solver

    def fit(X: object, y: object, groups: object = None) -> _Model:
        settings = FitSettings(
            "check",
            bounds,
            loss,
            NoPenalty() if penalty is None else penalty,
            steps,
            epsilon,
            delta,
            str(relation),
            fit_intercept=False,
            ledger=False,
        )
        fitted = fit_model(settings, X, y, RowExtras(groups))
        return _Model(fitted.coef, fitted.intercept, fitted.certificate)

    return fit


def _overclaimed(claim: Certificate, epsilon: float, delta: float) -> list[str]:
    """Whether the certificate of a fit that nobody observed is private, and within what was asked."""
    if not claim.is_private:
        return [claim.stamp]
    return ["it spends more than was asked for"] if claim.epsilon > epsilon or claim.delta > delta else []


def _agree(what: str, findings: list[str]) -> None:
    __tracebackhide__ = True
    if findings:
        raise Refuted("\n  ".join([f"REFUTED: {what}", *(f"found     {finding}" for finding in findings)]))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw noise and samples from ``seed`` inside the block: the same fits give the same answers.

    The stream runs on from fit to fit; enter the context again to start over. Certificates are stamped
    NOT PRIVATE.

    Parameters
    ----------
    seed : int
        Public, and therefore no protection.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import seeded
    >>> def fitted():
    ...     with seeded(0):
    ...         return DPRidge(delta=1e-6, bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3))
    >>> fitted().coef_.tolist() == fitted().coef_.tolist(), fitted().certificate_.is_private
    (True, False)
    """
    with use_entropy(SeededEntropy(seed)):
        yield


@contextmanager
def noiseless() -> Iterator[None]:
    """Release the exact clipped sums inside the block. Certificates are stamped NOT PRIVATE.

    Plans, prices, clips and Poisson samples are as ever; only the noise is left out. Add ``seeded`` to
    fix the samples too.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import DPRidge
    >>> from discreet.testing import noiseless
    >>> with noiseless():
    ...     model = DPRidge(delta=1e-6, bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3))
    >>> model.certificate_.is_private
    False
    """
    with observe(_exact):
        yield


def _exact(measurement: Measurement) -> Integers:
    return measurement.exact
