"""Whole columns: what texts mean, Wald tests, contrasts, curves and bands, tests of a straight line."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from discreet import DPLinearRegression, DPLogisticRegression, Schema, TableModel
from discreet.errors import Unsupported
from discreet.inference.columns import Vocabulary
from discreet.inference.units import BentShape, SmoothShape, Structure, curves_of
from discreet.models import Summary
from discreet.schema import Boolean, Category, Number, Target
from discreet.solvers.base import Effects
from discreet.testing import seeded
from tests.covering import covering

EFFECTS = ("age", "ward = b", "ward = c", "age x ward = b", "age x ward = c", "a - b", "a", "b", "2", "x = y", "in``t")
HOSTILE = ("a - b", "a", "b", "2", "x = y", "in``t")


def vocabulary():
    wards = [("ward", f"ward = {cell}") for cell in "bc"]
    terms = [(("age", "age"),), *((ward,) for ward in wards), *((("age", "age"), ward) for ward in wards)]
    terms += [((name, name),) for name in HOSTILE]
    return Vocabulary(EFFECTS, (), Structure(tuple(terms), {}, frozenset(["ward = a"])))


def rows(text, hidden=()):
    found = vocabulary().hypotheses(text, [j in hidden for j in range(len(EFFECTS))])
    return found.rows, found.values, found.left_out


def unit(*weights):
    row = np.zeros(len(EFFECTS))
    for weight, name in weights:
        row[EFFECTS.index(name)] = weight
    return row


@pytest.mark.whole
@pytest.mark.parametrize(
    ("text", "weights", "value"),
    [
        ("ward = b - ward = c", [(1, "ward = b"), (-1, "ward = c")], 0),
        ("ward = b = ward = c", [(1, "ward = b"), (-1, "ward = c")], 0),
        ("ward = b - ward = a", [(1, "ward = b")], 0),
        ("age = 0", [(1, "age")], 0),
        ("age=1e-1", [(1, "age")], 0.1),
        ("-2*age + .5 * ward = b - 1 = 3", [(-2, "age"), (0.5, "ward = b")], 4),
        ("age x ward = b + age", [(1, "age x ward = b"), (1, "age")], 0),
        ("`a` - `b`", [(1, "a"), (-1, "b")], 0),
        ("`a - b` - b", [(1, "a - b"), (-1, "b")], 0),
        ("a - b", [(1, "a - b")], 0),
        ("3 * `2` = 2 * a", [(3, "2"), (-2, "a")], 0),
        ("x = y", [(1, "x = y")], 0),
        ("`in````t` - age", [(1, "in``t"), (-1, "age")], 0),
        ("  age  ", [(1, "age")], 0),
    ],
)
def test_combinations(text, weights, value):
    found, values, _ = rows([text])
    np.testing.assert_allclose(found, [unit(*weights)])
    np.testing.assert_allclose(values, [value])


NAMES = ("age", "ward = b", "ward = c", "age x ward = b", "age x ward = c", "intercept")
WARDS = [("ward", f"ward = {cell}") for cell in "bc"]
TERMS = ((("age", "age"),), *((w,) for w in WARDS), *((("age", "age"), w) for w in WARDS), ())


@pytest.fixture(scope="module")
def plain():
    """A robust fit of statsmodels."""
    rng, n = np.random.default_rng(0), 500
    age, ward = rng.normal(size=n), rng.choice(3, n)
    cells = np.column_stack([ward == 1, ward == 2]).astype(float)
    X = np.column_stack([age, cells, age[:, None] * cells, np.ones(n)])
    return sm.OLS(X @ [0.3, 0.1, 0.2, 0.0, 0.1, 1.0] + rng.normal(size=n), X).fit(cov_type="HC0")


def of(fit, blind=None):
    covariance = fit.cov_params()
    blind = np.zeros_like(covariance) if blind is None else blind
    effects = Effects(covariance, covariance / 4, np.eye(len(covariance)), blind, np.eye(len(covariance)))
    return Summary(NAMES, fit.params, effects, structure=Structure(TERMS, {}, frozenset(["ward = a"])))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("asked", "matrix", "values"),
    [
        ("age", np.eye(6)[[0, 3, 4]], 0.0),
        ("ward", np.eye(6)[[1, 2, 3, 4]], 0.0),
        ("age x ward", np.eye(6)[[3, 4]], 0.0),
        ("age = 0", np.eye(6)[[0]], 0.0),
        (["ward = b - ward = c", "age = 0.25"], np.array([[0, 1, -1, 0, 0, 0], [1.0, 0, 0, 0, 0, 0]]), [0.0, 0.25]),
    ],
)
def test_wald_tests_are_statsmodels(plain, asked, matrix, values):
    found = of(plain).wald_test(asked)
    expected = plain.wald_test((matrix, np.broadcast_to(values, len(matrix))), use_f=False, scalar=True)
    assert found.df == len(matrix)
    assert found.statistic == pytest.approx(float(expected.statistic))
    assert found.p == pytest.approx(float(expected.pvalue))
    assert found.left_out == ()


def test_contrasts_are_statsmodels(plain):
    rows = np.array([[0, 1, -1, 0, 0, 0], [1.0, 0, 0, 0.5, 0.5, 0]])
    texts = ["ward = b - ward = c", "age + 0.5 * age x ward = b + 0.5 * age x ward = c"]
    found, expected = of(plain).contrast(texts, level=0.9), plain.t_test(rows)
    np.testing.assert_allclose(found.coef, expected.effect)
    np.testing.assert_allclose(found.se, expected.sd.ravel())
    np.testing.assert_allclose(found.p, expected.pvalue)
    np.testing.assert_allclose(found[["low", "high"]], expected.conf_int(alpha=0.1))
    np.testing.assert_allclose(found.inflation, 1 / math.sqrt(0.75))
    assert of(plain).contrast("ward = b - ward = a").coef.item() == pytest.approx(plain.params[1])
    with pytest.raises(Unsupported, match="compares with a number"):
        of(plain).contrast("age = 1")


def test_hidden_effects_of_a_column_are_left_out_and_named(plain):
    summary = of(plain, np.diag([0, 0, 1.0, 0, 0, 0]))
    found = summary.wald_test("ward")
    rows = np.eye(6)[[1, 3, 4]]
    assert found.statistic == pytest.approx(float(plain.wald_test(rows, use_f=False, scalar=True).statistic))
    assert found.left_out == ("ward = c",)
    with pytest.raises(Unsupported, match="hid"):
        summary.wald_test("ward = c")
    assert summary.contrast("ward = b - ward = c").isna().all(axis=None)


PLACES = (18.0, 40.0, 65.0, 80.0, 110.0)
SHAPES = {"age": BentShape(tuple(f"age at {place:g}" for place in PLACES), PLACES)}


def bent(covariance, values, hidden=(), wobble=0.0, ratio=""):
    """A summary of a column with three knots and an intercept."""
    names = (*SHAPES["age"].features[1:], "intercept")
    blind = np.diag([float(j in hidden) for j in range(5)])
    effects = Effects(covariance, covariance / 4, np.eye(5), blind, np.eye(5), wobble)
    terms = (*((("age", name),) for name in names[:-1]), ())
    return Summary(names, np.asarray(values, dtype=float), effects, {}, ratio, structure=Structure(terms, SHAPES))


def drawn_covariance(seed):
    root = np.random.default_rng(seed).normal(size=(5, 6))
    return root @ root.T / 100


@pytest.mark.statistical
@covering(("seed", [0, 1]), ("reference", [18.0, 50.0, 65.0]))
def test_a_band_covers_the_whole_curve(seed, reference):
    """At least as often as it says, and not much more often; intervals at one value do not."""
    covariance, rng, count = drawn_covariance(seed), np.random.default_rng(seed + 10), 20_000
    summary = bent(covariance, np.zeros(5))
    curve = summary.curve("age", reference=reference)
    (effect,) = curves_of(summary.structure, [""] * 5, "age")
    rows = effect.rows(curve.x.to_numpy(), 5) - effect.rows(np.array([reference]), 5)
    paths = np.abs(rng.multivariate_normal(np.zeros(5), covariance, count) @ rows.T)
    covered = (paths <= curve.band_high.to_numpy() + 1e-12).all(axis=1).mean()
    pointwise = (paths <= curve.high.to_numpy() + 1e-12).all(axis=1).mean()
    error = math.sqrt(0.05 * 0.95 / count)
    assert 0.95 - 5 * error < covered < 0.985
    assert pointwise < 0.93


def test_a_hidden_place_hides_the_curve_on_both_sides():
    summary = bent(drawn_covariance(2), [1.0, 3.0, 2.0, 4.0, 0.5], hidden=[1])  # at 65
    curve = summary.curve("age").set_index("x")
    curve = curve.drop(columns="reference")
    gone = curve[(curve.index > 40) & (curve.index < 80)]
    assert gone.isna().all(axis=None)
    assert curve[(curve.index <= 40) | (curve.index >= 80)].notna().all(axis=None)
    with pytest.raises(Unsupported, match="hid"):
        summary.nonlinearity_test("age")
    assert summary.wald_test("age").left_out == ("age at 65",)


def test_a_straight_line_is_tested_by_its_bends():
    covariance = drawn_covariance(3)
    line = [(place - 18) * 0.1 for place in PLACES[1:]]
    assert bent(covariance, [*line, 0.0]).nonlinearity_test("age").statistic == pytest.approx(0.0, abs=1e-9)
    values = np.array([1.0, 3.0, 2.0, 4.0, 0.0])
    heights, gaps = np.array([0.0, 1.0, 3.0, 2.0, 4.0]), np.diff(PLACES)
    bends = np.diff(np.diff(heights) / gaps)
    rows = np.diff(np.diff(np.eye(5), axis=0) / gaps[:, None], axis=0)[:, 1:]
    spread = rows @ covariance[:4, :4] @ rows.T
    found = bent(covariance, values).nonlinearity_test("age")
    assert found.df == 3
    assert found.statistic == pytest.approx(bends @ np.linalg.solve(spread, bends))


@pytest.mark.statistical
def test_smooth_curves_are_those_of_the_model_and_their_band_covers_them():
    """The curve is what the model predicts over the column's range, and the band covers whole simulated curves."""
    rng, n, count = np.random.default_rng(0), 30_000, 20_000
    table = {"age": rng.uniform(18, 90, n), "sex": rng.random(n) < 0.5}
    margin = np.sin(table["age"] / 12) + 0.3 * table["sex"] + 0.01 * table["age"] * table["sex"]
    kinds = {"age": Number((18, 90), term="curve", knots=5, unit=10), "sex": Boolean()}
    schema = Schema(kinds, Target("y", range=(-8, 8)), interactions=(("age", "sex"),))
    with seeded(1):
        model = TableModel(schema, DPLinearRegression(20.0, 1e-6, inference="sandwich", ledger=False))
        model.fit({**table, "y": margin + rng.normal(0, 0.5, n)})
    summary = model.summary()
    places = np.linspace(18, 90, 25)
    curve = summary.curve("age", at=places, reference=50)
    shown = model.predict({"age": [*places, 50.0], "sex": [False] * 26})
    np.testing.assert_allclose(curve.effect, shown[:-1] - shown[-1], atol=1e-9)
    assert summary.nonlinearity_test("age").df == 5
    assert summary.nonlinearity_test("age").p < 1e-6
    assert summary.wald_test("age").df == 7
    curve = summary.curve("age", reference=50)
    (effect, _) = curves_of(summary.structure, [""] * len(summary.names), "age")
    rows = effect.rows(curve.x.to_numpy(), len(summary.names)) - effect.rows(np.array([50.0]), len(summary.names))
    paths = np.abs(rng.multivariate_normal(np.zeros(len(summary.names)), summary.effects.covariance, count) @ rows.T)
    width = (curve.band_high - curve.effect).to_numpy()
    assert 0.95 - 5 * math.sqrt(0.05 * 0.95 / count) < (paths <= width + 1e-12).all(axis=1).mean() < 0.985


