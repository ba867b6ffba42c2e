"""What engines of records on other machines have in common: what they refuse, how they ask, whose words they pass on.

The cluster's own words are not passed on: what a task of the user's own query raises may quote cells.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.curator.clusters import tasks
from discreet.curator.clusters.tasks import OTHER_CODE, Failed, Seal, Seen, Tally
from discreet.curator.engines.base import Engine, ExactSum, LocalEngine
from discreet.errors import ClusterFailed, DiscreetError, Unsupported
from discreet.typing import Integers

if TYPE_CHECKING:
    from discreet.accounting.plan import Plan
    from discreet.losses.base import Loss


WHOLE = ("noisy_minimizer", "noisy_descent", "perturb_objective", "perturbed_minimizer", "sample_minimizer")
"""Releases that need all records at hand."""
NEEDS_WHOLE = (
    "this solver needs all records on one machine, and they are on a cluster: use an iterative one (solver='auto', "
    "'gd', 'sgd', 'svrg', 'agd', 'cd' or 'gcd'), or fit on one machine, with scratch files (discreet.scale.limited)"
)
BROKEN = "the cluster failed, or lost a part of the records for good; what was charged stays charged"
UNCOUNTED = (
    "the rows cannot be counted, since the collection's own tasks or the cluster failed: nothing was charged. Rows are "
    "counted before the charge where their number is public"
)
OUT_OF_REACH = "the cluster cannot be reached; nothing was charged for this"
NO_WORKERS = "the cluster has no workers"

Value = TypeVar("Value")


class RemoteEngine(Engine):
    """Encoded parts on other machines; ``seals`` are the plan, one per part in the order of their numbers.

    ``places`` says where among the units of all parts the persons are that samples number by their first rows; None
    where units are records, which are numbered as they stand.
    """

    is_sparse = runs_programs = False

    def __init__(
        self, seals: Sequence[Seal], software: tuple[str, ...], places: Callable[[], Integers] | None = None
    ) -> None:
        self._seals, self._software, self._places = list(seals), software, places
        self.is_grouped = places is not None
        self._edges = list(accumulate((seal.units for seal in seals), initial=0))
        self.n_units = self._edges[-1]

    def whole(self) -> LocalEngine:
        raise Unsupported(NEEDS_WHOLE)

    def asked(self, question: ExactSum) -> list[ExactSum]:
        """Return what to ask of each part: units are numbered over all parts, and so are samples of them."""
        if self._places is not None and question.is_sampled:
            question = question.with_units_at(self._places())
        return [question.of_units(first, last) for first, last in pairwise(self._edges)]

    def tally(self) -> Tally[Any]:
        """Return an empty tally of this plan."""
        return Tally(dict(enumerate(self._seals)), self._software)


@dataclass(frozen=True, repr=False)
class Opened:
    """Encoded parts as an engine, and what was seen of the rows of each."""

    engine: RemoteEngine
    seen: list[Seen]


def refuse_whole(plan: Plan) -> None:
    """Refuse a plan with a release that parts cannot answer."""
    if any(release.query in WHOLE for release in plan.releases):
        raise Unsupported(NEEDS_WHOLE)


def check_probes(told: Sequence[Any], loss: Loss, *, sampled: bool) -> None:
    """Refuse, before anything is charged, a cluster without workers, or whose workers run other code than this one."""
    if not told:
        raise ClusterFailed(f"{NO_WORKERS}: nothing was charged")
    mine = tasks.probe(loss, sampled)
    for one in told:
        if isinstance(one, Failed):
            raise ClusterFailed(f"{one.reason}: nothing was charged")
        if one != mine:  # or an exception, where there is no discreet
            raise ClusterFailed(OTHER_CODE.replace("What was charged stays charged", "Nothing was charged"))


def add_all(tally: Tally[Any], answers: Iterable[Any]) -> None:
    """Take answers into a tally; a part that failed ends the fit, in the words of its task."""
    for told in answers:
        if isinstance(told, Failed):
            raise ClusterFailed(f"{told.reason}; what was charged stays charged")
        tally.add(told)


def counted(call: Callable[[], Value]) -> Value:
    """Return what counting rows returns: it runs before the charge, and its failures say so."""
    try:
        return call()
    except (Exception, CancelledError):
        pass
    raise ClusterFailed(UNCOUNTED)


def silenced(call: Callable[[], Value], reason: str = BROKEN) -> Value:
    """Return what a call of the cluster returns; its errors in our words, and not even attached to them."""
    try:
        return call()
    except DiscreetError:
        raise
    except (Exception, CancelledError):
        pass
    raise ClusterFailed(reason)
