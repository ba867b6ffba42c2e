import json

import pytest

from discreet import DPLogisticRegression
from discreet.curator.noise import SeededEntropy, use_entropy
from discreet.datasets import hospital


def tampered(path, changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def judged(result, as_json, code, words, holds):
    """The reason, in one line and in JSON."""
    assert (result.exit_code, as_json.exit_code, result.stdout) == (code, code, ""), result.output
    assert result.stderr.startswith(words)
    assert len(result.stderr.strip().splitlines()) == 1
    assert json.loads(as_json.stdout) == {"holds": holds, "reason": result.stderr[len(words) :].strip()}
    return result.stderr


@pytest.fixture
def fails(run):
    def verify(*given):
        return judged(run("verify", *given), run("verify", *given, "--json"), 1, "does not hold: ", False)

    return verify


@pytest.fixture
def unchecked(run):
    """Neither yes nor no."""
    return lambda *given: judged(run(*given), run(*given, "--json"), 2, "could not be checked: ", None)


def test_a_model_and_its_certificate_hold(run, model_file, certificate_file):
    for path in (model_file, certificate_file):
        result = run("verify", path)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("Verified: the listed releases cost epsilon = 1, as claimed")
    found = json.loads(run("verify", certificate_file, "--json").stdout)
    assert found["holds"] is True
    assert found["price"] <= found["claimed"] == 1.0
    assert set(found["accountants"]) == {"gdp", "zcdp"}


CHANGES = {
    "a smaller claim": {"epsilon": 0.5},
    "no noise": {"events": [{"kind": "non_private"}]},
    "an unknown field": {"trust_me": True},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tampered_certificate_does_not_hold(fails, certificate_file, change):
    fails(tampered(certificate_file, CHANGES[change]))


def test_a_model_with_seeded_noise_has_no_guarantee(run, tmp_path):
    table = hospital(n=400)
    with use_entropy(SeededEntropy(1)):
        model = DPLogisticRegression(epsilon=1.0, bounds=table.bounds).fit(table.X, table.y)
    result = run("verify", model.save(tmp_path / "seeded.discreet"))
    assert result.exit_code == 1
    assert "NOT PRIVATE" in result.stderr


# --- folders ----------------------------------------------------------------------------------------


def test_a_folder_holds_with_its_charge(run, place):
    result = run("verify", "model", "--ledger", "budget.db")
    assert result.exit_code == 0, result.output
    assert "charged in the ledger to 'people'" in result.stdout
    found = json.loads(run("verify", "model", "--ledger", "budget.db", "--json").stdout)
    assert found["holds"] is True
    assert found["charged"] == "people"
    assert json.loads(run("verify", "model", "--json").stdout)["charged"] is None
    for name in ("model/model.discreet", "model/certificate.json"):
        assert run("verify", name, "--ledger", "budget.db").exit_code == 0


def test_a_charge_that_the_ledger_does_not_know(fails, run, place):
    assert run("budget", "init", "other.db").exit_code == 0
    assert "another ledger" in fails("model", "--ledger", "other.db")
    assert run("fit", "table.csv", "-s", "schema.toml", "-o", "free").exit_code == 0
    assert run("verify", "free").exit_code == 0
    fails("free", "--ledger", "budget.db")


def test_a_page_whose_text_was_changed_is_not_called_verified(run, place):
    assert run("report", "model").exit_code == 0
    page = place / "model" / "report.html"
    page.write_text(
        page.read_text(encoding="utf-8").replace("What is promised", "What is not promised"), encoding="utf-8"
    )
    found = run("verify", page)
    assert found.exit_code == 0
    assert "not checked: the text of the page" in found.stdout
    assert json.loads(run("verify", page, "--json").stdout)["unchecked"]


# --- what could not be checked ------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("verify", "model", "--ledger"), ("budget", "verify", "--ledger")])
def test_a_ledger_that_is_missing_or_out_of_reach_could_not_be_checked(unchecked, place, command):
    assert "there is no ledger" in unchecked(*command, "absent.db")
    (place / "folder.db").mkdir()
    assert "there is no ledger" in unchecked(*command, "folder.db")
    (place / "other.db").write_text("something else" * 100)
    assert "not a ledger" in unchecked(*command, "other.db")
    (place / "linked.db").hardlink_to(place / "budget.db")
    assert "another place" in unchecked(*command, "linked.db")


def test_a_damaged_ledger_does_not_hold_and_says_nothing_of_a_certificate(run, unchecked, place):
    whole = (place / "budget.db").read_bytes()
    (place / "budget.db").write_bytes(whole[: len(whole) // 2])
    assert "damaged" in unchecked("verify", "model", "--ledger", "budget.db")
    result = run("budget", "verify", "--ledger", "budget.db")
    assert result.exit_code == 1
    assert result.stderr.startswith("does not hold: this ledger is damaged")


# --- the ledger's word against the certificate's --------------------------------------------------------


def test_an_entry_that_was_not_told_the_certificate_is_said_to_be_compared_in_part(run, place, monkeypatch):
    from discreet import Ledger

    reserve = Ledger.reserve
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "reserve", lambda *asked, certificates=(), **words: reserve(*asked, **words))
        done = run("fit", "table.csv", "-s", "schema.toml", "-o", "old", "-l", "budget.db", "--dataset", "people")
        assert done.exit_code == 0, done.output
    result = run("verify", "old", "--ledger", "budget.db")
    assert "only releases, budget, unit and relation were compared" in result.stdout
    told = run("budget", "verify", "--ledger", "budget.db", "--certificate", "old").stdout
    assert "only releases, budget, unit and relation were compared" in told
    assert "only" not in run("verify", "model", "--ledger", "budget.db").stdout
