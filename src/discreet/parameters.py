"""What a parameter may be is its type, declared next to it and checked in one place.

A field or an argument says ``n_steps: Count``, ``clip: Positive | None`` or ``average: Literal["last", "uniform"]``;
``check_fields`` refuses other values when a frozen dataclass is made, ``checked`` when a function is called and
``check_settings`` when an estimator is fitted (its constructor only stores). Truth values and whole numbers of other
types (numpy's, 3.0) are converted where the type says so. Messages name the parameter, never a value.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from discreet.errors import Unsupported

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Between:
    """Numbers from ``low`` to ``high``; ``ends`` are those that count: "", "low", "high" or "both"."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    ends: str = ""

    def __contains__(self, number: float) -> bool:
        above = number >= self.low if self.ends in ("low", "both") else number > self.low
        return above and (number <= self.high if self.ends in ("high", "both") else number < self.high)


class OneOf:
    """These words and no other."""

    def __init__(self, *words: str) -> None:
        self._words, self.text = words, " or ".join(words) if len(words) <= 2 else f"one of {', '.join(words)}"

    def __contains__(self, word: str) -> bool:
        return word in self._words


LARGEST_COUNT = 2**31 - 1
"""More steps, rows of a block or simulated tables than any run takes; its products still fit 64 bits."""
LEAST, MOST = 1e-150, 1e150
"""Settings between these have squares, and quotients of settings, that double precision holds."""
Positive = Annotated[
    float, Between(f"a positive number such as 1.0, from {LEAST:g} to {MOST:g}", LEAST, MOST, ends="both")
]
NonNegative = Annotated[float, Between(f"a number from 0 to {MOST:g}, such as 1e-3", 0.0, MOST, ends="both")]
Finite = Annotated[float, Between("a finite number")]
Share = Annotated[float, Between(f"a number between 0 and 1, from {LEAST:g}", LEAST, 1.0, ends="low")]
Weight = Annotated[float, Between("a number in [0, 1)", 0.0, 1.0, ends="low")]
Fraction = Annotated[float, Between("a number in [0, 1]", 0.0, 1.0, ends="both")]
Probability = Annotated[float, Between("a number in (0, 1]", 0.0, 1.0, ends="high")]
Count = Annotated[int, Between("a positive whole number", 1, LARGEST_COUNT, ends="both")]
Rows = Annotated[int, Between("a positive whole number", 1, 2**53, ends="both")]
CountOrZero = Annotated[int, Between("a whole number that is not negative", 0, LARGEST_COUNT, ends="both")]

_NAMES = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}
_REFUSED = object()
_TRUTHS = ("numpy.bool", "numpy.bool_")
"""By name: settings are checked where numpy is not imported yet, too."""


def conformed(name: str, value: object, hint: object) -> Any:
    """Return a value as its type says, or refuse it by name."""
    converted = _as(value, hint)
    if converted is _REFUSED:
        raise Unsupported(f"{name} must be {described(hint)}")
    return converted


def conforms(value: object, hint: object) -> bool:
    """Say whether a value is as its type says."""
    return _as(value, hint) is not _REFUSED


def described(hint: Any) -> str:
    """Return in words what a type admits."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return next((part.text for part in parts[1:] if hasattr(part, "text")), described(parts[0]))
    if kind is Literal:
        return "one of " + ", ".join(map(str, parts)) if len(parts) > 1 else repr(parts[0])
    if kind in (Union, UnionType):
        return ", or ".join(described(part) for part in sorted(parts, key=lambda part: part is NoneType))
    if kind is Sequence or parts[1:] == (...,):
        return f"a sequence, each of its values {described(parts[0])}"
    if kind is tuple:
        return "a pair" if len(parts) == 2 else f"a sequence of {len(parts)} values"
    named = kind or hint
    return _NAMES.get(named) or f"a {getattr(named, '__name__', named)}"


def _as(value: Any, hint: Any) -> Any:
    kind, parts = get_origin(hint), get_args(hint)
    if hint in (Any, object) or isinstance(hint, TypeVar):
        return value
    if kind is Annotated:
        converted = _as(value, parts[0])
        inside = converted is not _REFUSED and all(
            converted in part for part in parts[1:] if isinstance(part, (Between, OneOf))
        )
        return converted if inside else _REFUSED
    if kind is Literal:
        return next((part for part in parts if type(part) is type(value) and part == value), _REFUSED)
    if kind in (Union, UnionType):
        return next((converted for part in parts if (converted := _as(value, part)) is not _REFUSED), _REFUSED)
    if hint is bool:
        is_truth = isinstance(value, bool) or f"{type(value).__module__}.{type(value).__name__}" in _TRUTHS
        return bool(value) if is_truth else _REFUSED
    if hint in (int, float):
        return _as_number(value, whole=hint is int)
    if kind in (tuple, Sequence):
        return _as_tuple(value, parts, kind)
    named = NoneType if hint is None else kind or hint
    return value if isinstance(value, named) and not isinstance(value, type) else _REFUSED


def _as_number(value: object, *, whole: bool) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real):
        return _REFUSED
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return _REFUSED
    if math.isnan(number) or (whole and (math.isinf(number) or number % 1 != 0)):
        return _REFUSED
    exact = value if isinstance(value, (int, float)) else int(value) if isinstance(value, Integral) else number
    return int(exact) if whole else exact


def _as_tuple(value: object, parts: tuple[object, ...], kind: object) -> Any:
    """Return values of a ``tuple[X, ...]``, at least one, of a ``Sequence[X]``, or of as many types as are listed."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) != 1:
        return _REFUSED
    if not isinstance(value, Collection) or isinstance(value, (Set, Mapping)):
        return _REFUSED  # an iterator would be used up, and a set has no order
    values = tuple(value)
    hints = parts[:1] * len(values) if kind is Sequence or parts[1:] == (...,) else parts
    if len(hints) != len(values) or not (values or kind is Sequence):
        return _REFUSED
    converted = tuple(map(_as, values, hints))
    return _REFUSED if any(item is _REFUSED for item in converted) else converted


def check_fields(settings: Any) -> None:
    """Refuse a frozen dataclass with a field that is not as its type says; convert those that only look different."""
    kind: Any = type(settings)
    hints = _hints(kind)
    for field in fields(settings):
        if field.name not in hints:
            continue
        value = getattr(settings, field.name)
        converted = conformed(field.name, value, hints[field.name])
        if converted is not value:
            object.__setattr__(settings, field.name, converted)


def check_settings(estimator: object) -> None:
    """Refuse an estimator with a parameter that is not as its constructor's types say; it is left as it is."""
    for name, hint in _hints(type(estimator).__init__).items():
        conformed(name, getattr(estimator, name), hint)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that refuses arguments which are not as their types say."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **words: P.kwargs) -> R:
        bound, hints = signature.bind(*args, **words), _hints(function)
        for name, value in bound.arguments.items():
            if name in hints:
                bound.arguments[name] = conformed(name, value, hints[name])
        return function(*bound.args, **bound.kwargs)

    return call


@cache
def _hints(owner: Any) -> dict[str, Any]:
    """Return the types of a class's fields or of a function's arguments, where there is something to check."""
    if not isinstance(owner, type):  # what a function returns may be known to type checkers alone
        given = {name: hint for name, hint in owner.__annotations__.items() if name != "return"}
        owner = SimpleNamespace(__annotations__=given, __globals__=owner.__globals__)
    hints = get_type_hints(owner, getattr(owner, "__globals__", None), include_extras=True)
    return {name: hint for name, hint in hints.items() if hint not in (Any, object)}
