"""Values of a certificate as JSON: plain data, each number exact, nothing that reads back as something else."""

import json
import math
from collections.abc import Mapping
from typing import Any

from discreet.errors import AccountingError


def plain(value: Any) -> Any:
    """As JSON would give it back: lists for tuples, dictionaries in the order of their keys."""
    if isinstance(value, Mapping):
        return {str(name): plain(value[name]) for name in sorted(value, key=str)}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def encoded(value: Any) -> Any:
    """JSON types only: infinity as a string, tuples as lists."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise AccountingError("a certificate holds no NaN")
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(name): encoded(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return encoded(value.item())
    raise AccountingError("a certificate holds plain numbers, texts, lists and dictionaries only")


def decoded(text: str) -> Any:
    """Return what a JSON text holds; a ValueError where a name stands twice, and for NaN and infinity."""
    return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)


def decoded_number(value: Any) -> float:
    """Return a number that ``encoded`` wrote."""
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    answer = dict(pairs)
    if len(answer) != len(pairs):
        raise ValueError
    return answer


def _refuse_constant(_: str) -> Any:
    raise ValueError
