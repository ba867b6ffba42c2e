"""``service.toml``: data sets, ledger, folder, address and limits of a service, as its owner declares them.

Paths are relative to the file. Nothing of it comes from an analyst: requests name data sets, never paths or URLs.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.json_schemas import Json
from discreet.parameters import Count, NonNegative, Positive, check_fields
from discreet.schema.cell_meaning import SCHEMA_BYTES, SchemaError, parsed
from discreet.schema.schema import Schema

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
"""Names of data sets and of people: they are parts of addresses and of charge ids."""


class ServiceError(DiscreetError, ValueError):
    """A service that cannot be started, or a request that it cannot serve; the message says what to do."""

    status = 422


class Forbidden(ServiceError):
    """The role does not allow it."""

    status = 403


class NotFound(ServiceError):
    """There is no such thing for this person: also where it is somebody else's."""

    status = 404


class Conflict(ServiceError):
    """The state of the budget, or of a job, does not allow it."""

    status = 409


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one service may use, and what one analyst may ask.

    ``release_grid`` is in seconds: results appear at whole multiples of it, so that running times are not shown. 0
    shows them.
    """

    fits_at_once: Count = 1
    minutes: Positive = 60.0
    memory: str | None = None
    release_grid: NonNegative = 60.0
    requests_per_minute: Count = 300
    jobs_waiting: Count = 100
    approve_above: Positive | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A table that analysts may fit models to: where its rows are, and what is publicly known of them."""

    name: str
    table: tuple[str, ...]
    schema: Schema
    about: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of ``service.toml``."""

    ledger: str
    folder: Path
    datasets: Mapping[str, DataSet]
    title: str = "discreet"
    host: str = "127.0.0.1"
    port: Count = 8080
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    cluster: str | None = None
    limits: Limits = field(default_factory=Limits)
    path: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ServiceError("TLS needs both: certificate = ... and key = ... in [service]")
        if not (self.is_encrypted or _is_loopback(self.host)):
            raise ServiceError(
                "tokens would travel in the clear: give certificate and key in [service], or behind_proxy = true where "
                "a proxy on this machine adds TLS, or host = '127.0.0.1'"
            )
        if not self.datasets:
            raise ServiceError("the service has no data set: add [datasets.NAME] with table and schema")

    @property
    def is_encrypted(self) -> bool:
        """Whether browsers reach the service by https."""
        return self.certificate is not None or self.behind_proxy

    @property
    def database(self) -> Path:
        """Accounts, jobs and the audit log."""
        return self.folder / "service.db"

    @property
    def results(self) -> Path:
        """One folder per finished job."""
        return self.folder / "results"

    @classmethod
    def load(cls, path: str | Path) -> "Settings":
        """Read the file, and the schemas that it names."""
        path = Path(path).absolute()
        top = _tables(path)
        _refuse_unknown(top, ("service", "limits", "datasets"), "service.toml")
        service, limits = (_table(top, name) for name in ("service", "limits"))
        _refuse_unknown(service, _SERVICE, "[service]")
        _refuse_unknown(limits, tuple(limit.name for limit in fields(Limits)), "[limits]")
        for name in ("ledger", "folder"):
            if name not in service:
                raise ServiceError(f"[service] needs {name}: see the tutorial 'a service in ten minutes'")
        for name, value in service.items():
            kind = _SERVICE[name]
            if type(value) is not kind:
                raise ServiceError(f"[service] {name} must be {_WORDS[kind]}")
        home = path.parent
        placed: Json = {name: home / service[name] for name in ("folder", "certificate", "key") if name in service}
        ledger = service["ledger"] if "://" in service["ledger"] else str(home / service["ledger"])
        datasets = {name: _dataset(name, table, home) for name, table in _table(top, "datasets").items()}
        given: Json = {**service, **placed, "ledger": ledger, "datasets": datasets, "limits": Limits(**limits)}
        return cls(**given, path=path)


_SERVICE: dict[str, type] = {
    **{"title": str, "ledger": str, "folder": str, "host": str, "port": int, "certificate": str, "key": str},
    **{"behind_proxy": bool, "cluster": str},
}
_WORDS = {str: "a text", int: "a whole number", bool: "true or false"}


def _tables(path: Path) -> Json:
    try:
        with path.open("rb") as file:
            text = file.read(SCHEMA_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise ServiceError(f"{path}: there is no such file: `discreet serve --demo` writes one to look at") from None
    except UnicodeDecodeError:
        raise ServiceError(f"{path}: this is not a text in UTF-8") from None
    try:
        return parsed(text.replace("\r\n", "\n"))
    except SchemaError as error:
        raise ServiceError(str(error).replace("the schema", "the service's file")) from None


def _table(top: Mapping[str, object], name: str) -> Json:
    table = top.get(name, {})
    if not isinstance(table, dict):
        raise ServiceError(f"{name} is a table of its own: write [{name}]")
    return table


def _refuse_unknown(given: Json, names: Iterable[str], where: str) -> None:
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ServiceError(f"{where} has no {', '.join(unknown)}: it knows {', '.join(names)}")


def _dataset(name: str, table: object, home: Path) -> DataSet:
    where = f"[datasets.{name}]"
    if not NAME.fullmatch(name):
        raise ServiceError(f"{where}: a name has at most 40 letters, digits, dots, dashes and underscores")
    if not isinstance(table, dict):
        raise ServiceError(f"{where} is a table of its own, with table and schema")
    _refuse_unknown(table, ("table", "schema", "about"), where)
    paths = table.get("table")
    paths = [paths] if isinstance(paths, str) else paths
    if not (isinstance(paths, list) and paths and all(isinstance(path, str) and path for path in paths)):
        raise ServiceError(f"{where}: table is a path, or a list of paths, of CSV or Parquet files")
    if any("://" in path for path in paths):
        raise ServiceError(f"{where}: table is a path on this machine: URLs are not fetched")
    if not isinstance(table.get("schema"), str) or not isinstance(table.get("about", ""), str):
        raise ServiceError(f"{where}: schema is the path of a schema, and about a text")
    try:
        schema = Schema.load(home / table["schema"])
        schema.check()
    except FileNotFoundError:
        raise ServiceError(f"{where}: there is no such schema") from None
    except SchemaError as error:
        raise ServiceError(f"{where}: {error}") from None
    placed = tuple(str(home / path) for path in paths)
    return DataSet(name=name, table=placed, schema=schema, about=table.get("about", ""))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
