"""The default against solvers by name: what is compared is what it says, and the command runs."""

import numpy as np
import pytest

from benchmarks.comparisons.defaults import REFERENCE, compared
from benchmarks.pages.defaults import summary

FACTS = {"loss": "logistic", "intercept": True, "ranges": "fitting", "strength": "weak"}
KNOWN = {
    "problem": 1, "solver": REFERENCE, "facts": FACTS,
    "objective": 0.5, "trivial objective": 0.6, "zeros objective": 0.7,
}  # fmt: skip


def runs(**values):
    made = [
        {"problem": 1, "solver": solver, "epsilon": 1.0, "relation": "zero_out", "seed": seed, "objective": value}
        for solver, some in values.items()
        for seed, value in enumerate(some)
    ]
    return [KNOWN, *made]


def test_a_ratio_is_of_mean_excesses():
    (cell,) = compared(runs(auto=[0.53, 0.55], gd=[0.51, 0.53], cd=[0.7, 0.8]), "objective")
    assert cell.best == "gd"
    assert cell.negligible == pytest.approx(0.002)  # of 0.1 that can be gained
    assert cell.ratio() == pytest.approx(0.042 / 0.022)
    assert not cell.worse_than_trivial
    assert not cell.is_clear  # two seeds hardly tell
    assert "within 1.5 times the best solver by name in 0 % of them" in summary([cell])


def test_the_best_by_name_is_measured_on_seeds_by_which_it_was_not_chosen():
    """Of solvers that differ by noise alone each is now and then the best: that is no regret."""
    rng = np.random.default_rng(0)
    shown, selected = [], []
    for _ in range(200):
        noisy = {name: list(0.55 + 0.02 * rng.normal(size=6)) for name in ("auto", "gd", "cd", "gcd", "objective")}
        (cell,) = compared(runs(**noisy), "objective")
        shown.append(cell.least)
        selected.append(min(cell.excess(name) for name in ("gd", "cd", "gcd", "objective")))
    assert np.mean(shown) == pytest.approx(0.05, abs=0.0015)
    assert np.mean(selected) < 0.045  # the least of four means


def test_a_clear_loss_is_beyond_two_errors():
    (cell,) = compared(runs(auto=[0.6, 0.61, 0.6, 0.61], gd=[0.52, 0.53, 0.53, 0.52]), "objective")
    assert cell.is_beyond
    assert cell.is_clear
    assert 0 < cell.ratio_error() < 1


def test_worse_than_trivial_is_beyond_two_errors():
    for values, expected in (([0.65, 0.66], True), ([0.5, 0.8], False)):
        (cell,) = compared(runs(auto=values, gd=[0.51, 0.51]), "objective")
        assert cell.worse_than_trivial is expected
