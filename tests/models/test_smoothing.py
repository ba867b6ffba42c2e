"""Bends of chosen curves: lines stay lines, clear bends and declared curves are kept, noise is as it is said to be."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.seeded import SeededWords
from discreet import DPLogisticRegression, DPRidge, Schema, TableModel
from discreet.curator import use_entropy
from discreet.models import curves as released
from discreet.schema import Number, Target
from discreet.testing import seeded

ROWS, COLUMNS = 4000, 6


def drawn(seed, bent=0.0, rows=ROWS):
    """A table whose effects are lines, plus ``bent`` times a parabola of the first column."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(rows, COLUMNS)) + 0.5 * rng.normal(size=(rows, 1)), -4, 4)
    margin = X @ rng.normal(size=COLUMNS) / COLUMNS**0.5 + bent * (X[:, 0] ** 2 - 1.25)
    table = {f"x{j}": X[:, j] for j in range(COLUMNS)}
    return table, margin, rng


def labels(seed, bent=0.0, rows=ROWS):
    table, margin, rng = drawn(seed, bent, rows)
    return table | {"y": (margin + rng.logistic(size=rows) > 0).astype(int)}, Target("y", classes=(0, 1))


def numbers(seed, bent=0.0, rows=ROWS):
    table, margin, rng = drawn(seed, bent, rows)
    return table | {"y": margin + rng.normal(size=rows)}, Target("y", range=(-10, 10))


def schema_of(target, **declared):
    return Schema({f"x{j}": Number((-4, 4), **declared) for j in range(COLUMNS)}, target)


def fitted(table, target, estimator, noise=0, terms="auto", **declared):
    model = TableModel(schema_of(target, **declared), estimator, terms=terms, checks=False)
    with use_entropy(SeededWords(noise)):
        return model.fit(table)


def excess(model, table, margin_of_lines):
    """The mean square of what a prediction is beyond the best line through it."""
    X = np.column_stack([np.ones(ROWS), *(table[f"x{j}"] for j in range(COLUMNS))])
    scores = margin_of_lines(model)
    return float(np.mean(np.square(scores - X @ np.linalg.lstsq(X, scores, rcond=None)[0])))


def log_odds(model, table):
    chance = model.predict_proba(table)[:, 1]
    return np.log(chance / (1 - chance))


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_effects_that_are_lines_hardly_bend(kind, monkeypatch):
    ratios = []
    for seed in range(4):
        table, target = (labels if kind == "labels" else numbers)(seed)
        estimator = DPLogisticRegression(epsilon=2.0) if kind == "labels" else DPRidge(epsilon=2.0)
        scores = (lambda model, t=table: log_odds(model, t)) if kind == "labels" else (lambda m, t=table: m.predict(t))
        curved = fitted(table, target, estimator, seed)
        with monkeypatch.context() as patch:
            patch.setattr(released, "smoothed", lambda solution, *_: solution)
            rough = fitted(table, target, estimator, seed)
        assert curved.schema_.columns["x0"].is_curve
        ratios.append(excess(curved, table, scores) / excess(rough, table, scores))
    assert np.median(ratios) < 0.35


def test_a_clear_bend_is_kept():
    table, target = numbers(0, bent=1.0)
    model = fitted(table, target, DPRidge(epsilon=4.0))
    effect = next(effect for effect in model.term_effects() if effect.column == "x0")
    places = np.array(effect.values)
    inner = np.abs(places) < 2
    assert 0.7 < np.polyfit(places[inner], np.asarray(effect.effect)[inner], 2)[0] < 1.3


def test_declared_curves_inference_and_lines_are_not_shrunk(monkeypatch):
    calls = []
    monkeypatch.setattr(released, "smoothed", lambda solution, *_: calls.append(1) or solution)
    table, target = labels(0)
    fitted(table, target, DPLogisticRegression(epsilon=4.0), term="curve")
    fitted(table, target, DPLogisticRegression(epsilon=4.0), terms="linear")
    fitted(table, target, DPLogisticRegression(epsilon=4.0), terms="curves")
    fitted(table, target, DPLogisticRegression(epsilon=20.0, inference="sandwich"), knots=3)
    assert not calls
    fitted(table, target, DPLogisticRegression(epsilon=4.0))
    assert calls


