"""What noise hides has no influence on anything that is shown of effects: other hidden values, the same views.

A fit's hidden coefficients and their variances are replaced, along all directions that no shown effect has a part in.
Every view has to stay as it is, but for the rounding of sums: numbers, combinations that could be subtracted, names in
notes, pictures. What is said of why an effect is hidden follows from the parts that stay.
"""

import io
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor, Schema, TableModel, etable
from discreet.cli.app import app
from discreet.errors import DiscreetError
from discreet.inference.units import own_units
from discreet.report.model_report import report_of
from discreet.schema import Boolean, Category, Number, Target
from discreet.testing import seeded

N = 12_000
MODELS = {
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}),
    "softmax": (DPLogisticRegression, {"classes": ("a", "b", "c")}),
    "linear": (DPLinearRegression, {"range": (-8.0, 8.0)}),
    "poisson": (DPPoissonRegressor, {"range": (0.0, 20.0)}),
}
MORE = ("softmax", "linear", "poisson")
COLUMNS = {
    "age": Number((18, 90), knots=(40, 65)),
    "bmi": Number((15, 45)),
    "ward": Category(("a", "b", "c"), other=False),
    "smoker": Boolean(),
}
TEXTS = ("__str__", "_repr_html_", "to_markdown", "to_latex", "cells", "to_dict", "column_tests")
COMMANDS = (["effects"], ["effects", "--format", "json"], ["effects", "--ratios"], ["inspect"], ["inspect", "--json"])
NUMBER, PATH = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?"), re.compile(r"\bm[0-9a-f]{10}\b")
FRAMES = ("conf_int", "cov_params", "ratios", "marginal_effects", "tidy", "glance")


@pytest.fixture(scope="module", params=["logistic", *(pytest.param(m, marks=pytest.mark.thorough) for m in MORE)])
def model(request):
    """Return a fitted model of a table with knots, categories and products."""
    cls, target = MODELS[request.param]
    rng = np.random.default_rng(5)
    table = {
        "age": rng.uniform(18, 90, N),
        "bmi": rng.normal(27, 4, N).clip(15, 45),
        "ward": rng.choice(["a", "b", "c"], N),
        "smoker": rng.random(N) < 0.3,
    }
    m = 0.02 * (table["age"] - 50) + 0.5 * (table["ward"] == "b") - 0.4 * table["smoker"]
    table["y"] = {
        "logistic": (rng.random(N) < 1 / (1 + np.exp(-m))).astype(int),
        "softmax": np.array(["a", "b", "c"])[np.argmax(np.outer(m, [0, 1, -1]) + rng.gumbel(size=(N, 3)), axis=1)],
        "linear": np.clip(m + rng.normal(size=N), -8, 8),
        "poisson": np.minimum(rng.poisson(np.exp(m)), 20).astype(float),
    }[request.param]
    schema = Schema(COLUMNS, Target("y", **target), interactions=(("bmi", "smoker"),))
    with seeded(1):
        return TableModel(schema, cls(30.0, 1e-9, inference="sandwich", ledger=False, even_if_empty=True)).fit(table)


def shown_parts(model):
    """Return rows of encoded coefficients: of shown effects, and of shown differences, as of collinear ones."""
    estimator = model.estimator_
    units, summary = own_units(model.schema_, fit_intercept=estimator.fit_intercept), model.summary()
    blocks, effects = len(summary.names) // len(units.names), np.eye(len(summary.names))
    asked_for = np.vstack([effects, *(effects[one] - effects[other] for one, other in neighbors(summary))])
    return asked_for[~summary.combinations.hidden(asked_for)] @ np.kron(np.eye(blocks), units.matrix)


def neighbors(summary):
    """Return places of effects next to each other."""
    return list(pairwise(range(len(summary.names))))


def hide_some(model, rng):
    """Hide about three in ten directions, one at least, and not all effects."""
    estimator, effects = model.estimator_, model.estimator_.effects_
    metric = np.diag(effects.metric)
    for _ in range(20):
        drawn = rng.random(len(metric)) < 0.3
        drawn[rng.integers(len(metric) - 1)] = True
        estimator.effects_ = replace(effects, blind=effects.blind + np.diag(np.where(drawn, metric, 0.0)))
        if not asked(model.summary).startswith("refused"):
            return
    raise AssertionError("every draw hides all effects")


