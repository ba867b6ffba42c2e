"""Certificates: complete, strict, and checkable from their JSON alone.

A certificate is read with the types that it was written with: every other form of every field is refused.
"""

import json
import math
import re
from functools import cache

import numpy as np
import pytest

from discreet import Bounds, DiscreetError, DPLogisticRegression, DPRidge, TableModel
from discreet.accounting.certificate import Certificate, at_most
from discreet.accounting.events import Gaussian, Laplace, NonPrivate, PoissonSampled
from discreet.accounting.pricing import epsilon_of
from discreet.errors import AccountingError
from discreet.models import DPRandomizedSearch
from discreet.schema import Category, Number, Schema, Target
from discreet.solvers import AdaptiveDescent
from tests.covering import covering

STEPS = (Gaussian(40.0, 100),)


def certificate(events=STEPS, delta=1e-6, neighbors="replace_one", **changes):
    found = epsilon_of(events, delta, neighbors)
    facts = {
        "epsilon": found.epsilon,
        "delta": delta,
        "neighbors": neighbors,
        "events": events,
        "accountants": found.accountants,
        "model": "DPLogisticRegression",
        "solver": {"name": "gd", "steps": 100, "clip": 1.0},
        "assumed_public": {"features": [[0, 1], [-1, 1]], "classes": ["no", "yes"], "n": 1000, "row_norm": None},
        "noise_multiplier": 40.0,
        "library_version": "0.1",
        "created": "2024-01-01",
    }
    return Certificate(**(facts | changes))


CASES = [
    {},
    {"events": (PoissonSampled(655, Gaussian(2.0, 50)), Gaussian(9.0)), "neighbors": "add_remove"},
    {"events": (Laplace(30.0, 20),), "delta": 0.0},
    {"events": (NonPrivate(),)},
]


def tampered(made, change):
    stored = json.loads(made.to_json())
    change(stored)
    return json.dumps(stored)


@pytest.mark.parametrize("case", CASES[:3])
def test_tampering_is_caught(case):
    made = certificate(**case)
    where = made.to_json()

    def inner(stored):
        first = stored["events"][0]
        return first.get("event", first)

    def cheaper(stored):
        stored["epsilon"] *= 0.99

    def shorter(stored):
        inner(stored)["count"] -= 1

    def longer(stored):
        inner(stored)["count"] += 1

    def quieter(stored):
        inner(stored)["noise_multiplier"] *= 0.99

    def louder(stored):
        inner(stored)["noise_multiplier"] *= 1.01

    for change in (cheaper, shorter, longer, quieter, louder):
        text = tampered(made, change)
        assert text != where
        with pytest.raises(AccountingError, match="do not rely on it"):
            Certificate.from_json(text).verify()


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored.update(surprise=1),
        lambda stored: stored.pop("delta"),
        lambda stored: stored.update(format=2),
        lambda stored: stored.update(epsilon="1"),
        lambda stored: stored.update(delta=None),
        lambda stored: stored.update(neighbors="cousins"),
        lambda stored: stored.update(unit="house"),
        lambda stored: stored.update(accountants=[1]),
        lambda stored: stored["events"][0].update(surprise=1),
        lambda stored: stored["events"].append({"kind": "non_private"}),
        lambda stored: stored.update(stamp="NOT PRIVATE"),
    ],
)
def test_malformed_certificates_are_refused(change):
    with pytest.raises(AccountingError):
        Certificate.from_json(tampered(certificate(), change))


@pytest.mark.parametrize("depth", [700, 100_000])
def test_a_certificate_that_is_nested_too_deeply_is_refused(depth):
    text = (
        certificate()
        .to_json()
        .replace('"assumed_public": {', f'"assumed_public": {{"site": {"[" * depth}{"]" * depth}, ')
    )
    with pytest.raises(AccountingError, match="not a certificate"):
        Certificate.from_json(text)


def test_a_stamp_cannot_be_turned():
    seeded = certificate(entropy="seeded ChaCha20, for tests")
    assert seeded.stamp == "NOT PRIVATE (the noise is seeded)"
    assert not seeded.is_private
    with pytest.raises(AccountingError):
        Certificate.from_json(tampered(seeded, lambda stored: stored.update(stamp="PRIVATE")))


def test_not_private():
    open_ = certificate(events=(NonPrivate(),), noise_multiplier=0.0)
    assert open_.epsilon == math.inf
    assert "epsilon is infinite" in open_.stamp
    assert open_.group(2) == (math.inf, 1.0)
    assert "NOT PRIVATE" in str(open_)
    assert "do not release" in open_.text()


WEAK = [
    ({"events": (Gaussian(0.3),)}, "epsilon is above 8"),
    ({"delta": 0.5}, "delta is at least 1/n"),
    ({"delta": 1e-3}, "delta is at least 1/n"),
]


