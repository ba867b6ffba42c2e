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


@pytest.mark.whole
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages(page):
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.whole
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_docstrings_help_texts_and_errors(module):
    nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    texts = [
        one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str) and " " in one.value
    ]
    assert [said for text in texts for said in found(text)] == []


def test_public_functions_say_what_they_do():
    """A verb comes first: the list has the words that begin a noun phrase."""
    nouns = {"A", "An", "By", "Everything", "For", "Of", "Onto", "Plain", "That", "The", "What"}
    first = {name: (inspect.getdoc(one) or "- ").split()[0] for name, one in functions()}
    assert {name: word for name, word in first.items() if word in nouns or word.startswith("`")} == {}


@pytest.mark.parametrize(
    "text",
    ["M was bought", "one row a record", "two draws a step", "Whoever reads it", "idealised noise", "lost for ever"],
)
def test_a_retired_word_is_noticed(text):
    assert found(text)


@pytest.mark.parametrize(
    "text", ["one row per record", "`bought`", "expensive", "Anyone who reads it", "a row of zeros"]
)
def test_plain_words_are_not(text):
    assert found(text) == []
