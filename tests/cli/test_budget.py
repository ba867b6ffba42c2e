import hashlib
import json
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import Budget, Ledger
from discreet.accounting import Plan, Release
from discreet.accounting.pricing import price_plan
from discreet.cli.budget import _short, write_default
from discreet.cli.terminal import UNSERVED
from discreet.errors import Unsupported
from discreet.ledger.ledger import Fingerprint, config_file, default_address

PLAN = Plan([Release("noisy_gradient", 10)])
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No ledger is configured, and the configuration is a folder of the test's own."""
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ledger(home, monkeypatch):
    """A ledger with a whole, two parts and a pure data set, some of them charged."""
    made = Ledger.create(home / "budget.db")
    made.grant("census", 3.0, 1e-6)
    made.grant("clinics", 1.0, 1e-7, neighbors="add_remove", unit="person")
    made.divide("clinics", ["north", "south"])
    made.grant("pure", 2.0)
    for _ in range(2):
        made.reserve("census", price_plan(PLAN, Budget(0.6, 1e-7)), label="DPLogisticRegression")
    made.reserve("north", price_plan(PLAN, Budget(0.9, 1e-8, "add_remove")), "november", unit="person", label="DPRidge")
    made.reserve("pure", price_plan(PLAN, Budget(0.5)))
    monkeypatch.setenv("DISCREET_LEDGER", str(home / "budget.db"))
    return made


def ok(run, *arguments):
    result = run("budget", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(run, *arguments):
    return json.loads(ok(run, *arguments, "--json"))


def refused(run, *arguments, code=UNSERVED):
    result = run("budget", *arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.output
    assert "unexpected" not in result.stderr
    return result.stderr


# --- the group ------------------------------------------------------------------------------------


def test_the_ledger_is_the_named_one_then_the_environments_then_the_files(run, home, monkeypatch):
    for name in ("named", "environment", "file"):
        Ledger.create(home / f"{name}.db").grant(name, 1.0, 1e-6)
    write_default("file.db")
    assert answer(run, "show")["datasets"][0]["dataset"] == "file"
    monkeypatch.setenv("DISCREET_LEDGER", "environment.db")
    assert answer(run, "show")["datasets"][0]["dataset"] == "environment"
    assert answer(run, "show", "-l", "named.db")["datasets"][0]["dataset"] == "named"


# --- init -----------------------------------------------------------------------------------------


def test_init_makes_a_ledger_and_says_what_is_next(run, home):
    text = ok(run, "init", "a budget.db")
    path = home / "a budget.db"
    assert str(path) in text
    assert f"{path}.key" in text
    assert "back it up" in text
    assert f"export DISCREET_LEDGER={shlex.quote(str(path))}" in text
    assert "budget grant" in text
    assert stat.S_IMODE((home / "a budget.db.key").stat().st_mode) == 0o600
    assert default_address() is None
    assert "already" in refused(run, "init", "a budget.db")


def test_init_default_names_the_ledger_for_every_directory(run, home, monkeypatch):
    text = ok(run, "init", "budget.db", "--default")
    assert str(config_file()) in text
    assert "export" not in text
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert default_address() == str(home / "budget.db")
    assert "No data sets yet" in ok(run, "show")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:{SECRET}@localhost:1/db",
        f"postgresql://ana@localhost:1/db?password={SECRET}",
        f"postgresql://ana@localhost:1/db?sslpassword={SECRET}",
        f"postgresql://ana:{SECRET}/x@localhost:1/db",
        f"postgresql://ana:{SECRET}#x@localhost:1/db",
        f"postgresql://[ana:{SECRET}@localhost:1/db",
    ],
)
def test_a_password_is_neither_kept_nor_printed(run, url):
    told = refused(run, "init", url, "--default")
    assert SECRET not in told
    assert not config_file().exists()
    assert SECRET not in run("budget", "show", "-l", url).output


def test_move_lets_a_moved_ledger_be_used_again(run, ledger, home):
    (home / "away").mkdir()
    for file in home.glob("budget.db*"):
        file.rename(home / "away" / file.name)
    there = str(home / "away" / "budget.db")
    assert "discreet budget move" in refused(run, "show", "--ledger", there)
    assert ok(run, "move", "--ledger", there) == f"{there}: used here from now on\n"
    assert answer(run, "move", "--ledger", there) == {"ledger": there}
    assert "census" in ok(run, "show", "--ledger", there)
    Ledger(there).reserve("census", price_plan(PLAN, Budget(0.1, 1e-7)))


# --- grant and divide -----------------------------------------------------------------------------


def test_grant_registers_raises_and_lowers(run, home):
    Ledger.create("b.db")
    text = ok(run, "grant", "census", "--epsilon", 3, "--delta", "1e-6", "-l", "b.db")
    assert "registered" in text
    assert "replace_one, record" in text
    assert "3, 1e-06" in text
    assert "100%" in text
    found = answer(run, "grant", "census", "-e", 4, "-l", "b.db")
    assert found["datasets"][0]["cap"] == {"epsilon": 4.0, "delta": 1e-6}
    assert "epsilon 4 before, 2 from now on" in ok(run, "grant", "census", "-e", 2, "-l", "b.db")
    (told,) = answer(
        run, "grant", "staff", "-e", 1, "-d", 0, "--neighbors", "zero_out", "--unit", "person", "-l", "b.db"
    )["datasets"]
    assert (told["neighbors"], told["unit"], told["cap"]["delta"]) == ("zero_out", "person", 0)