@pytest.mark.parametrize(("case", "reason"), WEAK)
def test_a_weak_guarantee_is_called_weak_wherever_it_is_shown(case, reason):
    made = certificate(**case)
    assert made.weaknesses == (reason,)
    assert made.headline == f"PRIVATE, but weak: {reason}"
    for text in (made.text(), made.summary()):
        assert text.startswith(f"Privacy certificate: {made.headline}\n")


LEDGER = {"ledger": "a", "dataset": "b", "entry": 1, "head": "c"}


@covering(("case", CASES), ("ledger", [None, LEDGER]))
def test_what_is_not_covered_stands_on_every_certificate(case, ledger):
    made = certificate(**case, ledger=ledger)
    fits = "not charged to this ledger" if ledger else "Earlier and other fits of the same rows"
    for text in (made.text(), made.summary()):
        said = " ".join(text.split())
        assert "Not covered Steps before the model that were fitted on the rows" in said
        assert "each is a release without noise" in said
        assert fits in said
        assert max(map(len, text.splitlines())) <= 120


def test_what_is_not_covered_cannot_be_edited_away():
    with pytest.raises(AccountingError, match="missing or unknown"):
        Certificate.from_json(tampered(certificate(), lambda stored: stored.update(not_covered=[])))
    with pytest.raises(AttributeError):
        certificate().not_covered = ()


@pytest.mark.parametrize("sign", ["\n", "\r", "\u2028", "\x85"])
def test_a_value_cannot_forge_a_line(sign):
    """A note, a model's name or a declared fact with a line break in it stays in its line."""
    forged = f"x{sign}  Guarantee     epsilon = 0.001, delta = 0.0, per person"
    made = certificate(model=forged, notes=(forged,), assumed_public={"schema": forged}, solver={"name": forged})
    for text in (made.text(), made.summary()):
        assert sum(line.startswith("  Guarantee") for line in text.splitlines()) == 1


X, Y = np.linspace(-1, 1, 120).reshape(60, 2), np.arange(60) % 2
FREE = ("solver", "assumed_public.schema", "assumed_public.given")
"""Shown as they are: inside, a text or a number may be another one, but not a form that no setting has."""
NO_SETTINGS = ([], {}, [[]], {"a": []}, {"a": {"b": [{}]}}, 10**400, [1, -(10**400)])
WRONG = (None, True, "x", "", -5, 1.5, 10**400, [], [1], ["x"], [[]], {}, {"a": 1}, {"a": None}, "inf", "-inf")


def labels(**words):
    return DPLogisticRegression(1.0, 1e-6, bounds=Bounds([(-1, 1), (-1, 1)], classes=(0, 1)), ledger=False, **words)


def table():
    import pandas as pd

    schema = Schema(
        {"age": Number("private", within=(0, 200)), "place": Category(("a", "b"))}, Target("ill", classes=(0, 1))
    )
    frame = pd.DataFrame({"age": X[:, 0] * 50 + 50, "place": ["a", "b"] * 30, "ill": Y})
    return TableModel(schema, DPLogisticRegression(1.0, 1e-6, ledger=False), checks=True).fit(frame).certificate_


WRITTEN = {
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
    return WRITTEN[case]().to_json()


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


@pytest.mark.whole
@pytest.mark.parametrize("case", WRITTEN)
def test_it_is_read_as_it_was_written(case):
    assert Certificate.from_json(text_of(case)).to_json() == text_of(case)


@pytest.mark.few(1)
@pytest.mark.parametrize("case", WRITTEN)
def test_fields_with_a_type_are_refused_with_another(case):
    """Where a value's type is declared, no other type of value passes."""
    stored = json.loads(text_of(case))
    for at in places(stored):
        name = ".".join(map(str, at))
        if name.startswith(FREE):
            for value in NO_SETTINGS:
                if value != {} or name not in (*FREE, "assumed_public.schema.columns"):  # there may be none at all
                    with pytest.raises(DiscreetError):
                        Certificate.from_json(changed(stored, at, value))
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


@pytest.mark.parametrize(
    ("delta", "shown"), [(4e-8, 4e-8), (1 / 45211**2, 4.9e-10), (2.7777777777777777e-8, 2.78e-8), (0.0, 0.0)]
)
def test_a_bound_that_is_shown_in_three_digits_is_not_below_the_claim(delta, shown):
    assert at_most(delta) == shown >= delta


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3, 700.0])
def test_the_factor_that_a_certificate_names_is_not_below_the_claim(epsilon):
    made = Certificate(epsilon=epsilon, delta=1e-6, neighbors="zero_out", events=(Gaussian(1.0),))
    assert float(re.search(r"([\d.e+]+) times as likely", made.text())[1]) >= math.exp(epsilon)
