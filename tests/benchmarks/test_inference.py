"""The coverage study: it runs, goes on where it stopped, and knows its truths."""

import numpy as np
import pytest
from scipy.special import softmax

from benchmarks.problems.class_effects import class_fit
from benchmarks.problems.effects import WIDTH, Design, kinds_of, plain_fit, source_of


@pytest.mark.parametrize("model", ["logistic", "softmax", "linear", "poisson"])
def test_truths_are_what_a_large_table_shows(model):
    source = source_of(Design(model, 0, 6, 1.0, "zero_out"), None)
    X, y = source.draw(np.random.default_rng(1), 60_000)
    found, se = plain_fit(X, y, model, WIDTH)
    assert np.all(np.abs(found - source.truth) < 5 * se)


def test_maximum_likelihood_of_three_classes_has_no_slope_left():
    """Its score is 0; standard errors are how much estimates of 60 tables differ, within a third."""
    source = source_of(Design("softmax", 0, 6, 1.0, "zero_out"), None)
    assert source.classes == kinds_of(6) * 2
    rng, fits = np.random.default_rng(3), []
    for _ in range(60):
        X, y = source.draw(rng, 4_000)
        fits.append(class_fit(X, y))
    w, Z = fits[-1][0].reshape(2, -1), np.column_stack([X, np.ones(len(X))])
    margins = np.column_stack([np.zeros(len(X)), Z @ w.T])
    chances = softmax(margins, axis=1)[:, 1:]
    assert np.abs(((y[:, None] == [1, 2]) - chances).T @ Z).max() < 1e-6
    found, se = (np.array(part) for part in zip(*fits, strict=True))
    np.testing.assert_allclose(found.std(axis=0), se.mean(axis=0), rtol=0.33)
