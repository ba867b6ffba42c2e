"""The page: self-contained, escaped, readable, and true to what it was given."""

import json
import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from discreet import DPLogisticRegression, DPRidge
from discreet.accounting.events import Gaussian, Laplace, PoissonSampled, PureDP
from discreet.inference.intervals import ALL_NOISE, covers, rounded
from discreet.report import privacy_sections as promises
from discreet.report.model_report import ModelReport, certificate_in, cost_forecast
from discreet.report.model_sections import Coefficient
from discreet.report.page import POLICY
from discreet.report.privacy_sections import plan_section, shares
from tests.covering import covering
from tests.report import samples

ALL = {"plain": samples.plain, "hard": samples.hard, "not_private": samples.not_private}
VOID = {"meta", "img", "source", "link", "br", "mspace", "line", "circle", "path", "rect", "polygon"}


class Reader(HTMLParser):
    """Checks nesting, and collects attributes, headings and tags."""

    def __init__(self):
        super().__init__()
        self.open, self.attributes, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("name", ALL)
def test_refers_to_nothing_outside_itself_and_runs_nothing(name):
    html = ALL[name]().html()
    reader = read(html)
    for attribute, value in reader.attributes:
        if attribute in ("src", "srcset", "href", "action", "data", "xlink:href"):
            assert value.startswith(("data:", "#"))
        assert not attribute.startswith("on")
    assert reader.tags.count("script") == 1
    assert not {"iframe", "object", "embed", "form", "base"} & set(reader.tags)
    assert "url(" not in html
    assert "@import" not in html
    assert ("http-equiv", "Content-Security-Policy") in reader.attributes
    assert ("content", POLICY) in reader.attributes
    if name != "hard":
        assert not re.search("https?:", html)


@pytest.mark.parametrize("name", ALL)
def test_the_certificate_can_be_taken_out_again(name):
    report = ALL[name]()
    html = report.html()
    assert certificate_in(html) == report.certificate
    stored = re.search(r'<script type="application/json" id="certificate">(.*?)</script>', html, re.DOTALL).group(1)
    assert not set("<>&") & set(stored)
    assert json.loads(stored) == json.loads(report.certificate.to_json())


def test_the_page_says_how_to_check_it_and_that_works(tmp_path):
    from typer.testing import CliRunner

    from discreet.cli.app import app

    page = tmp_path / "report.html"
    page.write_text(samples.plain().html(), encoding="utf-8")
    assert "discreet verify report.html" in page.read_text()
    assert CliRunner().invoke(app, ["verify", str(page)]).exit_code == 0


def test_hostile_names_are_shown_as_they_are():
    html = samples.hard().html()
    assert samples.EVIL not in html
    assert "&lt;/script&gt;&lt;script&gt;alert(&quot;x&quot;)" in html
    assert f"<bdi>{samples.HEBREW}</bdi>" in html


def test_headings_are_in_order_and_pictures_have_words():
    html = samples.plain().html()
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", html)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for opening in re.findall(r'<[a-z]+ [^>]*role="img"[^>]*>', html):
        assert "aria-label=" in opening
    assert html.index('id="promise"') < html.index('id="coefficients"') < html.index('id="certificate"')
    assert 'lang="en"' in html


def test_the_promise_is_there_in_words_odds_and_formulas():
    html = samples.plain(certificate=samples.certificate(epsilon=1.0)).html()
    assert html.count("<math ") >= 6
    for text in (
        "Pr[M(D) in S] &lt;= exp(epsilon) Pr[M(D&#x27;) in S] + delta",
        "epsilon = 1",
        "73.1%",
        "26.9% to 73.1%",
    ):
        assert text in html
    assert "That nothing is learned about people in general" in html
    pure = samples.plain(certificate=samples.certificate(epsilon=1.0, delta=0.0)).html()
    assert "+ delta" not in pure


def test_without_privacy_there_is_a_stop_sign_and_no_promise():
    html = samples.not_private().html()
    assert "Stop sign" in html
    assert "Do not release this model" in html
    assert "<math" not in html
    assert "betting odds" not in html
    assert "as likely" not in html


def test_every_section_says_what_it_was_given():
    html = samples.plain().html()
    for text in (
        *(
            "estimated: released with noise",
            "number from 11.9 to 61.2",
            "69.0% left",
            "noisy_second_moment",
            "ward",
            "north",
        ),
        *(
            "78.6%",
            "77.8% to 79.4% (95%)",
            "epsilon = 0.1",
            "30,000",
            "Points of accuracy lost, over rows",
            "costs such a fit 2.0 points",
        ),
    ):
        assert text in html, text
    assert "Not charged to a ledger" in samples.plain(spent=None).html()


@pytest.mark.parametrize(
    ("changes", "color"),
    [({"epsilon": 1.0}, "good"), ({"epsilon": 9.0}, "weak"), ({"epsilon": 1000.0}, "bad"), ({"delta": 0.5}, "bad")],
)
def test_a_weak_promise_has_no_green_badge(changes, color):
    made = samples.certificate(**changes)
    html = samples.plain(certificate=made).html()
    assert f'<p class="stamp {color}">{made.headline}</p>' in html
    assert ("This promise is weak: " in html) == (color != "good")


