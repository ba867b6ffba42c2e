"""A privacy bug as an edit of the source, and the tests that must notice it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "discreet"


class Stale(AssertionError):
    """The text that a mutant replaces is not in the source, or not once: the list must follow the code."""


@dataclass(frozen=True)
class Edit:
    """One replacement: ``old``, which occurs exactly once in the file, becomes ``new``."""

    path: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The file's text with the bug in it."""
        if (count := text.count(self.old)) != 1:
            raise Stale(f"{self.path} contains this {count} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Mutant:
    """One bug.

    ``wrong`` says in a sentence what goes wrong, ``killers`` are the pytest nodes that are run, and ``says`` is what
    the failure shows: a part of its message or of the line that failed.
    """

    name: str
    wrong: str
    edits: tuple[Edit, ...]
    killers: tuple[str, ...]
    says: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it changes."""
        return tuple(dict.fromkeys(edit.path for edit in self.edits))


def bug(name: str, wrong: str, path: str, old: str, new: str, killers: str | tuple[str, ...], says: str) -> Mutant:
    """Return a mutant of one edit."""
    return Mutant(name, wrong, (Edit(path, old, new),), (killers,) if isinstance(killers, str) else killers, says)


def edited(mutant: Mutant, source: Path = SOURCE) -> dict[str, str]:
    """The changed files' new texts, by path."""
    texts = {path: (source / path).read_text(encoding="utf-8") for path in mutant.paths}
    for edit in mutant.edits:
        texts[edit.path] = edit.applied(texts[edit.path])
    return texts


def killers_of(mutants: Iterable[Mutant]) -> list[str]:
    """Every killer once, in order."""
    return list(dict.fromkeys(killer for mutant in mutants for killer in mutant.killers))
