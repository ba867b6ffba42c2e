"""Ratios of two runs: what moved is said, what their spreads explain is not."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.measures import stored_ratios
from benchmarks.measures.stored_ratios import moved
from benchmarks.measures.timing_rows import Row, at_least
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
