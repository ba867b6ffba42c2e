"""The application: API and console behind the same headers, with the dispatcher's life."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from discreet.serve import api, console
from discreet.serve.service import Service
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