def disturb(model, rng):
    """Replace what is hidden: coefficients, variances, and what is said of them, where nothing shown has a part."""
    estimator = model.estimator_
    _, sizes, axes = np.linalg.svd(shown_parts(model))
    free = axes[int((sizes > 1e-9).sum()) :]
    assert len(free), "something is hidden"
    moved = rng.normal(0, 5, len(free)) @ free
    effects = estimator.effects_
    names = ("covariance", "privacy", "sampling", "doubt", "design")
    more = {name: getattr(effects, name) + rng.uniform(1, 9) * np.outer(moved, moved) for name in names}
    estimator.effects_ = replace(effects, **more)
    width = len(np.atleast_2d(estimator.coef_)[0])
    by_class = moved.reshape(-1, width + 1)
    if len(np.atleast_2d(estimator.coef_)) > 1:
        by_class = np.vstack([np.zeros(width + 1), by_class])
    estimator.coef_ = estimator.coef_ + by_class[:, :width].reshape(np.shape(estimator.coef_))
    estimator.intercept_ = estimator.intercept_ + by_class[:, width].reshape(np.shape(estimator.intercept_))


def asked(ask):
    """Return an answer as a text, or why there is none."""
    try:
        return str(ask())
    except DiscreetError as reason:
        return f"refused: {reason}"


def is_same(before, after):
    """Say whether two views are: drawn places up to a tenth of a point, where sums are rounded, and names of paths."""
    if before == after:
        return True
    texts = [NUMBER.sub("#", PATH.sub("path", text)) for text in (before, after)]
    numbers = [[float(number) for number in NUMBER.findall(PATH.sub("path", text))] for text in (before, after)]
    return "<svg" in before and texts[0] == texts[1] and np.allclose(*numbers, rtol=1e-4, atol=0.11)


def rounded(text):
    """Return a text with five digits of each of its numbers."""
    return NUMBER.sub(lambda number: f"{float(number[0]):.5g}", text)


def picture(axes):
    """Return everything that is drawn, as SVG."""
    file = io.StringIO()
    axes.figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def views(model, folder):
    """Return every view of a model's effects as a text."""
    summary = model.summary()
    seen = {name: asked(getattr(summary, name)) for name in TEXTS}
    seen |= {name: asked(lambda name=name: getattr(summary, name)().to_csv()) for name in FRAMES}
    seen["frame"], seen["reasons"], seen["facts"] = summary.frame.to_csv(), str(summary.reasons), str(summary.facts)
    seen["etable"] = asked(lambda: [etable([model], ratios=r).to_html() for r in (False, bool(summary.ratio))])
    for name in summary.names:
        seen[f"epsilon for {name}"] = asked(lambda name=name: summary.epsilon_for(name, standard_error=0.5))
        seen[f"test of {name}"] = asked(lambda name=name: summary.wald_test(f"`{name}`"))
    for one, other in ([summary.names[place] for place in pair] for pair in neighbors(summary)):
        texts = [f"`{one}` - `{other}`", f"1e-6 * `{one}` + `{other}`"]
        seen[texts[0]] = asked(lambda texts=texts: summary.contrast(texts).to_csv())
    for column in (*COLUMNS, "bmi x smoker"):
        seen[f"test of {column}"] = asked(lambda column=column: summary.wald_test(column))
        seen[f"line of {column}"] = asked(lambda column=column: summary.nonlinearity_test(column))
    seen["curve"] = asked(lambda: summary.curve("age").to_csv())
    seen["forest"], seen["curve picture"] = (
        asked(lambda: picture(summary.plot())),
        asked(lambda: picture(summary.plot("age"))),
    )
    seen["report"] = report_of(model, "A model").html()
    seen["certificate"] = model.certificate_.to_json()
    path, run = str(model.save(folder)), CliRunner().invoke
    for words in (
        ["effects"],
        ["effects", "--format", "json"],
        ["effects", "--ratios"],
        ["inspect"],
        ["inspect", "--json"],
    ):
        seen[" ".join(words)] = run(app, [words[0], path, *words[1:]]).output
    return {name: rounded(text.replace(path, "MODEL")) for name, text in seen.items()}


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 6)]])
def test_hidden_values_change_no_view(model, seed, tmp_path, request):
    if seed == 0:  # with it, in the others
        request.getfixturevalue("no_forecast")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.rcParams["svg.hashsalt"] = "same"
    rng, estimator = np.random.default_rng(seed), model.estimator_
    whole = (estimator.effects_, estimator.coef_, estimator.intercept_)
    try:
        hide_some(model, rng)
        before = views(model, tmp_path / "before")
        disturb(model, rng)
        after = views(model, tmp_path / "after")
    finally:
        estimator.effects_, estimator.coef_, estimator.intercept_ = whole
        pyplot.close("all")
    assert [name for name in before if not is_same(before[name], after[name])] == []
