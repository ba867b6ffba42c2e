"""The types of a certificate's fields: a file with a wrong one is refused when it is read, also with a correct seal.

Solver settings, a schema and facts of other names are free: they are shown as they are, nothing is computed of them.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from discreet.accounting.cell_counts import CHECKED, ESTIMATED_RANGES, NULL
from discreet.accounting.coverage import GIVEN
from discreet.errors import AccountingError

Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    """Whether a double holds it: larger whole numbers end arithmetic in an error."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_price(value: Any) -> bool:
    return value == "inf" or (_is_number(value) and value >= 0)


def _is_count(value: Any) -> bool:
    return type(value) is int and _is_number(value) and value >= 0


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def _is_size(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_scalar(value: Any) -> bool:
    return _is_text(value) or _is_number(value) or isinstance(value, bool)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _are_features(value: Any) -> bool:
    return _is_size(value) or _list_of(_is_range)(value) or _object_of(_is_range)(value)


def _are_checks(value: Any) -> bool:
    if not isinstance(value, dict) or not {"noise", NULL, "columns"} <= set(value):
        return False
    return (
        _is_number(value["noise"]) and _is_number(value[NULL]) and _object_of(_object_of(_is_number))(value["columns"])
    )


def _is_date(value: Any) -> bool:
    try:
        return value is None or date.fromisoformat(value).isoformat() == value
    except (TypeError, ValueError):
        return False


FACTS: Mapping[str, Check] = {
    "n": _is_count,
    "features": _are_features,
    "row_norm": lambda value: value is None or _is_size(value),
    "target": _is_range,
    "classes": _list_of(_is_scalar),
    "scale": _is_text,
    "schema": _is_object,
    "kept": _is_text,
    "parts": _is_count,
    GIVEN: _is_object,
    ESTIMATED_RANGES: _object_of(_is_range),
    CHECKED: _are_checks,
}
"""The facts of ``assumed_public`` whose form is known."""


def _are_facts(value: Any) -> bool:
    return isinstance(value, dict) and all(FACTS[name](fact) for name, fact in value.items() if name in FACTS)


FIELDS: Mapping[str, Check] = {
    "epsilon": _is_price,
    "delta": _is_price,
    "neighbors": _is_text,
    "events": _list_of(_is_object),
    "unit": _is_text,
    "model": _is_text,
    "solver": _is_object,
    "accountants": _object_of(_is_price),
    "assumed_public": _are_facts,
    "noise_multiplier": _is_price,
    "arithmetic": _is_text,
    "entropy": _is_text,
    "library_version": _is_text,
    "notes": _list_of(_is_text),
    "created": _is_date,
    "not_private": _list_of(_is_text),
    "trace": _list_of(_is_object),
    "ledger": lambda value: value is None or _is_object(value),
    "stamp": _is_text,
}


def check_fields(stored: Mapping[str, Any]) -> None:
    """Refuse a certificate, as JSON holds it, one of whose fields has another type than discreet writes."""
    wrong = [name for name, check in FIELDS.items() if not check(stored[name])]
    if wrong:
        raise AccountingError(f"this is not a certificate: {', '.join(wrong)} has the wrong form")
