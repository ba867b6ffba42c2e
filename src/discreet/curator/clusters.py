"""Which Dask cluster a fit uses, and whether the way to it may carry rows."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from discreet.curator.unquoted import unquoted
from discreet.errors import ClusterFailed, Unsupported

_client: ContextVar[Any] = ContextVar("discreet_cluster", default=None)
_CONNECT = 30


def _distributed() -> Any:
    with unquoted("records on a cluster need Dask: install discreet[dask]", ImportError):
        import distributed
    return distributed


@contextmanager
def cluster(address: Any, *, security: Any = None, insecure: bool = False) -> Iterator[Any]:
    """Fit on a Dask cluster inside the block: workers read, encode and keep the rows.

    Dask collections, and the paths that ``TableModel.fit`` is given, are read by the cluster's workers. Noise is drawn,
    and budgets are charged, in this process only.

    Parameters
    ----------
    address : str or distributed.Client
        The scheduler's address, such as ``"tls://host:8786"``, or a client that is connected.
    security : distributed.Security or None, default=None
        Certificates and keys for ``tls://``. None: those of Dask's own configuration.
    insecure : bool, default=False
        Permit an address outside of this machine without TLS: rows and exact sums then travel in the clear, and anyone
        who reaches the scheduler can run code on the workers.

    Yields
    ------
    distributed.Client
        The client.

    Raises
    ------
    Unsupported
        If the address is outside of this machine and not encrypted.
    ClusterFailed
        If the scheduler cannot be reached.

    Examples
    --------
    >>> from discreet.scale import cluster
    >>> with cluster("tcp://192.0.2.1:8786"):
    ...     pass
    Traceback (most recent call last):
    discreet.errors.Unsupported: tcp://192.0.2.1:8786 is outside of this machine and not encrypted: ...
    """
    given = None if isinstance(address, str) else address
    check_address(address if given is None else given.scheduler.address, insecure=insecure)
    client = _connected(address, security) if given is None else given
    token = _client.set((client, insecure))
    try:
        yield client
    finally:
        _client.reset(token)
        if given is None:
            client.close()


@contextmanager
def local_cluster(n_workers: int = 2, **settings: Any) -> Iterator[Any]:
    """Start a cluster on this machine for the block: one process of one thread per worker, reachable from here only.

    Parameters
    ----------
    n_workers : int, default=2
        How many processes.
    **settings : dict
        Those of ``distributed.LocalCluster``, such as ``memory_limit`` and ``local_directory``.

    Yields
    ------
    distributed.Client
        The client; Dask's own collections use it, too.

    Examples
    --------
    >>> from discreet.scale import local_cluster
    >>> with local_cluster(n_workers=2):  # doctest: +SKIP
    ...     model.fit(dask_frame, "ill")
    """
    host = {"host": "127.0.0.1"} if settings.get("processes", True) else {}
    made = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", **host, **settings}
    distributed = _distributed()
    with (
        distributed.LocalCluster(n_workers=n_workers, **made) as started,
        distributed.Client(started) as client,
        cluster(client),
    ):
        yield client


def _connected(address: str, security: Any) -> Any:
    distributed = _distributed()
    try:
        return distributed.Client(address, security=security, timeout=_CONNECT)
    except (OSError, TimeoutError, ValueError, RuntimeError):
        reason = f"the scheduler at {address} cannot be reached: is it running, and are the certificates right?"
    raise ClusterFailed(reason)


def check_address(address: str, *, insecure: bool) -> None:
    """Refuse an address outside of this machine that is not encrypted."""
    way, host = urlsplit(address).scheme or "tcp", urlsplit(address if "://" in address else f"//{address}").hostname
    if way in ("tls", "inproc") or insecure or _is_here(host or ""):
        return
    raise Unsupported(
        f"{address} is outside of this machine and not encrypted: use tls:// (docs/how-to/scale.md has the steps), or "
        "discreet.scale.cluster(..., insecure=True) on a network where everyone may see the rows"
    )


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def named_client() -> Any:
    """Return the client of the ``cluster`` block that this code runs in; None outside of any."""
    found = _client.get()
    return None if found is None else found[0]


def client_for_collections() -> Any:
    """Return the client that Dask collections are computed with: the block's, else Dask's current one."""
    found = named_client()
    if found is not None:
        return found
    try:
        client = _distributed().Client.current()
    except ValueError:
        client = None
    if client is None:
        raise Unsupported(
            "a Dask collection is fitted on a cluster: connect a distributed.Client, or write "
            "with discreet.scale.local_cluster(): model.fit(...)"
        )
    check_address(client.scheduler.address, insecure=False)
    return client
