import json
import re
from contextlib import contextmanager

import numpy as np
import pytest

from discreet import TableModel
from discreet.curator.tables.stream import TableStream
from tests.cli.tables import LEDGER, MARK, PERSONS, SCHEMA, charges, hidden, write_table
from tests.promises.crash.commands import on_terminal

FIT = ("fit", "table.csv", "--schema", "schema.toml")
FILES = {"model.discreet", "schema.toml", "certificate.json", "report.html", "manifest.json"}


@contextmanager
def nothing_read():
    """No row is read in here: whoever tries fails in a way that shows."""

    def blocks(self):
        raise AssertionError("rows were read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TableStream, "blocks", blocks)
        patch.setattr(TableStream, "persons", blocks)
        yield


@pytest.fixture
def unread():
    with nothing_read():
        yield


def certificate(place, name="new"):
    return json.loads((place / name / "certificate.json").read_text())


# --- what it makes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "option", "value"),
    [("tweedie", "power", 1.7), ("negative_binomial", "dispersion", 0.3), ("quantile", "quantile", 0.9)],
)
def test_a_family_is_declared(ok, refused, place, model, option, value):
    columns = "[columns.x]\nrange = [0, 1]\n"
    (place / "amounts.toml").write_text(f'[target]\ncolumn = "y"\nrange = [0, 9]\n{columns}')
    (place / "amounts.csv").write_text("x,y\n" + "\n".join(f"0.{i % 10},{i % 9}" for i in range(300)))
    words = ("fit", "amounts.csv", "--schema", "amounts.toml", "--public", "--no-report", "--model", model)
    ok(*words, "--out", "new", f"--{option}", str(value))
    assert getattr(TableModel.load(place / "new").estimator_, option) == value
    assert option in refused(*words, "--out", "newer", f"--{option}", "-1")
    inference = refused(*words, "--out", "newer", "--inference", "sandwich")
    assert "no standard errors" in inference
    assert not (place / "newer").exists()


def test_ordered_classes_are_taken(ok, refused, place):
    declared = (
        '[target]\ncolumn = "y"\nclasses = ["low", "middle", "high"]\nordered = true\n[columns.x]\nrange = [0, 1]\n'
    )
    (place / "grades.toml").write_text(declared)
    rows = [f"0.{i % 10},{('low', 'middle', 'high')[i % 10 // 4]}" for i in range(600)]
    (place / "grades.csv").write_text("x,y\n" + "\n".join(rows))
    words = ("fit", "grades.csv", "--schema", "grades.toml", "--public")
    ok(*words, "--out", "new")
    assert certificate(place)["model"] == "DPOrdinalRegression"
    assert "probability of middle" in ok("predict", "new", "grades.csv", "--probabilities").output
    assert "class high" in ok("inspect", "new").output
    assert "no standard errors" in refused(*words, "--out", "newer", "--inference", "sandwich")


def test_a_model_a_report_and_what_comes_next(ok, place):
    told = ok(*FIT, "--out", "deep/new", *LEDGER)
    assert {path.name for path in (place / "deep" / "new").iterdir()} == FILES
    assert "Privacy certificate: PRIVATE" in told.stdout
    assert "Look at deep/new/report.html" in told.stdout
    assert "Next: discreet inspect deep/new; discreet verify deep/new; discreet predict deep/new" in told.stdout
    assert told.stderr == ""  # no terminal, no bars
    assert hidden(place / "deep") == []
    assert MARK not in "".join((place / "deep" / "new" / name).read_text("latin-1") for name in FILES)
    assert charges() == 2


def test_json_and_nothing_else(ok, place):
    told = ok(*FIT, "--out", "new", "--json", *LEDGER)
    found = json.loads(told.stdout)
    assert found == {"model": "new", "report": "new/report.html", "certificate": certificate(place)}
    assert found["certificate"]["ledger"]["dataset"] == "people"
    assert told.stderr == ""


@pytest.fixture
def terminal(monkeypatch):
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")


