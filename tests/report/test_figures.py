import re
import sys

import numpy as np
import pytest

from discreet.report.figures import DARK, LIGHT, MissingPlots, accuracy_over_epsilon, save, svg

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
