"""The console, and the application: API and console behind the same headers, with the dispatcher's life.

The console are pages that the server renders. One script of a few lines watches a job; all else works without. A form
carries a token that follows from the session (CSRF), and its origin must be this host. Names of columns, categories and
people are hostile here: templates escape everything, and the policy of ``web.py`` runs no inline code.
"""

import hashlib
import hmac
import json
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType
from urllib.parse import urlsplit

import uvicorn
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from discreet.curator import METRICS
from discreet.inference.summary import shown_effects
from discreet.json_schemas import Json
from discreet.ledger.account import FREE
from discreet.ledger.ledger import Ledger
from discreet.models.base import MODELS
from discreet.schema.schema import describe
from discreet.serve import api
from discreet.serve.api import OPERATIONS, document
from discreet.serve.service import Service
from discreet.serve.settings import Forbidden, NotFound, ServiceError, Settings
from discreet.serve.specification import ScoreSpecification, Specification
from discreet.serve.store import SESSION_SECONDS, Person
from discreet.serve.web import COOKIE, REPORT_POLICY, Call, Gate, Headers, Problem
from discreet.solvers.base import SOLVERS

FORM = "application/x-www-form-urlencoded"
_STATIC = {"console.css": "text/css", "watch.js": "text/javascript"}
_NOBODY = Person("", "", "")


@cache
def _templates() -> Environment:
    environment = Environment(loader=PackageLoader("discreet.serve"), autoescape=True, undefined=StrictUndefined)
    environment.filters["time"] = lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return environment


def _page(call: Call, name: str, status: int = 200, **facts: object) -> Response:
    shared = {"person": call.person, "csrf": csrf(call.session), "title": call.service.settings.title}
    return HTMLResponse(_templates().get_template(name).render(**shared, **facts), status)


def _to(place: str) -> Response:
    return RedirectResponse(place, 303)


def csrf(session: str) -> str:
    """Return the token of a session's forms: only who has the cookie's value can know it."""
    return hashlib.blake2b(b"discreet form", key=session.encode(), digest_size=16).hexdigest() if session else ""


# --- pages of everybody -------------------------------------------------------------------------------


def _home(call: Call) -> Response:
    datasets = [call.service.described(call.person, dataset.name) for dataset in call.service.visible(call.person)]
    waiting = call.service.jobs.waiting() if call.person.is_owner else []
    return _page(call, "home.html", datasets=datasets, jobs=call.service.listed(call.person)[:8], waiting=waiting)


def _dataset(call: Call) -> Response:
    name = call.path["dataset"]
    description, schema = call.service.described(call.person, name), call.service.dataset(call.person, name).schema
    columns = [(column, describe(kind)) for column, kind in schema.columns.items()]
    assert schema.target is not None
    suited = [
        model for model in MODELS.names() if hasattr(MODELS[model](), "classes") == (schema.target.classes is not None)
    ]
    return _page(
        call, "dataset.html", dataset=description, columns=columns, target=schema.target, person_column=schema.person,
        models=suited, solvers=SOLVERS.names(),
    )  # fmt: skip


def _specified(call: Call, name: str) -> Specification:
    """Read a fit off a form: its settings as they were priced, TOML that was pasted, or single fields."""
    form, schema = call.form, call.service.dataset(call.person, name).schema
    if form.get("settings"):
        try:
            return Specification.of(json.loads(form["settings"]), schema)
        except (ValueError, RecursionError):
            raise ServiceError("the settings are not JSON") from None
    if form.get("toml", "").strip():
        return Specification.from_toml(form["toml"].replace("\r\n", "\n"), schema)
    given: Json = {}
    for key in ("model", "solver", "inference"):
        given |= {key: form[key]} if form.get(key) else {}
    for key in ("epsilon", "alpha", "delta"):
        try:
            given |= {key: float(form[key])} if form.get(key) else {}
        except ValueError:
            raise ServiceError(f"{key} is a number, such as 0.5") from None
    return Specification.of(given, schema)


