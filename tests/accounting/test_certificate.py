"""Certificates: complete, strict, and checkable from their JSON alone."""

import json
import math
from dataclasses import replace

import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian, Laplace, NonPrivate, PoissonSampled
from discreet.accounting.pricing import epsilon_of
from discreet.errors import AccountingError

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


@pytest.mark.parametrize("case", CASES)
def test_json_round_trip(case):
    made = certificate(**case)
    again = Certificate.from_json(made.to_json())
    assert again == made
    assert again.to_json() == made.to_json()
    assert again.verify().epsilon == made.epsilon


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


def test_not_json():
    for text in ("", "[]", '{"epsilon": NaN}', '{"a": 1, "a": 2}'):
        with pytest.raises(AccountingError):
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


def test_text_is_readable_and_exact():
    made = certificate(unit="person", notes=("solver defaults",))
    text = str(made)
    for phrase in (
        "PRIVATE",
        "delta = 1e-06",
        "per person",
        "any one person is exchanged",
        "100 x gaussian",
        "gdp",
        "solver defaults",
    ):
        assert phrase in text
    assert max(len(line) for line in text.splitlines()) <= 120


def test_group():
    made = certificate()
    together, slack = made.group(3)
    assert together == pytest.approx(3 * made.epsilon)
    assert slack > 3 * made.delta


def test_a_claim_above_the_price_is_allowed_and_below_is_not():
    made = certificate()
    assert replace(made, epsilon=made.epsilon * 1.01).verify().claimed > made.epsilon
    with pytest.raises(AccountingError):
        replace(made, epsilon=made.epsilon * (1 - 1e-6)).verify()
    with pytest.raises(AccountingError):
        replace(made, delta=made.delta / 2).verify()


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


def test_a_usual_guarantee_is_not_called_weak():
    at_most = (certificate(), certificate(delta=9e-4), certificate(assumed_public={}, delta=0.5))
    assert {(made.weaknesses, made.headline) for made in at_most} == {((), "PRIVATE")}


def test_no_guarantee_is_not_called_weak_but_none():
    made = certificate(events=(NonPrivate(),))
    assert made.weaknesses == ()
    assert made.headline == made.stamp == "NOT PRIVATE (epsilon is infinite; something was released without noise)"


def test_weakness_does_not_change_what_is_stored():
    stored = json.loads(certificate(delta=0.5).to_json())
    assert stored["stamp"] == "PRIVATE"
    assert not {"headline", "weaknesses", "not_covered"} & set(stored)


LEDGER = {"ledger": "a", "dataset": "b", "entry": 1, "head": "c"}


@pytest.mark.parametrize("ledger", [None, LEDGER])
@pytest.mark.parametrize("case", CASES)
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
