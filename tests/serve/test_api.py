"""The API: who may ask what, what a job becomes, and that nothing but clear problems comes of anything else."""

import json
import random
import time

import numpy as np
import pytest

from discreet import DPLogisticRegression, Ledger, Schema, TableModel
from discreet.models.persist import FILES
from discreet.schema import Category, Number, Target
from discreet.serve.api import OPERATIONS
from discreet.testing import seeded
from tests.serve.services import town_of, write_files


def charges(town):
    return [one for one in town.service.ledger.entries() if one.kind == "charge"]


def test_a_fit_from_the_price_to_the_result(town):
    quote = town.ask("anna", "/api/datasets/patients/quote", {"settings": {"epsilon": 0.5}}).json
    assert quote["price"] <= 0.5
    assert "explanation" in quote
    assert charges(town) == []
    submitted = town.submit(charge_id="first")
    assert submitted.status == 202
    job = submitted.json["id"]
    assert town.ask("anna", f"/api/jobs/{job}").json["state"] == "queued"
    assert town.ask("anna", f"/api/jobs/{job}/files/certificate.json").status == 404
    town.work()
    assert town.ask("anna", f"/api/jobs/{job}").json["state"] == "done"
    for name in FILES:
        assert town.ask("anna", f"/api/jobs/{job}/files/{name}").status == 200
    assert [one.charge_id for one in charges(town)] == [f"anna/{job}"]
    assert town.ask("ada", "/api/verify").json == {"entries": 2, "audit_lines": 8, "certificates": 1}
    assert town.ask("anna", f"/api/jobs/{job}/summary").json["coefficients"]


def test_hidden_effects_have_no_number(town, monkeypatch):
    """A fit with standard errors shows effects in place of coefficients."""
    rng, n = np.random.default_rng(0), 12_000
    table = {"age": rng.uniform(18, 90, n), "ward": rng.choice(["a", "b"], n)}
    table["back"] = (rng.random(n) < 1 / (1 + np.exp(-0.03 * (table["age"] - 50)))).astype(int)
    columns = {"age": Number((18, 90)), "ward": Category(("a", "b", "nobody"), other=False)}
    with seeded(3):
        estimator = DPLogisticRegression(2.0, 1e-8, inference="sandwich", ledger=False)
        model = TableModel(Schema(columns, Target("back", classes=(0, 1))), estimator).fit(table)
    job = town.submit().json["id"]
    town.work()
    monkeypatch.setattr(town.service, "model", lambda person, job: model)
    shown = town.ask("anna", f"/api/jobs/{job}/summary").json
    place = shown["effects"]["feature"].index("ward = nobody")
    assert {column[place] for name, column in shown["effects"].items() if name != "feature"} == {None}
    assert shown["coefficients"] is None
    monkeypatch.setattr(town.service, "model", lambda person, job: TableModel(model.schema).fit(table))
    assert town.ask("anna", f"/api/jobs/{job}/summary").json["effects"] is None


def test_the_same_charge_id_is_one_job_and_one_charge(town):
    first = town.submit(charge_id="same").json["id"]
    assert town.submit(charge_id="same").status == 200
    town.work()
    assert town.submit(charge_id="same").json["id"] == first
    town.work()
    assert len(charges(town)) == 1
    assert town.submit(epsilon=0.6, charge_id="same").status == 409
    assert town.submit("ben", charge_id="same").json["id"] != first


def test_the_cap_and_the_allocation_are_kept(tmp_path):
    town = town_of(write_files(tmp_path, cap=1.0))
    town.service.accounts.allocate("anna", "patients", 0.5)
    assert town.submit(epsilon=0.6).status == 409
    while town.submit(epsilon=0.2).status == 202:
        town.work()
    assert (
        town.service.budget(town.service.accounts.by_token(town.tokens["anna"]), "patients")["allocation"]["fits"] >= 2
    )
    town.service.accounts.allocate("ben", "patients", 5.0)
    while (answer := town.submit("ben", epsilon=0.3)).status == 202:
        town.work()
    assert "budget does not allow" in answer.json["detail"]
    assert town.service.ledger.spent("patients").epsilon <= 1.0
    town.close()


