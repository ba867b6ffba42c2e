"""The shell of every report: one self-contained HTML page, no script, nothing fetched, light and dark.

A page is made of a certificate, numbers that the caller may show, and pictures. It never reads data.
"""

import base64
from functools import cache
from html import escape
from importlib.resources import files

from discreet.accounting.certificate import Certificate
from discreet.accounting.coverage import promises_nothing
from discreet.report.figures import DARK, LIGHT, MissingPlots, budget_trace, svg, total_rho

_OPENING = '<script type="application/json" id="certificate">'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@cache
def part(name: str) -> str:
    """A file next to this one: the shell of a page, or its style sheet with colors for light, dark and paper."""
    return files("discreet.report").joinpath(name).read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """A whole page around its sections. Its policy forbids browsers to fetch anything, whatever the sections hold."""
    return part("page.html").format(title=escape(title), style=part("page.css"), policy=escape(POLICY), body=body)


def heading(title: str, certificate: Certificate) -> str:
    """The stamp, amber where the guarantee is weak, red where it promises next to nothing, and the title."""
    color = "weak" if certificate.weaknesses else "good"
    if not certificate.is_private or promises_nothing(
        certificate.epsilon, certificate.delta, certificate.assumed_public.get("n")
    ):
        color = "bad"
    return f'<p class="stamp {color}">{escape(certificate.headline)}</p>\n<h1><bdi>{escape(title)}</bdi></h1>'


def certificate_section(certificate: Certificate) -> str:
    """The certificate to read, and as JSON to check."""
    stored = certificate.to_json()
    for character in "<>&":  # so that no text in it ends the element, or starts a comment
        stored = stored.replace(character, f"\\u{ord(character):04x}")
    command = "discreet verify report.html"
    said = (
        "The certificate lists everything that was released. It is also in this page as JSON, in the element with the "
        "id <code>certificate</code>. To price its events again:"
    )
    return (
        f'<h2 id="certificate-text">Certificate</h2>\n<p>{said}</p>\n<pre class="wrap">{escape(command)}</pre>\n'
        f"<pre>{escape(certificate.text())}</pre>\n{_OPENING}{stored}</script>"
    )


def certificate_in(page: str) -> Certificate:
    """The certificate that a page carries. ``verify`` checks its price; that it is this model's, only hashes can."""
    _, found, rest = page.partition(_OPENING)
    return Certificate.from_json(rest.partition("</script>")[0] if found else "")


def trace_section(certificate: Certificate) -> str:
    """The budget trace of an adaptive run; the certificate below says the same in numbers."""
    total = total_rho(certificate)
    if not (certificate.trace and total):
        return ""
    try:
        light, dark = (_inline(svg(budget_trace(certificate, theme=theme))) for theme in (LIGHT, DARK))
    except MissingPlots:
        return ""
    answers, refused = (sum(c.answered is kind for c in certificate.trace) for kind in (True, False))
    description = f"rho spent by round and query, up to a total of {total:.3g}: {answers} answered, {refused} refused."
    text = (
        "The run chose what to ask as it went. A filter let it ask until the total would have been passed; "
        "what is shown follows from released answers and tells nothing more about the data."
    )
    return (
        f'<h2>Where the budget went</h2>\n<p>{text}</p>\n<figure><picture><source media="screen and '
        f'(prefers-color-scheme: dark)" srcset="{dark}"><img src="{light}" alt="{description}"></picture></figure>'
    )


def _inline(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
