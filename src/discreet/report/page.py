"""One self-contained HTML page about a fitted model: no script, nothing fetched, light and dark.

A page is made of a certificate, accuracies that the caller may show, and pictures. It never reads data.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from discreet.accounting.certificate import Certificate
from discreet.budget import Neighbors
from discreet.report.figures import DARK, LIGHT, MissingPlots, budget_trace, svg, total_rho

_CHANGED = {
    Neighbors.REPLACE_ONE: "had been somebody else's, with any values at all",
    Neighbors.ZERO_OUT: "had been blank",
    Neighbors.ADD_REMOVE: "had not been there",
}


@dataclass(frozen=True)
class Picture:
    """An SVG for light pages, one for dark pages, and what to say of it to those who cannot see it."""

    light: str
    dark: str
    description: str


@dataclass(frozen=True)
class Page:
    """What a report shows.

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
        stamp = "good" if self.certificate.is_private else "bad"
        parts = [
            f'<p class="stamp {stamp}">{escape(self.certificate.stamp)}</p>',
            f"<h1>{escape(self.title)}</h1>",
            "<h2>What is promised</h2>",
            *(f"<p>{escape(text)}</p>" for text in promise(self.certificate)),
            *(_accuracies(self.accuracies, self.remarks) if self.accuracies or self.remarks else ()),
            *((_figure(self.picture),) if self.picture is not None else ()),
            *_spending(self.certificate),
            "<h2>Certificate</h2>",
            "<p>Keep this with the model. <code>discreet verify</code> prices its events anew.</p>",
            f"<pre>{escape(self.certificate.text())}</pre>",
        ]
        return _SHELL.format(title=escape(self.title), style=_STYLE, body="\n".join(parts))


def promise(certificate: Certificate) -> list[str]:
    """The guarantee in plain words."""
    if not certificate.is_private:
        return [f"Nothing: {'; '.join(certificate.reasons)}. Do not release this model."]
    factor = math.exp(min(certificate.epsilon, 700.0))
    one, its = ("row", "it") if certificate.unit == "record" else ("person", "all of that person's rows")
    slack = f", up to a probability of {certificate.delta:.2g}" if certificate.delta else ""
    return [
        f"Take any one {one} that the model was trained on. If {its} {_CHANGED[certificate.neighbors]}, "
        f"no model would have become more than {factor:.3g} times as likely, nor as unlikely, as it was{slack}.",
        "So whoever sees the model, knows all the other rows and has any amount of time learns little about this one. "
        "The promise does not say that the model is accurate, nor that nothing can be learned about people in general.",
        "It rests on the facts that the certificate lists as public. They were declared, not measured.",
    ]


def _accuracies(accuracies: Mapping[str, float], remarks: Sequence[str]) -> list[str]:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{100 * value:.1f}%</td></tr>' for name, value in accuracies.items()
    )
    return ["<h2>How accurate it is</h2>", f"<table>{rows}</table>", *(f"<p>{escape(text)}</p>" for text in remarks)]


def _spending(certificate: Certificate) -> list[str]:
    """The budget trace of an adaptive run; the certificate below says the same in numbers."""
    total = total_rho(certificate)
    if not (certificate.trace and total):
        return []
    try:
        light, dark = (svg(budget_trace(certificate, theme=theme)) for theme in (LIGHT, DARK))
    except MissingPlots:
        return []
    answers, refused = (sum(c.answered is kind for c in certificate.trace) for kind in (True, False))
    description = f"rho spent by round and query, up to a total of {total:.3g}: {answers} answered, {refused} refused."
    text = (
        "The run chose what to ask as it went. A filter let it ask until the total would have been passed; "
        "what is shown follows from released answers and tells nothing more about the data."
    )
    return ["<h2>Where the budget went</h2>", f"<p>{text}</p>", _figure(Picture(light, dark, description))]


def _figure(picture: Picture) -> str:
    return (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_inline(picture.dark)}">'
        f'<img src="{_inline(picture.light)}" alt="{escape(picture.description)}"></picture></figure>'
    )


def _inline(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


_STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2530; --quiet: #5b6775; --line: #e4e8ed; --box: #f6f8fa;
        --good: #17693a; --bad: #a3261b; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e8ecf1; --quiet: #9aa6b4; --line: #2a313a; --box: #1b2128;
          --good: #6fd39a; --bad: #ff9188; }
}
body { background: var(--paper); color: var(--ink); font: 17px/1.55 system-ui, sans-serif; margin: 0; }
main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.4rem 0 1.5rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 0.6rem; }
.stamp { display: inline-block; margin: 0; padding: 0.1rem 0.7rem; border: 2px solid; border-radius: 0.4rem;
         font-weight: 700; letter-spacing: 0.06em; font-size: 0.85rem; }
.good { color: var(--good); } .bad { color: var(--bad); }
table { border-collapse: collapse; } th { text-align: left; font-weight: 400; }
th, td { border-bottom: 1px solid var(--line); padding: 0.4rem 2.5rem 0.4rem 0; }
td { text-align: right; padding-right: 0; font-variant-numeric: tabular-nums; font-weight: 600; }
figure { margin: 2rem 0 0; } img { width: 100%; height: auto; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 0.5rem; padding: 1rem; overflow-x: auto;
      font-size: 0.8rem; line-height: 1.45; }
"""

_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
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