def test_jobs_that_the_ledger_refuses_free_the_allocation(tmp_path):
    """Two jobs are admitted, and one is charged elsewhere in between: the ledger has the last word."""
    path = write_files(tmp_path, cap=1.0)
    town = town_of(path)
    job = town.submit(epsilon=0.8).json["id"]
    from discreet import Budget
    from discreet.accounting import Plan, Release, price_plan

    Ledger(tmp_path / "budget.db").reserve("patients", price_plan(Plan([Release("noisy_count", 1)]), Budget(0.9, 1e-7)))
    town.work()
    refused = town.ask("anna", f"/api/jobs/{job}").json
    assert refused["state"] == "refused"
    assert "does not allow this fit" in refused["reason"]
    person = town.service.accounts.by_token(town.tokens["anna"])
    assert town.service.budget(person, "patients")["allocation"]["fits"] == 0
    town.close()


def test_large_fits_wait_for_a_second_person(tmp_path):
    town = town_of(write_files(tmp_path, limits="approve_above = 0.4"))
    job = town.submit(epsilon=0.5).json
    assert job["state"] == "waiting"
    town.work()
    assert charges(town) == []
    assert town.ask("anna", f"/api/jobs/{job['id']}/approve", {}).status == 403
    assert town.ask("olga", f"/api/jobs/{job['id']}/approve", {}).json["state"] == "queued"
    town.work()
    assert town.ask("anna", f"/api/jobs/{job['id']}").json["state"] == "done"
    other = town.submit(epsilon=0.5).json["id"]
    assert town.ask("olga", f"/api/jobs/{other}/decline", {}).json["state"] == "declined"
    assert town.ask("olga", f"/api/jobs/{other}/approve", {}).status == 409
    assert town.submit(epsilon=0.3).json["state"] == "queued"
    town.close()


def test_outcomes_appear_on_the_grid(tmp_path, monkeypatch):
    """A run has ended, and its place is taken until the next whole minute: nobody, auditors among them, can tell."""
    path = write_files(tmp_path)
    path.write_text(path.read_text().replace("release_grid = 0", "release_grid = 60"))
    town = town_of(path)
    job, waits = town.submit().json["id"], []

    def looked(seconds):
        waits.append((time.time() + seconds) % 60)
        found = town.ask("anna", f"/api/jobs/{job}").json
        assert found["state"] == "running"
        assert not {"started", "finished", "seconds", "shown", "tries"} & set(found)
        assert town.ask("anna", f"/api/jobs/{job}/files/certificate.json").status == 404
        assert town.ask("ada", "/api/verify").json["certificates"] == 0
        assert job not in [one["subject"] for one in town.ask("ada", "/api/audit").json["lines"]]
        return False

    monkeypatch.setattr(town.service.dispatcher._stop, "wait", looked)
    town.work()
    assert min(waits[0], 60 - waits[0]) < 0.5
    assert town.ask("anna", f"/api/jobs/{job}").json["state"] == "done"
    assert job in [one["subject"] for one in town.ask("ada", "/api/audit").json["lines"]]
    town.close()


def test_a_private_score_of_a_fit(town):
    fit = town.submit(charge_id="fit").json["id"]
    asked = {"kind": "score", "settings": {"job": fit, "epsilon": 0.3, "metric": "auc"}, "charge_id": "score"}
    path = "/api/datasets/patients/jobs"
    assert town.ask("anna", path, asked).status == 404  # it is not done yet
    town.work()
    assert town.ask("ben", path, asked).status == 404
    job = town.ask("anna", path, asked)
    assert job.status == 202
    assert town.ask("anna", path, asked).json["id"] == job.json["id"]
    town.work()
    score = town.ask("anna", f"/api/jobs/{job.json['id']}/files/score.json").json
    assert (score["metric"], score["certificate"]["epsilon"]) == ("auc", 0.3)
    assert len(charges(town)) == 2
    assert town.ask("ada", "/api/verify").json["certificates"] == 2
    assert town.ask("anna", f"/api/jobs/{job.json['id']}/files/model.discreet").status == 404
    assert town.ask("anna", f"/api/jobs/{job.json['id']}/summary").status == 404
    for wrong in ({"job": job.json["id"], "epsilon": 0.1}, {"job": fit}, {"job": fit, "epsilon": 0.1, "level": 7}, 3):
        assert town.ask("anna", path, {"kind": "score", "settings": wrong}).status == 422
    assert town.ask("anna", path, {"kind": "search", "settings": {"epsilon": 1.0}}).status == 422
    page = town.enter("anna").get(f"/jobs/{job.json['id']}").text
    assert "auc" in page
    assert ">done<" in page


