"""What a text means in a test: a column, an effect, a product, or a combination of effects such as ``a - b``.

    hypothesis   = combination [ "=" combination ]
    combination  = [ sign ] part { sign part }
    part         = number [ "*" name ]  |  name

A name may itself contain signs (``ward = b``), so all readings of a text are looked for. A text with two readings is
refused; backticks around a name settle it (a backtick within is doubled).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from discreet.errors import Unsupported
from discreet.models.inference.grid import data_frames
from discreet.models.inference.structure import Structure
from discreet.typing import Floats

if TYPE_CHECKING:
    import pandas as pd

Blocks = tuple[tuple[str, str], ...]
"""The class and the feature of each coefficient, where there are several classes; else empty."""
Reading = tuple[tuple[float, str], ...]
"""Weights and names of a combination, all on the left of the equation; the empty name is the number 1."""
MOST_NAMES = 12
LONGEST = 2_000
"""Characters of a hypothesis."""
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_QUOTED = re.compile(r"`((?:[^`]|``)+)`(?!`)")
_BLANK = re.compile(r"\s*")
_SIGNS = {"+": 1.0, "-": -1.0, "\N{MINUS SIGN}": -1.0}


def index_of(names: Sequence[str], blocks: Blocks) -> "pd.Index":
    """Return the index of a table of effects: by feature, or by class and feature."""
    pd = data_frames()

    if blocks:
        return pd.MultiIndex.from_tuples(blocks, names=["class", "feature"])
    return pd.Index(names, name="feature")


def numbers_of(values: object, name: str) -> Floats:
    """Return numbers as an array; refuse what is none."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Unsupported(f"{name} must be numbers, of no more than double precision") from None


class Hypotheses(NamedTuple):
    """Linear hypotheses: rows of coefficients' weights, what they are equal to, and effects that are left out."""

    rows: Floats
    values: Floats
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """The names that a text may use: of effects, of classes' features, of columns and products."""

    names: tuple[str, ...]
    blocks: Blocks
    structure: Structure

    def hypotheses(
        self, texts: str | Sequence[str] | Sequence[Sequence[float]] | Floats, hidden: Sequence[bool]
    ) -> Hypotheses:
        """Return hypotheses as rows of a matrix; of a whole column, those of effects that noise hides are left out."""
        if isinstance(texts, str):
            texts = [texts]
        if not (isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)):
            return self._matrix(np.atleast_2d(numbers_of(texts, "hypotheses that are no texts")))
        if not texts:
            raise Unsupported(f"name at least one effect to test: {self._some()}")
        parts = [self._hypothesis(str(text), hidden) for text in texts]
        rows, values, left_out = zip(*parts, strict=True)
        return Hypotheses(np.vstack(rows), np.concatenate(values), tuple(dict.fromkeys(sum(left_out, ()))))

    def combination(self, text: str) -> Floats:
        """Return a combination of effects, or one effect, as a row of weights."""
        row, value = self._equation(text)
        if value:
            raise Unsupported(f"{text!r} compares with a number: use wald_test(), or leave the number out")
        return row

    def _matrix(self, rows: Floats) -> Hypotheses:
        if rows.ndim != 2 or rows.shape[1] != len(self.names) or not np.isfinite(rows).all():
            raise Unsupported(f"a hypothesis has one finite number for each of {len(self.names)} coefficients")
        return Hypotheses(rows, np.zeros(len(rows)))

    def _hypothesis(self, text: str, hidden: Sequence[bool]) -> Hypotheses:
        places = self.structure.of_column(text)
        if not places and text not in self.names:
            places = self._of_classes(text) or self.structure.of_term(text)
        if not places:
            row, value = self._equation(text)
            return Hypotheses(row[None, :], np.array([value]))
        shown = [j for j in places if not hidden[j]]
        if not shown:
            raise Unsupported(f"noise hides every effect of {text}: test others, or raise epsilon")
        rows = np.eye(len(self.names))[shown]
        return Hypotheses(rows, np.zeros(len(shown)), tuple(self.names[j] for j in places if hidden[j]))

    def _of_classes(self, feature: str) -> list[int]:
        return [j for j, (_, name) in enumerate(self.blocks) if name == feature]

    def _equation(self, text: str) -> tuple[Floats, float]:
        """Return the weights of a combination of effects, and the number that it is compared with."""
        if text in self.names or text in self.structure.bases:
            reading: Reading = ((1.0, text),)
        else:
            candidates = readings(text[:LONGEST], (*self.names, *sorted(self.structure.bases - {*self.names})))
            if not candidates or len(text) > LONGEST:
                raise Unsupported(
                    f"there is no effect called {text[:80]}: choose among {self._some()}, or combine them, such as "
                    "'a - b', '2 * a + b' or 'a = 1'"
                )
            if len(candidates) > 1:
                raise Unsupported(f"{text!r} can be read in two ways: put names between backticks, as in '`a` - `b`'")
            reading = candidates[0]
        row, value = np.zeros(len(self.names)), 0.0
        for weight, name in reading:
            if name in self.names:
                if self.names.count(name) > 1:
                    raise Unsupported(f"several effects are called {name}: pass rows of numbers")
                row[self.names.index(name)] += weight
            elif not name:
                value -= weight
        if not np.isfinite([*row, value]).all():
            raise Unsupported(f"{text!r} has a number that is too large")
        if not row.any():
            raise Unsupported(f"{text!r} is 0 whatever the effects are: name an effect that is not a base")
        return row, value

    def _some(self) -> str:
        more = f" and {len(self.names) - MOST_NAMES} more" if len(self.names) > MOST_NAMES else ""
        return ", ".join(self.names[:MOST_NAMES]) + more


