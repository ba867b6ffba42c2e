import pytest

from discreet.models.forecast.forecast import Forecast, ForecastRow
from discreet.report.page import DARK, LIGHT, forecast_figure, save


def row(n, epsilon, gap):
    return ForecastRow(
        n=n,
        epsilon=epsilon,
        delta=1e-6,
        score=0.85 - gap,
        error=0.002,
        non_private=0.85,
        trivial=0.6,
        gap=gap,
        gap_error=0.002,
        gaps=(gap - 0.004, gap, gap + 0.004),
        solver="gd",
        releases=20,
        noise_multiplier=12.0,
        simulated_rows=n,
        stand_in=None,
        risk_bound=0.4,
        risk_order=0.1,
    )


def made(asked=0.03, **changes):
    middle = row(1500, 1.0, asked)
    facts = {
        "model": "DPLogisticRegression",
        "n_features": 7,
        "score": "accuracy",
        "ceiling": 0.85,
        "neighbors": "replace_one",
        "asked": middle,
        "over_epsilon": (row(1500, 0.1, 0.2), middle, row(1500, 2.0, 0.01), row(1500, 4.0, 0.002)),
        "over_n": (row(150, 1.0, 0.2), middle, row(15_000, 1.0, 0.01), row(2_500_000, 1.0, 0.0)),
        "diameter": 3.0,
        "risk_of_nothing": 0.3,
    }
    return Forecast(**{**facts, **changes})


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_two_panels_with_one_axis(tmp_path, theme):
    figure = forecast_figure(made(), theme=theme)
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] < 0 < 20 < left.get_ylim()[1]
    assert [label.get_text() for label in left.get_xticklabels()] == ["0.1", "1", "2", "4"]
    assert [label.get_text() for label in right.get_xticklabels()] == ["150", "1.5k", "15k", "2.5M"]
    for axes in (left, right):
        assert axes.get_xscale() == "log"
        texts = [text.get_text() for text in axes.texts]
        assert "3.00 points of accuracy" in texts
        assert "without privacy" in texts
        means = next(line for line in axes.lines if len(line.get_xdata()) == 4)
        assert list(means.get_ydata())[:2] == pytest.approx([20, 3])
        (dots,) = (found for found in axes.collections if len(found.get_offsets()) > 1)
        assert len(dots.get_offsets()) == 12
    assert "percentage points" in left.get_ylabel()
    assert save(figure, tmp_path / "f.png").stat().st_size > 10_000


def test_what_is_worse_than_nothing_is_cut_and_pointed_at():
    found = made(asked=4.0)
    left, right = forecast_figure(found).axes
    assert left.get_ylim()[1] < 40  # of 400 points lost; there were 25 to lose
    assert any(text.get_text().startswith("\N{UPWARDS ARROW}") for text in right.texts)
    assert "nothing learned" in [text.get_text() for text in left.texts]
