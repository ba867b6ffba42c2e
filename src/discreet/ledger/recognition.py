"""Which records were charged for under another name: fingerprints compared, and noted for the owner."""

from discreet.ledger.account import Account
from discreet.ledger.fingerprint import NOTICEABLE, Fingerprint, Notice
from discreet.ledger.store import Connection

_SEEN = "INSERT INTO seen (dataset, times) VALUES (?, 1) ON CONFLICT (dataset) DO UPDATE SET times = seen.times + 1"
_KNOWN = "SELECT dataset, digest, sketch FROM known"
_NOTED = "INSERT INTO notice (dataset, other, share) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


def compare(at: Connection, own: Account, fingerprint: Fingerprint) -> None:
    """Compare records with those of all data sets, keep their fingerprint the first time, note what does not fit."""
    dataset = own.name
    at.run(_SEEN, dataset)
    parents = dict(at.rows("SELECT name, parent FROM account"))
    known = {name: Fingerprint.stored(*stored) for name, *stored in at.rows(_KNOWN)}
    if dataset not in known:
        at.run("INSERT INTO known (dataset, digest, sketch) VALUES (?, ?, ?)", dataset, *fingerprint.stores())
    for name, other in known.items():
        if name != own.parent and parents[name] != dataset:
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
