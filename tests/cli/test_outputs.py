"""Every file that a command writes is new: what is there already, be it a link, is neither replaced nor followed."""

import inspect

import pytest
import typer

from discreet.cli.app import app
from discreet.cli.options import new_file, write_new
from discreet.cli.terminal import Refused
from tests.cli.tables import LEDGER, hidden
from tests.covering import covering

FIT = ("fit", "table.csv", "--schema", "schema.toml", *LEDGER, "--no-report", "--out")
OUTPUTS = {
    "audit gradient --figure": ("audit", "gradient", "--runs", 50, "--figure", "new.png"),
    "audit transcript --figure": ("audit", "transcript", "--runs", 50, "--solver", "gd", "--figure", "new.png"),
    "audit model --figure": ("audit", "model", "--runs", 50, "--solver", "gd", "--figure", "new.png"),
    "audit one-run --figure": ("audit", "one-run", "--figure", "new.png"),
    "budget export file": ("budget", "export", "--ledger", "budget.db", "new.jsonl"),
    "certificate registry --out": ("certificate", "registry", "model", "--out", "new.yaml"),
    "demo --out": ("demo", "--rows", 2000, "--out", "new"),
    "effects --plot": ("effects", "model", "--plot", "new.png"),
    "export --onnx": ("export", "model", "--onnx", "new.onnx"),
    "export --sklearn": ("export", "model", "--sklearn", "new.joblib"),
    "fit --out": (*FIT, "new"),
    "forecast --plot": ("forecast", "-n", 300, "-p", 2, "--seeds", 2, "--plot", "new.png"),
    "predict --out": ("predict", "model", "table.csv", "--out", "new.csv"),
    "report --out": ("report", "model", "--out", "new.html"),
    "schema new --out": ("schema", "new", "table.csv", "--out", "new.toml"),
    "tune --out": ("tune", "table.csv", "--schema", "schema.toml", "--settings", "tune.toml", *LEDGER, "--out", "new"),
}
"""What a command writes, and how it is asked to. The last word is the place."""
INPUTS = {
    *("certificate registry model", "export model", "predict model", "report model", "score model", "inspect file"),
    *("fit table", "predict table", "schema check table", "schema new table", "score table"),
    *("tune table", "fit --schema", "forecast --schema", "price --schema", "tune --schema", "tune --settings"),
    *("schema check file", "schema new --codebook", "verify file", "budget verify --certificate", "report --score"),
    *("fit --start", "fit --scratch", "effects models"),
}
"""What is read, and a folder for scratch files, whose names are drawn."""
EDITED = {"schema edit file"}
"""What a command is there to change."""
SERVED = {
    *("serve run file", "serve run --out", "serve check --service", "serve allocate --service", "serve backup folder"),
    *("serve backup --service", "serve token new --service", "serve token list --service"),
    *("serve token revoke --service",),
}
"""A service's file, the demo's own folder and a backup, which is never written over: tests/serve."""


def paths(command, name=""):
    """Every option and argument of every command that is a path."""
    if hasattr(command, "commands"):
        for part, inner in command.commands.items():
            yield from paths(inner, f"{name} {part}".strip())
        return
    declared = inspect.signature(command.callback).parameters
    for option in command.params:
        if option.name in declared and "Path" in str(declared[option.name].annotation):
            yield f"{name} {max(option.opts, key=len)}"


def test_every_path_is_known_to_be_read_or_written():
    """A new option that is a path has to be listed here, and one that is written to is tried below."""
    assert sorted(paths(typer.main.get_command(app))) == sorted({*INPUTS, *OUTPUTS, *EDITED, *SERVED})


@pytest.fixture
def there(place):
    """What is at a place already: a file, a link to a file, to nothing or to a folder; and what must not change."""
    (place / "tune.toml").write_text("[candidates]\nalpha = [0.1]\n")
    (place / "victim").write_text("mine")
    (place / "folder").mkdir()
    (place / "folder" / "mine").write_text("mine")

    def make(kind, path):
        if kind == "file":
            path.write_text("mine")
        else:
            path.symlink_to({"link": "victim", "link to nothing": "nothing", "link to a folder": "folder"}[kind])
        return path

    return make


@covering(("option", OUTPUTS), ("kind", ["file", "link", "link to nothing", "link to a folder"]))
def test_what_is_there_is_neither_replaced_nor_followed(option, kind, place, there, run):
    *_, last = OUTPUTS[option]
    path = there(kind, place / last)
    before = {name: name.lstat().st_mtime_ns for name in place.iterdir() if name.suffix != ".db"}
    result = run(*OUTPUTS[option])
    assert result.exit_code == 2, result.output
    assert "already" in result.stderr
    assert last in result.stderr
    assert {name: name.lstat().st_mtime_ns for name in before} == before
    assert {name.name for name in place.iterdir()} == {name.name for name in before} | {"budget.db"}
    assert path.is_symlink() == (kind != "file")
    assert [file.read_text() for file in (place / "victim", place / "folder" / "mine")] == ["mine", "mine"]


@pytest.mark.parametrize("option", ["forecast --plot", "export --sklearn", "schema new --out", "budget export file"])
def test_a_new_place_is_written(option, place, there, ok):
    ok(*OUTPUTS[option])
    assert (place / OUTPUTS[option][-1]).stat().st_size > 0
    assert hidden(place) == []


def test_what_comes_in_between_is_not_replaced(tmp_path):
    place = tmp_path / "new.txt"

    def write():
        with new_file(place) as made:
            made.write_text("ours")
            place.write_text("theirs")

    with pytest.raises(Refused, match="already"):
        write()
    assert place.read_text() == "theirs"
    assert hidden(tmp_path) == []


def test_a_drive_without_links(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError

    monkeypatch.setattr("os.link", no_links)
    write_new(tmp_path / "new.txt", "ours")
    assert (tmp_path / "new.txt").read_text() == "ours"
    (tmp_path / "other.txt").symlink_to("nowhere")
    with pytest.raises(Refused, match="already"):
        write_new(tmp_path / "other.txt", "ours")
    assert not (tmp_path / "nowhere").exists()
