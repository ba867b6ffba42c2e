"""Does the table fit the schema? Noisy counts of cells that do not hold what was declared."""

from html import escape

from discreet.accounting.cell_counts import MEANING, Checked, checked_in
from discreet.accounting.certificate import Certificate
from discreet.report.html import bullets, isolated, number, paragraphs, table

_SAID = (
    "A schema that does not fit the table gives a poor model and no error, since an error would reveal records. A "
    "small part of the budget counted the cells that do not hold what was declared, with noise."
)


def checks_section(certificate: Certificate) -> str:
    """Return what the counts tell, and all of them as a table; nothing where there are none."""
    found = checked_in(certificate.assumed_public, certificate.unit)
    if found is None:
        return ""
    return "\n".join(
        [
            '<h2 id="checks">Does the table fit the schema?</h2>',
            paragraphs([_SAID]),
            bullets(found.lines()),
            f"<details><summary>All counts, as a table</summary>{_counts(found)}</details>",
        ]
    )


def _counts(found: Checked) -> str:
    cells = [("", "records that count as null", found.null)]
    cells += [
        (name, f"cells that {MEANING.get(what, what)}", count)
        for name, counts in found.columns.items()
        for what, count in counts.items()
    ]
    rows = [
        f'<tr><th scope="row">{isolated(name)}</th><td class="words">{escape(what)}</td>'
        f'<td class="number">{number(count, 6)}</td></tr>'
        for name, what, count in cells
    ]
    return table(["column", "what", "noisy count"], rows, label="Checks", numbers=(2,), kind="wide stacked")
