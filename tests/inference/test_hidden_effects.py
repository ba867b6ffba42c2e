"""Effects that noise hides: no view of a summary has a number for them, in memory, in texts, on disk or on a page."""

import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet import DPLogisticRegression, DPRidge, Schema, TableModel
from discreet.cli.app import app
from discreet.errors import Unsupported
from discreet.inference.summary import BENT, CAUTION
from discreet.inference.text import DASH, grouped
from discreet.inference.units import BentShape, Structure
from discreet.models import Summary
from discreet.report.model_report import report_of
from discreet.schema import Boolean, Category, Number, Target
from discreet.solvers.base import Effects
from discreet.testing import seeded
from tests.report import samples

NAME, HIDDEN, SECRET = "ward (b)", 1, 7.654321
CALLS = {
    "combination": lambda summary: None,
    "plot": lambda summary: [text.get_text() for text in summary.plot().texts],
    "interval": lambda summary: summary.interval(np.eye(3)),
    "contrast": lambda summary: summary.contrast([NAME, f"age - `{NAME}`"]).set_axis([NAME, NAME]),
    "curve_columns": lambda summary: pd.DataFrame(
        {
            name: values
            for name, values in summary.curve_columns("stay", at=[2.0])[""].items()
            if name not in ("x", "reference")
        }
    ).set_axis([NAME]),
    "curve": lambda summary: (
        summary.curve("stay", at=[1.5, 2.0]).drop(columns=["x", "reference"]).set_axis([NAME, NAME])
    ),
}
"""Views that need arguments, with those that ask for each effect by itself."""
REFUSED = {
    "wald_test": lambda summary: summary.wald_test(NAME),
    "nonlinearity_test": lambda summary: summary.nonlinearity_test("stay"),
    "epsilon_for": lambda summary: summary.epsilon_for(NAME, standard_error=1.0),
}
"""Views that refuse a hidden effect."""
STRUCTURE = Structure(
    ((("stay", "age"),), (("stay", NAME),), ()), {"stay": BentShape(("stay at 0", "age", NAME), (0.0, 1.0, 2.0))}
)
"""As if these were places of a column with knots."""
PAID = samples.certificate()
OF_COLUMNS = ("metric", "blind", "design")
"""Parts of ``Effects`` that describe columns, not effects."""


def summary_of():
    covariance = np.diag([0.04, SECRET, 0.01])
    blind = np.diag([0.0, 0.5, 0.0])
    effects = Effects(covariance, covariance / 4, np.eye(3), blind, np.eye(3), 0.1, 0.2, 0.5)
    values = np.array([1.0, SECRET, 0.2])
    return Summary(
        ("age", NAME, "intercept"), values, effects, {"model": "M"}, "odds ratio", structure=STRUCTURE, certificate=PAID
    )


def numbers_in(view, at=HIDDEN):
    """Return finite numbers that a view has for the hidden effect."""
    if isinstance(view, pd.DataFrame):
        view = view.set_index("term") if "term" in view.columns else view
        parts = [view.loc[[NAME]].to_numpy(float)] if NAME in view.index else []
        parts += [view[[NAME]].to_numpy(float)] if NAME in view.columns else []
        return [x for part in parts for x in part.ravel() if np.isfinite(x)]
    if isinstance(view, np.ndarray):
        parts = [view[at]] if view.ndim == 1 else [view[at], view[:, at]] if view.shape == (3, 3) else [view[:, at]]
        return [] if view.dtype == bool else [x for part in parts for x in np.ravel(part) if np.isfinite(x)]
    if isinstance(view, dict) and "feature" in view:
        place = view["feature"].index(NAME)
        return [x for name, column in view.items() if name != "feature" for x in [column[place]] if x is not None]
    if isinstance(view, dict):
        return [x for value in view.values() for x in numbers_in(value)]
    if isinstance(view, str):
        lines = re.split(r"\n|<tr>", view)
        return [x for line in lines if "ward" in line for x in re.findall(r"\d+\.\d+|\d{2,}", line)]
    if isinstance(view, (list, tuple)):
        if view and all(isinstance(part, list) for part in view):  # cells: rows of texts
            return [x for row in view if row[0] == NAME for cell in row[1:] for x in re.findall(r"\d", cell)]
        return [x for part in view if not isinstance(part, str) for x in numbers_in(part)]
    if is_dataclass(view):
        public = [f.name for f in fields(view) if not f.name.startswith("_") and f.name not in OF_COLUMNS]
        return [x for name in public for x in numbers_in(getattr(view, name))]
    return []


def views(summary):
    """Every public view, by name: attributes, properties, methods without arguments, and ``CALLS``."""
    found = {"str": str(summary), "repr": repr(summary), "notebook": summary._repr_html_()}
    for name in (one for one in dir(summary) if not one.startswith("_") and one not in REFUSED):
        value = CALLS[name](summary) if name in CALLS else getattr(summary, name)
        found[name] = value() if callable(value) else value
    return found


