import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet.cli.terminal import INTERNAL, INTERRUPTED, UNSERVED
from discreet.errors import Unsupported


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
    assert "unexpected ValueError in discreet.cli.model" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Jane" not in result.output
    assert "Traceback" not in result.output


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
