"""The coordinate experiments run, and say what they found: tiny sizes, one seed."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.comparisons.coordinates import QUICK, compare
from benchmarks.measures.excess_risk import excess_risk
from benchmarks.methods import tuned as methods
from benchmarks.pages.coordinates import markdown
from benchmarks.pages.curve_panels import Curve, Panel, curve_panels
from benchmarks.pages.generated import into_page
from benchmarks.problems.linear import NAMES, problem
from discreet.cli.terminal import Refused

TINY = replace(QUICK, seeds=2, n=80, wide=20, axis=1)


@pytest.mark.parametrize("name", NAMES)
def test_the_minimum_is_one(name: str) -> None:
    given = problem(name, n=80, p=20 if name == "sparse" else None)
    rng = np.random.default_rng(0)
    p = given.scales.size
    assert given.excess(np.zeros(p)) > 0
    assert all(given.excess(rng.normal(size=p)) > 0 for _ in range(20))


def test_training_coordinates_are_the_raw_ones_divided() -> None:
    given = problem("lognormal", n=200)
    best = np.linalg.lstsq(given.X, given.y, rcond=None)[0]
    assert given.excess(best * given.feature_unit / given.target_unit) == pytest.approx(0.0, abs=1e-12)


def test_grids_are_of_equal_size() -> None:
    for name in NAMES:
        sizes = {(len(m.passes), len(m.settings(m.passes[0]))) for m in methods.methods_for(name)}
        assert sizes == {(5, 12)}


@pytest.mark.thorough
def test_seeds_replay_and_differ() -> None:
    given, method = problem("firstbig", n=100), methods.DENSE[0]
    setting = methods.Setting(5, 1.0, 1.0)
    first, again, other = (excess_risk(given, method, setting, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_smoothness_clips_make_units_irrelevant() -> None:
    """balanced and firstbig are one problem in two units: coordinate descent gives one answer but for rounding."""
    setting = methods.Setting(10, 1.0, 1.0)
    same = [excess_risk(problem(name, n=200), methods.DENSE[0], setting, 1) for name in ("balanced", "firstbig")]
    assert same[0] == pytest.approx(same[1], rel=1e-2)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["firstbig", "sparse"])
def test_results_are_plain_numbers_and_fit_the_page(name: str) -> None:
    given = TINY.problem(name)
    compared = [compare(given, method, TINY) for method in methods.methods_for(name)[:2]]
    results = {"problems": [{"name": name, "at_zero": given.excess(np.zeros(given.scales.size)), "methods": compared}]}
    assert json.loads(json.dumps(results)) == results
    page = into_page(
        "a\n<!-- coordinates: generated -->\nold\n<!-- coordinates: end -->\nb\n", markdown(results), "coordinates"
    )
    before, _, rest = page.partition("<!--")
    assert (before, rest[-2:]) == ("a\n", "b\n")
    assert "old" not in page
    assert compared[0]["label"] in page
    with pytest.raises(Refused, match="needs the lines"):
        into_page("no markers", "table", "name")


def test_panels_draw() -> None:
    pytest.importorskip("matplotlib")
    panel = Panel("a problem", [Curve("method", [1, 10], [[0.1, 0.2], [0.3, 0.5]], 0)], 1.0)
    figure = curve_panels([panel] * 3, title="t", subtitle="s", x_label="x", y_label="y")
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]
