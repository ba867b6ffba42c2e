"""Hostile files: no sign that commands a terminal reaches it from a certificate, a schema, a model or a file's name."""

import ast
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

import discreet
from discreet import DPLogisticRegression
from discreet.cli import terminal
from discreet.cli.terminal import OneLineErrors, escaped, escaped_streams, stdout_for_data
from discreet.schema.schema import quoted
from discreet.solvers import GradientDescent
from tests.cli.tables import SCHEMA, write_table

HOSTILE = {
    "clear": "\x1b[2J\x1b[H",
    "up": "\x1b[1A\x1b[2K",
    "hide": "\x1b[8m",
    "title": "\x1b]0;title\x07",
    "link": "\x1b]8;;http://example.org\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;YQ==\x07",
    "device": "\x1bP$q\x1b\\",
    "bell": "\x07",
    "backspace": "private\x08\x08",
    "return": "bad\rgood",
    "delete": "\x7f",
    "8 bit CSI": "\x9b2J",
    "8 bit OSC": "\x9d0;x\x9c",
    "right to left": "\u202etxt.exe\u2066",
    "not seen": "a\u200bb\ufeff\u2060\U000e0041",
    "lines": "\u2028\u2029\x85\x0b\x0c",
}
ALL = "".join(HOSTILE.values())
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
OWN_COLORS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Files with hostile texts wherever a text may stand."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    X, classes = rng.uniform(-1, 1, (200, 2)), (f"no{ALL}", f"yes{ALL}")
    model = DPLogisticRegression(1.0, bounds=1.0, classes=classes, solver=GradientDescent(n_steps=2))
    model.fit(X, np.array(classes, dtype=object)[rng.integers(0, 2, 200)])
    model.feature_names_in_ = np.array([f"a{ALL}", f"b{ALL}"], dtype=object)
    model.save(folder / "model")
    stored = json.loads(model.certificate_.to_json())
    for name in ("model", "library_version", "entropy"):
        stored[name] = f"{stored[name]}{ALL}"
    stored["notes"] = [ALL, *HOSTILE.values()]
    stored["solver"] = {f"{name}{ALL}": f"{value}{ALL}" for name, value in stored["solver"].items()}
    stored["assumed_public"] |= {ALL: ALL, "schema": {"columns": {ALL: {ALL: [ALL] * 20}}}}
    stored["ledger"] = {"ledger": ALL, "dataset": ALL, "entry": 1, "head": ALL}
    (folder / "certificate.json").write_text(json.dumps(stored))
    (folder / "report.html").write_text(
        f'<script type="application/json" id="certificate">{json.dumps(stored)}</script>'
    )
    stored["not_private"] = [ALL]
    stored["stamp"] = f"NOT PRIVATE ({ALL})"
    (folder / "refused.json").write_text(json.dumps(stored))
    (folder / "broken.json").write_text(json.dumps(stored | {ALL: 1}))
    name, hostile = "age" + ALL.replace("\r", "") + ".", quoted(ALL)
    text = SCHEMA.replace("[columns.age]", f"[columns.{quoted(name)}]").replace('"blue"', f'"blue", {hostile}')
    (folder / "schema.toml").write_text(f'separator = ","\n{text}')
    (folder / "unready.toml").write_text(f"[columns.{hostile}]\n")
    (folder / "strange.toml").write_text(f"{hostile} = 1\n")
    (folder / "twice.toml").write_text(f"ignore = [{hostile}, {hostile}]\n")
    write_table(folder / "table.csv", 60)
    header, rest = (folder / "table.csv").read_text().split("\n", 1)
    (folder / "hostile.csv").write_text(header.replace("age", '"' + name + '"') + "\n" + rest)
    (folder / f"{HOSTILE['link'].replace('/', '')}{HOSTILE['right to left']}.json").write_text("{}")
    return folder


COMMANDS = [
    *(["inspect", file] for file in ("certificate.json", "refused.json", "broken.json", "report.html", "model")),
    *(["inspect", file, "--json"] for file in ("certificate.json", "refused.json", "model")),
    *(["verify", file] for file in ("certificate.json", "refused.json", "broken.json", "report.html", "model")),
    *(["verify", file, "--json"] for file in ("certificate.json", "refused.json", "report.html")),
    *(["inspect", "NAME"], ["verify", "NAME"], ["predict", "NAME", "NAME"], ["score", "NAME", "NAME", "--private"]),
    *(["schema", "check", file] for file in ("schema.toml", "unready.toml", "strange.toml", "twice.toml", "NAME")),
    *(["schema", "check", "schema.toml", file] for file in ("table.csv", "hostile.csv", "NAME")),
    *(["schema", "check", file, "--json"] for file in ("schema.toml", "unready.toml")),
    *(["schema", "new", "hostile.csv", "--out", "-"], ["schema", "new", "NAME"], ["schema", "new", "NAME", "x", ALL]),
    ["fit", "hostile.csv", "--schema", "schema.toml", "--dry-run"],
    ["fit", "hostile.csv", "--schema", "schema.toml", "--dry-run", "--json"],
    ["fit", "table.csv", "--schema", "schema.toml", "--public", "--no-report"],
    ["fit", "hostile.csv", "--schema", "schema.toml", "--public", "--no-report", "--out", f"fitted{HOSTILE['bell']}"],
    ["fit", "table.csv", "--schema", "unready.toml", "--public"],
    ["price", "--schema", "schema.toml", "--rows", "1000"],
    ["price", "--schema", "strange.toml", "--rows", "1000"],
    *([f"--{ALL}"], [ALL], ["inspect", f"--{ALL}"], ["inspect", "certificate.json", ALL], ["fit", "--model", ALL]),
]


