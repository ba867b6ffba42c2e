import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import Bounds, DPLogisticRegression, DPRidge
from discreet.models.intervals import ALL_NOISE, LEVEL, all_noise, covers, deviations, rounded
from discreet.models.table_model import TableModel
from discreet.report.table_report import report_of
from tests.cli.tables import SCHEMA


def test_shows_certificate_and_coefficients(run, model, model_file):
    result = run("inspect", model_file)
    assert result.exit_code == 0
    assert discreet.load(model_file).certificate_.text() in result.stdout
    width = 1.959964 * model.intercept_noise_[0]
    assert " ± ".join(rounded(model.intercept_[0], width)) in result.stdout
    assert covers() in " ".join(result.stdout.split())
    assert "(intercept)" in result.stdout
    assert "feature 12" in result.stdout


def test_json_is_exact(run, model, model_file):
    found = json.loads(run("inspect", model_file, "--json").stdout)
    coefficients = found["coefficients"]["class 1"]
    values = [found["value"] for found in coefficients.values()]
    assert values == [*model.coef_[0].tolist(), float(model.intercept_[0])]
    assert found["certificate"]["epsilon"] == 1.0


def test_a_certificate_alone_has_no_coefficients(run, certificate_file):
    result = run("inspect", certificate_file)
    assert result.exit_code == 0
    assert "Coefficients" not in result.stdout
    assert json.loads(run("inspect", certificate_file, "--json").stdout)["coefficients"] is None


def test_names_and_classes_are_shown_as_they_are(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"[red]a[/red]": rng.uniform(-1, 1, 300), "b": rng.uniform(-1, 1, 300)})
    bounds = Bounds(features=dict.fromkeys(frame.columns, (-1, 1)), classes=("low", "mid", "high"))
    model = DPLogisticRegression(bounds=bounds).fit(frame, rng.choice(["low", "mid", "high"], 300))
    text = run("inspect", model.save(tmp_path / "m")).stdout
    assert "[red]a[/red]" in text
    assert all(f"class {label}" in text for label in ("low", "mid", "high"))