def readings(text: str, names: Sequence[str]) -> list[Reading]:
    """Return the ways to read a text as a linear equation, two at the most."""

    @cache
    def parts(at: int, side: float, sign: float) -> tuple[Reading, ...]:
        """Readings from a place on where a part begins; ``side`` is -1 on the right of the equation."""
        at = _after_blanks(text, at)
        candidates: list[Reading] = []
        number = _NUMBER.match(text, at)
        if number:
            weight, after = side * sign * float(number[0]), _after_blanks(text, number.end())
            candidates += [((weight, ""), *more) for more in rest(after, side)]
            if text[after : after + 1] == "*":
                candidates += [((weight, name), *more) for name, end in ends(after + 1) for more in rest(end, side)]
        candidates += [((side * sign, name), *more) for name, end in ends(at) for more in rest(end, side)]
        return tuple(dict.fromkeys(candidates))[:2]

    @cache
    def rest(at: int, side: float) -> tuple[Reading, ...]:
        """Readings after a part: the end, a sign and a further part, or the other side of the equation."""
        at = _after_blanks(text, at)
        if at == len(text):
            return ((),)
        if text[at] in _SIGNS:
            return parts(at + 1, side, _SIGNS[text[at]])
        return first(at + 1, -1.0) if text[at] == "=" and side > 0 else ()

    def first(at: int, side: float) -> tuple[Reading, ...]:
        at = _after_blanks(text, at)
        signed = parts(at + 1, side, _SIGNS[text[at]]) if text[at : at + 1] in _SIGNS and at < len(text) else ()
        return tuple(dict.fromkeys((*parts(at, side, 1.0), *signed)))[:2]

    def ends(at: int) -> list[tuple[str, int]]:
        """Return the names that stand at a place, each with where it ends."""
        at = _after_blanks(text, at)
        quoted = _QUOTED.match(text, at)
        if quoted:
            name = quoted[1].replace("``", "`")
            return [(name, quoted.end())] if name in names else []
        return [(name, at + len(name)) for name in names if name and text.startswith(name, at)]

    for at in reversed(range(len(text))):  # from the end on, so that no text is read by deep recursion
        rest(at, -1.0)
        rest(at, 1.0)
    return list(first(0, 1.0))


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANK.match(text, at)
    return blanks.end() if blanks else at