@pytest.mark.few(12)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: ascii(" ".join(command))[:60])
def test_no_command_shows_a_raw_sign(run, place, monkeypatch, command):
    monkeypatch.chdir(place)
    named = next(path.name for path in place.iterdir() if path.name.startswith("\x1b]8"))
    result = run(*(named if word == "NAME" else word for word in command))
    assert result.exit_code in (0, 1, 2), result.output
    shown = result.stdout + result.stderr
    assert shown
    assert RAW.findall(shown) == []
    if "--json" in command and result.exit_code < 2:
        json.loads(result.stdout)
    if command[0] == "inspect" and result.exit_code == 0:
        assert "\\u001b" in shown  # what was there is still told


class Stdout(io.TextIOWrapper):
    """A stream in memory that says of itself whether it is a terminal."""

    def __init__(self, terminal):
        super().__init__(io.BytesIO(), encoding="utf-8")
        self.isatty = lambda: terminal


@pytest.mark.parametrize("terminal", [False, True])
def test_a_table_that_is_printed_is_escaped_on_a_terminal_only(monkeypatch, terminal):
    """Into a pipe, data are written as they are."""
    stream = Stdout(terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    table = pa.table({"prediction": [ALL]})
    with escaped_streams(), pyarrow.csv.CSVWriter(stdout_for_data(), table.schema) as writer:
        writer.write_table(table)
    stream.flush()
    found = stream.buffer.getvalue().decode()
    assert found == '"prediction"\n"' + (escaped(ALL) if terminal else ALL) + '"\n'


@pytest.mark.few(1)
@pytest.mark.parametrize("command", [["inspect", "certificate.json"], ["inspect", "model"], ["verify", "refused.json"]])
def test_a_terminal_gets_colors_of_our_own_only(place, command):
    ours, theirs = pty.openpty()
    code = f"import sys; sys.argv = ['discreet', *{command!r}]; from discreet.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1]), "TERM": "xterm-256color"}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=theirs, stderr=theirs, stdin=theirs, env=environment, cwd=place
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how a terminal tells its end
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    assert child.wait() in (0, 1)
    text = OWN_COLORS.sub("", shown.decode().replace("\r\n", "\n"))
    assert "\\u001b" in text
    assert RAW.findall(text) == []


def test_nothing_prints_past_the_streams():
    """rich's own console would: every command takes the one that escapes."""
    for file in Path(discreet.__file__).parent.joinpath("cli").glob("*.py"):
        if file.name == "terminal.py":
            continue
        names = [
            f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in node.names
        ]
        assert "rich.console.Console" not in names, file
        assert "sys.__stdout__" not in file.read_text(), file
        assert ".buffer" not in file.read_text(), file


@pytest.mark.parametrize(
    "command",
    [
        ["schema", "check", "schema.toml", "hostile.csv"],
        ["fit", "hostile.csv", "--schema", "schema.toml", "--dry-run"],
        ["price", "--schema", "schema.toml", "--rows", "1000"],
        ["verify", "certificate.json"],
    ],
    ids=" ".join,
)
def test_the_hostile_files_are_read(run, place, monkeypatch, command):
    """The tests above would prove little if all of them were refused."""
    monkeypatch.chdir(place)
    assert run(*command).exit_code == 0


def test_a_signal_that_a_library_made_an_error_of_is_a_signal_all_the_same(monkeypatch):
    """Imports of compiled modules replace a KeyboardInterrupt by an ImportError of their own."""

    def command() -> None:
        raise ImportError("numpy failed to import")

    group = OneLineErrors(commands={"run": click.Command("run", callback=command)})
    assert CliRunner().invoke(group, ["run"]).exit_code == 3
    monkeypatch.setattr(terminal, "HEARD", [signal.SIGINT])
    ended = CliRunner().invoke(group, ["run"])
    assert (ended.exit_code, ended.output) == (130, "discreet: interrupted\n")
