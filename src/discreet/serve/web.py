"""What API and console share of HTTP: who is asking, how much and how often, errors, and headers of every response.

Errors are problem details (RFC 9457). Their texts are constant, or this service's own, which name declared facts only:
this process reads no records. An unexpected error shows nothing at all, and logs its type and place.
"""

import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.cli.terminal import place_of
from discreet.errors import DiscreetError, LedgerUnavailable
from discreet.json_schemas import Json
from discreet.serve.service import Service
from discreet.serve.settings import ServiceError
from discreet.serve.store import Person

BODY_BYTES = 1 << 16
COOKIE = "discreet_session"
WRONG_TOKENS_PER_MINUTE = 20
_TITLES = {
    **{400: "Bad request", 401: "Not authenticated", 403: "Not allowed", 404: "Not found", 405: "Method not allowed"},
    **{409: "Conflict", 413: "Too large", 415: "Wrong type", 422: "Cannot be served", 429: "Too many requests"},
    **{500: "Internal error", 503: "Unavailable"},
}
_LOG = logging.getLogger("discreet.serve")
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers

    @classmethod
    def of(cls, error: Exception) -> "Problem":
        """Return what may be shown of an error."""
        if isinstance(error, Problem):
            return error
        if isinstance(error, ServiceError):
            return cls(error.status, str(error))
        if isinstance(error, LedgerUnavailable):
            return cls(503, "the ledger cannot be reached: nothing was charged; try again later")
        if isinstance(error, DiscreetError):
            return cls(422, str(error))
        if isinstance(error, HTTPException):
            return cls(error.status_code, _TITLES.get(error.status_code, "Error").lower())
        _LOG.error("unexpected %s%s", type(error).__name__, place_of(error))
        return cls(500, "this is an error of the service: its owner finds the place in the log")

    @property
    def response(self) -> Response:
        """As JSON."""
        title = _TITLES.get(self.status, "Error")
        body = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return JSONResponse(body, self.status, self.headers, media_type="application/problem+json")


@dataclass
class Rate:
    """So many per minute and key, counted from the first one of each minute."""

    most: int
    _counts: dict[str, int] = field(default_factory=dict)
    _minute: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def exceeded(self, key: str) -> bool:
        """Count one, and say whether it is one too many."""
        with self._lock:
            minute = int(time.monotonic() // 60)
            if minute != self._minute:
                self._minute = minute
                self._counts.clear()
            self._counts[key] = self._counts.get(key, 0) + 1
            return self._counts[key] > self.most


@dataclass(frozen=True)
class Call:
    """A request as a handler sees it: who asks, the parts of the path, and the body."""

    service: Service
    person: Person
    path: Json
    query: dict[str, str]
    body: bytes
    session: str = ""
    client: str = ""

    @property
    def json(self) -> Json:
        """The body as an object of JSON."""
        try:
            values = json.loads(self.body, parse_constant=_no_constant)
            json.dumps(values, ensure_ascii=False).encode()  # a lone half of a character is no text
        except (ValueError, RecursionError):
            raise Problem(400, "the body is not JSON in UTF-8") from None
        if not isinstance(values, dict):
            raise Problem(400, 'the body is an object of JSON, such as {"settings": {"epsilon": 0.5}}')
        return values

    @property
    def form(self) -> dict[str, str]:
        """The fields of a form."""
        try:
            return dict(
                parse_qsl(self.body.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
            )
        except ValueError:
            raise Problem(400, "the form cannot be read") from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


Handler = Callable[[Call], Response]
Finder = Callable[[Request], tuple[Person, str]]


class Gate:
    """Lets requests in: finds out who asks, limits sizes and rates, and turns errors into answers."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._asked, self._wrong = Rate(service.settings.limits.requests_per_minute), Rate(WRONG_TOKENS_PER_MINUTE)

    def person_with(self, token: str, client: str) -> Person:
        """Who has this token; wrong ones are counted by the address that they come from."""
        person = self.service.accounts.by_token(token)
        if person is None:
            if self._wrong.exceeded(client):
                raise Problem(429, "too many wrong tokens from here: wait a minute")
            raise Problem(401, "the token is not valid: it may have expired or been revoked", **_CHALLENGE)
        self.count(person)
        return person

    def count(self, person: Person) -> None:
        """Count a request of somebody who is known."""
        if self._asked.exceeded(person.name):
            raise Problem(429, "too many requests in this minute: wait, and ask less often")

    def answering(
        self, handler: Handler, find: Finder, shown: Callable[[Problem, Request], Response], media_type: str
    ) -> Callable[[Request], Awaitable[Response]]:
        """Make an endpoint of a handler: everything that can go wrong in it is an answer."""

        def answer(request: Request, body: bytes) -> Response:
            try:
                stated = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if request.method == "POST" and stated != media_type:
                    raise Problem(415, f"the body's type is {media_type}")
                (person, session), query = find(request), dict(request.query_params)
                return handler(
                    Call(self.service, person, request.path_params, query, body, session, client_of(request))
                )
            except Exception as error:
                return shown(Problem.of(error), request)

        async def endpoint(request: Request) -> Response:
            try:
                body = await _read(request)
            except Problem as problem:
                return shown(problem, request)
            except ClientDisconnect:
                return Response(status_code=400)
            return await run_in_threadpool(answer, request, body)

        return endpoint


_CHALLENGE = {"WWW-Authenticate": "Bearer"}


def bearer(gate: Gate) -> Finder:
    """Find a person by the token in the header; never by a cookie, so that no other page can ask on their behalf."""

    def find(request: Request) -> tuple[Person, str]:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer":
            raise Problem(401, "send your token: Authorization: Bearer dsc_...", **_CHALLENGE)
        return gate.person_with(token.strip(), client_of(request)), ""

    return find


def client_of(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else ""


async def _read(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES:
            raise Problem(413, f"a request has at most {BODY_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts)


class Headers:
    """Adds to every response what keeps browsers from running, framing, storing or forwarding it."""

    def __init__(self, app: ASGIApp, *, encrypted: bool) -> None:
        self._app, self._encrypted = app, encrypted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", _POLICY)
                headers.setdefault("Cache-Control", "no-store")
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "same-origin"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                if self._encrypted:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        await self._app(scope, receive, sent)
