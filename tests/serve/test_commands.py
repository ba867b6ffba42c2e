"""The commands: tokens, allocations, backup and restore, a remote fit; and a command line without the extra."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

import discreet
from discreet import Ledger
from discreet.cli.app import app
from discreet.serve.app import running
from discreet.serve.service import Service, verified
from discreet.serve.settings import Settings
from tests.serve.killing import free_port
from tests.serve.services import town_of, write_files


def run(*words, **environment):
    return CliRunner(env=environment).invoke(app, [str(word) for word in words], prog_name="discreet")


def test_tokens_and_allocations(tmp_path):
    path = write_files(tmp_path)
    token = run("serve", "token", "new", "anna", "--service", path).stdout.strip()
    person = Service(Settings.load(path)).accounts.by_token(token)
    assert (person.name, person.role) == ("anna", "analyst")
    assert run("serve", "allocate", "anna", "patients", 0.5, "--service", path).exit_code == 0
    assert run("serve", "allocate", "anna", "nobody", 0.5, "--service", path).exit_code == 2
    assert run("serve", "allocate", "nobody", "patients", 0.5, "--service", path).exit_code == 2
    assert run("serve", "token", "new", "anna", "--role", "owner", "--service", path).exit_code == 2
    assert run("serve", "token", "new", "a/b", "--service", path).exit_code == 2
    (row,) = json.loads(run("serve", "token", "list", "--json", "--service", path).stdout)
    assert row["state"] == "valid"
    assert token.split("_", 2)[2] not in json.dumps(row)  # a secret may begin with the same mark
    assert run("serve", "token", "revoke", row["handle"], "--service", path).exit_code == 0
    assert Service(Settings.load(path)).accounts.by_token(token) is None
    assert run("serve", "token", "revoke", row["handle"], "--service", path).exit_code == 2


def test_backup_and_restore(tmp_path):
    """The drill: a copy, more fits, a loss; what the copy does not know is found by its certificates."""
    town = town_of(write_files(tmp_path / "live"))
    town.submit(charge_id="before")
    town.work()
    path, copy = tmp_path / "live" / "service.toml", tmp_path / "copy"
    result = run("serve", "backup", copy, "--service", path)
    assert result.exit_code == 0, result.output
    assert run("serve", "backup", copy, "--service", path).exit_code == 2
    town.submit(charge_id="after")
    town.work()
    town.close()
    new = tmp_path / "new"
    new.mkdir()
    for name in ("service.toml", "schema.toml", "patients.csv"):
        shutil.copy(path.parent / name, new / name)
    shutil.copytree(copy, new / "service")
    for name in ("budget.db", "budget.db.key"):
        shutil.move(new / "service" / name, new / name)
    Ledger(new / "budget.db").bind()
    checked = json.loads(run("serve", "check", "--json", "--service", new / "service.toml").stdout)
    assert (checked["entries"], checked["certificates"]) == (2, 1)
    restored = Service(Settings.load(new / "service.toml"))
    assert [one.charge_id for one in restored.jobs.listed()] == ["before"]
    shutil.copytree(path.parent / "service" / "results", new / "service" / "results", dirs_exist_ok=True)
    shutil.copy(path.parent / "service" / "service.db", new / "service" / "service.db")
    lost = run("serve", "check", "--service", new / "service.toml")  # jobs that are newer than the ledger
    assert lost.exit_code == 2
    assert "rolled back" in lost.stderr


def test_a_changed_audit_log_is_found(tmp_path):
    import sqlite3
    from contextlib import closing

    town = town_of(write_files(tmp_path))
    with closing(sqlite3.connect(town.service.settings.database)) as at:
        with pytest.raises(sqlite3.IntegrityError, match="stay"):
            at.execute("UPDATE audit SET actor = 'nobody'")
        at.execute("DROP TRIGGER audit_stays")
        at.execute("UPDATE audit SET actor = 'nobody' WHERE seq = 2")
        at.commit()
    with pytest.raises(discreet.DiscreetError, match="line 2"):
        verified(town.service)
    town.close()


@pytest.mark.thorough
def test_a_remote_fit(tmp_path):
    path = write_files(tmp_path)
    accounts = Service(Settings.load(path)).accounts
    token = accounts.new("anna", "analyst")
    accounts.allocate("anna", "patients", 2.0)
    with running(path) as url:
        words = ("fit", "--remote", url, "--dataset", "patients", "--epsilon", 0.5, "--solver", "gd", "--out")
        secret = {"DISCREET_TOKEN": token}
        priced = json.loads(run(*words, tmp_path / "x", "--dry-run", **secret).stdout)
        assert priced["epsilon"] == 0.5
        done = run(*words, tmp_path / "model", "--charge-id", "one", **secret)
        assert done.exit_code == 0, done.output
        assert "Privacy certificate: PRIVATE" in done.stdout
        assert run("verify", tmp_path / "model", "--ledger", tmp_path / "budget.db").exit_code == 0
        assert (tmp_path / "model" / "report.html").is_file()
        assert run(*words, tmp_path / "model", **secret).exit_code == 2  # the place is taken: nothing is sent
        assert run(*words, tmp_path / "y", "--schema", tmp_path / "schema.toml", **secret).exit_code == 2
        assert run(*words, tmp_path / "y", DISCREET_TOKEN="").exit_code == 2
    assert sum(one.kind == "charge" for one in Ledger(tmp_path / "budget.db").entries()) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('folder = "service"', "folder = 3"),
        ('folder = "service"', ""),
        ('folder = "service"', 'folder = "service"\nhost = "0.0.0.0"'),
        ('folder = "service"', 'folder = "service"\nkey = "tls.key"'),
        ('table = "patients.csv"', 'table = "http://example.org/patients.csv"'),
        ('table = "patients.csv"', "table = []"),
        ('schema = "schema.toml"', 'schema = "nowhere.toml"'),
        ("[datasets.patients]", "[datasets.'../x']"),
        ("[datasets.patients]", "[datasets.strangers]"),
        ("release_grid = 0", "release_grid = -1"),
        ("release_grid = 0", "grid = 1"),
        ("[limits]", "[limits"),
    ],
)
@pytest.mark.whole
def test_a_file_that_says_too_little_or_too_much(tmp_path, old, new):
    path = write_files(tmp_path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    result = run("serve", "check", "--service", path)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1


def test_without_the_extra_there_is_no_command():
    code = """
import importlib.util as util
honest = util.find_spec
util.find_spec = lambda name, *rest: None if name == "starlette" else honest(name, *rest)
from discreet.cli.app import app
print([one.name for one in app.registered_groups])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment())
    assert "budget" in done.stdout
    assert "serve" not in done.stdout


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(discreet.__file__).parents[1]), "OMP_NUM_THREADS": "1"}


@pytest.mark.thorough
def test_the_demo_answers_within_seconds(tmp_path):
    port = free_port()
    command = [sys.executable, "-c", "from discreet.cli import main; main()", "serve", "--demo", "--port", str(port)]
    started = time.monotonic()
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment()) as demo:
        try:
            while True:
                try:
                    urlopen(f"http://127.0.0.1:{port}/login", timeout=5).close()
                    break
                except OSError:
                    assert time.monotonic() < started + 30
                    time.sleep(0.05)
            assert demo.stdout.readline().startswith("Demo: synthetic hospital stays: http://127.0.0.1")
            tokens = [demo.stdout.readline().split()[-1] for _ in range(2)]
            service = discreet.remote(f"http://127.0.0.1:{port}", token=tokens[1])
            assert service.dataset("patients").rows == 20_000
        finally:
            demo.terminate()
            demo.wait(timeout=20)
