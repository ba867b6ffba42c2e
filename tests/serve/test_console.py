"""The console without a browser: forms, sessions, headers, and hostile names."""

import re

from discreet.serve.app import PAGES
from tests.serve.services import town_of, write_files


def test_an_analyst_from_login_to_the_report(town):
    visit = town.enter("anna")
    assert "patients" in visit.get("/").text
    page = visit.get("/datasets/patients").text
    assert "emergency" in page
    priced = visit.post("/datasets/patients/price", epsilon="0.5", solver="gd").text
    settings = re.search(r'name="settings" value="([^"]*)"', priced)[1].replace("&#34;", '"')
    sent = visit.post("/datasets/patients/jobs", settings=settings, charge_id="by hand")
    assert sent.status == 303
    town.work()
    job = visit.get(sent.headers["location"]).text
    assert ">done<" in job
    assert "<iframe" in job
    assert 'sandbox src="/jobs/' in job
    report = visit.get(sent.headers["location"] + "/report")
    assert report.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "by hand" in visit.get("/jobs").text
    pasted = visit.post("/datasets/patients/price", toml='epsilon = 0.25\nsolver = "gd"').text
    assert "epsilon 0.25" in pasted
    assert "That did not work" in visit.post("/datasets/patients/price", toml="epsilon = [").text


def test_an_owner_approves_allocates_revokes_and_verifies(tmp_path):
    town = town_of(write_files(tmp_path, limits="approve_above = 0.1"))
    job = town.submit(charge_id="large").json["id"]
    visit = town.enter("olga")
    assert "Waiting for your approval" in visit.get("/").text
    assert visit.post(f"/jobs/{job}/approve").status == 303
    town.work()
    assert visit.post("/people/allocate", name="ben", dataset="patients", epsilon="0.7").status == 303
    assert town.service.accounts.allocations("ben") == {("ben", "patients"): 0.7}
    handle = town.tokens["ben"].split("_")[1]
    assert visit.post(f"/people/{handle}/revoke").status == 303
    assert town.ask("ben", "/api/jobs").status == 401
    assert "hold together" in visit.post("/verify").text
    history = visit.get("/history").text
    assert "1 charges to patients" in history
    assert "token revoked" in history
    town.close()


def test_pages_of_the_owner_are_not_for_analysts(town):
    visit = town.enter("anna")
    assert visit.get("/people").status == 403
    assert visit.post("/verify").status == 403
    assert visit.post("/people/0000000000000000/revoke").status == 403


def test_a_form_of_another_page_is_refused(town):
    visit = town.enter("anna")
    before = len(town.service.jobs.listed())
    fields = {"settings": '{"epsilon": 0.5}'}
    for more in ({}, {"csrf": ""}, {"csrf": "0" * 32}, {"csrf": "é"}):
        answer = town.form("/datasets/patients/jobs", {**fields, **more}, cookie=visit.cookie)
        assert answer.status == 403
    right = {**fields, "csrf": visit.csrf()}
    elsewhere = town.form("/datasets/patients/jobs", right, cookie=visit.cookie, origin="https://evil.example")
    assert elsewhere.status == 403
    assert town.form("/datasets/patients/jobs", right, cookie=visit.cookie, origin="http://testserver").status == 303
    assert len(town.service.jobs.listed()) == before + 1
    empty = town.send("POST", "/logout", {"cookie": visit.cookie, "content-type": "application/x-www-form-urlencoded"})
    assert empty.status == 403  # no body, no token
    other = town.enter("ben")
    assert town.form("/logout", {"csrf": other.csrf()}, cookie=visit.cookie).status == 403


def test_cookies_and_headers(tmp_path):
    town = town_of(write_files(tmp_path, service="behind_proxy = true"))
    answer = town.form("/login", {"token": town.tokens["anna"]})
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "secure", "path=/"))
    assert town.tokens["anna"].split("_", 2)[2] not in answer.headers["set-cookie"]
    for path in ("/login", "/docs", "/api/jobs", "/nowhere", "/static/console.css"):
        headers = town.send("GET", path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "'unsafe-inline'" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["strict-transport-security"]
        assert headers["cache-control"] in ("no-store", "max-age=3600")
    town.close()


def test_no_session_no_page(town):
    for method, path, _ in PAGES:
        words = {"dataset": "patients", "job": "x", "handle": "x", "decision": "approve"}
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = town.send(method, path.format(**words), form, b"a=b" if method == "POST" else b"")
        assert (answer.status, answer.headers.get("location")) == ((303, "/login") if method == "GET" else (401, None))
    visit = town.enter("anna")
    assert visit.post("/logout").status == 303
    assert visit.get("/").status == 303
    assert town.form("/login", {"token": "dsc_wrong"}).status == 401
    later = town.enter("ben")
    town.service.accounts.revoke(town.tokens["ben"].split("_")[1])
    assert later.get("/").status == 303


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=1>{{7919*7907}}"


def test_hostile_names_are_texts(tmp_path):
    path = write_files(tmp_path)
    from discreet import Schema
    from discreet.schema import Category, Number, Target

    schema = Schema({HOSTILE: Number((0, 1)), "b": Category((HOSTILE, "x"))}, Target("y", classes=(HOSTILE, "no")))
    (tmp_path / "schema.toml").write_text(schema.to_toml())
    quoted = '"' + HOSTILE.replace('"', '""') + '"'
    (tmp_path / "patients.csv").write_text(f"{quoted},b,y\n" + f"0.5,x,{quoted}\n0.1,{quoted},no\n" * 20)
    path.write_text(
        path.read_text().replace('schema = "schema.toml"', f"schema = 'schema.toml'\nabout = '''{HOSTILE}'''")
    )
    town = town_of(path)
    visit = town.enter("anna")
    job = visit.post("/datasets/patients/jobs", settings='{"epsilon": 0.5}', charge_id=HOSTILE[:90]).headers["location"]
    town.work()
    pages = [visit.get(page) for page in ("/", "/datasets/patients", "/jobs", job, "/history")]
    pages.append(visit.post("/datasets/patients/price", epsilon="0.5", charge_id=HOSTILE))
    pages.append(visit.post("/datasets/patients/price", toml=HOSTILE))
    pages.append(visit.post("/datasets/patients/price", model=HOSTILE, epsilon="1"))
    for page in pages:
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert str(7919 * 7907) not in page.text
    assert ">done<" in pages[3].text
    town.close()
