import numpy as np
import pytest

from discreet.accounting.certificate import Certificate
from discreet.accounting.events import ZCDP
from discreet.accounting.plan import Charge
from discreet.budget import Neighbors
from discreet.report.page import DARK, LIGHT, budget_trace, save

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


@pytest.mark.few(1)
@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_renders_a_picture(tmp_path, theme):
    from matplotlib import image

    path = save(budget_trace(adaptive(), theme=theme), tmp_path / "a.png")
    pixels = image.imread(path)
    assert pixels.shape[:2] == (768, 1280)
    paper = [int(theme.paper[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    assert np.allclose(pixels[2, 2, :3], paper, atol=0.01)
    assert len(np.unique(pixels[::4, ::4].sum(axis=2))) > 20


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
