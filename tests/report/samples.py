"""Reports for tests: a plain one, one that is hard to lay out, and one without privacy. No fit, no data."""

import math

import numpy as np

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import Gaussian, NonPrivate
from discreet.accounting.pricing import epsilon_of
from discreet.budget import Neighbors
from discreet.inference.units import BentShape, SmoothShape, Structure
from discreet.ledger.account import Spent
from discreet.models import Summary
from discreet.models.scores import PrivateScore, ScorePart
from discreet.report.model_report import Coefficient, CostForecast, Fact, ModelReport, Simulated
from discreet.solvers.base import Effects

EVIL = "</script><script>alert(\"x\")</script><!--<img src='http://example.org/x'>&amp;"
HEBREW = "\u05e2\u05d9\u05e8 \u05de\u05d2\u05d5\u05e8\u05d9\u05dd"


def certificate(**facts):
    events = (Gaussian(30.0), Gaussian(20.0), Gaussian(15.0, 8))
    found = epsilon_of(events, 1e-6)
    settings = {
        "epsilon": found.epsilon,
        "delta": 1e-6,
        "neighbors": Neighbors.REPLACE_ONE,
        "events": events,
        "model": "DPLogisticRegression",
        "solver": {"name": "recipe"},
        "accountants": found.accountants,
        "assumed_public": {"n": 30_000, "classes": [0, 1], "features": [[18.0, 110.0], [0.0, 1.0]]},
        "noise_multiplier": 5.0,
    }
    return Certificate(**{**settings, **facts})


def forecast(**changes):
    places = (0.25, 0.5, 1.0, 2.0, 4.0)
    settings = {
        "n": 30_000,
        "p": 13,
        "epsilon": 1.0,
        "score": "accuracy",
        "over_epsilon": tuple(Simulated(at, 0.02 / at, 0.01 / at, 0.03 / at) for at in places),
        "over_rows": tuple(Simulated(3e4 * at, 0.02 / at, -0.001, 0.03 / at) for at in places),
        "steps": ("noisy_mean", "noisy_second_moment", "noisy_gradient"),
        "remarks": ("Simulated on 3 synthetic tables.",),
    }
    return CostForecast(**{**settings, **changes})


def spent():
    return Spent("hospital 2026", 2, 1.7, 2e-9, 1.1, 0.31, 2.2, 1e-6, 3.0, 1e-6)


def effects(ratio="odds ratio"):
    """A summary with long names, a hidden effect, a wide interval, and cells of other values that are too few."""
    names = ("age", "days_in_the_intensive_care_unit", "ward = surgery", "ward (other)", "rare", "intercept")
    values, deviations = np.array([0.03, 0.4, -1.2, 6.0, 5.0, -2.0]), np.array([0.001, 0.1, 2.0, 3.0, 3.0, 0.2])
    covariance, eye = np.diag(deviations**2), np.eye(6)
    facts = {"caution": "Do not trust it.", "target": "the population", "weights": "Unusual rows are down-weighted"}
    known = Effects(covariance, covariance / 4, eye, np.diag([0, 0, 0, 1.0, 1.0, 0]), eye)
    return Summary(names, values, known, {**facts, "bias": "Standard errors allow for bias (age)"}, ratio)


def bent_effects(ratio="odds ratio", groups=("",), hidden=()):
    """A summary of a column with knots, a smooth one with a hostile name, and their product with a truth."""
    curve = tuple(f"{EVIL} bend {j}" for j in range(1, 4))
    shapes = {
        "age": BentShape(("age at 18", "age at 40", "age at 90"), (18.0, 40.0, 90.0)),
        EVIL: SmoothShape((EVIL, *curve), (0.0, 9.0), (-1.0, 0.0, 1.0)),
    }
    own = [("age", "age at 40"), ("age", "age at 90"), (EVIL, EVIL), *((EVIL, name) for name in curve)]
    terms = (*((factor,) for factor in own), (("age", "age at 40"), ("sex", "sex")), ())
    names = (*(name for _, name in own), "age at 40 x sex", "intercept")
    size = len(names) * len(groups)
    covariance = np.diag(np.resize([0.01, 0.02, 0.0004], size))
    blind = np.diag([float(j in hidden) for j in range(size)])
    known = Effects(covariance, covariance / 4, np.eye(size), blind, np.eye(size))
    several = len(groups) > 1
    blocks = tuple((group, name) for group in groups for name in names) if several else ()
    named = tuple(f"{group}: {name}" for group, name in blocks) if several else names
    values, structure = np.resize([0.4, 1.2, -0.05, 0.3], size), Structure(terms, shapes).repeated(len(groups))
    about = {"blocks": blocks, "structure": structure, "certificate": certificate()}
    return Summary(named, values, known, {"target": "the population"}, ratio, **about)


