"""``discreet fit`` killed, interrupted, out of disk: no model or a complete one, and a ledger that tells the truth."""

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet import Ledger
from discreet.cli.app import app
from tests.cli.tables import SCHEMA, charges, hidden, write_table
from tests.promises.crash.commands import Command, Ended, Point, command
from tests.promises.crash.observing import faults, snapshot

LEDGER = ("--ledger", "budget.db", "--dataset", "people")
FIT = ("fit", "table.csv", "--schema", "schema.toml", "--epsilon", "0.1", *LEDGER)
ROWS = 20_000
FILES = ("certificate.json", "manifest.json", "model.discreet", "report.html", "schema.toml")

RESERVE = "discreet.curator.private_data/PrivateData:reserve"
POINTS = {
    "before the charge": (Point(RESERVE), 0, False),
    "after the charge": (Point(RESERVE, after=True), 1, False),
    "while rows are read": (Point("discreet.curator.tables.encode/Layout:encode"), 1, False),
    "when rows were read": (Point("discreet.curator.private_data:admit_stream", after=True), 1, False),
    "in the steps": (Point("discreet.curator.curator/Curator:noisy_weighted_gradient", nth=3), 1, False),
    "after the fit": (Point("discreet.models.table_model/TableModel:fit", after=True), 1, False),
    "in the report": (Point("discreet.report.model_report:report_of"), 1, False),
    "before the model's file": (Point("discreet.models.persist:save"), 1, False),
    "after the model's file": (Point("discreet.models.persist:save", after=True), 1, False),
    "before the sums": (Point("discreet.models.persist:_sum", nth=2), 1, False),
    "after the sums": (Point("discreet.models.persist:write_folder", after=True), 1, False),
    "while the disk is told": (Point("discreet.models.persist:sync", nth=3), 1, False),
    "before the folder's name": (Point("os:rename"), 1, False),
    "after the folder's name": (Point("os:rename", after=True), 1, True),
    "before the last words": (Point("discreet.cli.fit:_show"), 1, True),
    "after the last words": (Point("discreet.cli.fit:_show", after=True), 1, True),
}
"""Moments in a fit's life: how many charges there are by then, and whether there is a model."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, its schema and a ledger; everything that a fit needs is imported and compiled."""
    place = tmp_path_factory.mktemp("made")
    write_table(place / "table.csv", ROWS)
    (place / "schema.toml").write_text(SCHEMA)
    verified("budget", "init", place / "budget.db")
    verified("budget", "grant", "people", "--epsilon", 9, "--delta", 1e-4, "--ledger", place / "budget.db")
    words = (place / "table.csv", "-s", place / "schema.toml", "-o", place / "warm")
    with patch("discreet.report.model_report.cost_forecast", lambda *_, **__: None):
        verified("fit", *words)
    shutil.rmtree(place / "warm")
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "place")
    Ledger(tmp_path / "place" / "budget.db").bind()
    return tmp_path / "place"


def verified(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="discreet")
    assert result.exit_code == 0, result.output
    return result


def is_made(place: Path, out: str = "new", files: tuple[str, ...] = FILES) -> bool:
    """Whether there is a model. If there is, it is complete and its charge is in the ledger; else there is nothing."""
    ledger, folder = place / "budget.db", place / out
    assert faults(snapshot(ledger)) == []
    verified("budget", "verify", "--ledger", ledger)
    if not folder.is_symlink() and not folder.exists():
        return False
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    verified("verify", folder, "--ledger", ledger)
    return True


# --- SIGKILL ----------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("when", POINTS)
def test_killed_at_a_chosen_moment(place: Path, when: str) -> None:
    point, charged, complete = POINTS[when]
    ended = command(place, *FIT, "--out", "new", around=point.sends(signal.SIGKILL))
    assert ended.code == -signal.SIGKILL, ended
    assert charges(place / "budget.db") == charged
    assert is_made(place) == complete
    if not complete:  # and what it left is in nobody's way
        assert command(place, *FIT, "--out", "new").code == 0
        assert is_made(place)
        assert charges(place / "budget.db") == charged + 1
    assert hidden(place) == []  # the next command that writes there sweeps