def _price(call: Call) -> Response:
    name = call.path["dataset"]
    specification = _specified(call, name)
    quote = call.service.quote(call.person, name, specification)
    simulated = call.service.forecast(call.person, name, specification)["answer"] if "simulate" in call.form else ""
    limit = call.service.settings.limits.approve_above
    return _page(
        call, "price.html", dataset=name, asked=specification, quote=quote, simulated=simulated,
        explanation=call.service.explanation(call.person, name, specification),
        charge_id=call.form.get("charge_id", ""),
        budget=call.service.budget(call.person, name), waits=limit is not None and quote["epsilon"] > limit,
    )  # fmt: skip


def _submit(call: Call) -> Response:
    name = call.path["dataset"]
    job, _ = call.service.submit(call.person, name, _specified(call, name), call.form.get("charge_id") or None)
    return _to(f"/jobs/{job.id}")


def _submit_score(call: Call) -> Response:
    form: Json = {key: call.form.get(key, "") for key in ("job", "epsilon", "metric")}
    try:
        form["epsilon"] = float(form["epsilon"])
    except ValueError:
        raise ServiceError("epsilon is a number, such as 0.1") from None
    dataset = call.form.get("dataset", "")
    job, _ = call.service.submit_score(call.person, dataset, ScoreSpecification.of(form), None)
    return _to(f"/jobs/{job.id}")


def _jobs(call: Call) -> Response:
    return _page(call, "jobs.html", jobs=call.service.listed(call.person))


def _job(call: Call) -> Response:
    job = call.service.job(call.person, call.path["job"])
    looks = job.is_done and call.person.role != "auditor"
    score = call.service.score(call.person, job.id) if looks and job.kind == "score" else None
    model = call.service.model(call.person, job.id) if looks and job.kind == "fit" else None
    certificate = model.certificate_.summary() if model else ""
    has_effects = model is not None and not isinstance(shown_effects(model), (str, NoneType))  # the report has them
    coefficients = [] if model is None or has_effects else model.coefficients()
    datasets = [dataset.name for dataset in call.service.visible(call.person)]
    shown = {"certificate": certificate, "coefficients": coefficients, "score": score, "datasets": datasets}
    return _page(call, "job.html", 200, job=job, metrics=tuple(METRICS), **shown)


def _state(call: Call) -> Response:
    return JSONResponse({"state": call.service.job(call.person, call.path["job"]).state})


def _report(call: Call) -> Response:
    return HTMLResponse(
        call.service.report(call.person, call.path["job"]), headers={"Content-Security-Policy": REPORT_POLICY}
    )


def _history(call: Call) -> Response:
    entries = call.service.history(call.person)
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    for entry in entries:
        if entry["kind"] == "charge":
            row = sums[entry["name"] or "(outside of the service)", entry["dataset"]]
            row[0], row[1] = row[0] + 1, row[1] + entry["epsilon"]
    pictures = {
        entry.name: spending_picture(call.service.ledger, entry.name) for entry in call.service.visible(call.person)
    }
    lines = call.service.store.lines(100) if call.person.reads_all else []
    shown: Json = {"entries": entries[::-1][:200], "sums": dict(sums), "pictures": pictures, "lines": lines}
    return _page(call, "history.html", **shown)


def _verify(call: Call) -> Response:
    return _page(call, "verify.html", verified=call.service.verify(call.person))


# --- pages of the owner -------------------------------------------------------------------------------


def _decide(call: Call) -> Response:
    decision = call.path["decision"]
    if decision not in ("approve", "decline"):
        raise NotFound("a decision is approve or decline")
    call.service.decide(call.person, call.path["job"], approved=decision == "approve")
    return _to("/")


def _people(call: Call) -> Response:
    _owners_only(call)
    tokens, allocated = call.service.accounts.tokens(), call.service.accounts.allocations()
    names = sorted({token.name for token in tokens if token.role == "analyst"})
    return _page(
        call, "people.html", tokens=tokens, names=names, datasets=call.service.settings.datasets, allocated=allocated
    )


def _revoke(call: Call) -> Response:
    _owners_only(call)
    call.service.accounts.revoke(call.path["handle"], call.person.name)
    return _to("/people")


def _allocate(call: Call) -> Response:
    _owners_only(call)
    form = call.form
    if form.get("dataset") not in call.service.settings.datasets:
        raise NotFound("there is no such data set")
    try:
        epsilon = float(form.get("epsilon", ""))
    except ValueError:
        raise ServiceError("epsilon is a number, such as 0.5") from None
    call.service.accounts.allocate(form.get("name", ""), form["dataset"], epsilon, call.person.name)
    return _to("/people")


