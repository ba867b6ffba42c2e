import json

import pytest

from discreet import DPLogisticRegression
from discreet.curator.entropy import SeededEntropy, use_entropy
from discreet.experiments.synthetic import hospital


def tampered(path, change):
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    return path


def test_a_model_and_its_certificate_hold(run, model_file, certificate_file):
    for path in (model_file, certificate_file):
        result = run("verify", path)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("holds: epsilon = 1 is claimed")
    found = json.loads(run("verify", certificate_file, "--json").stdout)
    assert found["holds"] is True
    assert found["price"] <= found["claimed"] == 1.0
    assert set(found["accountants"]) == {"gdp", "zcdp"}


def lower_epsilon(stored):
    stored["epsilon"] = 0.5


def lower_delta(stored):
    stored["delta"] /= 1000


def more_releases(stored):
    stored["events"][0]["count"] += 1


def less_noise(stored):
    stored["events"][0]["noise_multiplier"] *= 0.99


def flatter_accountant(stored):
    stored["accountants"]["gdp"] *= 0.5


def no_noise_but_the_same_stamp(stored):
    stored["events"] = [{"kind": "non_private"}]


def unknown_field(stored):
    stored["trust_me"] = True


CHANGES = (
    lower_epsilon,
    lower_delta,
    more_releases,
    less_noise,
    flatter_accountant,
    no_noise_but_the_same_stamp,
    unknown_field,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_tampered_certificate_does_not_hold(run, certificate_file, change):
    path = tampered(certificate_file, change)
    result = run("verify", path)
    assert result.exit_code == 1
    assert result.stderr.startswith("does not hold: ")
    assert len(result.stderr.strip().splitlines()) == 1
    as_json = run("verify", path, "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["holds"] is False


def test_a_changed_model_does_not_hold(run, model_file):
    content = bytearray(model_file.read_bytes())
    content[content.index(b"epsilon") + 2] ^= 1
    model_file.write_bytes(content)
    assert run("verify", model_file).exit_code == 1


def test_a_model_with_seeded_noise_has_no_guarantee(run, tmp_path):
    table = hospital(n=400)
    with use_entropy(SeededEntropy(1)):
        model = DPLogisticRegression(epsilon=1.0, bounds=table.bounds).fit(table.X, table.y)
    result = run("verify", model.save(tmp_path / "seeded.discreet"))
    assert result.exit_code == 1
    assert "NOT PRIVATE" in result.stderr


@pytest.mark.parametrize("content", [b"", b"{}", b"hello", b"\xff\xfe\x00", b"PK\x03\x04 not a zip", b"[" * 100_000])
def test_other_files_do_not_hold(run, tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    result = run("verify", path)
    assert result.exit_code == 1
    assert result.stderr.startswith("does not hold: ")
