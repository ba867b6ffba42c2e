"""A crowd of workers on one ledger, killed one after the other at random moments and replaced."""

import json
import os
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from discreet import BudgetExceeded, Ledger
from discreet.errors import LedgerError
from tests.promises.crash.charges import DATASET, charge
from tests.promises.crash.children import Child
from tests.promises.crash.observing import Snapshot, faults, is_within, snapshot

HIGHEST = 4.0
"""Where the owner stops granting: the last refusals are for good."""
DEADLINE = 45.0


@dataclass
class Folder:
    """What the workers leave behind: a log each, which nothing but whole lines are written to."""

    path: Path

    def log(self, slot: int) -> Path:
        return self.path / f"{slot}.log"

    @property
    def stop(self) -> Path:
        return self.path / "stop"

    def lines(self, slot: int | None = None) -> Iterator[list[str]]:
        for file in [self.log(slot)] if slot is not None else self.path.glob("*.log"):
            if file.exists():
                yield from (line.split() for line in file.read_text().splitlines())

    def released(self) -> dict[str, set[str]]:
        """All that ever became visible under each request."""
        seen: dict[str, set[str]] = {}
        for kind, *rest in self.lines():
            if kind == "released":
                seen.setdefault(rest[0], set()).add(rest[1])
        return seen

    def count(self, kind: str) -> int:
        return sum(line[0] == kind for line in self.lines())


class Log:
    """Appends lines, each with one system call: a killed worker leaves a whole line or none."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def __call__(self, *words: str) -> None:
        os.write(self._handle, (" ".join(words) + "\n").encode())


def ask(ledger: Ledger, charge_id: str) -> str | None:
    """What may be shown to the world under this request; None where the budget does not allow it."""
    try:
        reservation = charge(ledger, charge_id)
    except BudgetExceeded:
        return None
    return reservation.release or reservation.settle(secrets.token_hex(8))


def own_and_shared(address: Path, folder: Folder, slot: int, seed: float) -> None:
    """Ask for one release after the other, go on where a killed predecessor stopped, and ask for some twice."""
    chance, ledger, log = random.Random(seed), Ledger(address), Log(folder.log(slot))
    done = len({line[1] for line in folder.lines(slot) if line[0] == "released" and line[1].startswith("own")})
    while not folder.stop.exists():
        shared = chance.random() < 0.2
        charge_id = f"shared-{chance.randrange(150)}" if shared else f"own-{slot}-{done}"
        shown = ask(ledger, charge_id)
        if shown is None:
            log("refused", charge_id)
            if chance.random() < 0.1:
                raise_cap(ledger, chance)
            time.sleep(0.01)  # the others want the processor
            continue
        log("released", charge_id, shown)
        if chance.random() < 0.2:
            log("released", charge_id, ask(ledger, charge_id) or "nothing")
        done += not shared


def raise_cap(ledger: Ledger, chance: random.Random) -> None:
    """As careless owners would, all at once: what one read may be out of date when it grants."""
    cap = ledger.account(DATASET).epsilon
    with suppress(LedgerError):  # lower than what others have spent by now
        if cap < HIGHEST:
            ledger.grant(DATASET, min(HIGHEST, cap + chance.choice((0.1, 0.2))))


def watch(address: Path, folder: Folder) -> dict[str, object]:
    """Take snapshots until told to stop; the first few faults, and how many snapshots there were."""
    found: list[str] = []
    before: Snapshot | None = None
    taken = 0
    while not folder.stop.exists() and not found:
        now = snapshot(address)
        found += faults(now, before)
        before, taken = now, taken + 1
        time.sleep(0.02)
    return {"faults": found, "snapshots": taken}


def is_exhausted(address: Path) -> bool:
    """Whether the owner grants no more, and not even the cheapest charge would fit."""
    now = snapshot(address)
    account, cheapest = now.accounts[DATASET], min(entry[4:9] for entry in now.charges)
    return account["epsilon"] >= HIGHEST and not is_within(account, cheapest)


@dataclass
class Crowd:
    """``slots`` workers, of which a random one is killed again and again."""

    address: Path
    folder: Folder
    work: Callable[[Path, Folder, int, float], None]
    slots: int
    chance: random.Random
    errors: list[object] = field(default_factory=list)
    kills: int = 0

    def __post_init__(self) -> None:
        self._children = [self._started(slot) for slot in range(self.slots)]

    def _started(self, slot: int) -> Child:
        seed = self.chance.random()
        return Child(lambda: self.work(self.address, self.folder, slot, seed))

    def kill(self, times: int, longest: float) -> None:
        """Kill that many, at random moments, up to four at once."""
        left = times
        while left:
            time.sleep(self.chance.random() * longest)
            slots = self.chance.sample(range(self.slots), min(left, self.slots, self.chance.randint(1, 4)))
            left -= len(slots)
            for slot in slots:
                self._children[slot].kill()
            for slot in slots:
                self._ended(slot)
                self._children[slot] = self._started(slot)

    def wait_until(self, condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + DEADLINE
        while not (reached := condition()) and time.monotonic() < end:
            time.sleep(0.02)
        return reached

    def finish(self) -> None:
        """Let the last ones end by themselves."""
        self.folder.stop.touch()
        for slot in range(self.slots):
            self._ended(slot)

    def _ended(self, slot: int) -> None:
        outcome = self._children[slot].join()
        self.kills += outcome.signal == 9
        if outcome.value is not None or outcome.signal not in (0, 9):
            self.errors.append(outcome)


def main(address: Path, folder: Folder, workers: int, kills: int) -> dict[str, object]:
    """Watch a crowd, kill so many of it, and let the rest reach the last cap."""
    observer = Child(lambda: watch(address, folder))
    crowd = Crowd(address, folder, own_and_shared, workers, random.Random(7))
    crowd.kill(kills, longest=0.03)
    exhausted = crowd.wait_until(lambda: is_exhausted(address))
    crowd.finish()
    errors = [str(error) for error in crowd.errors]
    return {"kills": crowd.kills, "errors": errors, "exhausted": exhausted, **observer.join().value}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Folder(Path(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4]))))