WHOLE, KILLS = 3, 60  # the first are left alone, to learn how long a fit takes


@pytest.mark.thorough
def test_killed_at_random_moments(place: Path) -> None:
    """Evenly over a fit's life and as long again: never a model without a charge."""
    lives = [time.monotonic()]
    for number in range(WHOLE):
        assert command(place, *FIT, "--out", f"whole-{number}").code == 0
        lives.append(time.monotonic())
    life, chance, models = float(np.diff(lives).max()), random.Random(2), 0
    for number in range(KILLS):
        before = charges(place / "budget.db")
        child = Command(place, *FIT, "--out", f"new-{number}")
        time.sleep(2.0 * life * (number + chance.random()) / KILLS)
        child.send(signal.SIGKILL)
        ended = child.join()
        assert ended.code in (-signal.SIGKILL, 0), ended
        more, found = charges(place / "budget.db") - before, is_made(place, f"new-{number}")
        assert more in (0, 1)
        assert more == 1 or not found
        assert found or ended.code != 0
        models += found
    assert 0 < models < charges(place / "budget.db") - WHOLE < KILLS


def started(place: Path) -> subprocess.Popen[str]:
    """The command in a process of its own, as soon as its hidden folder is there: then it charges, and reads."""
    words = [sys.executable, "-c", "from discreet.cli import main; main()", *FIT, "--out", "new"]
    child = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not hidden(place) and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return child


@pytest.mark.thorough
def test_the_installed_command_is_killed(place: Path) -> None:
    child = started(place)
    time.sleep(random.Random(3).random() * 0.2)
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert charges(place / "budget.db") in (0, 1)
    assert not is_made(place)


# --- requests ---------------------------------------------------------------------------------------


REQUEST = (*FIT, "--charge-id", "monthly")
SETTLE = "discreet.ledger.ledger/Reservation:settle"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "point",
    [
        *(POINTS[when][0] for when in ("after the charge", "while rows are read", "in the steps", "in the report")),
        *(Point(SETTLE), Point(SETTLE, after=True), POINTS["before the folder's name"][0]),
    ],
    ids=lambda point: f"{point.place.split(':')[1]}-{'after' if point.after else 'before'}",
)
def test_a_request_that_was_killed_is_asked_again_under_its_one_charge(place: Path, point: Point) -> None:
    ended = command(place, *REQUEST, "--out", "new", around=point.sends(signal.SIGKILL))
    assert ended.code == -signal.SIGKILL
    assert charges(place / "budget.db") == 1
    for out in ("new", "again"):
        assert command(place, *REQUEST, "--out", out).code == 0
        assert is_made(place, out)
    for name in FILES:
        assert (place / "new" / name).read_bytes() == (place / "again" / name).read_bytes(), name
    assert charges(place / "budget.db") == 1


# --- Ctrl-C and SIGTERM -----------------------------------------------------------------------------


def told_once(ended: Ended) -> str:
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    return ended.stderr


OTHERS = ("in the report", "before the last words", "after the last words")
BROKEN = [when for when in POINTS if when not in OTHERS]


@pytest.mark.few(5)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", BROKEN)
def test_interrupted_at_a_chosen_moment(place: Path, when: str, number: signal.Signals) -> None:
    point, charged, complete = POINTS[when]
    ended = command(place, *FIT, "--out", "new", around=point.sends(number))
    assert ended.code == 128 + number
    told = told_once(ended)
    assert ("no model was written" in told) != complete
    assert ("interrupted" in told) or number is signal.SIGTERM
    assert charges(place / "budget.db") == charged
    assert is_made(place) == complete
    assert hidden(place) == []


def explode() -> None:
    raise ValueError("MARKED-CELL")