def test_no_view_of_a_summary_has_a_number_for_a_hidden_effect():
    """Walks all public names, so that a new view is looked at too."""
    summary = summary_of()
    found = views(summary)
    assert {name: numbers_in(view) for name, view in found.items() if numbers_in(view)} == {}
    assert not any("7.65" in str(view) for view in found.values())
    assert len(found) >= 15
    for ask in REFUSED.values():
        with pytest.raises(Unsupported, match="hid"):
            ask(summary)


def test_a_visible_sum_of_hidden_effects_is_shown():
    """Two collinear columns: neither effect is known, their sum is."""
    effects = Effects(np.eye(2), np.eye(2) / 4, np.eye(2), np.array([[0.5, -0.5], [-0.5, 0.5]]), np.eye(2))
    summary = Summary(("a", "b"), np.array([3.0, -2.0]), effects)
    assert summary.hidden.all()
    value, low, high = summary.interval(np.array([[1.0, 1.0]]))
    assert value == pytest.approx(1.0)
    assert low < value < high
    assert summary.wald_test([[1.0, 1.0]], [1.0]).p == pytest.approx(1.0)


def test_a_hidden_effect_is_in_no_visible_combination():
    """The visible rest could be subtracted."""
    summary = summary_of()
    found = summary.contrast([f"{weight} * age + `{NAME}`" for weight in (1, 100, 1e6)])
    assert found.isna().all(axis=None)
    with pytest.raises(Unsupported, match="hid"):
        summary.wald_test([[1e6, 1.0, 0.0]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a table with a category that no row has."""
    rng, n = np.random.default_rng(0), 12_000
    table = {"age": rng.uniform(18, 90, n), "ward": rng.choice(["a", "b"], n), "ok": rng.random(n) < 0.3}
    margin = 0.03 * (table["age"] - 50) + 0.5 * (table["ward"] == "b") - 0.4 * table["ok"]
    table["back"] = (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)
    columns = {"age": Number((18, 110)), "ward": Category(("a", "b", "nobody")), "ok": Boolean()}
    schema = Schema(columns, Target("back", classes=(0, 1)))
    with seeded(3):
        model = TableModel(schema, DPLogisticRegression(2.0, 1e-8, inference="sandwich", ledger=False)).fit(table)
    return model.save(tmp_path_factory.mktemp("hidden") / "model")


def test_a_hidden_bend_is_no_rare_value():
    """Rough bends are small numbers about 0, as cells are that few rows have."""
    rng = np.random.default_rng(1)
    table = {"age": rng.uniform(18, 90, 8000)}
    table["y"] = np.clip(10 + 5 * np.sin(table["age"] / 12) + rng.normal(0, 2, 8000), 0, 40)
    schema = Schema({"age": Number((18, 90), term="curve")}, Target("y", range=(0, 40)))
    with seeded(0):
        model = TableModel(schema, DPRidge(epsilon=4.0, inference="sandwich", ledger=False)).fit(table)
    reasons = model.summary().reasons
    assert {reason for name, reason in reasons.items() if "bend" in name} == {BENT}
    (picture,) = model.plot_effects().axes
    assert (picture.get_title(loc="left"), *picture.get_xlim()) == ("age", 18.0, 90.0), "hidden places stay empty"


@pytest.mark.usefixtures("no_forecast")
def test_saved_models_commands_and_reports_have_none(folder):
    model = TableModel.load(folder)
    summary = model.summary()
    gone = dict(zip(summary.names, summary.hidden, strict=True))
    assert gone["ward = nobody"]
    assert "ward (other)" not in gone, "about no row is in it: it has no line of its own"
    assert "ward (other)" in summary.facts["folded"]
    assert list(summary.reasons) == ["ward = nobody"]
    assert "too few rows have it (below 1%): merge it" in str(summary)
    lines = [line for line in str(summary).splitlines() if line.startswith("ward")]
    assert [line.split()[:3] for line in lines] == [["ward", "=", "b"], ["ward", "=", "nobody"]]
    assert all(set(line.split()[3:]) == {DASH} for line in lines[1:])
    shown = CliRunner().invoke(app, ["inspect", str(folder)])
    assert str(summary) in shown.output
    listed = json.loads(CliRunner().invoke(app, ["inspect", str(folder), "--json"]).output)
    place = listed["effects"]["feature"].index("ward = nobody")
    assert {name: column[place] for name, column in listed["effects"].items() if name != "feature"} == dict.fromkeys(
        ("coef", "se", "se_privacy", "z", "p", "low", "high", "inflation")
    )
    assert listed["coefficients"] is None
    page = report_of(model, "A model").html()
    secret = [c.value for c in model.coefficients() if c.name in ("ward = nobody", "ward (other)")]
    section = page[page.index('id="effects"') :]
    section = section[: section.index("<h2")]
    assert 'id="coefficients"' not in page
    assert not any(f"{shape(value):.4g}" in section for value in secret for shape in (abs, np.exp))
    for row in re.findall(r"<tr>.*?</tr>", page):
        assert "nobody" not in row or DASH in row or "declared" in row


def test_pictures_of_columns_leave_hidden_cells_out(folder):
    """And their bars are the summary's intervals, of differences from the mean of the names that are visible."""
    pytest.importorskip("matplotlib")
    model = TableModel.load(folder)
    age, ward, ok = model.plot_effects().axes
    for axes, places, name in ((ward, [0, 1], "`ward = b`"), (ok, [0, 1], "ok")):
        marks, bars = axes.containers[0].lines[0], axes.containers[0].lines[2][0]
        assert np.flatnonzero(np.isfinite(marks.get_ydata())).tolist() == places
        contrast = model.summary().contrast(name)
        np.testing.assert_allclose(np.diff(marks.get_ydata()[:2]), contrast["coef"])
        upper = bars.get_segments()[1][:, 1]
        np.testing.assert_allclose(upper * 2, contrast[["low", "high"]].to_numpy()[0])
    assert age.collections


WRONG = {
    "texts": ("of the cells of income are empty or no number", lambda n: ["33,966"] * n),
    "constant": ("it hardly varies within its declared range", lambda n: [50_000] * n),
    "at an end": ("it hardly varies within its declared range", lambda n: [0] * n),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_number_that_tells_nothing_is_no_rare_category(wrong):
    """No merging of values would help, nor more rows where no cell is a number."""
    expected, cells = WRONG[wrong]
    rng, n = np.random.default_rng(1), 12_000
    table = pd.DataFrame({"age": rng.uniform(18, 90, n), "income": cells(n)})
    table["back"] = (rng.random(n) < 1 / (1 + np.exp(-0.03 * (table["age"] - 50)))).astype(int)
    schema = Schema({"age": Number((18, 90)), "income": Number((0, 100_000))}, Target("back", classes=(0, 1)))
    estimator = DPLogisticRegression(4.0, 1e-8, inference="sandwich", ledger=False)
    with seeded(3):
        summary = TableModel(schema, estimator).fit(table).summary()
    assert expected in summary.reasons["income"]


@pytest.mark.usefixtures("no_forecast")
def test_an_effect_of_clipped_values_says_so():
    """A range that cuts most values changes what is estimated: here to twice the effect."""
    rng, n = np.random.default_rng(1), 12_000
    table = pd.DataFrame({"age": rng.uniform(18, 90, n), "ok": rng.random(n) < 0.5})
    table["back"] = (rng.random(n) < 1 / (1 + np.exp(-0.03 * (table["age"] - 50)))).astype(int)
    schema = Schema({"age": Number((45, 60)), "ok": Boolean()}, Target("back", classes=(0, 1)))
    estimator = DPLogisticRegression(4.0, 1e-8, inference="sandwich", ledger=False)
    with seeded(3):
        model = TableModel(schema, estimator).fit(table)
    summary, said = model.summary(), "of the cells of age lie outside the declared range, and were clipped to it"
    assert said in summary.facts["schema"]
    assert "of ok" not in summary.facts["schema"]
    assert said in report_of(model, "A model").html().split('id="effects"')[1]


def test_labels_that_no_row_has_are_the_reason_for_no_standard_errors():
    rng, n = np.random.default_rng(1), 12_000
    table = pd.DataFrame({"age": rng.uniform(18, 90, n), "back": rng.choice(["Yes", "No"], n)})
    schema = Schema({"age": Number((18, 90))}, Target("back", classes=("no", "yes")))
    with seeded(3):
        model = TableModel(schema, DPLogisticRegression(4.0, 1e-8, inference="sandwich", ledger=False)).fit(table)
    with pytest.raises(Unsupported, match="of the cells of back hold none of the declared labels: correct the schema"):
        model.summary()


@pytest.mark.usefixtures("no_forecast")
def test_what_is_not_to_be_trusted_is_said_first(folder):
    """In the text, the HTML, the report, and on the page; one text, in one place."""
    model, page = TableModel.load(folder), (Path(__file__).parents[2] / "docs/inference.md").read_text(encoding="utf-8")
    summary = model.summary()
    assert next(iter(summary.facts.values())) == CAUTION
    text = " ".join(str(summary).split())
    assert text.index(CAUTION) < text.index("DPLogisticRegression")
    assert f">caution: {CAUTION}<br>target: " in summary.to_html().split("</caption>")[0]
    report = report_of(model, "A model").html()
    assert 0 < report.index(CAUTION) - report.index('id="effects"') < 200
    words, where = CAUTION.split(" See ")
    assert page.index(words) < 100
    assert "docs/inference.md, When not to trust it" in where
    assert "## When not to trust it" in page


def test_reasons_that_differ_in_a_share_alone_are_one():
    few, wide = "too few rows have it ({}): merge it", "use more rows"
    reasons = {"a": few.format("about 7%"), "b": wide, "c": few.format("below 1%"), "d": few.format("about 10%")}
    assert grouped(reasons) == {few.format("below 1% to about 10%"): ["a", "c", "d"], wide: ["b"]}
    assert grouped({"a": few.format("about 7%")}) == {few.format("about 7%"): ["a"]}