# --- who may not --------------------------------------------------------------------------------------


def test_jobs_of_others_are_not_there(town):
    job = town.submit().json["id"]
    town.work()
    missing = town.ask("ben", "/api/jobs/000000000000000000000000")
    for path in ("", "/files/certificate.json", "/summary", "/report"):
        answer = town.ask("ben", f"/api/jobs/{job}{path}")
        assert (answer.status, answer.body) == (404, missing.body)
    assert town.ask("ben", "/api/jobs").json == {"jobs": []}
    assert town.ask("ben", "/api/history").json == {"entries": []}


@pytest.mark.parametrize("who", [None, "dsc_0123456789abcdef_" + "A" * 43, "dsc_", "nonsense", "é" * 40])
@pytest.mark.whole
def test_no_token_or_a_wrong_one(town, who):
    answer = town.ask(who, "/api/datasets")
    assert answer.status == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_expired_revoked_and_stolen_tokens(town, monkeypatch):
    accounts = town.service.accounts
    token = accounts.new("carl", "analyst", days=1)
    assert town.ask(token, "/api/jobs").status == 200
    stolen = token[:-1] + ("A" if token[-1] != "A" else "B")  # the handle alone opens nothing
    assert town.ask(stolen, "/api/jobs").status == 401
    with monkeypatch.context() as later:
        now = time.time()
        later.setattr(time, "time", lambda: now + 2 * 86400)
        assert town.ask(token, "/api/jobs").status == 401
    assert town.ask(token, "/api/jobs").status == 200
    handle = token.split("_")[1]
    assert town.ask("anna", f"/api/tokens/{handle}/revoke", {}).status == 403
    assert town.ask("olga", f"/api/tokens/{handle}/revoke", {}).status == 204
    assert town.ask(token, "/api/jobs").status == 401
    secret = token.split("_", 2)[2].encode()
    for path in town.service.settings.folder.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes()


def test_wrong_tokens_are_limited_and_right_ones_are_not(town):
    codes = [town.ask("wrong", "/api/jobs").status for _ in range(30)]
    assert codes[:20] == [401] * 20
    assert codes[20:] == [429] * 10
    assert town.ask("anna", "/api/jobs").status == 200


def test_requests_are_limited(tmp_path):
    path = write_files(tmp_path)
    path.write_text(path.read_text().replace("requests_per_minute = 1000000", "requests_per_minute = 5"))
    town = town_of(path)
    assert [town.ask("anna", "/api/jobs").status for _ in range(7)] == [200] * 5 + [429] * 2
    assert town.ask("ben", "/api/jobs").status == 200
    town.close()


ALLOWED = {
    "owner": {"/api/audit", "/api/verify", "/api/tokens", "/api/history", "/api/jobs", "/api/datasets"},
    "analyst": {"/api/history", "/api/jobs", "/api/datasets"},
    "auditor": {"/api/audit", "/api/verify", "/api/history", "/api/jobs", "/api/datasets"},
}


@pytest.mark.whole
@pytest.mark.parametrize(("who", "role"), [("olga", "owner"), ("anna", "analyst"), ("ada", "auditor")])
def test_roles(town, who, role):
    plain = {one.path for one in OPERATIONS if one.method == "GET" and "{" not in one.path}
    answers = {path: town.ask(who, path).status for path in plain}
    assert {path for path, status in answers.items() if status == 200} == ALLOWED[role]
    assert set(answers.values()) <= {200, 403}
    named = {one.path: one.roles for one in OPERATIONS if one.path in plain and one.method == "GET"}
    assert {path for path, roles in named.items() if role in roles} == ALLOWED[role]
    if role != "analyst":
        assert town.submit(who).status == 403


def test_auditors_read_certificates_and_no_models(town):
    job = town.submit().json["id"]
    town.work()
    assert town.ask("ada", f"/api/jobs/{job}/files/certificate.json").status == 200
    for path in ("files/model.discreet", "summary", "report"):
        assert town.ask("ada", f"/api/jobs/{job}/{path}").status in (403, 404)


