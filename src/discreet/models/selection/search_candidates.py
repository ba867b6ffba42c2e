"""The candidates of a private selection: every one configured, checked, with its declared facts."""

from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from discreet.errors import Unsupported
from discreet.models.base import DPLinearModel
from discreet.models.selection.search_price import Candidate, facts_of

_OWN = ("epsilon", "delta", "neighbors", "verbose")


def candidates_of(estimator: Any, candidates: Any) -> tuple[Candidate, ...]:
    """Every candidate, configured; what cannot be selected among is refused."""
    listed = tuple(_candidate(params, one) for params, one in _configured(estimator, candidates))
    if not listed:
        raise Unsupported("there are no candidates: pass a dictionary of lists, such as {'alpha': [1e-4, 1e-2]}")
    for key in ("classes", "target", "n"):
        if any(getattr(one.facts.bounds, key) != getattr(listed[0].facts.bounds, key) for one in listed):
            raise Unsupported(f"candidates must declare the same {key}, or their scores cannot be compared")
    return listed


def _configured(estimator: Any, candidates: Any) -> list[tuple[dict[str, Any], Any]]:
    """Each candidate's parameters, and the estimator with them."""
    if isinstance(candidates, Mapping):
        for name, values in candidates.items():
            if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable) or not len(list(values)):
                raise Unsupported(f"{name} lists the values to try, at least one: such as {{'alpha': [1e-4, 1e-2]}}")
        candidates = list(ParameterGrid({name: list(values) for name, values in candidates.items()}))
    answer = []
    for index, one in enumerate(candidates if isinstance(candidates, (list, tuple)) else []):
        if isinstance(one, Mapping):
            if estimator is None:
                raise Unsupported(
                    "parameters need an estimator: DPRandomizedSearch(DPLogisticRegression(bounds=...), {...})"
                )
            own = [name for name in one if name in _OWN]
            if own:
                raise Unsupported(f"candidates cannot have their own {own[0]}: pass it to DPRandomizedSearch")
            unknown = [name for name in one if name not in estimator.get_params()]
            if unknown:
                raise Unsupported(f"{type(estimator).__name__} has no parameter {unknown[0]!r}: see its get_params()")
            answer.append((dict(one), clone(estimator).set_params(**one)))
        else:
            answer.append(({"candidate": index}, one))
    return answer


def _candidate(params: dict[str, Any], estimator: Any) -> Candidate:
    if isinstance(estimator, type) or not isinstance(estimator, DPLinearModel):
        raise Unsupported(
            "candidates must be discreet's own private estimators: pipelines, searches and other models read "
            "records that nobody pays for"
        )
    return Candidate(params, clone(estimator), facts_of(estimator))
