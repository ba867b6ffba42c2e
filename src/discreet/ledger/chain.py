"""Entries, each bound to the one before by its hash: changing one changes every hash after it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from discreet.ledger.privacy_filters import FREE, Amounts

GENESIS = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One line of the ledger: a cap granted, a part declared, or a charge."""

    seq: int
    kind: str
    dataset: str
    charge_id: str | None
    charge: Amounts
    body: str
    prev: str
    hash: str

    @classmethod
    def after(
        cls,
        seq: int,
        prev: str,
        kind: str,
        dataset: str,
        body: Mapping[str, Any],
        *,
        charge_id: str | None = None,
        charge: Amounts = FREE,
    ) -> "Entry":
        """The next entry of a chain whose last one has this number and hash."""
        return cls(seq + 1, kind, dataset, charge_id, charge, canonical(body), prev, "").sealed()

    def sealed(self) -> "Entry":
        """With the hash of everything else in it."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """The hash of everything else in it."""
        parts = [self.seq, self.kind, self.dataset, self.charge_id, *self.charge, self.body, self.prev]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()

    @property
    def contents(self) -> dict[str, Any]:
        """The body, read."""
        found: dict[str, Any] = json.loads(self.body)
        return found


def canonical(body: Mapping[str, Any]) -> str:
    """One text for one meaning: sorted, without spaces, floats exact, no NaN."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
