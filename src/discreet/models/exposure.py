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
from discreet.ledger.default_ledger import account_of

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


def warn_of_repeated_fits(ledger: Any, dataset: str | None) -> None:
    """Warn where a fit without a ledger runs inside a search: once per search and process, at the search's caller.

    A search that is a function, such as ``cross_val_score``, and a task of a worker process are recognized by the line
    that called them. ``ledger=False`` declares that nothing has to be charged, and is silent.
    """
    search = _outermost_search()
    if search is None or ledger is False or account_of(ledger, dataset) is not None:
        return
    caller, owner = _caller(search), search.f_locals.get("self")
    line = (caller.f_code.co_filename, caller.f_lineno)
    if owner in _warned_searches if owner is not None else line in _warned_lines:
        return
    registry = caller.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(SEARCH, PrivacyWarning, *line, module=_module(caller), registry=registry)
    if owner is None:
        _warned_lines.add(line)
    else:
        _warned_searches.add(owner)


def warn_of_lost_groups(ledger: Any, groups: Any) -> None:
    """Warn where a search knows who the persons are and a fit inside it does not: at the search's caller.

    ``ledger=False`` declares that nothing has to be charged, and is silent.
    """
    search = _outermost_search() if groups is None and ledger is not False else None
    if search is None:
        return
    told = search.f_locals.get("groups")
    params = search.f_locals.get("params")
    told = params.get("groups") if told is None and isinstance(params, dict) else told
    if told is not None:
        caller = _caller(search)
        line, registry = (caller.f_code.co_filename, caller.f_lineno), caller.f_globals
        known = registry.setdefault("__warningregistry__", {})
        warnings.warn_explicit(LOST_GROUPS, PrivacyWarning, *line, module=_module(caller), registry=known)


def _outermost_search() -> FrameType | None:
    """Return the outermost frame of a package that repeats fits; None where there is none."""
    found: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found = frame if _module(frame).startswith(REPEATING) else found
        frame = frame.f_back
    return found


def _caller(search: FrameType) -> FrameType:
    """Return who called the search: the first frame outside of scikit-learn, whose decorators stand between."""
    frame = search
    while frame.f_back is not None and _module(frame).startswith("sklearn."):
        frame = frame.f_back
    return frame


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