@pytest.mark.few(1)
@pytest.mark.parametrize("act", [signal.SIGINT, signal.SIGTERM, explode], ids=["SIGINT", "SIGTERM", "an error"])
def test_a_report_that_comes_to_nothing_costs_no_model(place: Path, act: Any) -> None:
    point = POINTS["in the report"][0]
    around = (lambda: point.meets(explode)) if act is explode else point.sends(act)
    ended = command(place, *FIT, "--out", "new", around=around)
    assert ended.code == {signal.SIGINT: 130, signal.SIGTERM: 143, explode: 0}[act]
    assert "no report" in ended.stderr
    assert act is explode or "the fit is done" in ended.stderr
    assert "report.html" not in ended.stdout
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "MARKED" not in ended.stderr
    assert is_made(place, files=tuple(name for name in FILES if name != "report.html"))
    assert charges(place / "budget.db") == 1
    assert hidden(place) == []


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_very_start_is_one_clean_line(place: Path, number: signal.Signals) -> None:
    """While modules are imported. Before the command's first line, it is Python's own to say."""
    code = "import sys; from discreet.cli import main; print('here', file=sys.stderr, flush=True); main()"
    early = 0
    for tenth in range(8):
        words = [sys.executable, "-c", code, *FIT, "--out", "new", "--dry-run"]
        child = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stderr is not None
        assert child.stderr.readline() == "here\n"
        time.sleep(0.01 + 0.1 * tenth)
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
        assert "Traceback" not in err, err
        assert len(err.strip().splitlines()) <= 1, err
        assert child.returncode in (0, 128 + number)
        early += child.returncode != 0
    assert early


# --- a full disk, and others who want the same place --------------------------------------------------


@contextmanager
def full(size: int) -> Iterator[None]:
    """While the folder is written, no file may be longer."""
    with Point("discreet.models.persist:write_folder").meets(
        lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    ):
        try:
            yield
        finally:  # what the command says goes into a file too
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [200, 3_000, 9_000])
def test_a_full_disk(place: Path, size: int) -> None:
    ended = command(place, *REQUEST, "--out", "new", around=lambda: full(size))
    assert ended.code == 2, ended.stderr
    told = told_once(ended)
    assert "too large" in told
    assert "stays charged" in told
    assert not is_made(place)
    assert hidden(place) == []
    assert charges(place / "budget.db") == 1
    assert command(place, *REQUEST, "--out", "new").code == 0
    assert is_made(place)
    assert charges(place / "budget.db") == 1


def taken(make: Callable[[Path], Any], place: Path) -> Callable[[], Any]:
    """Somebody makes the place while the fit is under way."""
    return lambda: Point("discreet.models.persist:write_folder").meets(lambda: make(place / "new"))


def test_a_place_that_is_taken_meanwhile(place: Path) -> None:
    def folder(path: Path) -> None:
        path.mkdir()
        (path / "theirs").write_text("")

    for number, make in enumerate((folder, Path.touch)):
        ended = command(place, *FIT, "--out", "new", around=taken(make, place))
        assert ended.code == 2
        told = told_once(ended)
        spare = told.split("the model is in ")[1].strip()
        assert is_made(place, spare)  # what was paid for is not thrown away
        assert charges(place / "budget.db") == number + 1
        shutil.rmtree(place / "new") if number == 0 else (place / "new").unlink()
    assert hidden(place) == []


def test_a_folder_that_may_not_be_written_to_costs_nothing(place: Path) -> None:
    locked = place / "locked"
    locked.mkdir(mode=0o500)

    def deny(path: Path, *arguments: object, **words: object) -> None:
        if "locked" in path.parts and path.name != "locked":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        mkdir(path, *arguments, **words)

    mkdir = Path.mkdir
    privileged = os.geteuid() == 0  # and is denied nothing
    ended = command(place, *FIT, "--out", "locked/new", around=lambda: patch.object(Path, "mkdir", deny)
                    if privileged else nullcontext())  # fmt: skip
    assert ended.code == 2, ended.stderr
    assert "permission denied" in told_once(ended)
    assert charges(place / "budget.db") == 0
    assert os.listdir(locked) == []
