"""What can go wrong with a privacy claim, how this model answers it, and where that can be checked.

The hazards are those that NIST's guidelines for evaluating differential privacy guarantees (SP 800-226, March 2025)
warn of, in words of our own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from discreet.accounting.cell_counts import ESTIMATED_RANGES
from discreet.accounting.certificate import Certificate
from discreet.report.guarantee_section import one_of
from discreet.report.html import number, paragraphs, table

_SAID = (
    "What usually goes wrong with a privacy claim, after NIST's guidelines SP 800-226, and how this model answers it. "
    "What is not answered here is up to those who hold the data."
)
_LOOKS = {"answered": "good", "in part": "weak", "not answered": "bad"}


@dataclass(frozen=True)
class Hazard:
    """What can go wrong, whether and how it is answered, and where to check that."""

    name: str
    state: str
    answer: str
    where: str


def hazards(certificate: Certificate) -> Iterator[Hazard]:
    """Yield the hazards, with the answers that this certificate supports."""
    yield from _of_the_claim(certificate)
    yield from _of_the_records(certificate)
    yield from _of_the_program(certificate)
    yield from _of_the_world()


def _of_the_claim(certificate: Certificate) -> Iterator[Hazard]:
    one, weak = one_of(certificate), certificate.weaknesses
    yield Hazard(
        "A number without a unit",
        "answered",
        f"epsilon is per {one}, under the relation {certificate.neighbors}",
        "certificate: unit, neighbors",
    )
    yield Hazard(
        "An epsilon or delta that promises little",
        "not answered" if weak else "answered",
        "; ".join(weak) or f"epsilon = {number(certificate.epsilon)}, delta = {number(certificate.delta)}",
        "certificate: epsilon, delta",
    )
    kept = certificate.ledger is not None
    yield Hazard(
        "A budget that is spent again and again",
        "answered" if kept else "not answered",
        "charged to a ledger with a cap before a row was read" if kept else "this fit was charged to no ledger",
        "discreet budget show",
    )
    yield Hazard(
        "Settings that were tuned on the data",
        "in part",
        "unset parameters follow from declared facts; trials outside this fit are not counted",
        "certificate: solver; section: What is not promised",
    )


def _of_the_records(certificate: Certificate) -> Iterator[Hazard]:
    whole = one_of(certificate) == "person"
    alone = "each row is protected by itself; with several rows per person the promise weakens with their number"
    yield Hazard(
        "Several rows of one person",
        "answered" if whole else "in part",
        "all rows of a person count as one" if whole else alone,
        "schema: person",
    )
    yield Hazard(
        "Contributions without a limit",
        "answered",
        "every record's contribution is clipped before it is added, whatever the record holds",
        "certificate: events; discreet audit replay",
    )
    estimated = ESTIMATED_RANGES in certificate.assumed_public
    yield Hazard(
        "Ranges or categories read from the data",
        "answered",
        "declared by the owner" + (", or estimated with noise from this budget" if estimated else ""),
        "section: Taken as public",
    )


def _of_the_program(certificate: Certificate) -> Iterator[Hazard]:
    exact, private = certificate.arithmetic == "exact lattice", certificate.is_private
    yield Hazard(
        "Rounding that gives records away",
        "answered" if exact else "in part",
        "sums and noise are exact integers" if exact else "the proof is of real numbers, the computer's were rounded",
        "certificate: arithmetic",
    )
    yield Hazard(
        "Random numbers that can be guessed",
        "answered" if private else "not answered",
        "keys of the operating system, new for each answer" if private else "; ".join(certificate.reasons),
        "certificate: entropy",
    )
    yield Hazard("Time and memory of the fit", "not answered", "both may depend on records: hide them", "threat model")


def _of_the_world() -> Iterator[Hazard]:
    yield Hazard(
        "Errors that hit some groups harder",
        "in part",
        "noise weighs most on small groups; scores by group show it",
        "discreet score --by COLUMN",
    )
    yield Hazard(
        "The table itself",
        "not answered",
        "who may read it, how long it is kept, and how it was collected",
        "your organization",
    )


def hazards_section(certificate: Certificate) -> str:
    """Return the section, as a table."""
    rows = [
        f'<tr><th scope="row">{escape(one.name)}</th>'
        f'<td><span class="badge {_LOOKS[one.state]}">{one.state}</span></td>'
        f'<td class="words">{escape(one.answer)}</td><td class="words" data-label="check">{escape(one.where)}</td></tr>'
        for one in hazards(certificate)
    ]
    head = ["hazard", "", "how it is answered", "where to check"]
    shown = table(head, rows, label="Hazards", kind="wide stacked")
    return '<h2 id="hazards">Hazards and answers</h2>\n' + paragraphs([_SAID]) + shown
