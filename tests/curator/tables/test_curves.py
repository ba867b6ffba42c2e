"""Curves: cubic splines in the form of a line and its bends, within a proven norm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from discreet.curator.tables.encode import Layout, curve_on
from discreet.schema.columns import Number, SchemaError
from discreet.schema.schema import Schema

EVEN = [Number((0, 1), knots=count).scaled_knots for count in (2, 3, 4, 8, 20, 100)]
UNEVEN = [(-1.0, -0.9, 0.2, 1.0), (-1.0, -0.998, 0.5, 1.0), (-1.0, 0.0, 0.004, 0.9, 1.0)]


def splines(knots, degree=3):
    """Return scipy's B-splines on the same knots, as a function of places."""
    inner = np.array(knots)
    outer = np.arange(1, degree + 1)
    first, last = (inner[1] - inner[0]) * outer[::-1], (inner[-1] - inner[-2]) * outer
    whole = np.concatenate([inner[0] - first, inner, inner[-1] + last])
    return lambda u: BSpline.design_matrix(u, whole, degree).toarray()


@pytest.mark.whole
@pytest.mark.parametrize("knots", EVEN + UNEVEN)
def test_a_line_its_bends_and_a_constant_are_all_cubic_splines(knots):
    u = np.linspace(-1, 1, 997)
    ours = np.column_stack([np.ones_like(u), u, curve_on(knots).bends(u)])
    theirs = splines(knots)(u)
    assert ours.shape[1] == theirs.shape[1]
    left = theirs - ours @ np.linalg.lstsq(ours, theirs, rcond=None)[0]
    assert abs(left).max() < 1e-6
    back = ours - theirs @ np.linalg.lstsq(theirs, ours, rcond=None)[0]
    assert abs(back).max() < 1e-9


@pytest.mark.whole
@pytest.mark.parametrize("knots", EVEN + UNEVEN)
def test_the_norm_holds_everywhere_and_is_nearly_reached(knots):
    curve = curve_on(knots)
    u = np.concatenate([np.linspace(-1, 1, 20_001), knots])
    length = np.sqrt(u**2 + np.square(curve.bends(u)).sum(axis=1))
    assert length.max() <= curve.norm * (1 + 1e-14)
    assert length.max() >= 0.9 * curve.norm
    assert curve.norm <= np.sqrt(2) * (1 + 1e-14)


def test_bends_are_from_smooth_to_rough_and_smaller():
    """Bend j crosses 0 once more than the one before, and has nothing of it, of the line or of a constant."""
    knots = EVEN[3]
    u = (np.arange(20_000) + 0.5) / 10_000 - 1
    basis, bends = splines(knots)(u), curve_on(knots).bends(u)
    coefficients = np.linalg.lstsq(basis, bends, rcond=None)[0]
    crossings = (np.diff(np.sign(coefficients), axis=0) != 0).sum(axis=0)
    assert crossings.tolist() == list(range(2, 10))
    assert (coefficients[-1] > 0).all()
    assert (np.diff(np.square(bends).mean(axis=0)) < 0).all()
    functions = np.column_stack([np.ones_like(u), u, bends])
    gram = functions.T @ functions / len(u)
    sizes = np.sqrt(np.diag(gram))
    assert np.allclose(gram / np.outer(sizes, sizes), np.eye(len(gram)), atol=1e-6)


@pytest.mark.parametrize("knots", UNEVEN)
def test_bends_of_uneven_knots_do_not_repeat_each_other(knots):
    u = (np.arange(400_000) + 0.5) / 200_000 - 1
    functions = np.column_stack([np.ones_like(u), u, curve_on(knots).bends(u)])
    functions /= np.sqrt(np.square(functions).mean(axis=0))
    assert np.allclose(functions.T @ functions / len(u), np.eye(functions.shape[1]), atol=1e-3)


@given(st.floats(-1, 1), st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_a_place_is_encoded_for_itself(u, rows):
    curve = curve_on(EVEN[3])
    alone = curve.bends(np.array([u]))
    others = curve.bends(np.linspace(-1, 1, rows))
    among = curve.bends(np.array([*np.linspace(-1, 1, rows), u]))
    assert np.array_equal(among[-1], alone[0])
    assert np.array_equal(among[:-1], others)


def test_the_line_of_a_curve_is_the_linear_feature():
    cells = {"age": np.array([-5.0, 18.0, 44.4, 110.0, 200.0, np.nan])}
    linear, curve = (
        Layout(Schema({"age": kind})).encode(cells, 6) for kind in (Number((18, 110)), Number((18, 110), knots=4))
    )
    assert np.array_equal(curve[:, :1], linear)


def test_a_private_range_takes_a_count_of_knots():
    schema = Schema({"pay": Number("private", within=(0, 1e7), knots=5)})
    settled = schema.with_ranges({"pay": (100.0, 900.0)})
    assert [f.name for f in Layout(schema).features] == [f.name for f in Layout(settled).features]
    assert Layout(settled).features[1].unit == "bend 1 of 5"
    with pytest.raises(SchemaError, match="knots = 8"):
        Number("private", within=(0, 1e7), knots=(500,))
