"""Everything that a person outside can observe of one run, written down: texts, files, charges, results."""

import io
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.replay_pair import differences, run
from discreet.budget import Neighbors
from discreet.ledger.ledger import Ledger, Reservation
from tests.promises.surface.values import CHARGED, TOUCHED, TRACES

RICH, BROKE = "rich", "broke"
"""Whether the ledger grants what is asked."""

_NAMES = re.compile(rb"(?<![0-9a-f])(?<![0-9]\.)[0-9a-f]{12,}")
"""Random names and hashes, in hexadecimal or decimal digits; not the digits after a decimal point."""

_PLACES = re.compile(rb"0x[0-9a-f]+")
_TIMES = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.+]+)?")
_MEMORY = re.compile(rb"this machine has [0-9.]+ [A-Za-z]+ left")


class WatchedLedger(Ledger):
    """A ledger in memory that writes down what it is asked, and in which order."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.asked: list[str] = []
        for relation in Neighbors:
            for unit in ("record", "person"):
                for purse, cap in ((RICH, (1000.0, 1e-3)), (BROKE, (1e-9, 1e-12))):
                    self.grant(account_name(relation, unit, purse), *cap, neighbors=relation, unit=unit)

    def equals(self, other: Any) -> bool:
        """All are alike to a comparison: what they are asked is compared, and not how old they are."""
        return isinstance(other, WatchedLedger)

    def reserve(self, dataset: str, priced: Any, charge_id: str | None = None, **words: Any) -> Reservation:
        """Charge, and write it down, refused or not."""
        TOUCHED.append(CHARGED)
        self.asked.append(f"reserve {dataset} {priced!r} {charge_id!r} {sorted(words.items())}")
        made = super().reserve(dataset, priced, charge_id, **words)
        return replace(made, name="ledger", entry=1, head="")  # the ledger grows from case to case

    def recognize(self, dataset: str, fingerprint: Any) -> None:
        """Keep the fingerprint, whose contents are the owner's."""
        self.asked.append(f"recognize {dataset}")
        super().recognize(dataset, fingerprint)


def account_name(relation: Neighbors, unit: str, purse: str) -> str:
    """The data set that is charged."""
    return f"{relation} {unit} {purse}"