def test_a_smooth_curve_with_hidden_coefficients_is_tested_by_its_values():
    """Its single coefficients mean nothing: where one is hidden, values at knots that are shown are tested."""
    names = ("age", "age bend 1", "age bend 2", "age bend 3", "intercept")
    shape = SmoothShape(names[:4], (0.0, 10.0), (-1.0, 0.0, 1.0))
    structure = Structure((*((("age", name),) for name in names[:4]), ()), {"age": shape})
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 8))
    covariance = root @ root.T / 100
    blind = np.diag([0.0, 0.0, 1.0, 0.0, 0.0])
    metric = np.diag([100.0, 100.0, 1.0, 100.0, 1.0])
    effects = Effects(covariance, covariance / 4, metric, blind, np.eye(5))
    values = np.array([0.3, -0.2, 5.0, 0.1, 1.0])
    summary = Summary(names, values, effects, structure=structure)
    assert summary.hidden.tolist() == [False, False, True, False, False]
    found = summary.wald_test("age")
    curve = summary.curve("age", at=[0, 5, 10]).set_index("x")
    others = [x for x in (0.0, 5.0, 10.0) if x != curve.reference.iloc[0]]
    basis = np.column_stack([shape.basis(np.array([*others, curve.reference.iloc[0]])), np.zeros(3)])
    rows = basis[:2] - basis[2]
    np.testing.assert_allclose(rows @ values, curve.effect[others])
    assert found.statistic == pytest.approx(rows @ values @ np.linalg.solve(rows @ covariance @ rows.T, rows @ values))
    assert (found.df, found.left_out) == (2, ("age bend 2",))
    assert summary.column_tests()["age"] == found


