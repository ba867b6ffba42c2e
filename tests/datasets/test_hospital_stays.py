import csv

import numpy as np

from discreet.datasets import CODEBOOK, OUTCOME, hospital, schema_text, write_csv
from discreet.schema.columns import Number
from discreet.schema.schema import Schema


def test_the_codebook_covers_the_law_and_was_not_measured_from_it():
    table = hospital(40_000)
    assert table.X.shape == (40_000, len(CODEBOOK))
    assert table.names == tuple(CODEBOOK)
    low, high = table.bounds.ranges(len(table.names))
    assert np.array_equal(table.X, np.clip(table.X, low, high))
    continuous = [j for j, name in enumerate(table.names) if CODEBOOK[name][1] > 20]
    assert (table.X[:, continuous].max(axis=0) < high[continuous]).all()
    assert table.bounds == hospital(10, seed=7).bounds  # the same whatever the rows


def test_the_file_is_the_table_and_its_schema_the_codebook(tmp_path):
    table, schema = hospital(300), Schema.from_toml(schema_text())
    path = write_csv(table, tmp_path / "patients.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert schema.problems(list(rows[0])) == []
    assert [row[OUTCOME] for row in rows] == np.where(table.y == 1, "yes", "no").tolist()
    for name in ("age", "systolic_pressure", "earlier_visits"):
        written = np.array([float(row[name]) for row in rows])
        assert np.allclose(written, table.X[:, table.names.index(name)], rtol=1e-4)
    assert 10 < sum(row["bmi"] == "" for row in rows) < 25
    for name, kind in schema.columns.items():
        if isinstance(kind, Number) and not kind.is_private:
            assert tuple(kind.range) == CODEBOOK[name][:2]
    assert schema.private_columns == ("creatinine",)
