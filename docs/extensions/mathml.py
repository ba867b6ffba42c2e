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


class MathML(Postprocessor):
    """Translate the TeX of a page."""

    def run(self, text: str) -> str:
        """Return the page with MathML in place of marked TeX."""
        return FORMULA.sub(lambda m: convert(html.unescape(m[3]), display="block" if m[2] == "[" else "inline"), text)


class MathMLExtension(Extension):
    """Register the translation after everything that changes text."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the postprocessor."""
        md.postprocessors.register(MathML(md), "mathml", 0)


def makeExtension(**settings: Any) -> MathMLExtension:
    """Return the extension: Python-Markdown looks for this name."""
    return MathMLExtension(**settings)