# --- malformed requests -------------------------------------------------------------------------------

BODIES = (
    *(b"", b"{", b"[]", b"null", b"\xff\xfe", b'"\\ud800"', b'{"settings": {"epsilon": NaN}}', b"[" * 5000),
    *(b'{"settings": {"epsilon": 1e999}}', b'{"settings": {"epsilon": %s}}' % (b"9" * 4000), b'{"settings": 3}'),
    b'{"settings": {"epsilon": "\\ud800"}}',
)
VALUES = (
    None,
    True,
    -1,
    0,
    1e-320,
    1e308,
    2**70,
    "",
    "a" * 200,
    "\x00",
    "../../etc/passwd",
    [],
    {},
    "sgd",
    "score",
    "<script>",
)
KEYS = (
    *(
        "epsilon",
        "job",
        "metric",
        "level",
        "delta",
        "solver",
        "alpha",
        "model",
        "penalty",
        "fit_intercept",
        "inference",
    ),
    *(
        "cov_type",
        "checks",
        "bounds",
        "ledger",
        "dataset",
        "start",
        "public_moments",
        "neighbors",
        "verbose",
        "classes",
    ),
    *("__class__", "\ud800"),
)
PATHS = ("/api/jobs/..%2f..%2fservice.db", "/api/jobs/x/files/..%2f..%2fservice.db", "/api/datasets/%00", "/api", "/..")


def malformed(chance):
    """One request that is wrong somewhere: a path, a method, a header, a body, or one setting."""
    kind = chance.randrange(5)
    headers = {
        "content-type": chance.choice(["application/json"] * 4 + ["text/plain", "", "application/json; charset"])
    }
    if kind == 0:
        return chance.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE"]), chance.choice(PATHS), headers, b""
    path = chance.choice([one.path for one in OPERATIONS]).format(
        dataset=chance.choice(["patients", "nobody", "%2e%2e", "a" * 300]), job=chance.choice(["x", "0" * 24, "%0a"]),
        file=chance.choice(["model.discreet", "..%2fx", "service.db"]), decision="approve", handle="0" * 16,
    )  # fmt: skip
    if kind == 1:
        return "POST", path, headers, chance.choice(BODIES)
    settings = {"epsilon": 0.01, **{chance.choice(KEYS): chance.choice(VALUES) for _ in range(chance.randrange(1, 4))}}
    body = {
        "settings": settings,
        **({chance.choice(["charge_id", "more", "kind"]): chance.choice(VALUES)} if kind == 4 else {}),
    }
    path = f"/api/datasets/patients/{chance.choice(['quote', 'jobs'])}"
    return "POST", path, headers, json.dumps(body).encode()


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(5))
def test_malformed_requests_are_clear_refusals(town, seed):
    """Of 400 requests each, what is not served is a 4xx with a detail, shows no traceback, and is charged nothing."""
    chance, served = random.Random(seed), 0
    for _ in range(400):
        method, path, headers, body = malformed(chance)
        answer = town.send(method, path, {**headers, "authorization": f"Bearer {town.tokens['anna']}"}, body)
        assert answer.status < 500, (method, path, body, answer.text)
        assert b"Traceback" not in answer.body
        assert b'File "' not in answer.body
        if answer.status >= 400:
            assert answer.json["detail"], (method, path)
        served += answer.status < 300
    assert served < 200  # some settings are fine
    assert charges(town) == []


def test_errors_of_the_service_show_nothing(town, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("zq7sentinel41x")

    monkeypatch.setattr(town.service, "listed", broken)
    answer = town.ask("anna", "/api/jobs")
    assert answer.status == 500
    assert "zq7sentinel41x" not in answer.text + caplog.text
    assert "unexpected RuntimeError in discreet.serve" in caplog.text


def test_a_damaged_result_shows_no_path(town):
    job = town.submit().json["id"]
    town.work()
    (town.service.settings.results / job / "schema.toml").unlink()
    for path in ("summary", "report", "files/schema.toml"):
        answer = town.ask("anna", f"/api/jobs/{job}/{path}")
        assert answer.status in (404, 500)
        assert str(town.service.settings.folder) not in answer.text
