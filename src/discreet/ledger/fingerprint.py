"""Whether two tables hold the same records, from keyed hashes of their rows that mean nothing to others.

A fingerprint depends on the multiset of rows alone, in single precision: neither on their order nor on the container.
The sketch (the smallest of the rows' hashes) tells how many rows two tables share. Both stay in the ledger: they depend
on every record, so that they appear in no certificate, no report and no message to an analyst, and nothing that an
analyst sees depends on them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from discreet.ledger.account import Account
from discreet.ledger.store import Connection

SKETCH = 256
NOTICEABLE = 0.1
"""The share of a table's rows in another one from which on the owner is notified."""
_RANGE = 2**64


@dataclass(frozen=True)
class Fingerprint:
    """A digest that equal tables share, the ``SKETCH`` smallest hashes of distinct rows, and the number of rows."""

    digest: str
    sketch: tuple[int, ...]
    rows: int = 0

    def share_in(self, other: "Fingerprint") -> float:
        """About how much of this table's distinct rows the other one holds.

        Hashes are uniform, so that those below the smaller of the two sketches' ends are a fair sample of both.
        """
        if self.digest == other.digest:
            return 1.0
        if not (self.tells and other.tells):
            return 0.0
        end = min(_end(self.sketch), _end(other.sketch))
        mine = [value for value in self.sketch if value < end]
        theirs = set(other.sketch)
        return sum(value in theirs for value in mine) / len(mine) if mine else 0.0

    @property
    def tells(self) -> bool:
        """Whether rows tell records apart: of a few zeros and ones, unrelated tables hold the same rows."""
        distinct = len(self.sketch) * _RANGE / _end(self.sketch) if self.sketch else 0.0
        return distinct >= self.rows / 2

    def stores(self) -> tuple[str, str]:
        """The digest and the rest as they are stored."""
        return self.digest, json.dumps([self.rows, *self.sketch])

    @classmethod
    def stored(cls, digest: str, rest: str) -> "Fingerprint":
        """From what was stored."""
        rows, *sketch = json.loads(rest)
        return cls(digest, tuple(sketch), rows)


def _end(sketch: Sequence[int]) -> int:
    """Up to where a sketch is complete: everywhere, where the table has fewer rows than it holds."""
    return sketch[-1] + 1 if len(sketch) >= SKETCH else _RANGE


@dataclass(frozen=True)
class Notice:
    """For the owner: about ``share`` of the records charged to ``dataset`` are those of ``other``.

    ``other`` is the data set itself where few of its own records were seen: other records under its name.
    """

    dataset: str
    other: str
    share: float

    def __str__(self) -> str:
        if self.dataset == self.other:
            return (
                f"a fit charged to {self.dataset!r} saw other records than those first seen under this name "
                f"(about {self.share:.0%} the same)"
            )
        return (
            f"about {self.share:.0%} of the records of a fit charged to {self.dataset!r} are in {self.other!r} too: "
            "anyone who is in both is protected by neither cap alone"
        )


_SEEN = "INSERT INTO seen (dataset, times) VALUES (?, 1) ON CONFLICT (dataset) DO UPDATE SET times = seen.times + 1"
_KNOWN = "SELECT dataset, digest, sketch FROM known"
_NOTED = "INSERT INTO notice (dataset, other, share) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


def compare(at: Connection, account: Account, fingerprint: Fingerprint) -> None:
    """Compare records with those of all data sets, keep their fingerprint the first time, note what does not fit."""
    dataset = account.name
    at.run(_SEEN, dataset)
    parents: dict[str, str | None] = dict(at.rows("SELECT name, parent FROM account"))
    fingerprints = {name: Fingerprint.stored(*stored) for name, *stored in at.rows(_KNOWN)}
    if dataset not in fingerprints:
        at.run("INSERT INTO known (dataset, digest, sketch) VALUES (?, ?, ?)", dataset, *fingerprint.stores())
    for name, other in fingerprints.items():
        if name != account.parent and parents[name] != dataset:
            share = _share(fingerprint, other, is_own=name == dataset)
            if (share < NOTICEABLE) == (name == dataset):
                at.run(_NOTED, dataset, name, share)


def notices(at: Connection) -> list[Notice]:
    """Return what was noted, by name."""
    return [Notice(*row) for row in at.rows("SELECT dataset, other, share FROM notice ORDER BY dataset, other")]


def _share(fingerprint: Fingerprint, other: Fingerprint, *, is_own: bool) -> float:
    """How much of the records seen is in another data set, or the other way round; in its own: the first alone."""
    share = fingerprint.share_in(other)
    return share if is_own else max(share, other.share_in(fingerprint))
