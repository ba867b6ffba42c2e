import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet.models.persist import UnreadableModel

HIDDEN = "import sys\nsys.modules['pyarrow'] = None\n"
SOURCES = str(Path(discreet.__file__).parents[1])


def ran(code, *arguments):
    settings = {"capture_output": True, "text": True, "env": {**os.environ, "PYTHONPATH": SOURCES}}
    return subprocess.run([sys.executable, "-c", HIDDEN + code, *arguments], **settings)


COMMANDS = (("schema", "check", "schema.toml"), ("fit", "t.csv", "-s", "schema.toml"), ("schema", "new", "t.csv"))
REMEDY = 'tables need pyarrow: pip install "discreet[tables]"\n'
LOOK = """
import discreet
discreet.DPLogisticRegression
try:
    discreet.Schema
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("words", COMMANDS)
def test_what_to_install_is_said_on_the_command_line(words):
    done = ran("from discreet.cli import main\nmain()", *words)
    assert (done.returncode, done.stderr) == (2, f"discreet: {REMEDY}")


def test_arrays_need_no_pyarrow():
    assert ran(LOOK).stdout == REMEDY


def test_a_folder_is_not_a_saved_model(tmp_path):
    with pytest.raises(UnreadableModel, match=r"TableModel\.load"):
        discreet.load(tmp_path)
