"""The benchmarks of clusters and of fits from disk run at a tiny size, and say what they measured."""

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app

SAID = {
    "dask": ["overhead per pass and part, 1 parts", "overhead per pass and part, 4 parts"],
    "workers": ["pass over 20,000 x 3, 1 workers", "speed-up of a second worker"],
    "persons": ["8 parts dealt by person", "most memory of a worker beyond imports", "workers that were lost"],
    "disk": ["Parquet file of 20,000 x 3", "memory beyond imports, the process' own"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SAID)
def test_it_measures(name):
    done = CliRunner().invoke(app, ["scale", name, "--columns", "3", "--quick"])
    assert done.exit_code == 0, done.output
    assert [line for line in SAID[name] if line not in done.output] == []
