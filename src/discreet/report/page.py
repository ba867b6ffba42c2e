"""The shell of every report, and the pieces of HTML and SVG that pages are made of.

A page is one self-contained HTML file: no script, nothing fetched, light and dark. It is made of a certificate, numbers
that the caller may show, and pictures. It never reads data. Every text is escaped where it enters.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from discreet.accounting.certificate import Certificate, promises_nothing

MINUS = "\N{MINUS SIGN}"


def isolated(text: str) -> str:
    """A name from a schema: escaped, and read in its own direction."""
    return f"<bdi>{escape(text)}</bdi>"


def paragraphs(texts: Iterable[str], kind: str = "") -> str:
    """Plain texts as paragraphs."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{escape(text)}</p>" for text in texts)


def bullets(texts: Iterable[str]) -> str:
    """Plain texts as a list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def table(
    head: Sequence[str], rows: Iterable[str], *, label: str, numbers: Sequence[int] = (), kind: str = "wide"
) -> str:
    """A table that scrolls within itself where it is too wide. ``rows`` are HTML, ``numbers`` columns of numbers."""
    cells = "".join(
        f'<th scope="col"{" class=number" if place in numbers else ""}>{escape(name)}</th>'
        for place, name in enumerate(head)
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0"><table class="{kind}">'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def number(value: float, digits: int = 3) -> str:
    """A number as people write it, with a real minus."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    shown = f"{value:.{digits}g}"
    if "e" in shown:
        mantissa, exponent = shown.split("e")
        power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        shown = f"10{power}" if mantissa == "1" else f"{mantissa} × 10{power}"
    elif abs(value) >= 1000:
        shown = f"{float(shown):,.0f}"
    return shown.replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """A share of one, as a percentage."""
    return f"{100 * value:.{digits}f}%".replace("-", MINUS)


def short(count: float) -> str:
    """5,000 as 5k, 2,500,000 as 2.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.3g}"


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most ``most`` round numbers within a range."""
    if not (math.isfinite(high - low) and high > low):
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * power for step in (1, 2, 5, 10, 20) if (high - low) / (step * power) <= most - 1)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


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
