"""Names of data sets and of charges: what looks the same is the same, in one place.

A name is an account, and a second account for the same people is a second budget. So names are brought into Unicode's
composed form (NFC), and what cannot be distinguished by eye is refused:

- blanks at an end, two blanks in a row, and blanks other than the ordinary one;
- control and format characters (tabs, zero-width spaces, marks of writing direction), private and unassigned ones;
- letters and marks that are not drawn: fillers, joiners, variation selectors;
- compatibility forms of other characters, such as full-width letters and ligatures (what NFKC changes);
- a Cyrillic or Greek letter that looks like a Latin one, in a name that has Latin letters.

Everything else is allowed: letters and digits of all scripts, punctuation, symbols, single blanks between them, at most
200 characters. Capital and small letters are different, and so are a Latin and a Cyrillic word that look alike.
"""

import re
import unicodedata
from typing import Any

from discreet.errors import Unsupported

LONGEST = 200
# Of the characters that Unicode does not draw ("default ignorable"), those that Python calls printable; and the blank
# of Braille.
_UNDRAWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)
_TWINS = frozenset("АВЕЅІЈКМНОРСТУХаеорсухѕіјһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονυϲϳ")
"""Cyrillic and Greek letters that look like Latin ones."""

_WHAT = "the name of a data set or of a charge is a short, printable text"


def name_of(given: Any) -> str:
    """The name that is meant, in its one form; Unsupported where it could be taken for another one."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable() or len(given) > LONGEST:
        raise Unsupported(f"{_WHAT} of at most {LONGEST} characters")
    name = unicodedata.normalize("NFC", given)
    if name != name.strip() or "  " in name:
        raise Unsupported(f"{_WHAT}: leave out blanks at its ends, and double ones")
    if _UNDRAWN.search(name):
        raise Unsupported(f"{_WHAT}: leave out characters that are not drawn")
    if unicodedata.normalize("NFKC", name) != name:
        raise Unsupported(f"{_WHAT}: write plain characters for full-width ones, ligatures and the like")
    if _TWINS & set(name) and any(unicodedata.name(one, "").startswith("LATIN ") for one in name):
        raise Unsupported(f"{_WHAT}: leave out Cyrillic and Greek letters that look like Latin ones")
    return name