def _owners_only(call: Call) -> None:
    if not call.person.is_owner:
        raise Forbidden("this page is the owner's")


# --- coming and going ---------------------------------------------------------------------------------


def _login_page(call: Call) -> Response:
    return _page(call, "login.html")


def _leave(call: Call) -> Response:
    call.service.accounts.leave(call.session)
    gone = _to("/login")
    gone.delete_cookie(COOKIE)
    return gone


def _docs(call: Call) -> Response:
    return _page(call, "docs.html", operations=OPERATIONS)


def _document(call: Call) -> Response:
    return JSONResponse(document(call.service.settings.title))


def _static(call: Call) -> Response:
    name = call.path["file"]
    if name not in _STATIC:
        raise NotFound("there is no such file")
    content = files("discreet.serve").joinpath("static", name).read_bytes()
    return Response(content, media_type=_STATIC[name], headers={"Cache-Control": "max-age=3600"})


PAGES: tuple[tuple[str, str, Callable[[Call], Response]], ...] = (
    ("GET", "/", _home),
    ("GET", "/datasets/{dataset}", _dataset),
    ("POST", "/datasets/{dataset}/price", _price),
    ("POST", "/datasets/{dataset}/jobs", _submit),
    ("POST", "/scores", _submit_score),
    ("GET", "/jobs", _jobs),
    ("GET", "/jobs/{job}", _job),
    ("GET", "/jobs/{job}/state", _state),
    ("GET", "/jobs/{job}/report", _report),
    ("POST", "/jobs/{job}/{decision}", _decide),
    ("GET", "/history", _history),
    ("POST", "/verify", _verify),
    ("GET", "/people", _people),
    ("POST", "/people/allocate", _allocate),
    ("POST", "/people/{handle}/revoke", _revoke),
    ("POST", "/logout", _leave),
)
PUBLIC: tuple[tuple[str, Callable[[Call], Response]], ...] = (
    ("/login", _login_page),
    ("/docs", _docs),
    ("/api/openapi.json", _document),
    ("/static/{file}", _static),
)


def routes(gate: Gate) -> list[Route]:
    """Make the routes of the console."""

    def member(request: Request) -> tuple[Person, str]:
        session = request.cookies.get(COOKIE, "")
        person = gate.service.accounts.by_session(session)
        if person is None:
            raise Problem(401, "log in first")
        gate.count(person)
        return person, session

    def anybody(request: Request) -> tuple[Person, str]:
        session = request.cookies.get(COOKIE, "")
        return gate.service.accounts.by_session(session) or _NOBODY, session

    def guarded(handler: Callable[[Call], Response]) -> Callable[[Call], Response]:
        def handle(call: Call) -> Response:
            if not hmac.compare_digest(call.form.get("csrf", "").encode(), csrf(call.session).encode()):
                raise Problem(403, "this form is not of your session: go back, reload the page, and send it again")
            return handler(call)

        return handle

    def enter(request: Request) -> tuple[Person, str]:
        _own_origin(request)
        return _NOBODY, ""

    def _own_member(request: Request) -> tuple[Person, str]:
        _own_origin(request)
        return member(request)

    all_routes = [
        Route(path, gate.answering(guarded(handler) if method == "POST" else handler,
              _own_member if method == "POST" else member, shown(gate), FORM), methods=[method])
        for method, path, handler in PAGES
    ]  # fmt: skip
    all_routes += [
        Route(path, gate.answering(handler, anybody, shown(gate), FORM), methods=["GET"]) for path, handler in PUBLIC
    ]
    all_routes.append(Route("/login", gate.answering(_entering(gate), enter, shown(gate), FORM), methods=["POST"]))
    return all_routes


