"""Vectors of numbers that a user hands in are listed as taken as public: in the certificate's text, its JSON, a report.

They go in and out exactly, with a fit that is stamped as private. No program can tell where they came from.
"""

import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from discreet import Bounds, Budget, DPLogisticRegression, solvers
from discreet.accounting.certificate import READ_OFF
from discreet.accounting.plan import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.curator import PrivateData
from discreet.losses import Logistic
from discreet.report.model_report import ModelReport
from discreet.solvers import (
    AdaptiveDescent,
    CoordinateDescent,
    ExponentialMechanism,
    Geometry,
    GradientDescent,
    GreedyCoordinateDescent,
    Preconditioned,
    StochasticGradientDescent,
)

ODD = 0.123456789
P = 3
CASES = {
    "start": {"start": (np.full(P, ODD), 0.0), "solver": "gd"},
    "public_moments": {"public_moments": (np.full(P, ODD), np.ones(P)), "solver": Preconditioned(GradientDescent(2))},
    "step_schedule": {"solver": GradientDescent(2, step_schedule=(1.0, ODD))},
    "step_schedule of sgd": {"solver": StochasticGradientDescent(2, batch_size=8, step_schedule=(1.0, ODD))},
    "step_sizes": {"solver": AdaptiveDescent(step_sizes=(ODD, 1.0))},
    "probabilities": {"solver": CoordinateDescent(1, 4, probabilities=(ODD, 0.2, 0.3, 0.3 + 0.2 - ODD))},
    "coordinate_clips": {"solver": CoordinateDescent(1, 4, Geometry(coordinate_clips=(ODD, 1.0, 1.0, 1.0)))},
    "coordinate_smoothness": {
        "solver": GreedyCoordinateDescent(2, geometry=Geometry(coordinate_smoothness=(1.0, 1.0, 1.0, ODD)))
    },
    "candidates": {"solver": ExponentialMechanism(candidates=np.full((2, P + 1), ODD))},
    "inside a stage": {"solver": Preconditioned(GradientDescent(2, step_schedule=(1.0, ODD)))},
}


def fitted(**words):
    X, y = np.linspace(-1, 1, 60 * P).reshape(60, P), np.arange(60) % 2
    return DPLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0, classes=(0, 1)), ledger=False, **words).fit(X, y)


def public_lines(made):
    return made.text().split("Taken as public, not measured")[1].split("Ledger")[0]


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES)
def test_numbers_that_are_handed_in_are_listed_as_public(case):
    made = fitted(**CASES[case]).certificate_
    digits = str(ODD)[:6]
    assert made.is_private
    listed = public_lines(made)
    assert digits in listed
    given = json.loads(made.to_json())["assumed_public"]["given"]
    assert digits in json.dumps(given)
    page = ModelReport("A model", made).html().split('id="public"')[1].split("<h2")[0]
    assert digits in page
    assert "handed in" in page
    assert READ_OFF in " ".join(made.text().split())
    assert READ_OFF in made.not_covered


def test_a_curator_of_ones_own_lists_them_too():
    data = PrivateData(np.eye(P), np.array([0, 1, 0]), Bounds(1.0, classes=(0, 1)), ledger=False)
    priced = price_plan(Plan([Release("noisy_gradient", 1, clip=0.5)]), Budget(1.0, 1e-6))
    curator = data.open(priced, Logistic(), start=np.full(P + 1, ODD))
    made = curator.certificate(model="mine", solver={"weights": [ODD, 1]})
    assert made.assumed_public["given"] == {"start": [ODD] * (P + 1), "weights": [ODD, 1]}


def test_the_cases_are_all_vectors_that_solvers_take():
    """A new field of a solver that takes several numbers needs a case here."""
    kinds = [getattr(solvers, name) for name in solvers.__all__]
    vectors = {
        item.name
        for kind in kinds
        if is_dataclass(kind) and (hasattr(kind, "settings") or kind is Geometry)
        for item in fields(kind)
        if any(word in str(item.type) for word in ("tuple", "ArrayLike", "Sequence", "Floats", "NDArray", "list"))
    }
    assert vectors
    assert vectors <= {case.split()[0] for case in CASES}, vectors