def test_what_cannot_be_undone_is_asked_for(run, ledger):
    told = refused(run, "grant", "new", "-e", 1)
    assert "--delta" in told
    assert "cannot be changed" in told
    assert "new" not in {account.name for account in ledger.accounts()}


def test_divide_declares_parts(run, ledger):
    text = ok(run, "divide", "census", "east", "west")
    assert "\n  east " in text
    assert "\n  west " in text
    found = answer(run, "show", "census")["datasets"]
    assert [(one["dataset"], one["part_of"]) for one in found] == [
        ("census", None),
        ("east", "census"),
        ("west", "census"),
    ]
    assert found[1]["fits"] == 2


# --- show -----------------------------------------------------------------------------------------


def test_spent_is_rounded_up_and_room_down():
    assert _short(0.84505) == "0.846"
    assert _short(0.48729, down=True) == "0.487"
    assert _short(0.6000000000001) == "0.6"
    assert _short(2.9999, down=True) == "2.99"
    assert _short(0.0) == "0"
    assert _short(3.0) == _short(3.0, down=True) == "3"


# --- history --------------------------------------------------------------------------------------


def test_an_analysts_words_cannot_command_the_owners_terminal(run, ledger):
    words = "\x1b[2J\x1b]0;owned\x07\r[red]november[/red]\nholds: everything"
    with pytest.raises(Unsupported, match="printable"):
        ledger.reserve("census", price_plan(PLAN, Budget(0.1, 1e-7)), charge_id=words)
    ledger.reserve("census", price_plan(PLAN, Budget(0.1, 1e-7)), charge_id="[red]november[/red]", label=words)
    text = ok(run, "history", "census", "--last", 1)
    assert not set("\x1b\x07\r") & set(text)
    assert "[red]november[/red]?holds" in text.replace("\n", "").replace(" ", "")
    assert "\x1b" not in ok(run, "history", "census", "--last", 1, "--json")
    (entry,) = answer(run, "history", "census", "--last", 1)["entries"]
    assert (entry["charge_id"], entry["label"]) == ("[red]november[/red]", words)


# --- export ---------------------------------------------------------------------------------------

RECIPE = """
import hashlib, json, sys
head = "0" * 64
for line in sys.stdin:
    *hashed, digest = json.loads(line).values()
    assert hashed[-1] == head
    head = hashlib.sha256(json.dumps(hashed, separators=(",", ":")).encode()).hexdigest()
    assert head == digest
print(head)
"""


def recheck(lines):
    return subprocess.run([sys.executable, "-c", RECIPE], input=lines, capture_output=True, text=True, check=False)


def test_an_outsider_can_recheck_the_chain(run, ledger, home):
    ledger.reserve("census", price_plan(PLAN, Budget(0.1, 1e-7)), charge_id="“november” ✓", label="é")
    lines = ok(run, "export", "-")
    assert len(lines.splitlines()) == 10
    assert recheck(lines).stdout.strip() == ledger.verify().head
    assert recheck(lines.replace('"census"', '"pure"', 1)).returncode != 0
    assert recheck("\n".join(lines.splitlines()[1:])).returncode != 0
    assert list(json.loads(lines.splitlines()[0])) == [
        *("seq", "kind", "dataset", "charge_id", "gaussian", "low", "high", "epsilon", "delta", "body", "prev", "hash")
    ]


def test_the_recipe_is_the_one_of_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert RECIPE.strip() in page


def test_export_has_neither_key_nor_fingerprints_nor_releases(run, ledger):
    digest = hashlib.sha256(b"rows").hexdigest()
    ledger.recognize("census", Fingerprint(digest, (1234567890123, 2345678901234)))
    ledger.reserve("census", price_plan(PLAN, Budget(0.1, 1e-7)), charge_id="again").settle("the released coefficients")
    lines = ok(run, "export", "-") + ok(run, "history", "--json") + ok(run, "show", "--json")
    for secret in (ledger.key().hex(), digest, "1234567890123", "the released coefficients"):
        assert secret not in lines


# --- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    """A running server; skips where none can be had."""
    pytest.importorskip("psycopg", reason="PostgreSQL is not tested: psycopg is not installed")
    from tests.ledger.postgres import NoServer, Server

    try:
        running = Server()
    except NoServer as why:
        pytest.skip(f"PostgreSQL is not tested: {why}")
    yield running
    running.close()


def test_a_ledger_in_postgresql(run, server, monkeypatch):
    database = server.fresh()
    owner = server.url(database, password=SECRET)
    text = ok(run, "init", owner)
    assert SECRET not in text
    assert "The key is in the database" in text
    monkeypatch.setenv("DISCREET_LEDGER", owner)
    assert "already" in refused(run, "init")
    found = answer(run, "grant", "census", "-e", 1, "-d", 1e-6)
    assert SECRET not in found["ledger"]
    made = Ledger(owner)
    made.reserve("census", price_plan(PLAN, Budget(0.5, 1e-7)))
    made.recognize("census", Fingerprint("a", (1, 2, 3)))
    made.recognize("census", Fingerprint("b", (4, 5, 6)))
    assert "Warning" in ok(run, "show")
    assert "holds: 2 entries, 1 data set" in ok(run, "verify", "--prices")
    assert recheck(ok(run, "export", "-")).stdout.strip() == made.verify().head