def test_predictions_along_the_line_stay(monkeypatch):
    """What bends told of a line is moved to it: the line through all predictions hardly changes."""
    table, target = numbers(1)
    smooth = fitted(table, target, DPRidge(epsilon=4.0)).predict(table)
    monkeypatch.setattr(released, "smoothed", lambda solution, *_: solution)
    rough = fitted(table, target, DPRidge(epsilon=4.0)).predict(table)
    X = np.column_stack([np.ones(ROWS), *(table[f"x{j}"] for j in range(COLUMNS))])
    lines = [X @ np.linalg.lstsq(X, scores, rcond=None)[0] for scores in (smooth, rough)]
    assert np.mean(np.square(lines[0] - lines[1])) < 0.01 * np.var(lines[1])


def test_a_line_that_may_be_a_constant_takes_little_of_what_its_bends_lose():
    """Values in one spot of a wide range: by its noisy moments, the line varies less than nothing about its mean."""
    entry, places = 0.001, np.arange(3)
    moment = np.diag([0.0047, 0.004, 0.002, 0.2])
    moment[:3, 3] = moment[3, :3] = 0.031, -0.02, 0.005
    moment[0, 1:3] = moment[1:3, 0] = -0.003, 0.001
    spectrum = SimpleNamespace(standard=moment, deviation=entry)
    bends = released._bends(places, spectrum, np.eye(4), 1000.0, SimpleNamespace(intercept=True))
    assert np.abs(bends.follow[0]).max() < 2


def test_shrunk_bends_have_less_noise(monkeypatch):
    seen = []
    before = released.smoothed
    monkeypatch.setattr(released, "smoothed", lambda *given: seen.append(given) or before(*given))
    table, target = labels(2)
    fitted(table, target, DPLogisticRegression(epsilon=4.0))
    [(solution, curves, domain, loss)] = seen
    after = before(solution, curves, domain, loss)
    bends = np.concatenate([curve[1:] for curve in curves])
    assert (after.noise[bends] < 1.01 * solution.noise[bends]).all()
    assert after.noise[bends].sum() < 0.8 * solution.noise[bends].sum()


@pytest.mark.parametrize(("kind", "epsilon"), [("labels", 1.0), ("numbers", 1.0), ("numbers", 4.0)])
def test_the_noise_of_coefficients_is_about_what_it_is_said_to_be(kind, epsilon):
    """Directions that noise hides still have a curvature: noise is not kept in them for ever."""
    table, target = (labels if kind == "labels" else numbers)(3, bent=0.5, rows=1500)
    estimator = (DPLogisticRegression if kind == "labels" else DPRidge)(epsilon=epsilon)
    models = [fitted(table, target, estimator, seed, term="curve", knots=4) for seed in range(16)]
    actual = np.array([model.estimator_.coef_.ravel() for model in models]).std(axis=0, ddof=1)
    said = np.sqrt(np.mean([np.square(model.estimator_.coef_noise_.ravel()) for model in models], axis=0))
    assert 0.7 < np.median(said / actual) < 1.45


def test_margins_without_curvature_in_double_precision_end_no_fit():
    """Twenty rows of one class and a private n: a fit that was charged is answered, whatever the noise."""
    schema = Schema({"a": Number((-3, 3))}, Target("t", classes=(0, 1)))
    estimator = DPLogisticRegression(1.0, 1e-6, neighbors="add_remove", ledger=False)
    for noise in range(20):
        with seeded(noise):
            model = TableModel(schema, estimator, checks=False).fit(
                {"a": np.full(20, 0.5), "t": np.ones(20, dtype=int)}
            )
        assert np.isfinite(model.estimator_.coef_).all()
