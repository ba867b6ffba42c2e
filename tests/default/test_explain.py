"""Why ``auto`` is what it is: the text names the form, the settings and a forecast, and reads no record."""

import numpy as np
import pytest

from discreet import Bounds, DPClassifier, DPLinearRegression, DPLogisticRegression
from discreet.default import Recipe, Shares
from discreet.default.table import FORMS, SETTINGS, SHARES, Facts, forecast_for, recipe_for
from discreet.errors import Unsupported


def quoted(kind, n=5000, p=20, epsilon=1.0, **settings):
    facts = {"classes": (0, 1)} if kind in (DPLogisticRegression, DPClassifier) else {"target": (0, 10)}
    X, y = np.full((n, p), np.nan), np.zeros(n)  # no cell may matter
    return kind(epsilon, 1e-9, bounds=Bounds(1.0, **facts), ledger=False, **settings).quote(X, y)


STEPS_AND_CLIPS = {"n_steps", "momentum", "clip", "constant", "row_radius", "n_newton"}
LATER = {"shares.bound", "shares.travel", "shares.hessian", "shares.newton", "weight_radius"}


@pytest.mark.parametrize(
    ("kind", "facts", "named", "unnamed"),
    [
        (DPLogisticRegression, {}, {"floor", "shares.calibration"}, {*LATER, "slope_limit", "calibration_clip"}),
        (DPLinearRegression, {}, {"floor", "calibration_clip", "shares.target"}, LATER),
        (DPLogisticRegression, {"epsilon": 100.0}, {*LATER, "floor"}, {"slope_limit"}),
        (DPLogisticRegression, {"epsilon": 0.03}, {"shares.calibration"}, {"floor", "least_scale", "shares.moment"}),
    ],
)
def test_it_names_the_form_the_settings_in_use_and_a_forecast(kind, facts, named, unnamed):
    text = quoted(kind, **facts).explain()
    chosen = next(line for line in text.splitlines() if line.startswith(" -> recipe, "))
    assert chosen.endswith(next(form.reason for form in FORMS if form.coordinates in chosen.split()))
    assert all(form.reason in text for form in FORMS)
    settings = {line.split()[0] for line in text.split("Settings:")[1].splitlines() if line}
    assert STEPS_AND_CLIPS | named <= settings
    assert not unnamed & settings
    reasons = {row.name: row.reason for row in SETTINGS} | {f"shares.{row.name}": row.reason for row in SHARES}
    assert all(reasons[name] in text for name in settings)
    assert "Forecast: privacy costs " in text
    assert ("twice the rows" in text) == ("less than 1%" not in text), "nothing helps where privacy is nearly free"


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression])
def test_the_forecast_falls_with_signal_and_stays_above_its_floor(kind):
    found = []
    for n in (3_000, 10_000, 100_000, 1_000_000):
        quote = quoted(kind, n=n, p=10)
        facts = Facts(*quote.facts, quote.priced.budget)
        found.append(forecast_for(facts, recipe_for(facts)))
    losses = [forecast.lost for forecast in found]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 10 * losses[-1]
    assert all(forecast.floor <= forecast.lost for forecast in found)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPLinearRegression])
def test_the_certificate_says_what_was_expected(kind):
    """The form, its signal and the forecast with its spread and floor: as in the quote, whatever the records are."""
    X, y = np.random.default_rng(0).uniform(-1, 1, (200, 3)), np.arange(200) % 2
    facts = {"classes": (0, 1)} if kind is DPLogisticRegression else {"target": (0, 10)}
    model = kind(1.0, 1e-9, bounds=Bounds(1.0, **facts), ledger=False)
    notes, text = model.fit(X, y).certificate_.notes, model.quote(X, y).explain()
    for start in ("auto chose", "Signal: N =", "Forecast: privacy costs "):
        assert [note for note in notes if note.startswith(start)] == [
            line for line in text.splitlines() if line.startswith(start)
        ]


@pytest.mark.parametrize("share", ["mean", "scale", "moment"])
def test_a_share_of_nothing_is_refused_before_the_charge(share):
    with pytest.raises(Unsupported, match="give each release a share above 0"):
        quoted(DPLogisticRegression, solver=Recipe(shares=Shares(**{share: 0.0})))