def _own_origin(request: Request) -> None:
    """Refuse a form that another page sent."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise Problem(403, "this form was sent by another page")


def _entering(gate: Gate) -> Callable[[Call], Response]:
    def enter(call: Call) -> Response:
        person = gate.person_with(call.form.get("token", "").strip(), call.client)
        entered = _to("/")
        secure = call.service.settings.is_encrypted
        words: Json = {"max_age": int(SESSION_SECONDS), "httponly": True, "samesite": "strict"}
        entered.set_cookie(COOKIE, call.service.accounts.enter(person), secure=secure, **words)
        return entered

    return enter


def shown(gate: Gate) -> Callable[[Problem, Request], Response]:
    """Show problems as pages; who is not logged in comes to the log-in page."""

    def show(problem: Problem, request: Request) -> Response:
        if problem.status == 401 and request.method == "GET" and request.url.path != "/login":
            return _to("/login")
        name = "login.html" if request.url.path == "/login" else "problem.html"
        person = gate.service.accounts.by_session(request.cookies.get(COOKIE, "")) or _NOBODY
        call = Call(gate.service, person, {}, {}, b"", request.cookies.get(COOKIE, ""))
        return _page(call, name, problem.status, problem=problem)

    return show


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 220, 48, 14, 12, 28


@dataclass(frozen=True)
class Picture:
    """Places of an SVG: a line of steps, one dot per charge with its text, and the axis."""

    path: str
    dots: tuple[tuple[float, float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    first: str
    last: str
    words: str
    size: tuple[int, int] = (WIDTH, HEIGHT)


def spending_picture(ledger: Ledger, dataset: str) -> Picture:
    """Draw how much of a data set's cap was spent, charge by charge."""
    account = ledger.account(dataset)
    state = replace(account, parent=None, spent=FREE, charges=0, adds=False)
    points: list[tuple[float, float, str]] = []
    for entry in ledger.entries(dataset):
        if entry.kind == "charge":
            state = state.charged(entry.charge)
            time = datetime.fromisoformat(entry.contents["time"])
            who = (entry.charge_id or "").partition("/")[0] or "outside of the service"
            share = state.statement().share
            points.append(
                (time.timestamp(), share, f"{who}, {time:%Y-%m-%d %H:%M} UTC: {share:.0%} of the cap is spent")
            )
    start = points[0][0] if points else 0.0
    length = max(1.0, points[-1][0] - start) if points else 1.0
    width = (WIDTH - LEFT - RIGHT) / length
    dots = tuple((round(LEFT + (at - start) * width, 1), round(_y(share), 1), text) for at, share, text in points)
    path, height = f"M{LEFT} {_y(0):g}", _y(0)
    for x, y, _ in dots:
        path, height = f"{path} L{x:g} {height:g} L{x:g} {y:g}", y
    path += f" L{WIDTH - RIGHT} {height:g}"
    ticks = tuple((_y(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0))
    first, last = [f"{datetime.fromtimestamp(points[i][0], UTC):%Y-%m-%d}" for i in (0, -1)] if points else ["", ""]
    spent = points[-1][1] if points else 0.0
    words = f"{len(points)} charges to {dataset}; {spent:.0%} of the cap (epsilon {account.epsilon:g}) is spent"
    return Picture(path, dots, ticks, first, last, words)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def application(service: Service, *, dispatches: bool = True) -> Starlette:
    """Make the application of a service; without ``dispatches``, nobody runs its jobs."""
    gate = Gate(service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if dispatches:
            service.dispatcher.start()
        yield
        if dispatches:
            service.dispatcher.stop()

    async def problem(_: Request, error: Exception) -> Response:
        return Problem.of(error).response

    return Starlette(
        routes=[*api.routes(gate), *routes(gate)],
        middleware=[Middleware(Headers, encrypted=service.settings.is_encrypted)],
        exception_handlers={404: problem, 405: problem, 500: problem},
        lifespan=lifespan,
    )


def server_of(service: Service, port: int | None = None) -> uvicorn.Server:
    """Make a server, which logs nothing of requests: addresses and headers are no business of a log."""
    settings = service.settings
    return uvicorn.Server(
        uvicorn.Config(
            application(service),
            host=settings.host,
            port=settings.port if port is None else port,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            proxy_headers=settings.behind_proxy,
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
    )


@contextmanager
def running(path: str | Path, *, port: int = 0) -> Iterator[str]:
    """Serve in a thread inside the block, and give the address: for notebooks and tests."""
    service = Service(Settings.load(path))
    server = server_of(service, port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise ServiceError("the service does not start: is its port taken?")
        time.sleep(0.01)
    try:
        host, taken = server.servers[0].sockets[0].getsockname()[:2]
        yield f"{'https' if service.settings.certificate else 'http'}://{host}:{taken}"
    finally:
        server.should_exit = True
        thread.join(timeout=15)
