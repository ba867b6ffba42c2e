"""The benchmark of clusters runs, and says what it measured."""

import pytest

from benchmarks.scale.dask import QUICK, figures


@pytest.mark.thorough
def test_it_measures_passes_on_one_and_on_two_workers():
    found = figures(QUICK)
    assert [figure.unit for figure in found] == ["ms"] * (len(QUICK.parts) + 2) + ["x"]
