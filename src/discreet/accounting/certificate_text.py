"""A certificate for a person: its lines of text."""

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from discreet.accounting.cell_counts import ESTIMATED, ESTIMATED_RANGES, checked_in
from discreet.accounting.coverage import GIVEN
from discreet.accounting.events import TotalVariation
from discreet.accounting.zcdp_filter import Charge
from discreet.budget import Neighbors

if TYPE_CHECKING:
    from discreet.accounting.certificate import Certificate

_RELATIONS = {
    Neighbors.REPLACE_ONE: "any one {unit} is exchanged for any other",
    Neighbors.ZERO_OUT: "any one {unit} is blanked",
    Neighbors.ADD_REMOVE: "any one {unit} is added or removed",
}

LINE_EACH = (GIVEN, "public_moments")
"""Facts with a line for each of their parts, which may be long vectors."""


def _joined(lines: Iterable[str]) -> str:
    """Return the lines as one text; a line break within a value is written out, so that it cannot forge a line."""
    return "\n".join("\\n".join(line.splitlines()) for line in lines)


def _claim_lines(certificate: "Certificate") -> list[str]:
    if not certificate.is_private:
        return ["  Guarantee     none: do not release this model"]
    unit, factor = certificate.unit, math.exp(min(certificate.epsilon, 700.0))
    return [
        f"  Guarantee     epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta!r}, per {unit}",
        f"  Meaning       When {_RELATIONS[certificate.neighbors].format(unit=unit)}, no outcome becomes more than",
        f"                {factor:.4g} times as likely, up to a probability of {certificate.delta!r}.",
    ]


def _check_lines(certificate: "Certificate") -> list[str]:
    found = checked_in(certificate.assumed_public, certificate.unit)
    lines = [] if found is None else found.lines()
    return [f"  {'Checks' if i == 0 else '':<14}{line}" for i, line in enumerate(lines)]


def _range_lines(certificate: "Certificate") -> list[str]:
    ranges = certificate.assumed_public.get(ESTIMATED_RANGES, {})
    return [f"  Estimated     {name} from {low:.6g} to {high:.6g}" for name, (low, high) in ranges.items()]


def summary(certificate: "Certificate") -> str:
    """Return what matters first."""
    title = f"Privacy certificate: {certificate.headline}"
    found = (*_claim_lines(certificate), *_range_lines(certificate), *_check_lines(certificate))
    return _joined((title, "", *found, *_ledger_lines(certificate.ledger), *_coverage_lines(certificate)))


def text(certificate: "Certificate") -> str:
    """Return all of it."""
    return _joined(_lines(certificate))


def _lines(certificate: "Certificate") -> list[str]:
    unit = certificate.unit
    lines = [f"Privacy certificate: {certificate.headline}", "", *_claim_lines(certificate)]
    if certificate.is_private:
        lines.append(f"  Neighbors     {certificate.neighbors}")
        together, slack = certificate.group(5)
        if slack < 1:
            lines.append(f"  Five {unit}s{'':<{7 - len(unit)}} epsilon = {together:.6g}, delta = {slack:.3g}, together")
    lines.append(f"  Model         {certificate.model or 'not named'}")
    lines += [f"    {name:<23} {value}" for name, value in certificate.solver.items()]
    lines.append(f"  Noise         {certificate.noise_multiplier:.6g} times the sensitivity")
    lines.append("  Released")
    released = [event for event in certificate.events if not isinstance(event, TotalVariation)]
    lines += [f"    {event.describe()}" for event in released] or ["    nothing"]
    lines += [f"  {event.describe()}" for event in certificate.events if isinstance(event, TotalVariation)]
    lines += _trace_lines(certificate.trace)
    lines.append(
        "  Accountants   " + ", ".join(f"{name} {value:.6g}" for name, value in certificate.accountants.items())
    )
    lines += [*_range_lines(certificate), *_check_lines(certificate)]
    lines.append("  Taken as public, not measured")
    public = {name: value for name, value in certificate.assumed_public.items() if name not in ESTIMATED}
    lines += [line for name, value in public.items() for line in _fact_lines(name, value)] or ["    nothing"]
    lines += _ledger_lines(certificate.ledger) + _coverage_lines(certificate)
    lines.append(f"  Arithmetic    {certificate.arithmetic}; noise from {certificate.entropy}")
    lines += [f"  Note          {note}" for note in certificate.notes]
    made = " ".join(part for part in (certificate.library_version, certificate.created) if part)
    return [*lines, f"  Made by       discreet {made}".rstrip()]


def _fact_lines(name: str, value: Any, indent: str = "    ") -> list[str]:
    """A fact in a line; a schema in a line for each of its columns; many ranges by how many are alike."""
    if isinstance(value, dict) and (name in LINE_EACH or any(isinstance(item, dict) for item in value.values())):
        within = [_fact_lines(key, item, indent + "  ") for key, item in value.items()]
        return [f"{indent}{name}", *(line for lines in within for line in lines)]
    if isinstance(value, dict):
        value = ", ".join(f"{key} {item}" for key, item in value.items()) or "not declared"
    elif isinstance(value, list) and len(value) > 12:
        alike = Counter(map(str, value))
        few = [f"{count} x {item}" for item, count in alike.items()]
        value = ", ".join(few) if len(few) < 5 else f"{len(value)}, from {value[0]} to {value[-1]}"
    return [f"{indent}{name:<23} {value}"]


def _trace_lines(trace: tuple[Charge, ...]) -> list[str]:
    """A line a query: how often it was answered, what that cost, how often it was refused."""
    lines = []
    for query in dict.fromkeys(charge.query for charge in trace):
        paid = [charge.rho for charge in trace if charge.query == query and charge.answered]
        refused = sum(1 for charge in trace if charge.query == query and not charge.answered)
        said = f"{len(paid)} answers for rho {math.fsum(paid):.4g}" + (f", {refused} refused" if refused else "")
        lines.append(f"    {query:<23} {said}")
    rounds = max((charge.round for charge in trace), default=0)
    return [f"  Spent         in {rounds} rounds", *lines] if lines else []


def _ledger_lines(ledger: Mapping[str, Any] | None) -> list[str]:
    if ledger is None:
        return ["  Ledger        Not charged to a ledger: other releases from these records are not accounted for."]
    entry = f"entry {ledger['entry']} of ledger {ledger['ledger']}"
    return [f"  Ledger        charged to {ledger['dataset']!r}, {entry}", f"                head {ledger['head']}"]


def _coverage_lines(certificate: "Certificate") -> list[str]:
    wrapped = [line for said in certificate.not_covered for line in textwrap.wrap(said, 104)]
    return [f"  {'Not covered' if place == 0 else '':<14}{line}" for place, line in enumerate(wrapped)]
