"""The application: API and console behind the same headers, with the dispatcher's life."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from discreet.serve import api, console
from discreet.serve.service import Service
from discreet.serve.settings import ServiceError, Settings
from discreet.serve.web import Gate, Headers, Problem


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
        routes=[*api.routes(gate), *console.routes(gate)],
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
