"""Pictures of effects: what is drawn, on which scale, for names that hold anything; nothing for hidden effects."""

import math

import pytest

from discreet.inference.text import DASH
from tests.report import samples


def drawn(axes):
    axes.figure.canvas.draw()
    return axes


@pytest.fixture(autouse=True)
def pictures():
    import matplotlib

    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_a_forest_has_a_mark_per_shown_effect_and_a_dash_for_hidden_ones():
    axes = drawn(samples.effects().plot())
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["age", "days_in_the_intensive_care_unit", "ward = surgery", "ward (other)", "rare"]
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert [round(math.exp(line.get_xdata()[0]), 3) for line in marks] == [1.03, 1.492, 0.301]
    assert [text.get_text() for text in axes.texts].count(DASH) == 4, "a mark and a number for each of two"
    assert "odds ratio" in axes.get_xlabel()
    assert "1" in [label.get_text() for label in axes.get_xticklabels()]
