"""From the constraints that several documents share (least, largest, labels) to the declaration of a column."""

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.schema.limits import SchemaError


def declared_by(
    kind: str,
    *,
    low: Any = None,
    high: Any = None,
    labels: Sequence[Any] | None = None,
    ordered: bool = False,
    words: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the declaration of a column of this kind (number, text, boolean, other), empty where facts are missing."""
    labels = [label for label in labels or () if label is not None]
    if not all(isinstance(label, (str, bool, int, float)) for label in labels):
        raise SchemaError("the codebook lists labels that are neither texts nor numbers")
    if kind == "boolean" or (labels and all(isinstance(label, bool) for label in labels)):
        return {"boolean": True, **(words or {})}
    if labels:
        same = all(isinstance(label, str) for label in labels) or all(type(label) in (int, float) for label in labels)
        return {"levels" if ordered and len(labels) > 1 else "categories": labels if same else list(map(str, labels))}
    if kind == "number" and _is_number(low) and _is_number(high) and low < high:
        return {"range": [float(low), float(high)]}
    return {}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def first_line(*texts: Any) -> str:
    """Return the first line of the first text there is."""
    found = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return found.strip().splitlines()[0] if found else ""
