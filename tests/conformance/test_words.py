"""Words that users do not know are not used: in the documentation, in help texts and errors, in docstrings.

The list has what this project once wrote in its own idiom, and what English or the field writes instead.
"""

import ast
import inspect
import re
from pathlib import Path

import pytest

from tests.public_names import public

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "discreet"
MODULES = sorted(SOURCE.rglob("*.py"))
PAGES = (*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted(ROOT.glob("docs/**/*.md")))

COUNTED = (
    "answers? cells? charges? counts? draws? fits? gradients? layers? numbers? passes ranges? releases? rows? runs?"
)
COUNTED += " steps? sums? values? votes?"
COUNTED = rf"(?:one|two|three|several|noise|\d+) (?:{COUNTED.replace(' ', '|')})"
THINGS = "answer class coordinate column draw epoch feature fit line name output part pass person query record release"
THINGS += " round row run second seed side step table value visit worker"
PER = f"an? (?:{THINGS.replace(' ', '|')})(?!')"
RETIRED = {
    r"bought|buys?|buying|purchased?": "estimated with privacy budget, reserved, paid for",
    r"dear|dearer|dearest|dearly": "expensive",
    r"seen (?:moments?|second|coordinates|means?|scales?|cent\w+|shape|covariance|values?)": "estimated",
    r"seeing (?:the|its|their) (?:data|shape)": "estimating the mean and covariance",
    r"whoever|whomever|whosoever": "anyone who, those who",
    r"amiss": "wrong",
    r"in vain": "for nothing",
    r"for ever": "permanently",
    r"beside|besides": "next to, in addition to",
    r"told": "inferred, reported, distinguished",
    r"as (?:it|they) comes?": "with default settings",
    rf"(?:{COUNTED}|runs|once|twice) {PER}(?! (?:is|was))": "per",
    r"tells? of": "reveal, report",
    r"anew": "again",
    r"by lot|drawn lots": "at random",
    r"the door|the books|currency": "records, accounts, filters",
    r"cunning": "intent",
    r"mend|mends|mended": "fix",
    r"\w*(?:ideal|optim|regular|normal|standard|minim|maxim|general|summar|random)is(?:e[ds]?|ing|ation)": "-ize",
    r"analysed|analysing": "analyzed, analyzing",
    r"\w*(?:colour|favour|behaviour|neighbour|honour|labour)\w*": "American spelling: -or",
    r"cent(?:re|red|res)|grey|modelling|labelled|fulfil|fulfils|artefacts?": "American spelling",
}
PATTERN = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): better for words, better in RETIRED.items()}
CODE = re.compile(r"```.*?^```|`[^`]*`|<!--.*?-->|\]\([^)]*\)|^>>> .*?$", re.DOTALL | re.MULTILINE)


def found(text: str) -> list[str]:
    """Return each retired expression in a text, with what to write instead. Code does not count."""
    plain = re.sub(r"\s+", " ", CODE.sub(" ` ", text))
    return [
        f"...{plain[max(0, m.start() - 30) : m.end() + 30]}... write: {better}"
        for pattern, better in PATTERN.items()
        for m in pattern.finditer(plain)
    ]


def functions():
    """Yield the public functions, and the public methods of public classes."""
    for name, thing in public().items():
        if inspect.isfunction(thing):
            yield name, thing
        for method, one in vars(thing).items() if inspect.isclass(thing) else ():
            if method[0] != "_" and inspect.isfunction(getattr(one, "__func__", one)):
                yield f"{name}.{method}", one


def test_pages():
    assert [f"{page.name}: {text}" for page in PAGES for text in found(page.read_text(encoding="utf-8"))] == []


@pytest.mark.thorough
def test_docstrings_help_texts_and_errors():
    wrong = []
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                wrong += [f"{module.relative_to(SOURCE)}: {text}" for text in found(node.value)]
    assert wrong == []


def test_public_functions_say_what_they_do():
    """A verb comes first: the list has the words that begin a noun phrase."""
    nouns = {"A", "An", "By", "Everything", "For", "Of", "Onto", "Plain", "That", "The", "What"}
    first = {name: (inspect.getdoc(one) or "- ").split()[0] for name, one in functions()}
    assert {name: word for name, word in first.items() if word in nouns or word.startswith("`")} == {}


def test_retired_words_are_noticed_and_others_are_not():
    retired = (
        "M was bought",
        "one row a record",
        "two draws a step",
        "Whoever reads it",
        "idealised noise",
        "for ever",
    )
    plain = ("one row per record", "`bought`", "expensive", "Anyone who reads it", "a row of zeros")
    assert all(found(text) for text in retired)
    assert not any(found(text) for text in plain)