def test_without_a_summary_the_reason_stands_below_the_coefficients(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = (rng.uniform(size=len(X)) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    model = DPLogisticRegression(epsilon=4.0, bounds=1.0, classes=(0, 1), inference="sandwich").fit(X, y)
    model.effects_ = replace(model.effects_, blind=model.effects_.metric)  # noise hides every direction
    text = " ".join(run("inspect", model.save(tmp_path / "m")).stdout.split())
    assert "±" not in text
    assert "No standard errors can be given: every effect is smaller than the privacy noise" in text
    assert "How far noise moved each coefficient is not known, either." in text
    found = json.loads(run("inspect", tmp_path / "m", "--json").stdout)
    assert "every effect is smaller than the privacy noise" in found["no_effects"]


def test_a_regression_has_one_output(run, tmp_path):
    rng = np.random.default_rng(0)
    model = DPRidge(bounds=Bounds(features=1.0, target=(0, 1))).fit(rng.uniform(-1, 1, (300, 2)), rng.uniform(size=300))
    found = json.loads(run("inspect", model.save(tmp_path / "m"), "--json").stdout)
    assert list(found["coefficients"]) == ["prediction"]
    assert found["coefficients"]["prediction"]["feature 1"]["value"] == pytest.approx(model.coef_[1])


def test_other_files_are_refused_in_one_line(run, tmp_path):
    path = tmp_path / "other"
    path.write_text("hello")
    result = run("inspect", path)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_folder_shows_columns_in_their_own_units(ok, place):
    told = ok("inspect", "model").stdout
    known = TableModel.load(place / "model")
    assert known.certificate_.text() in told
    for found in known.coefficients(units="original"):
        width = None if found.noise is None else 1.959964 * found.noise
        assert rounded(found.value, width)[0] in told
        assert found.name in told
    assert covers() in " ".join(told.split())


@pytest.mark.parametrize("units", ["original", "encoded"])
def test_json_of_a_folder(ok, place, units):
    found = json.loads(ok("inspect", "model", "--json", "--units", units).stdout)
    known = TableModel.load(place / "model")
    (output,) = found["coefficients"]
    assert output == "class high"
    wanted = {one.name: one for one in known.coefficients(units=units)}
    assert {name: one["value"] for name, one in found["coefficients"][output].items()} == {
        name: one.value for name, one in wanted.items()
    }
    for name, one in found["coefficients"][output].items():
        spread = wanted[name].noise
        assert one["half_width"] == (None if spread is None else pytest.approx(1.959964 * spread))
        assert one["unit"] == wanted[name].unit
    assert found["coefficients"][output]["age"]["half_width"] > 0
    assert found["certificate"] == json.loads((place / "model" / "certificate.json").read_text())


def test_units_that_there_are_not(run, place):
    assert run("inspect", "model", "--units", "metric").exit_code == 2


def test_a_folder_that_was_changed_shows_nothing(refused, place):
    (place / "model" / "report.html").unlink()
    assert "files are missing" in refused("inspect", "model")


def test_names_of_columns_are_no_markup(ok, place):
    header = (place / "table.csv").read_text().replace("age,income", "[red]age[/red],income", 1)
    (place / "odd.csv").write_text(header)
    (place / "odd.toml").write_text(SCHEMA.replace("[columns.age]", '[columns."[red]age[/red]"]'))
    ok("fit", "odd.csv", "-s", "odd.toml", "-o", "new")
    assert "[red]age[/red]" in ok("inspect", "new").stdout
    assert "[red]age[/red]" in ok("schema", "check", "odd.toml", "odd.csv").stdout


def test_the_report_and_inspect_show_the_same_numbers(ok, place):
    """In the columns' own units, truth against falsehood, in the schema's order, rounded alike."""
    known = TableModel.load(place / "model")
    page = report_of(known, "x").html()
    told = [line.split() for line in ok("inspect", "model").stdout.split("Coefficients")[1].splitlines() if "±" in line]
    inspected = [" ".join(words[words.index("±") - 1 : words.index("±") + 2]) for words in told[:-1]]
    drawn = [text.replace("−", "-") for text in re.findall(r'class="value">([^<]+)<', page) if "±" in text]
    assert drawn == inspected
    assert len(drawn) == 6
    (smoker,) = (c for c in known.coefficients() if c.name == "smoker")
    assert smoker.unit == "true against false"
    assert smoker.value == pytest.approx(2 * known.estimator_.coef_[0][5])


def test_the_order_does_not_depend_on_how_wide_a_range_was_declared(ok, place):
    def order(schema):
        (place / "other.toml").write_text(schema)
        ok("fit", "table.csv", "-s", "other.toml", "-o", f"new{len(schema)}", "--public")
        known = TableModel.load(place / f"new{len(schema)}")
        return re.findall(r'class="label"><bdi>(.*?)</bdi>', report_of(known, "x").html())

    assert order(SCHEMA) == order(SCHEMA.replace("[0, 100]", "[0, 1000000]"))


def test_a_model_that_noise_explains_says_what_to_check(ok, place):
    """Of some fits in which nothing but noise can be seen, one has no interval by chance that leaves out 0."""
    for k in range(12):  # four in five have none
        ok("fit", "table.csv", "-s", "schema.toml", "-e", 0.001, "-o", f"weak{k}", "--public", "--no-report")
        slopes = [one for one in TableModel.load(place / f"weak{k}").coefficients() if one.column]
        explained = all_noise([(one.value, deviations(LEVEL, pure=False) * one.noise) for one in slopes])
        assert (ALL_NOISE in " ".join(ok("inspect", f"weak{k}").stdout.split())) == explained
        if explained:
            return
    pytest.fail("an interval left out 0 in each of twelve fits")


def test_a_weak_guarantee_is_shown_as_weak(ok, refused, place):
    asked = ("fit", "table.csv", "-s", "schema.toml", "-e", 1000, "-d", 0.5, "-o", "loud", "--public")
    assert "--allow-large-delta" in refused(*asked)
    ok(*asked, "--allow-large-delta")
    headline = "PRIVATE, but weak: epsilon is above 8; delta is at least 1/n"
    assert f"Privacy certificate: {headline}" in ok("inspect", "loud").stdout
    assert json.loads(ok("inspect", "loud", "--json").stdout)["headline"] == headline
    assert "weak: delta is at least 1/n" in ok("verify", "loud").stdout
    assert f'<p class="stamp bad">{headline}</p>' in (place / "loud" / "report.html").read_text()
