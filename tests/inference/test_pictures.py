"""Pictures of effects: what is drawn, on which scale, for names that hold anything; nothing for hidden effects."""

import math

import numpy as np
import pytest

from discreet.errors import Unsupported
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


def test_differences_have_a_scale_each():
    axes = drawn(samples.effects(ratio="").plot())
    whiskers = [line.get_xdata() for line in axes.lines if line.get_marker() != "o" and len(set(line.get_ydata())) == 1]
    assert [round(float(np.max(np.abs(ends))), 6) for ends in whiskers] == [1.0, 1.0, 1.0]
    assert "scale of its own" in axes.get_xlabel()


def test_curves_are_drawn_on_axes_of_the_caller():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert samples.bent_effects().plot("age", ax=ax) is ax
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "odds ratio against 18"
    several = samples.bent_effects("relative risk ratio", ("$home^", "ward"))
    axes = drawn(several.plot(samples.EVIL))
    assert len(axes.collections) == 2, "a band for each class"
    assert len(axes.get_legend().get_texts()) == 2
    assert drawn(samples.bent_effects("").plot("age")).get_yscale() == "linear"
    with pytest.raises(Unsupported, match="no knots"):
        samples.bent_effects().plot("sex")
