"""``discreet report``: scores that were released later come onto the page, and nothing else is read."""

import json

import pytest

from tests.cli.tables import LEDGER, MARK, charges

SCORE = ("score", "model", "table.csv", "--private", "-e", 5, *LEDGER, "--json")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--metric", "calibration"), "Calibration error, in parts"),
        (("--metric", "confusion"), "low predicted as high"),
        (("--by", "color"), "color = red"),
        (("--by", "smoker", "--metric", "brier"), "smoker"),
    ],
)
def test_a_score_comes_onto_the_page(ok, place, options, shown):
    found = ok(*SCORE, *options).stdout
    (place / "score.json").write_text(found)
    assert json.loads(found)["parts"]
    before = charges()
    ok("report", "model", "--score", "score.json", "--out", "page.html")
    page = (place / "page.html").read_text()
    assert shown in page
    assert "Hazards and answers" in page
    assert MARK not in page
    assert charges() == before
    ok("verify", "page.html")


def test_without_scores_it_is_the_page_of_the_model(ok, refused, place):
    ok("report", "model", "--title", "For the board")
    assert "For the board" in (place / "report.html").read_text()
    assert "there is a file already" in refused("report", "model")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"metric": "accuracy"}', "[" * 100_000])
def test_another_file_is_refused(refused, place, content):
    (place / "score.json").write_text(content)
    assert "not a score" in refused("report", "model", "--score", "score.json")


def test_a_group_must_be_a_declared_column_of_few_values(refused, place):
    for column in ("age", "nothing"):
        assert "category or a yes/no column" in refused(*SCORE, "--by", column)
    assert "not taken by group" in refused(*SCORE, "--by", "color", "--metric", "auc")
