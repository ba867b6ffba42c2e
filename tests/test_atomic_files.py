"""What a killed process leaves is swept by the next; what anybody else made, or is making, never is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import atomic_files
from discreet.atomic_files import passing, sweep

pytestmark = pytest.mark.skipif(not atomic_files._boot(), reason="nothing is swept where the boot is not known")
KILLED = """
import os, signal, sys
from pathlib import Path
from discreet.atomic_files import passing
with passing(Path(sys.argv[1]), folder=sys.argv[2] == "folder") as made:
    if made.is_dir():
        (made / "model.discreet").write_text("half")
    print(made, flush=True)
    if sys.argv[3] == "wait":
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def child(place: Path, kind: str, then: str) -> tuple["subprocess.Popen[str]", Path]:
    words = [sys.executable, "-c", KILLED, str(place), kind, then]
    environment = {**os.environ, "PYTHONPATH": str(Path(atomic_files.__file__).parents[1])}
    started = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert started.stdout is not None
    return started, Path(started.stdout.readline().strip())


@pytest.fixture(params=["file", "folder"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_a_killed_process_left_is_swept(tmp_path: Path, kind: str) -> None:
    ended, made = child(tmp_path / "model", kind, "end")
    assert ended.wait() == -signal.SIGKILL
    assert made.exists()
    with passing(tmp_path / "another", folder=kind == "folder") as mine:
        assert sorted(tmp_path.iterdir()) == [mine]
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_is_writing_stays(tmp_path: Path, kind: str) -> None:
    living, made = child(tmp_path / "model", kind, "wait")
    sweep(tmp_path)
    assert made.exists()
    living.kill()
    living.communicate()
    sweep(tmp_path)
    assert not made.exists()


def named(folder: Path, boot: str) -> Path:
    return folder / f".model.{boot}-{'0' * 16}.tmp"


def test_nothing_else_is_ever_swept(tmp_path: Path) -> None:
    """Of another boot or machine, of another name, links, and folders that hold more than plain files."""
    boot, target = atomic_files._boot(), tmp_path / "target"
    target.mkdir()
    (target / "kept").write_text("")
    others = [named(tmp_path, "0" * 16), named(tmp_path, boot).with_suffix(""), tmp_path / f"model.{boot}.tmp"]
    others += [tmp_path / ".model.0123456789abcdef.tmp", tmp_path / f".model.{boot}-xyz.tmp", tmp_path / ".tmp"]
    for path in others:
        path.mkdir()
    link = tmp_path / f".link.{boot}-{'0' * 16}.tmp"
    link.symlink_to(target)
    deep = tmp_path / f".deep.{boot}-{'0' * 16}.tmp"
    (deep / "theirs").mkdir(parents=True)
    linked = tmp_path / f".linked.{boot}-{'0' * 16}.tmp"
    linked.mkdir()
    (linked / "link").symlink_to(target)
    before = sorted(tmp_path.rglob("*"))
    sweep(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    named(tmp_path, boot).mkdir()  # and one that would be, so that the test can fail
    sweep(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("without", ["locks", "a boot"])
def test_where_it_cannot_be_certain_nothing_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    ended, made = child(tmp_path / "model", "folder", "end")
    ended.wait()
    if without == "locks":
        monkeypatch.setattr(atomic_files, "_is_locked_now", lambda _, otherwise=False: otherwise)
    else:
        monkeypatch.setattr(atomic_files, "_BOOT", tmp_path / "nowhere")
    with passing(tmp_path / "new") as mine:
        mine.write_text("written all the same")
        os.replace(mine, tmp_path / "new")
    assert made.exists()
    assert (tmp_path / "new").read_text() == "written all the same"


def test_one_that_a_sweeper_took_first_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making and locking there is a moment."""
    lock, taken = atomic_files._is_locked_now, []

    def swept_before(handle: int, *, otherwise: bool = False) -> bool:
        if not taken:
            (found,) = tmp_path.iterdir()
            taken.append(found)
            found.rmdir()
        return lock(handle, otherwise=otherwise)

    monkeypatch.setattr(atomic_files, "_is_locked_now", swept_before)
    with passing(tmp_path / "model", folder=True) as made:
        assert made.is_dir()
        assert made != taken[0]
