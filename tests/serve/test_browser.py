"""The console in a real browser: Debian's Chromium, headless. Skipped where there is none."""

import time

import pytest

from discreet.serve.app import running
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from tests.report.browser import CHROMIUM, Browser
from tests.serve.services import write_files

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")
WIDTHS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


class Surfer:
    """One browser at one service."""

    def __init__(self, url):
        self.url, self.browser = url, Browser(urls=(url,))

    def open(self, path, width=1280, scheme="light"):
        self.browser.go(self.url + path, width=width, scheme=scheme)

    def run(self, script):
        return self.browser.run(script)

    def wait(self, script, seconds=60.0):
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, self.run("document.body.innerText")
            time.sleep(0.1)

    def click(self, selector, expected):
        self.run(f"document.querySelector({selector!r}).click()")
        self.wait(
            f"document.readyState === 'complete' && document.querySelector('h1')?.innerText.includes({expected!r})"
        )

    def enter(self, token):
        self.open("/login")
        self.run(f"document.querySelector('#token').value = {token!r}")
        self.click("main button", "Data sets")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = write_files(tmp_path_factory.mktemp("browser"), limits="approve_above = 1.0")
    accounts = Service(Settings.load(path)).accounts
    tokens = {name: accounts.new(name, role) for name, role in {"olga": "owner", "anna": "analyst"}.items()}
    accounts.allocate("anna", "patients", 2.0)
    with running(path) as url:
        surfer = Surfer(url)
        yield surfer, tokens
        surfer.browser.close()


@pytest.mark.thorough
def test_a_visit(place):
    """Log in, look at a price, fit, watch, open the report; then the owner looks, verifies, and revokes the token."""
    surfer, tokens = place
    surfer.browser.said.clear()
    surfer.enter(tokens["anna"])
    surfer.open("/datasets/patients")
    surfer.run("document.querySelector('#epsilon').value = '0.5'")
    surfer.click("main form button", "Price of a fit")
    assert "0.5" in surfer.run("document.querySelector('.facts').innerText")
    surfer.click("main form button", "Job")
    surfer.wait("document.querySelector('.state')?.innerText === 'done'")  # the page watches by itself
    surfer.wait("document.querySelector('iframe') !== null")
    job = surfer.run("location.pathname")
    assert surfer.run("document.querySelector('iframe').getAttribute('sandbox')") == ""
    for page in ("/", "/datasets/patients", "/jobs", job, "/history", "/docs"):
        fits(surfer, page)
    surfer.click(".leave button", "Log in")
    surfer.enter(tokens["olga"])
    for page in ("/", "/people", "/history", job):
        fits(surfer, page)
    surfer.open("/history")
    surfer.click("main form button", "Verified")
    surfer.open("/people")
    surfer.run(
        "[...document.querySelectorAll('tr')].find(r => r.innerText.includes('anna')).querySelector('button').click()"
    )
    surfer.wait("document.querySelectorAll('.state.revoked').length === 1")
    surfer.click(".leave button", "Log in")
    surfer.run(f"document.querySelector('#token').value = {tokens['anna']!r}")
    surfer.run("document.querySelector('main button').click()")
    surfer.wait("document.querySelector('[role=alert]') !== null")
    complaints = [one for one in surfer.browser.said if "401" not in str(one)]  # the log-in that was refused
    assert complaints == []


def fits(surfer, page):
    """Nothing is wider than the screen, in light and dark, and keyboards reach a visible focus."""
    for width, scheme in WIDTHS:
        surfer.open(page, width, scheme)
        assert surfer.run("document.documentElement.scrollWidth") <= width, (page, width)
        fields = "[...document.querySelectorAll('input:not([type=hidden]):not([hidden]), select, textarea')]"
        assert surfer.run(f"{fields}.every(e => e.labels.length)")
        dark = surfer.run("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(20, 24, 29)") == (scheme == "dark")
