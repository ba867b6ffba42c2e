"""A service in a process of its own that is killed, and analysts who go on asking."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import discreet
from discreet.errors import DiscreetError
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.service_client import RemoteService, ServiceRefused
from tests.serve.services import write_files

PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Victim:
    """A service that can be killed and started again."""

    def __init__(self, folder: Path, analysts: int, *, cap: float, allocation: float, fits_at_once: int = 1) -> None:
        self.port = free_port()
        limits = f"fits_at_once = {fits_at_once}\njobs_waiting = 1000"
        self.path = write_files(folder, cap=cap, service=f"port = {self.port}", limits=limits)
        accounts = Service(Settings.load(self.path)).accounts
        self.tokens = [accounts.new(f"analyst{i}", "analyst") for i in range(analysts)]
        for i in range(analysts):
            accounts.allocate(f"analyst{i}", "patients", allocation)
        self.url, self._process = f"http://127.0.0.1:{self.port}", None

    def start(self) -> None:
        source = str(Path(discreet.__file__).parents[1])
        command = [sys.executable, "-c", "from discreet.cli import main; main()", "serve", str(self.path)]
        environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        with (self.path.parent / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError):
                urlopen(f"{self.url}/login", timeout=5).close()
                return
            assert self._process.poll() is None, (self.path.parent / "log").read_text()
            time.sleep(0.05)
        raise AssertionError("the service did not start")

    def kill(self) -> None:
        """As by the kernel: at once, without a word."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)

    def client(self, i: int) -> RemoteService:
        return discreet.remote(self.url, token=self.tokens[i])


def patiently(ask, *arguments, seconds: float = PATIENCE):
    """Ask again while the service is away; any other answer is returned or raised."""
    end = time.monotonic() + seconds
    while True:
        try:
            return ask(*arguments)
        except ServiceRefused as error:
            if error.status not in (502, 503) or time.monotonic() > end:
                raise
        except (ConnectionError, OSError, DiscreetError):
            if time.monotonic() > end:
                raise
        time.sleep(0.05)
