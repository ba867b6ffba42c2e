"""The report in a real browser: Debian's Chromium, headless. Skipped where there is none."""

import pytest

from discreet.datasets import hospital
from discreet.models import DPLogisticRegression
from discreet.report.model_report import Coefficient, ModelReport, cost_forecast
from tests.covering import covering
from tests.report import samples
from tests.report.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")

FIGURES = "[...document.querySelectorAll('svg, img, math, .bar, [role=img]')]"
VISIBLE = f"{FIGURES}.filter(e => !e.closest('details') && !e.closest('.head, .heading'))"


def fitted():
    """A report of a real fit, on synthetic patients."""
    table = hospital(4_000)
    model = DPLogisticRegression(epsilon=1.0, bounds=table.bounds, ledger=False).fit(table.X, table.y)
    named = [
        Coefficient(name, name, "", float(value), 0.4, "per 1")
        for name, value in zip(table.names, model.coef_[0], strict=True)
    ]
    return ModelReport("Readmission", model.certificate_, named, forecast=cost_forecast(model, 4_000, 13))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    made = {"fitted": fitted(), "plain": samples.plain(), "hard": samples.hard(), "not_private": samples.not_private()}
    made["effects"] = samples.plain(effects=samples.effects())
    made["curves"] = samples.plain(effects=samples.bent_effects("relative risk ratio", ("home", "ward")))
    for name, report in made.items():
        (folder / f"{name}.html").write_text(report.html(), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def browser():
    running = Browser()
    yield running
    running.close()


@pytest.mark.few(1)
@covering(("name", ["fitted", "plain", "hard", "not_private", "effects", "curves"]), ("width", [360, 1280]))
def test_nothing_is_logged_fetched_cut_off_or_empty(browser, pages, name, width):
    browser.said.clear()
    browser.show(pages / f"{name}.html", width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.body.scrollWidth") <= width
    sizes = browser.run(f"{VISIBLE}.map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])")
    assert len(sizes) >= 5
    assert all(w > 0 and h > 0 for w, h in sizes)
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert browser.run("JSON.parse(document.getElementById('certificate').textContent).format") == 1
    assert browser.said == []


@pytest.mark.whole
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["effects", "curves"])
def test_effects_are_not_cut(browser, pages, name, width):
    """Neither the plot nor the table has to be scrolled; each number lies within the page."""
    browser.show(pages / f"{name}.html", width=width)
    titles = "[...document.querySelectorAll('.panel .title')].map(e => e.getBoundingClientRect().right)"
    assert all(right <= width for right in browser.run(titles))
    within = "[...document.querySelectorAll('#effects ~ .forest .value, [aria-label^=Effects] td')]"
    within += ".filter(e => e.textContent)"
    ends = browser.run(f"{within}.map(e => e.getBoundingClientRect()).map(b => [b.left, b.right])")
    assert len(ends) >= 15
    assert all(0 <= left < right <= width for left, right in ends)
    shown = "(e => [e.scrollWidth, e.clientWidth])(document.querySelector('[aria-label^=Effects]'))"
    whole, seen = browser.run(shown)
    assert whole <= seen


def test_a_page_that_fetches_and_runs_is_noticed(browser, pages, tmp_path):
    """The control: what the test above looks for would be found."""
    bad = (
        (pages / "plain.html")
        .read_text()
        .replace("</main>", "<img src='http://127.0.0.1:9/x'><script>1</script></main>")
    )
    wide = bad.replace("</main>", "<div style='width:900px'>x</div></main>")
    (tmp_path / "bad.html").write_text(wide)
    browser.said.clear()
    browser.show(tmp_path / "bad.html", width=360)
    assert any("Content Security Policy" in str(said) for said in browser.said)
    assert browser.run("document.documentElement.scrollWidth") > 360
    browser.said.clear()


def test_formulas_are_drawn_as_formulas(browser, pages):
    browser.show(pages / "plain.html")
    assert browser.run("getComputedStyle(document.querySelector('math')).display") == "block math"
    tall = "(() => { const f = document.querySelector('mfrac').getBoundingClientRect(); return f.height })()"
    assert browser.run(tall) > 30
    assert browser.run("getComputedStyle(document.querySelector('annotation')).display") == "none"
