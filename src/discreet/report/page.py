"""The shell of every report: one self-contained HTML page, no script, nothing fetched, light and dark; and ``Page``.

A page is made of a certificate, numbers that the caller may show, and pictures. It never reads data.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from discreet.accounting.certificate import Certificate
from discreet.report.figures import DARK, LIGHT, MissingPlots, budget_trace, svg, total_rho
from discreet.report.promise import promise
from discreet.report.style import STYLE

__all__ = ["Page", "Picture", "certificate_in", "certificate_section", "document", "promise", "trace_section"]

_OPENING = '<script type="application/json" id="certificate">'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Picture:
    """An SVG for light pages, one for dark pages, and what to say of it to those who cannot see it."""

    light: str
    dark: str
    description: str


@dataclass(frozen=True)
class Page:
    """A short report: the promise, accuracies and a picture.

    Parameters
    ----------
    accuracies
        What -> accuracy within [0, 1]. The caller states in ``remarks`` on which rows, and why that is allowed.
    remarks
        Paragraphs of plain text, shown with the accuracies.
    """

    title: str
    certificate: Certificate
    accuracies: Mapping[str, float] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    picture: Picture | None = None

    def html(self) -> str:
        """The page."""
        parts = [
            heading(self.title, self.certificate),
            "<h2>What is promised</h2>",
            *(f"<p>{escape(text)}</p>" for text in promise(self.certificate)),
            *(_accuracies(self.accuracies, self.remarks) if self.accuracies or self.remarks else ()),
            *((_figure(self.picture),) if self.picture is not None else ()),
            trace_section(self.certificate),
            "<h2>Certificate</h2>",
            "<p>Keep this with the model. <code>discreet verify</code> prices its events anew.</p>",
            f"<pre>{escape(self.certificate.text())}</pre>",
        ]
        return document(self.title, "\n".join(parts))


def document(title: str, body: str) -> str:
    """A whole page around its sections. Its policy forbids browsers to fetch anything, whatever the sections hold."""
    return _SHELL.format(title=escape(title), style=STYLE, policy=escape(POLICY), body=body)


def heading(title: str, certificate: Certificate) -> str:
    """The stamp and the title."""
    stamp = "good" if certificate.is_private else "bad"
    return f'<p class="stamp {stamp}">{escape(certificate.stamp)}</p>\n<h1><bdi>{escape(title)}</bdi></h1>'


def certificate_section(certificate: Certificate) -> str:
    """The certificate to read, and as JSON to check."""
    stored = certificate.to_json()
    for character in "<>&":  # so that no text in it ends the element, or starts a comment
        stored = stored.replace(character, f"\\u{ord(character):04x}")
    command = "python -m discreet.report.page report.html > certificate.json && discreet verify certificate.json"
    said = (
        "The certificate lists everything that was released. It is also in this page as JSON, in the element with the "
        "id <code>certificate</code>. To take it out and to price its events anew:"
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
        light, dark = (svg(budget_trace(certificate, theme=theme)) for theme in (LIGHT, DARK))
    except MissingPlots:
        return ""
    answers, refused = (sum(c.answered is kind for c in certificate.trace) for kind in (True, False))
    description = f"rho spent by round and query, up to a total of {total:.3g}: {answers} answered, {refused} refused."
    text = (
        "The run chose what to ask as it went. A filter let it ask until the total would have been passed; "
        "what is shown follows from released answers and tells nothing more about the data."
    )
    return f"<h2>Where the budget went</h2>\n<p>{text}</p>\n{_figure(Picture(light, dark, description))}"


def _accuracies(accuracies: Mapping[str, float], remarks: Sequence[str]) -> list[str]:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{100 * value:.1f}%</td></tr>'
        for name, value in accuracies.items()
    )
    return ["<h2>How accurate it is</h2>", f"<table>{rows}</table>", *(f"<p>{escape(text)}</p>" for text in remarks)]


def _figure(picture: Picture) -> str:
    told = escape(picture.description)
    dark = f'<source media="screen and (prefers-color-scheme: dark)" srcset="{_inline(picture.dark)}">'
    return f'<figure><picture>{dark}<img src="{_inline(picture.light)}" alt="{told}"></picture></figure>'


def _inline(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.stdout.write(certificate_in(Path(sys.argv[1]).read_text(encoding="utf-8")).to_json() + "\n")
