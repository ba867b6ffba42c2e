"""What the tests of the ledger share: a PostgreSQL server, started once for each worker."""

from collections.abc import Iterator

import pytest

from tests.ledger.postgres import NoServer, Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server; skips where none can be had."""
    pytest.importorskip("psycopg", reason="PostgreSQL is not tested: no psycopg", exc_type=ImportError)
    try:
        running = Server()
    except NoServer as why:
        pytest.skip(f"PostgreSQL is not tested: {why}")
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def database(server: Server) -> str:
    """The URL of a database without a ledger, for its owner."""
    return server.url(server.fresh())
