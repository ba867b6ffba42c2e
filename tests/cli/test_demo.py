import base64
import json
import re
import sys

import pytest

import discreet
from discreet.accounting.certificate import Certificate

FILES = {"model.discreet", "certificate.json", "results.json", "report.html", "accuracy.png"}


@pytest.fixture
def shown(run, tmp_path):
    result = run("demo", "--rows", 800, "--repeats", 2, "--out", tmp_path / "deep" / "demo")
    assert result.exit_code == 0, result.output
    return result, tmp_path / "deep" / "demo"


def test_writes_what_it_says(shown, run):
    result, folder = shown
    assert {path.name for path in folder.iterdir()} == FILES
    text = " ".join(result.stdout.split())
    assert all(name in text for name in FILES)
    assert "Privacy certificate: PRIVATE" in text
    for name in ("model.discreet", "certificate.json"):
        assert run("verify", folder / name).exit_code == 0
    certificate = Certificate.from_json((folder / "certificate.json").read_text())
    assert certificate == discreet.load(folder / "model.discreet").certificate_
    assert certificate.epsilon == 1.0


def test_says_what_is_public_and_what_was_spent(shown):
    result, folder = shown
    text = " ".join(result.stdout.split())
    assert "200 held-out rows that are declared public" in text
    assert "cost epsilon = 37.7 together" in text  # 2 x (0.05 + ... + 10)
    assert "synthetic" in text
    results = json.loads((folder / "results.json").read_text())
    assert len(results["sweep"]) == len(results["epsilons"]) == 8
    assert all(len(row) == 2 for row in results["sweep"])


def test_the_page_needs_no_network(shown):
    _, folder = shown
    page = (folder / "report.html").read_text()
    drawn = [base64.b64decode(part).decode() for part in re.findall(r"base64,([A-Za-z0-9+/=]+)", page)]
    assert len(drawn) == 2  # light and dark
    for text in (page, *drawn):
        addresses = set(re.findall(r"https?://[^\"'\s<>)]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, never fetched
        assert not re.search(r"<script|<link|@import|url\((?!#)", text)
        assert not re.search(r"(?:href|src|srcset)=\"(?!#|data:image/svg)", text)
    assert "prefers-color-scheme: dark" in page


def test_works_without_matplotlib(run, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--rows", 400, "--repeats", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "discreet[plot]" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"accuracy.png"}
    assert "<img" not in (tmp_path / "report.html").read_text()


def test_a_file_in_the_way_is_one_line(run, tmp_path):
    (tmp_path / "taken").write_text("")
    result = run("demo", "--rows", 400, "--out", tmp_path / "taken")
    assert result.exit_code == 2
    assert result.stderr.strip().endswith("file exists")