def bars(shown):
    """The words of a terminal's bars: without colors, without the bars themselves."""
    return set(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[━╸╺]", "", shown).split())


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_rows_steps_and_budget_and_never_a_loss(place):
    write_table(place / "long.csv", 4_711)
    done = on_terminal(place, "fit", "long.csv", "-s", "schema.toml", "-o", "new", "--json", "-e", "0.625")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "new"  # nothing of the bars is there
    shown = bars(done.stderr)
    assert {"rows", "steps", "4711/4711", "0.625"} <= shown
    assert [word for word in shown - {"4711/4711"} if re.fullmatch(r"(\d+)/\1", word)]  # all steps, in the end
    assert not [word for word in shown if re.search(r"loss|score|accuracy|MARKED", word, re.IGNORECASE)]
    numbers = {word for word in shown if re.fullmatch(r"[\d.,/]+", word)}
    assert {word for word in numbers if "/" not in word} == {"0.625"}  # besides "done/planned", and times with colons


@pytest.mark.usefixtures("terminal")
def test_where_the_number_of_rows_is_private_a_terminal_does_not_tell_it(place):
    write_table(place / "long.csv", 4_711)
    done = on_terminal(place, "fit", "long.csv", "-s", "schema.toml", "-o", "new", *("--neighbors", "add_remove"),
                       "--delta", "1e-6")  # fmt: skip
    assert done.code == 0, done.stderr
    assert "steps" in bars(done.stderr)
    assert "rows" not in bars(done.stderr)
    assert "4711" not in done.stderr + done.stdout


# --- the dry run ------------------------------------------------------------------------------------


def test_the_dry_run_tells_the_price_that_the_certificate_has(ok, place):
    before = (place / "budget.db").read_bytes()
    with nothing_read():
        shown = ok(*FIT, "--dry-run", *LEDGER).stdout
        found = json.loads(ok(*FIT, "--dry-run", *LEDGER, "--json").stdout)
    assert "noisy_weighted_gradient" in shown
    assert "no cell was read." in " ".join(shown.split())
    assert (place / "budget.db").read_bytes() == before
    assert hidden(place) == []
    ok(*FIT, "-o", "new", *LEDGER)
    made = certificate(place)
    for name in ("epsilon", "delta", "neighbors", "accountants", "events", "solver"):
        assert found[name] == made[name], name
    assert found["price"] == min(made["accountants"].values())


def test_the_price_is_known_before_there_is_a_table(ok, refused, place):
    asked = ("--schema", "schema.toml", "--epsilon", 0.7)
    known = json.loads(ok("price", *asked, "--rows", 400, "--json").stdout)
    planned = json.loads(ok("fit", "table.csv", *asked, "--dry-run", "--json").stdout)
    assert set(planned) - set(known) == {"memory"}  # which is this machine's, and this table's
    assert {name: planned[name] for name in known} == known
    assert "--rows" in refused("price", *asked)
    (place / "persons.toml").write_text(PERSONS)
    asked = ("--schema", "persons.toml", "--epsilon", 0.7)
    known = json.loads(ok("price", *asked, "--rows", 200, "--json").stdout)
    planned = json.loads(ok("fit", "table.csv", *asked, "--dry-run", "--json").stdout)
    assert {name: planned[name] for name in known} == known


# --- whom it protects, and who pays -----------------------------------------------------------------


@pytest.mark.whole
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--ledger", "budget.db"), "add --dataset NAME"),
        (("--ledger", "budget.db", "--dataset", "others"), "no data set 'others'"),
        (("--ledger", "none.db", "--dataset", "people"), "no ledger here"),
        (("--dataset", "people"), "give --ledger"),
        ((*LEDGER, "--neighbors", "zero_out"), "registered for replace_one per record"),
        ((*LEDGER, "--epsilon", "50"), "Nothing was charged, no record was read"),
        ((*LEDGER, "--public"), "not charged to a ledger"),
        (("--charge-id", "monthly"), "--charge-id needs a ledger"),
        ((*LEDGER, "--model", "ridge"), "predicts numbers"),
        ((*LEDGER, "--epsilon", "-1"), "--epsilon must be positive"),
        ((*LEDGER, "--epsilon", "nan"), "--epsilon must be positive"),
        ((*LEDGER, "--delta", "1"), "--delta"),
        ((*LEDGER, "--alpha", "-1"), "alpha"),
        ((*LEDGER, "--power", "1.5"), "has no power"),
        ((*LEDGER, "--dispersion", "1"), "has no dispersion"),
        ((*LEDGER, "--quantile", "0.9"), "has no choice of quantiles"),
        ((*LEDGER, "--model", "ordinal"), "three or more"),
        ((*LEDGER, "--out", "table.csv"), "choose another folder"),
        ((*LEDGER, "--out", "model"), "choose another folder"),
        ((*LEDGER, "--out", "link"), "choose another folder"),
        ((*LEDGER, "--out", "table.csv/new"), "table.csv"),
        ((*LEDGER, "--out", "/proc/nothing/new"), "/proc/nothing"),
        ((*LEDGER, "--out", "n" * 300), "name too long"),
    ],
)
def test_refused_before_anything_is_charged_or_read(refused, place, unread, options, told):
    (place / "link").symlink_to("nowhere")
    out = () if "--out" in options else ("--out", "new")
    assert told in refused(*FIT, *out, *options)
    assert charges() == 1
    assert not (place / "new").exists()
    assert hidden(place) == []


def test_a_request_is_answered_once(ok, refused, place):
    asked = (*FIT, *LEDGER, "--charge-id", "monthly")
    ok(*asked, "-o", "new")
    write_table(place / "table.csv", 400, seed=5)  # other rows of the same number: they are not read
    ok(*asked, "-o", "newer")
    assert charges() == 2
    for name in FILES:
        assert (place / "new" / name).read_bytes() == (place / "newer" / name).read_bytes(), name
    assert "for something else" in refused(*asked, "-o", "newest", "--epsilon", 0.5)