def plain(**changes):
    """As most reports are."""
    coefficients = [
        Coefficient("age", "age", "", 0.0351, 0.014, "per 1"),
        Coefficient("smoker", "smoker", "", 0.7, 0.5, "true against false"),
        Coefficient("bmi", "bmi", "", 0.58, 2.2, "per 1"),
        *(
            Coefficient(f"ward = {name}", "ward", "", value, 0.6, "cell")
            for name, value in (("north", -1.4), ("south", 0.2), ("other", 0.9))
        ),
        Coefficient("intercept", "", "", -14.0),
    ]
    settings = {
        "title": "A private model of readmission",
        "certificate": certificate(),
        "coefficients": coefficients,
        "level": 0.95,
        "facts": [
            Fact("age", "number from 18 to 110", "declared"),
            Fact("bmi", "number from 11.9 to 61.2", "estimated"),
            Fact("rows", "30,000", "container"),
        ],
        "spent": spent(),
        "forecast": forecast(),
        "scores": [
            PrivateScore("accuracy", 0.786, 0.778, 0.794, 0.95, 0.77, 0.8, certificate(epsilon=0.1), 10_000, "Wilson")
        ],
        "units": "log-odds per unit of the column",
    }
    return ModelReport(**{**settings, **changes})


def hard():
    """Sixty columns, four classes, names that are long, hostile or written from right to left."""
    outputs = ("stays", "goes home", "goes to a rehabilitation clinic far away from the hospital", HEBREW)
    names = [
        ("diagnosis", f"diagnosis = {EVIL}"),
        ("diagnosis", "diagnosis = " + "Pneumonoultramicroscopicsilicovolcanoconiosis_" * 4),
        (HEBREW, HEBREW),
        ("a very long column name with spaces " * 4, "a very long column name with spaces " * 4),
        *((f"column_{k:02}", f"column_{k:02}") for k in range(56)),
    ]
    coefficients = []
    for k, (column, name) in enumerate(names):
        for j, output in enumerate(outputs):
            value = 4 * math.sin(1.7 * k + 2.1 * j) / (1 + 0.1 * k)
            width = 60.0 if k == 7 else 0.4 + 0.1 * (k % 9)
            coefficients.append(Coefficient(name, column, output, value, width, EVIL))
    coefficients += [Coefficient("intercept", "", output, 90.0, 1.0) for output in outputs]
    facts = [
        Fact(column, f"one of {name}", "estimated" if k % 5 == 0 else "declared")
        for k, (column, name) in enumerate(names)
    ]
    made = certificate(unit="person", model=EVIL, notes=(EVIL,), assumed_public={"n": 30_000, EVIL: EVIL})
    parts = tuple(ScorePart(name, -0.2, -0.4, 0.1, None, None) for name in (EVIL, "long words " * 20))
    scores = [PrivateScore("r2", -0.2, -0.4, 0.1, 0.9, -0.5, 0.2, made, None, EVIL, parts)]
    return plain(title=EVIL, certificate=made, coefficients=coefficients, facts=facts, scores=scores, units=EVIL)


def not_private():
    """A model that promises nothing."""
    made = certificate(epsilon=math.inf, events=(NonPrivate(),), accountants={})
    return plain(certificate=made, forecast=None, spent=None)
