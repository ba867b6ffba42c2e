"""Ratios of two runs: what moved is said, what their spreads explain is not."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.measures import stored_ratios
from benchmarks.measures.stored_ratios import TOLERANCE, moved, store
from benchmarks.measures.timing_rows import Row, at_least
from benchmarks.pages import speed as speed_page
from benchmarks.speed import noise


def groups(ratio, spread=1.0, *, higher=False, what="fit, against a peer"):
    row = Row(what, "ms", ratio, 1.0, ratio, at_least(1.0) if higher else None, spread)
    machine = {"cpu": "a processor", "cores": 2}
    return {"fit": {"machine": machine, "load": [0.0, 0.1], "rows": [row.as_dict()]}}


@pytest.mark.parametrize("higher", [False, True])
def test_a_ratio_that_moved_is_reported_with_its_direction(higher):
    compared, changes = moved(groups(2.0, higher=higher), groups(3.0, higher=higher))
    assert compared == 1
    assert [change.is_slower for change in changes] == [not higher]
    assert ("faster by 1.50" if higher else "slower by 1.50") in str(changes[0])


def test_what_spreads_explain_has_not_moved():
    assert moved(groups(2.0, 1.2), groups(2.0 * TOLERANCE * 1.2 * 1.1 * 0.99, 1.1)) == (1, [])
    assert moved(groups(2.0, 1.2), groups(2.0 * TOLERANCE * 1.2 * 1.1 * 1.01, 1.1))[1][0].is_slower


def test_other_rows_and_rows_without_a_peer_are_not_compared():
    alone = groups(1.0)
    alone["fit"]["rows"][0]["ratio"] = None
    assert moved(groups(2.0), groups(3.0, what="another size")) == moved(alone, groups(3.0)) == (0, [])


def test_storing_some_groups_keeps_the_others(tmp_path):
    file = tmp_path / "ratios.json"
    store(groups(2.0), file)
    store({"gradient": groups(3.0)["fit"]}, file)
    assert set(stored_ratios.load(file)) == {"fit", "gradient"}


def run(monkeypatch, tmp_path, stored, *words):
    monkeypatch.setattr(noise, "run", lambda rounds: iter([Row("a, against b", "ms", 3.0, 1.0, 3.0, None, 1.0)]))
    file = tmp_path / "ratios.json"
    file.write_text(json.dumps(stored))
    monkeypatch.setattr(stored_ratios.load, "__defaults__", (file,))
    monkeypatch.setattr(stored_ratios.store, "__defaults__", (file,))
    return CliRunner().invoke(app, ["speed", "noise", *words]), json.loads(file.read_text())


@pytest.mark.parametrize(("ratio", "code", "said"), [(2.0, 1, "slower by 1.50"), (3.0, 0, "none has moved")])
def test_the_command_fails_where_a_ratio_is_slower(monkeypatch, tmp_path, ratio, code, said):
    done, kept = run(monkeypatch, tmp_path, groups(ratio, what="a, against b"), "--check")
    assert (done.exit_code, said in done.output) == (code, True), done.output
    assert list(kept) == ["fit"]


def test_the_command_stores_its_ratios_and_writes_the_page(monkeypatch, tmp_path):
    page = tmp_path / "speed.md"
    page.write_text("<!-- speed: generated -->\n<!-- speed: end -->\n")
    done, kept = run(monkeypatch, tmp_path, {}, "--store", "--page", str(page))
    assert done.exit_code == 0, done.output
    assert kept["noise"]["rows"][0]["ratio"] == 3.0
    assert "| a, against b | 3 × |" in page.read_text()
    assert speed_page.markdown(kept) in page.read_text()
