"""The runs of a private selection: draw a candidate at random, fit it on one part, score it on the other.

One run is the base mechanism that is repeated: its outcome is (candidate, model, noisy score). The two parts are fixed
before the first run, by lots that no data touch (``records/split.py``), so that the runs are independent and alike,
and each costs the more expensive of its fit and its score. Every run opens its own curators: no noise serves twice.
"""

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone

from discreet.accounting.priced_plan import PricedPlan
from discreet.curator import Entropy, Part, PrivateData, uniform_below
from discreet.errors import PlanViolation
from discreet.models.base import DPLinearModel
from discreet.models.selection.search_price import Candidate, Offer
from discreet.models.starting_point import in_training_units


@dataclass(frozen=True)
class Outcome:
    """What one run would release; coefficients that are not finite have the least score of all.

    A fit that raises ends the selection: an outcome above all others, which the theorem allows in any order. Drawing
    again until a fit succeeds would not be covered. ``index`` is the candidate's.
    """

    index: int
    model: DPLinearModel
    score: float


@dataclass(frozen=True, repr=False)
class Runs:
    """Candidates and the two parts of the records; ``sizes`` are the parts' declared sizes where n is private."""

    candidates: tuple[Candidate, ...]
    fitting: Part
    scoring: Part
    sizes: tuple[int | None, int | None] = field(default=(None, None))

    def one(self, paid: Offer, entropy: Entropy) -> Outcome:
        """One run, with fresh noise in everything."""
        index = uniform_below(len(self.candidates), entropy)
        candidate, run = self.candidates[index], paid.run
        bounds = candidate.facts.bounds.with_facts(n=self.sizes[0])
        model = clone(candidate.estimator).set_params(
            bounds=bounds,
            epsilon=run.epsilon,
            delta=run.delta,
            neighbors=str(run.neighbors),
            allow_large_delta=True,  # the selection's own delta was checked
            ledger=False,  # the selection is charged as a whole
            verbose=False,
        )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a warning of a run that is not released would reveal it
            model.fit(self.fitting.X, self.fitting.y, self.fitting.groups)
        if model.certificate_.events != paid.planned[index].priced.events:
            raise PlanViolation("a candidate released something else than was priced: please report these candidates")
        return Outcome(index, model, self._score(candidate, model, paid.score))

    def _score(self, candidate: Candidate, model: DPLinearModel, priced: PricedPlan) -> float:
        data = _private(candidate, self.scoring, self.sizes[1])
        loss = candidate.facts.loss
        curator = data.open(priced, loss)
        w = in_training_units(model.coef_, np.atleast_1d(model.intercept_), data, loss)
        if not np.isfinite(w).all():
            return -math.inf
        assert curator.domain.n is not None
        return 0.5 + curator.noisy_score(w, error=candidate.facts.error) / curator.domain.n


def _private(candidate: Candidate, part: Part, n: int | None) -> PrivateData:
    bounds, intercept = candidate.facts.bounds.with_facts(n=n), candidate.estimator.fit_intercept
    return PrivateData(part.X, part.y, bounds, groups=part.groups, fit_intercept=intercept, ledger=False)
