"""Fits that are refused standard errors: what the message says would do, does; quotes cost nothing."""

import re

import numpy as np
import pytest

from discreet import DPLinearRegression, DPLogisticRegression
from discreet.errors import Unsupported

MODELS = {
    "linear": (DPLinearRegression, {"target": (0.0, 1.0)}, 2),
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}, 2),
    "softmax": (DPLogisticRegression, {"classes": (0, 1, 2)}, 3),
}


def quoted(name, n, p, epsilon, relation, delta=None):
    cls, facts, classes = MODELS[name]
    X, y = np.zeros((n, p)), np.arange(n) % classes
    words = {"bounds": 1.0, "neighbors": relation, "inference": "sandwich", "ledger": False, **facts}
    return cls(epsilon, delta, **words).quote(X, y)


@pytest.mark.whole
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("relation", ["replace_one", "zero_out"])
@pytest.mark.parametrize(("name", "n", "p"), [("linear", 2380, 12), ("logistic", 2380, 12), ("softmax", 1500, 3)])
def test_the_advice_of_a_refusal_can_be_followed(name, n, p, relation, delta):
    """More rows, a larger epsilon, fewer columns: each by itself; a third less of any is refused again."""
    with pytest.raises(Unsupported) as refused:
        quoted(name, n, p, 1.0, relation, delta)
    said = str(refused.value)
    columns = f"{p} feature columns at epsilon = 1"
    found = re.search(
        rf"{columns} need about ([\d,]+) rows; you have {n:,}\. With these rows, epsilon = ([\d.]+)", said
    )
    assert found, said
    assert said.startswith("Too few rows for standard errors")
    rows, epsilon = int(found[1].replace(",", "")), float(found[2])
    quoted(name, rows, p, 1.0, relation, delta)
    quoted(name, n, p, epsilon, relation, delta)
    fewer = re.search(r"at most (\d+) feature column", said)
    if fewer:
        quoted(name, n, int(fewer[1]), 1.0, relation, delta)
    for less in ((2 * rows // 3, p, 1.0), (n, p, 0.66 * epsilon), (n, int(fewer[1]) + 1 if fewer else 1, 1.0)):
        with pytest.raises(Unsupported, match="Too few rows"):
            quoted(name, *less, relation, delta)
