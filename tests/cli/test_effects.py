"""``discreet effects``: summaries of saved models, side by side, with tests, contrasts and pictures."""

import json

import numpy as np
import pytest

from discreet import DPLogisticRegression, DPRidge, Schema, TableModel
from discreet.inference.text import DASH
from discreet.schema import Category, Number, Target
from discreet.testing import seeded


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two models of one table, one of them with knots and a category that no row has."""
    rng, n = np.random.default_rng(0), 12_000
    table = {"age": rng.uniform(18, 90, n), "ward": rng.choice(["a", "b"], n)}
    margin = 0.03 * (table["age"] - 50) + 0.5 * (table["ward"] == "b")
    table["back"] = (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)
    place, target = tmp_path_factory.mktemp("effects"), Target("back", classes=(0, 1))
    kinds = {"small": {"age": Number((18, 90))}}
    kinds["large"] = {"age": Number((18, 90), knots=(50,)), "ward": Category(("a", "b", "nobody"), other=False)}
    for name, columns in kinds.items():
        model = DPLogisticRegression(8.0, 1e-8, inference="sandwich", ledger=False)
        with seeded(3):
            TableModel(Schema(columns, target), model).fit(table).save(place / name)
    DPRidge(8.0, 1e-6, bounds=1.0, target=(0, 1), ledger=False).fit(np.eye(30), np.ones(30)).save(place / "plain")
    return place


def test_one_model_is_a_summary_with_tests_and_contrasts(run, folders):
    summary = TableModel.load(folders / "large").summary()
    asked = ("--test", "ward", "--test", "age at 90 = 1", "--contrast", "ward = b - ward = a")
    text = run("effects", folders / "large", *asked).stdout
    assert text.startswith(str(summary))
    lines = [line.split() for line in text.splitlines()]
    assert ["ward", f"{summary.wald_test('ward').statistic:.4g}", "1", "<.001", "ward", "=", "nobody"] in lines
    assert any(line[:6] == ["ward", "=", "b", "-", "ward", "="] for line in lines)
    found = json.loads(run("effects", folders / "large", *asked, "--format", "json").stdout)
    assert found["tests"]["ward"]["left_out"] == ["ward = nobody"]
    assert found["contrasts"]["ward = b - ward = a"]["coef"] == pytest.approx(summary.frame.coef["ward = b"])
    hidden = found["effects"]["feature"].index("ward = nobody")
    assert {column[hidden] for name, column in found["effects"].items() if name != "feature"} == {None}


def test_several_models_stand_side_by_side(run, folders):
    text = run("effects", folders / "small", folders / "large").stdout
    assert "(1)" in text
    assert DASH in text
    rows = run("effects", folders / "small", folders / "large", "--ratios", "--format", "markdown").stdout.splitlines()
    assert rows[0] == "|  | (1) | (2) |"
    assert not any(row.startswith("| intercept") for row in rows)
    assert r"\begin{tabular}" in run("effects", folders / "small", "--show", "p", "--format", "latex").stdout
    assert "<table " in run("effects", folders / "small", "--format", "html").stdout


@pytest.mark.whole
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("large", "small", "--test", "age"), "for one model"),
        (("large", "--curve", "age"), "--plot"),
        (("large", "--test", "height"), "no effect called height"),
        (("large", "--contrast", "ward = nobody - x"), "no effect called"),
        (("large", "--test", "ward = nobody"), "hidden"),
        (("large", "--level", "2"), "between 0 and 1"),
        (("small", "plain"), "plain: nothing was reserved for standard errors: fit again with inference='sandwich'"),
    ],
)
def test_refusals_name_the_remedy(run, folders, asked, told):
    places = [str(folders / word) if word in ("large", "small", "plain") else word for word in asked]
    result = run("effects", *places)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""