# --- memory -----------------------------------------------------------------------------------------


LITTLE, PLENTY = 360 << 20, 1 << 40


@pytest.fixture
def left(monkeypatch):
    """Set how much memory this machine has left."""

    def said(size):
        monkeypatch.setattr("discreet.curator.records.storage.available_memory", lambda: size)
        monkeypatch.setattr("discreet.curator.tables.stream.available_memory", lambda: size)

    return said


@pytest.fixture
def free(monkeypatch):
    """Set how much room the disk has left."""
    return lambda size: monkeypatch.setattr("discreet.curator.tables.stream.free_disk", lambda folder: size)


def declared_rows(place, rows):
    (place / "rows.toml").write_text(f"rows = {rows}\n{SCHEMA}")
    return (
        "fit",
        "table.csv",
        "-s",
        "rows.toml",
        *("--epsilon", "0.1", "--delta", "1e-9", "--terms", "linear"),
        "--public",
    )


def test_a_fit_that_would_not_fit_into_memory_is_kept_on_disk(ok, place, left):
    """The same claims, the files' names nowhere, nothing left over."""
    words = ("fit", "table.csv", "-s", "schema.toml", "--no-checks", "--no-report", "--public", "--json")
    scratch = place / "scratch"
    scratch.mkdir()
    left(1)
    found = json.loads(ok(*words, "-o", "new", "--scratch", str(scratch)).stdout)["certificate"]
    assert found["assumed_public"]["kept"] == "scratch files"
    assert found["assumed_public"]["parts"] == 1
    assert list(scratch.iterdir()) == []
    left(PLENTY)
    again = json.loads(ok(*words, "-o", "newer", "--memory", "0B").stdout)["certificate"]
    assert again["assumed_public"] == found["assumed_public"]
    plain = json.loads(ok(*words, "-o", "plain").stdout)["certificate"]["assumed_public"]
    assert plain == {key: value for key, value in found["assumed_public"].items() if key not in ("kept", "parts")}


@pytest.mark.parametrize("rows", [3, 400])
def test_a_private_number_of_rows_decides_nothing(ok, refused, place, left, free, rows):
    """Under add_remove: the same answers for tables of any length, from what is declared or not at all."""
    write_table(place / "table.csv", rows)
    left(LITTLE)
    free(LITTLE)
    neighbors = ("--neighbors", "add_remove", "--no-report")
    ok("fit", "table.csv", "-s", "schema.toml", "--delta", "1e-5", "-o", f"a{rows}", "--public", *neighbors)
    dry = ("fit", "table.csv", "-s", "schema.toml", "--delta", "1e-5", "--dry-run", *neighbors)
    assert "memory: not estimated, since the number of rows is private" in ok(*dry).stdout
    assert json.loads(ok(*dry, "--json").stdout)["memory"]["needed"] is None
    told = refused(*declared_rows(place, 10**7), *neighbors, "-o", "new")
    assert "980 MB" in told


# --- effects ----------------------------------------------------------------------------------------

EFFECTS = """[target]
column = "back"
classes = [0, 1]

[columns.age]
range = [18, 110]

[columns.ward]
categories = ["a", "b"]
base = "a"
other = false
"""


def test_effects_are_printed_kept_and_inspected(ok, place):
    rng = np.random.default_rng(0)
    age, ward = rng.uniform(18, 90, 8000), rng.choice(["a", "b"], 8000)
    back = (rng.random(8000) < 1 / (1 + np.exp(-0.03 * (age - 50) - 0.5 * (ward == "b")))).astype(int)
    lines = [f"{a:.3f},{w},{b}" for a, w, b in zip(age, ward, back, strict=True)]
    (place / "stays.csv").write_text("\n".join(["age,ward,back", *lines]) + "\n")
    (place / "effects.toml").write_text(EFFECTS)
    words = ("fit", "stays.csv", "--schema", "effects.toml", "--public", "--epsilon", "4", "--inference", "sandwich")
    told = ok(*words, "--out", "effects").output
    assert "Effects for a population" in (place / "effects" / "report.html").read_text()
    for word in ("se privacy", "P>|z|", "odds ratio", "age", "ward = b", "intercept"):
        assert word in told
    assert "se privacy" in ok("inspect", "effects").output
    found = json.loads(ok("inspect", "effects", "--json").stdout)["effects"]
    assert found["feature"] == ["age", "ward = b", "intercept"]
    assert abs(found["coef"][0] - 0.03) < 5 * found["se"][0]
    planned = json.loads(ok(*words, "--dry-run", "--json").stdout)
    assert "noisy_score_covariance" in {release["query"] for release in planned["releases"]}
    assert "judged for even outcomes" in ok(*words, "--dry-run").stdout
