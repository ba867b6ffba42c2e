"""A real PostgreSQL server that the tests start themselves, on a socket in a temporary folder."""

import ctypes
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

OWNER = "postgres"
PATIENCE = 30.0


class NoServer(Exception):
    """Why there is no server here."""


def installations() -> Iterator[Path]:
    """Folders with PostgreSQL's programs: of the package pgserver, of the machine, on the path."""
    package = importlib.util.find_spec("pgserver")  # not imported: that would look for a home to write to
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "pginstall" / "bin"
    machine = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(machine, key=lambda path: [int(n) for n in re.findall(r"\d+", path.parent.name)], reverse=True)
    found = shutil.which("initdb")
    if found is not None:
        yield Path(found).resolve().parent


def _other_user() -> dict[str, Any]:
    """PostgreSQL does not run as root: who it runs as then, in the words of ``subprocess``."""
    if os.geteuid() != 0:
        return {}
    for name in ("nobody", "daemon", "postgres"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NoServer("PostgreSQL does not run as root, and there is no user nobody")


def _ends_with_parent() -> None:
    """No server outlives a test run, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


class Server:
    """A cluster of its own, with durable commits. ``stop`` is what a power cut is to a database."""

    def __init__(self) -> None:
        self._user = _other_user()
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp" if os.path.isdir("/tmp") else None))
        self._process: subprocess.Popen[bytes] | None = None
        self._databases: set[str] = set()
        try:
            if self._user:
                os.chown(self.folder, self._user["user"], self._user["group"])
            self._bin = self._made()
            self.start()
        except OSError as error:
            self.close()
            raise NoServer(f"PostgreSQL cannot be run here: {type(error).__name__}") from None
        except BaseException:
            self.close()
            raise

    def _made(self) -> Path:
        """The programs that could make a cluster."""
        why = "neither the package pgserver nor the machine has PostgreSQL's programs"
        for place in installations():
            if not (place / "postgres").is_file():
                continue
            try:
                programs = self._reachable(place)
                done = self._run(
                    *(programs / "initdb", "--pgdata", self._data, "--username", OWNER, "--auth", "trust"),
                    *("--no-sync", "--no-locale", "--encoding", "UTF8"),
                )
            except OSError as error:
                why = f"initdb cannot be run: {type(error).__name__}"
                continue
            if done.returncode == 0:
                (self._data / "pg_hba.conf").write_text("local all all trust\n")
                return programs
            why = f"initdb failed: {done.stderr.strip().splitlines()[-1:]}"
            shutil.rmtree(self._data, ignore_errors=True)
        raise NoServer(why)

    def _reachable(self, place: Path) -> Path:
        """The programs where the server's user may run them: a copy, where they are in somebody's home."""
        try:
            self._run(place / "initdb", "--version")
        except PermissionError:
            package = place.parent.parent
            copy = self.folder / "package"
            for name in (package.name, f"{package.name}.libs"):
                if (package.parent / name).is_dir():
                    shutil.copytree(package.parent / name, copy / name, symlinks=True)
            return copy / package.name / place.relative_to(package)
        return place

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, *command: object) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        words = [str(word) for word in command]
        return subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, **self._user
        )

    def run(self, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """One of PostgreSQL's programs."""
        return self._run(self._bin / program, *arguments)

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "fsync": "on",
            "shared_buffers": "8MB",
            "max_connections": 60,
            "autovacuum": "off",
            "timezone": "UTC",
        }
        words = [f"{name}={value}" for name, value in settings.items()]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *(word for pair in words for word in ("-c", pair))],
                cwd=self.folder,
                env={"LC_ALL": "C", "PATH": os.defpath},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_ends_with_parent,
                **self._user,
            )
        import psycopg

        end = time.monotonic() + PATIENCE
        while True:
            try:
                return psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > end:
                    told = (self.folder / "log").read_text(errors="replace").strip().splitlines()[-1:]
                    raise NoServer(f"PostgreSQL does not start: {told}") from None
                time.sleep(0.02)

    def stop(self) -> None:
        """At once, without a word to anybody."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGQUIT)
                try:
                    self._process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
            self._process = None

    def close(self) -> None:
        """Stop, and leave nothing behind."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, user: str = OWNER, password: str = "") -> str:
        """The address of a database for a user."""
        name = quote(user, safe="") + (":" + quote(password, safe="") if password else "")
        return f"postgresql://{name}@/{database}?host={quote(str(self.folder), safe='')}"

    def execute(self, statement: str, *values: Any, database: str = "postgres", user: str = OWNER) -> list[Any]:
        """Carry out one statement, by itself."""
        import psycopg

        with psycopg.connect(self.url(database, user), autocommit=True) as connection:
            done = connection.execute(statement, values or None)
            return done.fetchall() if done.description else []

    def fresh(self, database: str = "ledgers") -> str:
        """A database without a ledger, and without anybody connected to it."""
        if database not in self._databases:
            self.execute(f"CREATE DATABASE {database} TEMPLATE template0")
            self._databases.add(database)
        else:
            others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
            self.execute(others, database)
            self.execute("DROP SCHEMA IF EXISTS discreet_ledger CASCADE", database=database)
        return database

    def role(self) -> str:
        """A new role, of an awkward name, that may nothing."""
        name = f'Analyst "{secrets.token_hex(4)}"; %s ?'
        self.execute('CREATE ROLE "' + name.replace('"', '""') + '" LOGIN')
        return name