def test_what_is_not_covered_stands_on_the_page():
    for sentence in samples.certificate().not_covered:
        assert f"<li>{sentence}</li>" in samples.plain().html()


@covering(("delta", [0.0, 1e-6]), ("epsilon", [0.01, 1.0, 5.0, 800.0]))
def test_odds_and_guesses_follow_from_the_definition(epsilon, delta):
    made = samples.certificate(epsilon=epsilon, delta=delta)
    guess = promises.best_guess(made)
    assert 0.5 < guess <= 1
    if epsilon < 700:
        e = math.exp(epsilon)
        assert math.isclose(guess, (e + delta) / (e + 1), rel_tol=1e-12)
        assert math.isclose(promises.odds_factor(made), e + 1000 * delta)
    low, high = promises.posterior(0.5, promises.odds_factor(made))
    assert 0 <= low < 0.5 < high <= 1
    assert math.isclose(low, 1 - high, abs_tol=1e-12)
    read(ModelReport("x", made).html())


def test_no_dot_looks_as_if_an_effect_had_been_shown():
    """Intervals count the noise alone: neither looks nor words may tell effects from none by them."""
    html = samples.plain().html()
    assert "told apart" not in html
    assert "hollow" not in html
    assert {*re.findall(r'class="row deep\d ?(\w*)"', html)} == {"", "heading"}
    assert covers() in html
    assert "an interval that leaves out 0 does not show an effect" in html


def test_a_model_that_noise_explains_says_what_to_check():
    quiet = [Coefficient("a", "a", "", 1.0, 1.5), Coefficient("b", "b", "", -0.2, 0.3)]
    assert ALL_NOISE in samples.plain(coefficients=quiet).html()
    assert ALL_NOISE not in samples.plain().html()
    assert ALL_NOISE not in samples.plain(coefficients=[Coefficient("a", "a", "", 0.0)]).html()  # nothing is known


def test_numbers_are_rounded_to_their_noise():
    assert rounded(0.634711, 0.0912) == ("0.635", "0.091")
    assert rounded(-1234.5678, 33.0) == ("-1235", "33")
    assert rounded(1234.5678, 330.0) == ("1230", "330")
    assert rounded(0.004, 19.4) == ("0", "19")
    assert rounded(-0.004, 0.94) == ("0.00", "0.94")
    assert rounded(-2.39311e-05, 7.2e-06) == ("-2.39e-05", "7.2e-06")
    assert rounded(12.345678, None) == ("12.3", "")
    assert rounded(12.345678, 0.0) == ("12.3457", "0")
    assert rounded(0.5, 0.0996) == ("0.50", "0.10")


def test_parts_of_the_budget_add_up_where_they_can():
    found = shares(samples.certificate())
    assert math.isclose(sum(found), 1)
    assert math.isclose(found[2] / found[0], 8 * 30**2 / 15**2)
    pure = samples.certificate(delta=0.0, events=(Laplace(2.0, 2), PureDP(0.5)))
    assert shares(pure) == pytest.approx([2 / 3, 1 / 3])
    sampled = samples.certificate(events=(PoissonSampled(100, Gaussian(1.0, 50)), Gaussian(20.0)))
    assert shares(sampled) is None
    assert "priced together" in plan_section(sampled, ())
    assert "65536" not in plan_section(sampled, ())


def test_the_forecast_comes_from_public_facts():
    found = cost_forecast(DPRidge(epsilon=2.0, bounds=[(-1, 1)] * 3, target=(-1, 1), ledger=False), 5_000)
    assert (found.n, found.p, found.epsilon, found.score) == (5_000, 3, 2.0, "R2")
    assert [point.at for point in found.over_epsilon] == pytest.approx([0.1, 0.4, 1.0, 2.0, 4.0, 10.0])
    assert [point.at for point in found.over_rows] == [250, 1_000, 2_500, 5_000, 10_000, 25_000]
    assert all(point.least <= point.lost <= point.most for point in found.over_epsilon)
    read(samples.plain(forecast=found).html())


def test_a_forecast_has_no_simulation_where_it_would_take_long():
    model = DPLogisticRegression(bounds=[(-1, 1)] * 3, classes=(0, 1), solver="sgd", ledger=False)
    found = cost_forecast(model, 5_000)
    assert found.over_epsilon == ()
    html = samples.plain(forecast=found).html()
    assert "Not simulated" in html
    assert "lost, over rows" not in html
    late = cost_forecast(DPRidge(bounds=[(-1, 1)] * 3, target=(-1, 1), ledger=False), 5_000, seconds=0.0)
    assert late.over_rows == ()
    assert late.steps


def test_what_the_checks_found_is_told_with_its_meaning():
    counts = {"sex": {"empty": 3, "unknown": 29_800}, "age": {"no_number": -40, "outside": 12}}
    public = {"n": 30_000, "noisy_checks": {"null_records": 15, "columns": counts, "noise": 90.0}}
    page = samples.plain(certificate=samples.certificate(assumed_public=public)).html()
    assert "sex: about 29,800 of 30,000 (99%) cells hold none of the declared labels." in page
    assert "± 180" in page
    assert "cells that lie outside the declared range" in page
    assert "Does the table fit the schema?" not in samples.plain().html()
