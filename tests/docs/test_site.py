"""The built pages: complete, and nothing is fetched from a network."""

import os
import re
import subprocess
import sys
import time

import pytest

from tests.covering import covering
from tests.docs.pages import ROOT
from tests.report.browser import CHROMIUM, Browser

pytest.importorskip("material")

SHOWN = ["index.html", "tutorials/first-model.html", "how-to/epsilon.html", "reference/api/estimators.html", "cli.html"]
FETCHED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"(?:https?:)?//|<link[^>]*\shref=\"(?:https?:)?//")

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    running = Browser()
    yield running
    running.close()


def test_no_page_loads_anything_from_a_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if FETCHED.search(page.read_text(encoding="utf-8"))] == []
    assert FETCHED.search('<script defer src="https://unpkg.com/x"></script>')  # the control


def test_nothing_but_the_site_is_in_it(site):
    assert [path.name for path in site.rglob("*") if path.suffix in (".py", ".pyc") or path.name == "__pycache__"] == []


def test_formulas_and_parameters_are_there(site):
    landing = (site / "index.html").read_text(encoding="utf-8")
    assert "<math" in landing
    assert "arithmatex" not in landing
    estimators = (site / "reference" / "api" / "estimators.html").read_text(encoding="utf-8")
    listed = (ROOT / "docs" / "reference" / "api" / "estimators.md").read_text(encoding="utf-8").count(".DP")
    assert estimators.count("What is publicly known of the features") == listed > 10


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        ("f''", "<mi>f</mi><mi>&#x02033;</mi>"),
        ("M'_j", "<msub><mrow><mi>M</mi><mi>&#x02032;</mi></mrow><mi>j</mi></msub>"),
        ("M'^{-1}", "<msup><mrow><mi>M</mi><mi>&#x02032;</mi></mrow><mrow>"),
    ],
)
def test_primes_stand_next_to_their_letters(tex, shown):
    from docs.extensions.mathml import mathml

    assert shown in mathml(tex, "inline")


def test_pages_need_no_generator_of_sites():
    """Python-Markdown alone renders every page, with formulas and tables of the program: the site can move."""
    markdown, yaml = pytest.importorskip("markdown"), pytest.importorskip("yaml")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert "hooks" not in config
    named = [one if isinstance(one, dict) else {one: {}} for one in config["markdown_extensions"]]
    settings = {name: options for one in named for name, options in one.items()}
    writer = markdown.Markdown(extensions=list(settings), extension_configs=settings)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        shown = writer.reset().convert(page.read_text(encoding="utf-8"))
        assert "arithmatex" not in shown, page.name
        assert not re.search(r"<!-- (forms|settings|names|signal|commands) -->|@discreet\.", shown), page.name


def test_no_star_of_a_formula_became_emphasis(site):
    begun_within = re.compile(r"[\w)\]|‖]<em>|<em>\s*[‖|),.²]")
    found = {page.name: hit for page in site.rglob("*.html") if (hit := begun_within.search(page.read_text("utf-8")))}
    assert found == {}
    assert begun_within.search("‖w<em>‖ and ‖w</em>‖")  # the control
    for solver in ("gd", "cd", "gcd", "sgd", "output", "objective", "exponential"):
        assert "<math" in (site / "solvers" / f"{solver}.html").read_text(encoding="utf-8")


def test_every_command_is_in_the_reference(site):
    from discreet.cli.app import app

    page = (site / "cli.html").read_text(encoding="utf-8")
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert [name for name in names if f"discreet {name}" not in page] == []


@covering(("page", SHOWN), ("width", [360, 1280]), ("scheme", ["light", "dark"]))
def test_pages_fit_the_screen_and_log_nothing(browser, site, page, width, scheme):
    browser.said.clear()
    browser.show(site / page, width=width, scheme=scheme)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.body.scrollWidth") <= width
    color = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (color == "rgb(255, 255, 255)") is (scheme == "light")
    assert browser.said == []


def test_the_search_works_from_disk(browser, site):
    browser.said.clear()
    browser.show(site / "index.html")
    found = "document.querySelectorAll('.md-search-result__item').length"
    typed = "(() => { const box = document.querySelector('[data-md-component=search-query]'); box.focus();"
    browser.run(
        typed + " box.value = 'epsilon'; box.dispatchEvent(new Event('input', {bubbles: true}));"
        " box.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true})); return 1 })()"
    )
    deadline = time.monotonic() + 30
    while browser.run(found) == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert browser.run(found) > 3
    assert browser.said == []