@dataclass
class Observed:
    """One run, as it looks from outside."""

    raised: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
    printed: str = ""
    complained: str = ""
    charges: tuple[str, ...] = ()
    early: tuple[str, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    shown: str = ""
    result: Any = None
    released: list[NDArray[np.int64]] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether the run ended in an error."""
        return bool(self.raised) or bool(getattr(self.result, "refused", False))


def observed(
    call: Callable[[], Any],
    *,
    out: Path,
    ledger: WatchedLedger,
    forced: Sequence[NDArray[np.int64]] = (),
    pays: bool = True,
    reads: bool = True,
    seed: int = 0,
) -> Observed:
    """Run with frozen answers and write down what can be seen.

    ``pays`` says that records may be read after a charge only, ``reads`` that they may be read at all.
    """
    TOUCHED.clear()
    ledger.asked.clear()
    seen = run(call, (), seed=seed, forced=forced)
    early = TOUCHED[: TOUCHED.index(CHARGED)] if reads and CHARGED in TOUCHED else list(TOUCHED)
    return Observed(
        raised=seen.raised,
        warned=tuple(seen.warned),
        logged=tuple(seen.logged),
        printed=seen.printed,
        complained=seen.complained,
        charges=tuple(ledger.asked),
        early=tuple(early) if pays or not reads else (),
        files={str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()},
        asked=tuple(f"{one.query} {one.exact.shape} {one.unit} {one.factor}" for one in seen.measurements),
        shown=_shown(seen.fitted),
        result=seen.fitted,
        released=seen.released,
    )


def _shown(result: Any) -> str:
    try:
        return masked(repr(result).encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def masked(content: bytes) -> bytes:
    """Without names, hashes, places in memory, times and free memory, which differ from run to run."""
    content = _MEMORY.sub(b"<memory>", content)
    return _TIMES.sub(b"<time>", _NAMES.sub(b"<hex>", _PLACES.sub(b"<place>", content)))


def compared(first: Observed, second: Observed, shows: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """(kind, what) for everything that tells two neighbors apart; ``shows`` are kinds that are declared to."""
    for kind, what in (*_differences(first, second), *_traces(first, second)):
        if kind not in shows:
            yield kind, what


def _differences(first: Observed, second: Observed) -> Iterator[tuple[str, str]]:
    for kind in ("raised", "warned", "logged", "printed", "complained", "charges", "asked"):
        one, other = getattr(first, kind), getattr(second, kind)
        if one != other:
            yield kind, f"{_short(one)} against {_short(other)}"
    if second.early and first.early != second.early:
        yield "early", f"before the charge a record's {', '.join(sorted(set(second.early)))} was called"
    if sorted(first.files) != sorted(second.files):
        yield "files", f"{sorted(first.files)} against {sorted(second.files)}"
    for name in sorted(set(first.files) & set(second.files)):
        yield from _contents(name, first.files[name], second.files[name])
    if not (first.raised or second.raised):
        if hasattr(first.result, "differences"):
            yield from first.result.differences(second.result)
        else:
            yield from (("result", f"{path}: {what}") for path, what in differences(first.result, second.result))


def _contents(name: str, one: bytes, other: bytes) -> Iterator[tuple[str, str]]:
    """A ledger's pages are its own affair; its entries are compared elsewhere."""
    if name.endswith((".db", ".db-wal", ".db-shm", ".db.key")):
        return
    a, b = unpacked(one), unpacked(other)
    if sorted(a) != sorted(b):
        yield "contents", f"{name}: {sorted(a)} against {sorted(b)}"
    for part in sorted(set(a) & set(b)):
        if masked(a[part]) != masked(b[part]):
            yield "contents", f"{name} {part}: {len(a[part])} bytes against {len(b[part])}"


def unpacked(content: bytes) -> dict[str, bytes]:
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return {"": content}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _traces(first: Observed, second: Observed) -> Iterator[tuple[str, str]]:
    """The changed record's sentinels, wherever they turn up: not in a random hash, which holds any digits by chance."""
    before = dict(_texts(first))
    for kind, content in _texts(second):
        text = _NAMES.sub(b"<hex>", content)
        found = [trace for trace in TRACES if trace in text and trace not in before.get(kind, b"")]
        if found:
            yield kind.partition(" ")[0], f"a value of the record: {_short(text[max(0, text.index(found[0]) - 60) :])}"


def _texts(seen: Observed) -> Iterator[tuple[str, bytes]]:
    for kind in ("raised", "warned", "logged"):
        yield kind, "\n".join(getattr(seen, kind)).encode("utf-8", "surrogatepass")
    for kind in ("printed", "complained"):
        yield kind, getattr(seen, kind).encode("utf-8", "surrogatepass")
    yield "result repr", seen.shown.encode("utf-8", "surrogatepass")
    yield "result pickle", _pickled(seen.result)
    if hasattr(seen.result, "texts"):
        yield from seen.result.texts()
    for name, content in seen.files.items():
        for part, inside in unpacked(content).items():
            yield f"contents {name} {part}", inside
        yield f"files {name}", name.encode("utf-8", "surrogatepass")


class _Pickler(pickle.Pickler):
    """A ledger in memory refuses to be in a pickle, and holds no records."""

    def persistent_id(self, obj: Any) -> str | None:
        """A name in place of a ledger."""
        return "ledger" if isinstance(obj, Ledger) else None


def _pickled(result: Any) -> bytes:
    """What a pickle of the result would hold."""
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(result)
    except Exception:  # what cannot be pickled leaves in no pickle
        return b""
    return buffer.getvalue()


def _short(text: Any) -> str:
    shown = text if isinstance(text, str) else repr(text)
    return shown if len(shown) <= 300 else f"{shown[:200]} ... {shown[-80:]}"
