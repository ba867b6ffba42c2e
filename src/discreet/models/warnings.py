"""Warnings of what no certificate counts: exact scores, fits that a search repeats, persons that it forgets.

All follow from which function called which, and never from a record.

*Repeated fits.* A search or a cross-validation of scikit-learn fits clones of a model many times. Each fit releases a
model, and without a ledger nobody adds them up. A clone does not know who fits it, but the call stack does: whatever
the search, its backend and the pipelines between, the function that calls ``fit`` belongs to one of the public packages
below, in a worker process too. The stack is read by the names of its modules, so nothing private is imported.
"""

import sys
import warnings
from types import FrameType
from typing import Any
from weakref import WeakSet

from discreet.errors import PrivacyWarning
from discreet.ledger.ledger import account_of

REPEATING = (
    *("sklearn.calibration", "sklearn.ensemble", "sklearn.feature_selection", "sklearn.model_selection"),
    *("sklearn.multiclass", "sklearn.multioutput", "sklearn.semi_supervised"),
)
"""Packages whose estimators and functions fit a model several times."""

SCORE = (
    "an exact score of private rows is a release without noise, which no certificate counts: use private_score, or "
    "public_score where everybody may see the rows"
)
SEARCH = (
    "this model is fitted inside a search or a cross-validation, and charged to no ledger: every fit spends its whole "
    "budget again, and the certificate of the best one does not count the others. Use DPRandomizedSearch, name a "
    "ledger, or set ledger=False where the records are public"
)

LOST_GROUPS = (
    "a search was given groups, and its models are fitted without: they protect single records, not persons. Enable "
    "scikit-learn's metadata routing and call set_fit_request(groups=True) on the model"
)

AUTOLOG = (
    "mlflow.sklearn.autolog is on: it logs exact training scores of pipelines and searches, releases without noise "
    "that no certificate counts. Turn it off with mlflow.sklearn.autolog(disable=True), and use log_to_mlflow"
)

_warned_searches: "WeakSet[Any]" = WeakSet()
_warned_lines: set[tuple[str, int]] = set()


def warn_of_exact_score() -> None:
    """Warn the caller of a ``score`` method."""
    warnings.warn(SCORE, PrivacyWarning, stacklevel=3)


def warn_of_autolog() -> None:
    """Warn where MLflow would log exact training scores of the pipeline or search around a fit."""
    autologging = sys.modules.get("mlflow.utils.autologging_utils")
    off = getattr(autologging, "autologging_is_disabled", None)
    if off is not None and "mlflow.sklearn" in sys.modules and not off("sklearn"):
        warnings.warn(AUTOLOG, PrivacyWarning, stacklevel=5)


def warn_of_uncounted_fits(ledger: Any, dataset: str | None, groups: Any) -> None:
    """Warn of what a search around a fit leaves uncounted, at the search's caller: its other fits, and its persons.

    A fit without a ledger is warned of once per search and process. A search that is a function, such as
    ``cross_val_score``, and a task of a worker process are recognized by the line that called them. ``ledger=False``
    declares that nothing has to be charged, and is silent.
    """
    search = _outermost_search()
    if search is None or ledger is False:
        return
    if account_of(ledger, dataset) is None:
        _warn_of_repeated_fits(search)
    params = search.f_locals.get("params")
    persons = search.f_locals.get("groups")
    persons = params.get("groups") if persons is None and isinstance(params, dict) else persons
    if groups is None and persons is not None:
        _warn_at(_caller(search), LOST_GROUPS)


def _warn_of_repeated_fits(search: FrameType) -> None:
    caller, owner = _caller(search), search.f_locals.get("self")
    line = (caller.f_code.co_filename, caller.f_lineno)
    if owner in _warned_searches if owner is not None else line in _warned_lines:
        return
    _warn_at(caller, SEARCH)
    if owner is None:
        _warned_lines.add(line)
    else:
        _warned_searches.add(owner)


def _warn_at(frame: FrameType, message: str) -> None:
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    line = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(message, PrivacyWarning, *line, module=_module(frame), registry=registry)


def _outermost_search() -> FrameType | None:
    """Return the outermost frame of a package that repeats fits; None where there is none."""
    search: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(REPEATING):
            search = frame
        frame = frame.f_back
    return search


def _caller(search: FrameType) -> FrameType:
    """Return who called the search: the first frame outside of scikit-learn, whose decorators stand between."""
    frame = search
    while frame.f_back is not None and _module(frame).startswith("sklearn."):
        frame = frame.f_back
    return frame


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