def test_a_declared_curve_is_shown_where_the_signal_suffices():
    """Its bends must not be hidden by how long they are."""
    columns = {"age": Number((18, 90), knots=5), "ward": Category(("a", "b"), other=False)}
    schema = Schema(columns, Target("y", range=(-6, 6)))
    for seed in range(1, 11, 2):
        rng = np.random.default_rng(seed)
        table = {"age": rng.uniform(18, 90, 20_000), "ward": rng.choice(["a", "b"], 20_000)}
        table["y"] = 1.5 * np.sin((table["age"] - 18) / 24) + rng.normal(size=20_000)
        with seeded(seed):
            model = DPLinearRegression(2.0, 1e-6, neighbors="zero_out", inference="sandwich", ledger=False)
            curve = TableModel(schema, model, checks=False).fit(table).summary().curve("age")
        assert curve.effect.notna().all()


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
def test_tests_of_columns_have_their_size_and_bands_their_level_with_privacy_noise(kind):
    """On private fits, where the ward has no effect and age a straight one."""
    classes, count = kind is DPLogisticRegression, 150
    columns = {"age": Number((18, 90), knots=(40, 65)), "ward": Category(("a", "b", "c", "d"), other=False)}
    target = Target("y", classes=(0, 1)) if classes else Target("y", range=(-8, 8))
    rejected, bent_lines, covered, pointwise = [], [], [], []
    for seed in range(1, 2 * count, 2):
        rng = np.random.default_rng(seed)
        table = {"age": rng.uniform(18, 90, 20_000), "ward": rng.choice(list("abcd"), 20_000)}
        margin = 0.015 * (table["age"] - 50)
        table["y"] = margin + (rng.logistic(size=20_000) if classes else rng.normal(size=20_000))
        table["y"] = (table["y"] > 0).astype(int) if classes else table["y"]
        with seeded(seed):
            model = kind(1.0, 1e-6, neighbors="zero_out", inference="sandwich", ledger=False)
            summary = TableModel(Schema(columns, target), model, checks=False).fit(table).summary()
        rejected.append(summary.wald_test("ward").p < 0.05)
        bent_lines.append(summary.nonlinearity_test("age").p < 0.05)
        curve = summary.curve("age")
        truth = 0.015 * (curve.x - curve.reference)
        covered.append(((curve.band_low - 1e-12 <= truth) & (truth <= curve.band_high + 1e-12)).all())
        pointwise.append(((curve.low - 1e-12 <= truth) & (truth <= curve.high + 1e-12)).all())
    most = stats.binom.isf(1e-6, count, 0.05)
    assert sum(rejected) <= most
    assert sum(bent_lines) <= most
    assert count - sum(covered) <= most
    assert sum(pointwise) < sum(covered)


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
def test_bands_of_smooth_curves_cover_nearly_all_of_them_with_privacy_noise(kind):
    """The whole curve of a straight effect, in 93 % of private fits at least."""
    classes, count, covered = kind is DPLogisticRegression, 200, 0
    columns = {"age": Number((18, 90), knots=5), "ward": Category(("a", "b", "c", "d"), other=False)}
    schema = Schema(columns, Target("y", classes=(0, 1)) if classes else Target("y", range=(-8, 8)))
    for seed in range(0, 2 * count, 2):
        rng = np.random.default_rng(seed)
        table = {"age": rng.uniform(18, 90, 20_000), "ward": rng.choice(list("abcd"), 20_000)}
        margin = 0.015 * (table["age"] - 50)
        table["y"] = margin + (rng.logistic(size=20_000) if classes else rng.normal(size=20_000))
        table["y"] = (table["y"] > 0).astype(int) if classes else table["y"]
        with seeded(seed):
            model = kind(1.0, 1e-6, neighbors="zero_out", inference="sandwich", ledger=False)
            curve = TableModel(schema, model, checks=False).fit(table).summary().curve("age")
        truth = 0.015 * (curve.x - curve.reference)
        covered += ((curve.band_low - 1e-12 <= truth) & (truth <= curve.band_high + 1e-12)).all()
    assert covered >= 0.93 * count
