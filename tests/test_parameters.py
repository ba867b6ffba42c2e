"""One validator for every parameter: what a type admits, what it converts, and how it refuses."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction as Ratio
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.parameters import (
    Count,
    Finite,
    Fraction,
    NonNegative,
    OneOf,
    Positive,
    Probability,
    Share,
    Weight,
    check_fields,
    check_settings,
    checked,
    conformed,
    conforms,
    described,
)

NEVER = ("2", b"2", [2], (2,), {2}, np.array([2.0]), 2j, Decimal(2), object(), int, None, np.nan, 10**400)
ADMITTED = {
    bool: (True, False, np.True_),
    int: (0, -3, 3.0, np.int8(3), Ratio(4, 2)),
    Count: (1, 3.0, np.uint64(7)),
    float: (0, -1.5, np.inf, np.float32(0.5), Ratio(1, 2)),
    Positive: (1e-150, 1, 1e150),
    NonNegative: (0, 5e-324, 1e150),
    Finite: (-1e308, 0),
    Share: (0.5, 1 - 1e-16),
    Weight: (0, 0.5),
    Fraction: (0, 1),
    Probability: (1e-9, 1),
}
REFUSED = {
    bool: (0, 1, 2, 1.0),
    int: (True, 2.5, np.inf),
    Count: (0, -1, True, 2.5, 1e20, np.inf),
    float: (True, np.True_),
    Positive: (0, -1, np.inf, True, 5e-324, 1e308),
    NonNegative: (-1e-300, np.inf, 1e308),
    Finite: (np.inf, -np.inf),
    Share: (0, 1, 1.5),
    Weight: (1, -0.1),
    Fraction: (-0.1, 1.1),
    Probability: (0, 1.1),
}


@pytest.mark.whole
@pytest.mark.parametrize("hint", ADMITTED, ids=described)
def test_numbers_and_truth_values(hint):
    assert all(conforms(value, hint) for value in ADMITTED[hint])
    assert not any(conforms(value, hint) for value in (*REFUSED[hint], *NEVER))


def test_what_is_converted():
    assert type(conformed("n", 3.0, Count)) is int
    assert conformed("flag", np.True_, bool) is True
    assert type(conformed("x", np.float32(0.5), Positive)) is float
    assert conformed("x", 256, Positive | None) == 256
    assert conformed("x", np.array([1, 2]), tuple[Positive, ...]) == (1, 2)
    assert conformed("x", [[1.0, 2]], Sequence[Sequence[Count]]) == ((1, 2),)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (Count | None, 0, "x must be a positive whole number, or None"),
        (None | Positive, "a", "x must be a positive number such as 1.0, from 1e-150 to 1e+150, or None"),
        (Annotated[str, OneOf("a", "b")], "c", "x must be a or b"),
        (Annotated[str, OneOf("a", "b", "c")], ["a"], "x must be one of a, b, c"),
        (Literal["nesterov"] | Weight, 2, "x must be 'nesterov', or a number in [0, 1)"),
        (
            tuple[Positive, ...],
            (),
            "x must be a sequence, each of its values a positive number such as 1.0, from 1e-150 to 1e+150",
        ),
        (
            Sequence[Positive],
            [-1],
            "x must be a sequence, each of its values a positive number such as 1.0, from 1e-150 to 1e+150",
        ),
        (tuple[Any, Any], np.eye(2), "x must be a pair"),
        (str, 5, "x must be a text"),
        (Ratio, Ratio, "x must be a Fraction"),
    ],
)
def test_words(hint, value, text):
    with pytest.raises(Unsupported) as raised:
        conformed("x", value, hint)
    assert str(raised.value) == text


def test_iterators_are_not_used_up():
    some = iter([1.0])
    assert not conforms(some, Sequence[Positive])
    assert next(some) == 1.0


@dataclass(frozen=True)
class _Settings:
    n_steps: Count = 3
    anything: Any = None

    def __post_init__(self) -> None:
        check_fields(self)


class _Estimator:
    def __init__(self, alpha: Positive = 1.0) -> None:
        self.alpha = alpha


def test_where_it_is_applied():
    assert _Settings(2.0, object).n_steps == 2
    with pytest.raises(Unsupported, match="n_steps must be a positive whole number"):
        _Settings(2.5)
    stored = _Estimator("1")
    with pytest.raises(Unsupported, match="alpha must be a positive number"):
        check_settings(stored)
    assert stored.alpha == "1"

    @checked
    def call(first: Any, level: Share = 0.5, *, later: "Count | None" = None) -> "Unknown":  # noqa: F821
        return first, level, later

    assert call(1) == (1, 0.5, None)
    assert call(1, 0.2, later=2.0) == (1, 0.2, 2)
    for words in ({"level": 2}, {"later": "a"}):
        with pytest.raises(Unsupported, match=" must be "):
            call(1, **words)
    with pytest.raises(TypeError, match="unexpected keyword argument 'strange'"):
        call(1, strange=2)
