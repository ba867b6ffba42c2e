"""The coordinate experiments run, and say what they found: tiny sizes, one seed."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.comparisons.coordinates import QUICK, compare
from benchmarks.methods import tuned as methods
from benchmarks.pages.coordinates import markdown
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
