import errno
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from typer.main import get_command

import discreet
from discreet.cli.app import app
from discreet.cli.terminal import INTERNAL, INTERRUPTED, UNSERVED, OneLineErrors
from discreet.errors import Unsupported

COMMANDS = (
    *("demo", "schema", "fit", "predict", "score", "inspect", "verify", "price", "forecast", "tune"),
    *("audit", "budget", "selftest", "version"),
)


def every_command():
    """All commands with the words that lead to them, groups too."""
    left = [((), get_command(app))]
    while left:
        words, command = left.pop()
        yield words, command
        left += [((*words, name), part) for name, part in getattr(command, "commands", {}).items()]


EVERY = dict(every_command())


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert len(result.stdout.split()) > 25
    assert "[bold]" not in result.stdout


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_names_every_option(run, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    shown = run(*words, "--help").stdout
    for parameter in EVERY[words].params:
        for option in parameter.opts:
            assert option in shown or not option.startswith("--"), option
    if "as_json" in [parameter.name for parameter in EVERY[words].params]:
        assert "--json" in shown


def test_shells_can_complete(run, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda *_: ("bash", "/bin/bash"))  # make runs its lines in sh
    assert "--install-completion" in run("--help").stdout
    shown = run("--show-completion", "bash")
    assert shown.exit_code == 0
    assert "_DISCREET_COMPLETE=complete_bash" in shown.stdout
    monkeypatch.setenv("_DISCREET_COMPLETE", "complete_bash")
    for typed, wanted in (
        ("discreet f", {"fit", "forecast"}),
        ("discreet schema ", {"new", "check", "edit"}),
        ("discreet fit --ne", {"--neighbors"}),
        ("discreet fit --neighbors ", {"replace_one", "zero_out", "add_remove"}),
        ("discreet fit --model l", {"logistic", "linear", "lasso"}),
    ):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
        assert set(run().stdout.split()) == wanted, typed


def test_help_imports_nothing_heavy():
    heavy = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "dp_accounting", "pandas", "pyarrow")
    code = (
        "import sys\nfrom discreet.cli import main\nsys.argv = ['discreet', '--help']\n"
        f"try:\n    main()\nexcept SystemExit:\n    pass\nprint([name for name in {heavy} if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_foreign_error_shows_neither_traceback_nor_message(run, monkeypatch, certificate_file):
    def explode(path):
        raise ValueError("could not convert 'Jane Doe' to float")

    monkeypatch.setattr("discreet.cli.options.read_contents", explode)
    result = run("inspect", certificate_file)
    assert result.exit_code == INTERNAL
    assert "unexpected ValueError in discreet.cli.inspect" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Jane" not in result.output
    assert "Traceback" not in result.output


def test_a_closed_pipe_is_left_to_typer(monkeypatch):
    def closed(self, ctx):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("typer.core.TyperGroup.invoke", closed)
    with pytest.raises(BrokenPipeError):
        OneLineErrors(name="discreet").invoke(types.SimpleNamespace())


@pytest.mark.parametrize(("error", "number"), [("KeyboardInterrupt", "SIGINT"), ("SystemExit", "SIGTERM")])
def test_a_signal_that_a_callback_swallowed_is_heard(error, number):
    code = f"""
import functools, signal, sys, time
from discreet.cli import heard_again

class Swallows:
    def __del__(self):
        raise {error}

def end(*_):
    print("heard")
    sys.exit(0)

signal.signal(signal.{number}, end)
sys.unraisablehook = functools.partial(heard_again, sys.unraisablehook)
Swallows()
time.sleep(30)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=25, check=False)
    assert (done.stdout, done.stderr) == ("heard\n", "")


def test_what_was_charged_is_printed_with_the_error(run, monkeypatch):
    error = Unsupported("no model")
    error.add_note("epsilon = 1, delta = 0 was charged to 'census' for this (entry 2), and stays charged")
    for raised, code in ((error, UNSERVED), (KeyboardInterrupt(), INTERRUPTED), (KeyError("secret"), INTERNAL)):
        if raised is not error:
            raised.add_note(error.__notes__[0])

        def fail(*_, raised=raised, **__):
            raise raised

        monkeypatch.setattr("discreet.schema.schema.Schema.load", fail)
        result = run("tune", "table.csv", "--schema", "schema.toml", "--settings", "tune.toml")
        assert result.exit_code == code
        assert result.stderr.strip().endswith(error.__notes__[0])
        assert "secret" not in result.stderr
