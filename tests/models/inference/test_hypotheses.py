"""What texts mean in tests and contrasts: columns, effects, products, combinations; hostile names; ambiguity."""

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.models import Summary
from discreet.models.inference.hypotheses import LONGEST, Vocabulary, readings
from discreet.models.inference.structure import Structure
from discreet.solvers.base import Effects

NAMES = ("age", "ward = b", "ward = c", "age x ward = b", "age x ward = c", "a - b", "a", "b", "2", "x = y", "in``t")
HOSTILE = ("a - b", "a", "b", "2", "x = y", "in``t")


def vocabulary():
    wards = [("ward", f"ward = {cell}") for cell in "bc"]
    terms = [(("age", "age"),), *((ward,) for ward in wards), *((("age", "age"), ward) for ward in wards)]
    terms += [((name, name),) for name in HOSTILE]
    return Vocabulary(NAMES, (), Structure(tuple(terms), {}, frozenset(["ward = a"])))


def rows(text, hidden=()):
    found = vocabulary().hypotheses(text, [j in hidden for j in range(len(NAMES))])
    return found.rows, found.values, found.left_out


def unit(*weights):
    row = np.zeros(len(NAMES))
    for weight, name in weights:
        row[NAMES.index(name)] = weight
    return row


@pytest.mark.whole
@pytest.mark.parametrize(
    ("text", "weights", "value"),
    [
        ("ward = b - ward = c", [(1, "ward = b"), (-1, "ward = c")], 0),
        ("ward = b = ward = c", [(1, "ward = b"), (-1, "ward = c")], 0),
        ("ward = b - ward = a", [(1, "ward = b")], 0),
        ("age = 0", [(1, "age")], 0),
        ("age=1e-1", [(1, "age")], 0.1),
        ("-2*age + .5 * ward = b - 1 = 3", [(-2, "age"), (0.5, "ward = b")], 4),
        ("age x ward = b + age", [(1, "age x ward = b"), (1, "age")], 0),
        ("`a` - `b`", [(1, "a"), (-1, "b")], 0),
        ("`a - b` - b", [(1, "a - b"), (-1, "b")], 0),
        ("a - b", [(1, "a - b")], 0),
        ("3 * `2` = 2 * a", [(3, "2"), (-2, "a")], 0),
        ("x = y", [(1, "x = y")], 0),
        ("`in````t` - age", [(1, "in``t"), (-1, "age")], 0),
        ("  age  ", [(1, "age")], 0),
    ],
)
def test_combinations(text, weights, value):
    found, values, _ = rows([text])
    np.testing.assert_allclose(found, [unit(*weights)])
    np.testing.assert_allclose(values, [value])


WRONG = ("", "age -", "age + + b", "age * b", "height", "age = 1 = 2", "`height`", "ward", "=", "ageb", "1", "`")


@pytest.mark.whole
@pytest.mark.parametrize("text", [*WRONG, "1e999 * b"])
def test_what_is_no_combination_is_refused(text):
    with pytest.raises(Unsupported):
        vocabulary().combination(text)


@pytest.mark.parametrize("text", ["a - b - b", "2 - a", "age - 2", "a - b = 0"])
def test_two_readings_are_refused(text):
    with pytest.raises(Unsupported, match="backticks"):
        rows([text])


def test_a_column_means_all_of_its_effects():
    found, _, _ = rows("age")
    np.testing.assert_allclose(found, [unit((1, name)) for name in ("age", "age x ward = b", "age x ward = c")])
    found, _, left_out = rows("ward", hidden=[2])
    np.testing.assert_allclose(found, [unit((1, name)) for name in ("ward = b", "age x ward = b", "age x ward = c")])
    assert left_out == ("ward = c",)
    found, _, _ = rows("age x ward")
    assert len(found) == 2
    with pytest.raises(Unsupported, match="hides every effect of ward"):
        rows("ward", hidden=[1, 2, 3, 4])


def test_matrices_have_a_finite_number_per_coefficient():
    for wrong in ([[1.0]], np.full((1, len(NAMES)), np.nan), np.zeros((1, 1, len(NAMES)))):
        with pytest.raises(Unsupported, match="finite number"):
            rows(wrong)
    with pytest.raises(Unsupported, match="at least one"):
        rows([])


def test_long_texts_are_read_or_refused():
    text = " + ".join(["age"] * 300)
    np.testing.assert_allclose(vocabulary().combination(text[:LONGEST]), unit((300, "age")))
    with pytest.raises(Unsupported):
        vocabulary().combination("age + " * LONGEST + "age")
    assert len(readings("a - a" * 300, ["a", "a - a", "a - a - a", "a -", " a"])) <= 2


def test_names_that_two_effects_share_are_refused():
    """A class and a feature may make the same name as another class and another feature."""
    eye = np.eye(2)
    effects = Effects(eye, eye / 4, eye, 0 * eye, eye)
    blocks = (("a: b", "c"), ("a", "b: c"))
    summary = Summary(("a: b: c", "a: b: c"), np.ones(2), effects, blocks=blocks)
    with pytest.raises(Unsupported, match="several effects"):
        summary.contrast("a: b: c")
    assert summary.wald_test("c").df == 1
