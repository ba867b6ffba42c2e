"""Solvers by name: ``@register("svrg")`` above a class, in its own file, is all that a solver needs to be known.

A registered class is a frozen dataclass with ``plan``, ``solve`` and ``settings`` (``base.Solver``), and may bring what
``Chooses`` lists.
Then its name is known to ``solver=`` of every estimator, to ``--solver``, to ``discreet audit`` and to saved models.
"""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Protocol

from discreet.bounds import Domain
from discreet.budget import Budget
from discreet.losses.base import Loss
from discreet.penalties.base import Penalty
from discreet.registry import Registry
from discreet.solvers.base import Solver


def _not_a_solver(cls: type) -> str | None:
    if is_dataclass(cls) and all(hasattr(cls, part) for part in ("plan", "solve", "settings")):
        return None
    return "a dataclass with plan, solve and settings: see solvers/base.py"


PACKAGES = ("discreet.solvers", "discreet.default")
SOLVERS: Registry[type[Solver]] = Registry("solver", PACKAGES, "register", _not_a_solver)
register = SOLVERS.register
PARTS: Registry[type[object]] = Registry("part of a solver", PACKAGES, "register_part")
register_part = PARTS.register
"""For dataclasses that are part of a solver's settings, so that models with them can be saved."""

CANARY_CLIP = 0.25
"""The clip in audits: a canary's gradient near 0 is longer."""
SHORT_STEP = 1e-4
"""The step in audits: the weights stay near 0, where the canary contributes the whole sensitivity."""


@dataclass(frozen=True)
class AuditCase:
    """How a solver is audited.

    Parameters
    ----------
    solver : Solver or str
        Settings under which a canary shows all it can: few steps, ``CANARY_CLIP``, ``SHORT_STEP``.
    level : {"transcript", "model"}, default="transcript"
        ``"model"`` where no transcript shows all of the randomness (samples, noise inside an objective, draws).
    alpha : float, default=0.0
        The strength of an L2 penalty, where the solver needs one.
    effort : float, default=1.0
        The share of the asked runs that it gets: some fits take longer.
    replays : bool, default=True
        Whether there is a sum under noise that a replay can compare.
    """

    solver: Solver | str
    level: str = "transcript"
    alpha: float = 0.0
    effort: float = 1.0
    replays: bool = True


class Chooses(Protocol):
    """What a solver may bring in addition to ``Solver``'s methods. All of it follows from public facts."""

    @classmethod
    def defaults(cls, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Return the solver that its name means. Without it: the class without arguments.

        Parameters
        ----------
        domain : Domain
            What is public of the records, in training coordinates.
        loss : Loss
            The loss of a record.
        penalty : Penalty
            The penalty on the coefficients.
        budget : Budget
            What the run may cost.

        Returns
        -------
        Solver
            Which may leave open what ``filled`` chooses.
        """
        ...

    def filled(self, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
        """Choose what was left open. Without it: the solver as it is.

        Parameters
        ----------
        domain, loss, penalty, budget : as for ``defaults``
            Public facts.

        Returns
        -------
        Solver
            The same solver, complete.
        """
        ...

    @classmethod
    def audit_case(cls) -> AuditCase:
        """Return how ``discreet audit`` runs it. Without it: by its name, audited by its transcripts.

        Returns
        -------
        AuditCase
            A solver of few short steps, and what to look at.
        """
        ...


def solver_named(name: str, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
    """Return the solver that a name means, complete, from public facts."""
    cls = SOLVERS[name]
    defaults: Callable[..., Solver] = getattr(cls, "defaults", lambda *facts: cls())
    return filled(defaults(domain, loss, penalty, budget), domain, loss, penalty, budget)


def filled(solver: Solver, domain: Domain, loss: Loss, penalty: Penalty, budget: Budget) -> Solver:
    """Return a solver with what it leaves open filled by its own rule, where it has one."""
    fill: Callable[..., Solver] = getattr(solver, "filled", lambda *facts: solver)
    return fill(domain, loss, penalty, budget)


def audit_case(name: str) -> AuditCase:
    """Return how the solver of this name is audited."""
    case: Callable[[], AuditCase] = getattr(SOLVERS[name], "audit_case", lambda: AuditCase(name))
    return case()
