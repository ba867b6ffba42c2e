"""One validator for every parameter: what a type admits, what it converts, and how it refuses."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction as Ratio
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.parameters import (
    Count,
    OneOf,
    Positive,
    Share,
    Weight,
    check_fields,
    check_settings,
    checked,
    conformed,
    conforms,
)


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
