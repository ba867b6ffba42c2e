"""A certificate is read with the types that it was written with: every other form of every field is refused."""

import json
from dataclasses import fields
from functools import cache

import numpy as np
import pytest

from discreet import Bounds, Certificate, DiscreetError, DPLogisticRegression, DPRidge, TableModel
from discreet.accounting.certificate_fields import FACTS, FIELDS
from discreet.errors import AccountingError
from discreet.models import DPRandomizedSearch
from discreet.schema import Category, Number, Schema, Target
from discreet.solvers import AdaptiveDescent

X, Y = np.linspace(-1, 1, 120).reshape(60, 2), np.arange(60) % 2
WRONG = (None, True, "x", "", -5, 1.5, 10**400, [], [1], ["x"], [[]], {}, {"a": 1}, {"a": None}, "inf", "-inf")
FREE = ("solver", "assumed_public.schema", "assumed_public.given", "assumed_public.encoded")
"""Shown as they are; nothing is computed of what is inside."""


def labels(**words):
    return DPLogisticRegression(1.0, 1e-6, bounds=Bounds([(-1, 1), (-1, 1)], classes=(0, 1)), ledger=False, **words)


def selected():
    search = DPRandomizedSearch(labels(), {"alpha": [0.1]}, epsilon=3.0, ledger=False)
    return search.fit(X, Y).certificate_


def table():
    import pandas as pd

    schema = Schema(
        {"age": Number("private", within=(0, 200)), "place": Category(("a", "b"))}, Target("ill", classes=(0, 1))
    )
    frame = pd.DataFrame({"age": X[:, 0] * 50 + 50, "place": ["a", "b"] * 30, "ill": Y})
    return TableModel(schema, DPLogisticRegression(1.0, 1e-6, ledger=False), checks=True).fit(frame).certificate_


CASES = {
    "labels": lambda: labels(start=(np.zeros(2), 0.0), solver="gd").fit(X, Y).certificate_,
    "numbers": lambda: DPRidge(1.0, 1e-6, bounds=1.0, target=(0, 1), ledger=False).fit(X, Y).certificate_,
    "sampled": lambda: labels(solver="sgd").fit(X, Y).certificate_,
    "adaptive": lambda: labels(solver=AdaptiveDescent()).fit(X, Y).certificate_,
    "perturbed": lambda: labels(solver="objective", alpha=0.1).fit(X, Y).certificate_,
    "selected": lambda: (
        DPRandomizedSearch(labels(), {"alpha": [0.1]}, epsilon=3.0, ledger=False).fit(X, Y).certificate_
    ),
    "table": table,
}


@cache
def text_of(case):
    return CASES[case]().to_json()


def places(value, at=()):
    """Every place in nested lists and objects."""
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*at, key))


def changed(stored, at, value):
    stored = json.loads(json.dumps(stored))
    within = stored
    for key in at[:-1]:
        within = within[key]
    within[at[-1]] = value
    return json.dumps(stored)


def shown(text):
    """All that is made of a certificate; only discreet's own errors are allowed."""
    made = Certificate.from_json(text)
    made.text(), made.summary(), made.headline, made.public_digest(), made.to_json()
    return made


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES)
def test_it_is_read_as_it_was_written(case):
    assert shown(text_of(case)).to_json() == text_of(case)


@pytest.mark.thorough
@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("case", CASES)
def test_other_types_are_refused_or_harmless(case, value):
    """Everywhere: refused in discreet's words, or everything can be shown."""
    stored = json.loads(text_of(case))
    for at in places(stored):
        try:
            shown(changed(stored, at, value))
        except DiscreetError:
            continue
        except Exception as error:
            raise AssertionError(f"{'.'.join(map(str, at))} = {value!r}") from error


@pytest.mark.few(1)
@pytest.mark.parametrize("case", CASES)
def test_fields_with_a_type_are_refused_with_another(case):
    """Where a value's type is declared, no other type of value passes."""
    stored = json.loads(text_of(case))
    for at in places(stored):
        name = ".".join(map(str, at))
        if name.startswith(FREE) or (at[0] == "assumed_public" and at[1:] and at[1] not in FACTS):
            continue
        within = stored
        for key in at:
            within = within[key]
        for value in WRONG:
            if _kind(value) == _kind(within) or (value is None and at[-1] in ("created", "ledger", "row_norm")):
                continue
            if value in ("inf", True) or at[1:2] in (("classes",), ("features",)) or at[0] in ("events", "trace"):
                continue  # may be meant, or is tried above
            with pytest.raises(DiscreetError):
                Certificate.from_json(changed(stored, at, value))


def _kind(value):
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


@pytest.mark.whole
@pytest.mark.parametrize("value", [-5, "x", 1.5, True, None, [], "60"])
def test_a_number_of_records_is_a_whole_number(value):
    stored = json.loads(text_of("labels"))
    with pytest.raises(AccountingError, match="assumed_public"):
        Certificate.from_json(changed(stored, ("assumed_public", "n"), value))


def test_every_field_has_a_type():
    assert set(FIELDS) == {item.name for item in fields(Certificate)} | {"stamp"}
