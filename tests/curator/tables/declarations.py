"""Strategies that the tests of tables share: schemas of every kind, and cells for them."""

import itertools
import math

from hypothesis import strategies as st

from discreet.schema.columns import Boolean, Category, Number, Ordinal, Target
from discreet.schema.schema import Schema

LARGEST = 1.7976931348623157e308
RANGES = [
    *((-1e308, 1e308), (-LARGEST, LARGEST), (1e-250, 2e-250), (1.0, math.nextafter(1.0, 2.0)), (0.0, 1.0), (-5.0, 3.0)),
    *((1e16, 1e16 + 2), (-LARGEST, math.nextafter(-LARGEST, 0)), (1990.0, 2020.0), (0.0, 1e7), (-1e-290, 1e308)),
]

finite = st.floats(allow_nan=False, allow_infinity=False)
ranges = st.one_of(
    st.sampled_from(RANGES),
    st.tuples(finite, finite).filter(lambda ends: ends[0] < ends[1] and ends[1] / 2 - ends[0] / 2 > 1e-240),
)
words = st.sampled_from(["a", "b", "c", "7", "x y", "\u00e9", "low", "high", "other", "middle", "flag", "0", "1e3"])
labels = st.one_of(
    st.lists(words, min_size=2, max_size=4, unique=True),
    st.lists(st.integers(-3, 10), min_size=2, max_size=4, unique=True),
    st.lists(st.sampled_from([0.5, 7.0, -3.25]), min_size=2, max_size=3, unique=True),
)


@st.composite
def number_columns(draw):
    low, high = draw(ranges)
    inside = st.floats(low, high).filter(lambda knot: low < knot < high)
    knots = ()
    if draw(st.booleans()) and math.nextafter(low, high) < high:
        found = sorted(draw(st.lists(inside, max_size=3, unique=True)))
        places = [low, *found, high]
        near = any(right / 2 - left / 2 < 1e-240 for left, right in itertools.pairwise(places))
        knots = () if near else tuple(found)
    missing = draw(st.sampled_from(["middle", "flag", "record"]) | st.floats(low, high))
    term = None if knots else draw(st.sampled_from([None, "linear", "curve"]))
    if term is None and not knots:
        knots = draw(st.sampled_from([(), 2, 3, 6]))
    unit = draw(st.sampled_from([1.0, 10, 0.5]))
    return Number((low, high), knots=knots, missing=missing, term=term, unit=unit)


@st.composite
def category_columns(draw):
    names = draw(labels)
    missing = draw(st.sampled_from(["other", "flag", "record", *names]))
    base = draw(st.sampled_from([None, *names]))
    return Category(tuple(names), other=draw(st.booleans()), missing=missing, base=base)


@st.composite
def ordinal_columns(draw):
    levels = draw(labels)
    return Ordinal(tuple(levels), missing=draw(st.sampled_from(["middle", "flag", "record", *levels])))


boolean_columns = st.builds(Boolean, missing=st.sampled_from(["middle", "flag", "record", True, False]))
kinds = st.one_of(number_columns(), category_columns(), ordinal_columns(), boolean_columns)


plain_names = st.sampled_from(["c0", "c1", "c2", "c3"])


@st.composite
def schemas(draw, names=plain_names, max_columns=4):
    """Features alone, with interactions of two and three columns."""
    columns = draw(st.dictionaries(names, kinds, min_size=1, max_size=max_columns))
    groups = []
    if len(columns) > 1:
        group = st.lists(st.sampled_from(sorted(columns)), min_size=2, max_size=3, unique=True)
        groups = draw(st.lists(group, max_size=2, unique_by=frozenset))
    return Schema(columns, interactions=tuple(map(tuple, groups)))


targets = st.one_of(
    labels.map(lambda found: Target("the target", classes=tuple(found))),
    ranges.map(lambda ends: Target("the target", range=ends)),
)
