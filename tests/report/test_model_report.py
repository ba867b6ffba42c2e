"""The page: self-contained, escaped, readable, and true to what it was given."""

import json
import math
import re
from html.parser import HTMLParser

import pytest

from discreet.inference.intervals import covers
from discreet.report import privacy_sections as promises
from discreet.report.model_report import ModelReport, certificate_in
from discreet.report.page import POLICY, number
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


def test_numbers_of_thousands_are_written_out():
    values = (5000, -12345, 999.9, 1e6, 1.5e7, 1e-5, 0.25)
    assert [number(value) for value in values] == ["5,000", "−12,300", "1,000", "10⁶", "1.5 × 10⁷", "10⁻⁵", "0.25"]
