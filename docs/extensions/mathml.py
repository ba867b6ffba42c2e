"""Markdown extension: formulas become MathML, which browsers show without a script or a network.

``pymdownx.arithmatex`` finds the formulas and marks them; this extension translates what it marked.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


PRIME = r"<mi>(&#x0203[234];)</mi>"
PRIMED = (
    (rf"<msup>(<mi>[^<]*</mi>){PRIME}</msup>", r"<mrow>\1<mi>\2</mi></mrow>"),
    (
        rf"<msubsup>(<mi>[^<]*</mi>)(<m[in]>[^<]*</m[in]>){PRIME}</msubsup>",
        r"<msub><mrow>\1<mi>\3</mi></mrow>\2</msub>",
    ),
    (rf"<msup>(<mi>[^<]*</mi>)<mrow>{PRIME}", r"<msup><mrow>\1<mi>\2</mi></mrow><mrow>"),
)
"""Primes as superscripts, and next to their letters: a prime is raised already, and twice is out of sight."""


def mathml(tex: str, display: str) -> str:
    """Return a formula as MathML, in which primes can be read."""
    text = convert(tex, display=display)
    for superscript, adjacent in PRIMED:
        text = re.sub(superscript, adjacent, text)
    return text


class MathML(Postprocessor):
    """Translate the TeX of a page."""

    def run(self, text: str) -> str:
        """Return the page with MathML in place of marked TeX."""
        return FORMULA.sub(lambda m: mathml(html.unescape(m[3]), "block" if m[2] == "[" else "inline"), text)


class MathMLExtension(Extension):
    """Register the translation after everything that changes text."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the postprocessor."""
        md.postprocessors.register(MathML(md), "mathml", 0)


def makeExtension(**settings: Any) -> MathMLExtension:
    """Return the extension: Python-Markdown looks for this name."""
    return MathMLExtension(**settings)
