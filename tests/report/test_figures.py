import re
import sys

import numpy as np
import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import ZCDP, Gaussian
from discreet.accounting.filters import Charge
from discreet.budget import Neighbors
from discreet.errors import DiscreetError
from discreet.report.figures import (
    DARK,
    LIGHT,
    MissingPlots,
    accuracy_over_epsilon,
    budget_trace,
    save,
    svg,
    total_rho,
)

NUMBERS = {
    "epsilons": (0.1, 1.0, 10.0),
    "accuracies": ((0.61, 0.66, 0.7), (0.74, 0.75, 0.76), (0.78, 0.79, 0.79)),
    "non_private": 0.8,
    "majority": 0.64,
}


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_renders_a_picture(tmp_path, theme):
    from matplotlib import image

    path = save(accuracy_over_epsilon(**NUMBERS, theme=theme), tmp_path / "a.png")
    pixels = image.imread(path)
    assert pixels.shape[:2] == (768, 1280)
    paper = [int(theme.paper[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    assert np.allclose(pixels[2, 2, :3], paper, atol=0.01)
    assert len(np.unique(pixels[::4, ::4].sum(axis=2))) > 20


def test_shows_every_number_on_a_log_axis():
    (axes,) = accuracy_over_epsilon(**NUMBERS, subtitle="Synthetic.").axes
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "1", "10"]
    assert "epsilon" in axes.get_xlabel()
    assert "accuracy" in axes.get_ylabel()
    texts = [text.get_text() for text in axes.texts]
    assert "without privacy 80.0%" in texts
    assert "always the commoner class 64.0%" in texts
    assert "Synthetic." in texts
    low, high = axes.get_ylim()
    assert low < 0.61
    assert high > 0.8
    medians = axes.lines[-1].get_ydata()
    assert list(medians) == pytest.approx([0.66, 0.75, 0.79])
    (dots,) = (found for found in axes.collections if len(found.get_offsets()) > 1)
    assert len(dots.get_offsets()) == 9


def test_one_epsilon_and_even_repetitions():
    figure = accuracy_over_epsilon([1.0], [[0.7, 0.8]], non_private=0.8, majority=0.6)
    assert list(figure.axes[0].lines[-1].get_ydata()) == pytest.approx([0.75])


def test_svg_is_the_same_each_time_and_refers_to_nothing():
    first, second = (svg(accuracy_over_epsilon(**NUMBERS)) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert set(re.findall(r"https?://[^\"'\s<>]+", first)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_leaves_pyplot_alone():
    before = "matplotlib.pyplot" in sys.modules
    svg(accuracy_over_epsilon(**NUMBERS))
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPlots, match=r"discreet\[plot\]"):
        accuracy_over_epsilon(**NUMBERS)


TRACE = (
    Charge("noisy_gradient", 0.01, 1),
    Charge("select_candidate", 0.005, 1),
    Charge("noisy_gradient", 0.01, 2),
    Charge("select_candidate", 0.005, 2),
    Charge("noisy_gradient", 0.002, 2),
    Charge("select_candidate", 0.005, 2),
    Charge("noisy_gradient", 0.012, 3, answered=False),
)


TOTAL = (ZCDP(0.04),)


def adaptive(events=TOTAL, trace=TRACE):
    facts = {"epsilon": 2.0, "delta": 1e-6, "neighbors": Neighbors.ZERO_OUT}
    return Certificate(**facts, events=events, trace=trace)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_trace_stacks_what_was_paid_and_marks_what_was_refused(tmp_path, theme):
    figure = budget_trace(adaptive(), theme=theme)
    (axes,) = figure.axes
    tops = [layer.get_paths()[0].vertices[:, 1].max() for layer in axes.collections]
    assert tops == pytest.approx([0.022, 0.037])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["noisy_gradient: 3 answers, 55%", "select_candidate: 3 answers, 38%"]
    texts = [text.get_text() for text in axes.texts]
    assert "total 0.04" in texts
    assert "refused: noisy_gradient" in texts
    crosses = axes.lines[-1]
    assert list(crosses.get_xdata()) == [3]
    assert min(crosses.get_ydata()) > 0.04
    assert save(figure, tmp_path / "trace.png").stat().st_size > 5000


def test_a_trace_without_refusals_and_of_one_round():
    figure = budget_trace(adaptive(trace=TRACE[:2]))
    assert not any("refused" in text.get_text() for text in figure.axes[0].texts)
    assert "Rounds: 1." in figure.axes[0].texts[-1].get_text()


@pytest.mark.parametrize("made", [adaptive(trace=()), adaptive(events=(Gaussian(10.0),))])
def test_no_trace_no_picture(made):
    with pytest.raises(DiscreetError, match="no budget trace"):
        budget_trace(made)


def test_the_total_is_of_the_filter_alone():
    assert total_rho(adaptive()) == 0.04
    assert total_rho(adaptive(events=(Gaussian(10.0),))) == 0
