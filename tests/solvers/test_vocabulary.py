"""A parameter of one name has one meaning and one type in every solver; None may leave it open."""

import re
from collections import defaultdict
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

import discreet.solvers
from discreet.solvers import base

SOLVERS = [
    thing
    for thing in (getattr(discreet.solvers, name) for name in sorted(discreet.solvers.__all__))
    if is_dataclass(thing)
]


def without_none(kind):
    """The type, as a set of alternatives, without None."""
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return frozenset(parts) - {NoneType}


def clashes(solvers):
    found = defaultdict(set)
    for solver in solvers:
        hints = get_type_hints(solver)
        for field in fields(solver):
            found[field.name].add(without_none(hints[field.name]))
    return {name for name, kinds in found.items() if len(kinds) > 1}


def family(solver):
    """The first class that brings parameters of its own."""
    return [kind for kind in solver.__mro__ if is_dataclass(kind)][-1]


def test_parameters_have_one_type():
    assert len(SOLVERS) > 12
    assert clashes(SOLVERS) == set()


def test_what_several_solvers_share_is_in_the_vocabulary():
    """The table in ``solvers/base.py`` lists every parameter that unlike solvers have."""
    written = set(re.findall(r"``(\w+)", base.__doc__))
    shared = {
        name
        for name in {field.name for solver in SOLVERS for field in fields(solver)}
        if len({family(solver) for solver in SOLVERS if name in {field.name for field in fields(solver)}}) > 1
    }
    assert {"n_steps", "clip", "average", "radius"} <= shared
    left = {name for name in shared if name not in written and not name.endswith("_share")}
    assert left == set()
