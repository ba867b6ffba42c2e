"""A copy of the package with a bug in it, without what was compiled from the code that changed."""

import os
import re
import shutil
from pathlib import Path

from tests.promises.mutants.mutant import SOURCE, Mutant, edited

_KERNELS = "curator/kernels/"
_INLINED = ("losses/", "penalties/", "numba_dispatch.py", "scalar_functions.py", "curator/queries/choices.py")
"""Code that numba compiles into kernels of other files, whose caches do not notice that it changed."""
_IMPORTED = re.compile(r"^from discreet\.curator\.kernels(?:\.(\w+))? import (.+)$", re.MULTILINE)


def planted(mutant: Mutant | None, into: Path) -> Path:
    """Make ``into/discreet``, with the mutant's edits; None: as it is. Returns the directory for the path."""
    texts = {} if mutant is None else edited(mutant)
    stale = _stale_modules(tuple(texts))

    def skipped(directory: str, names: list[str]) -> set[str]:
        if not directory.endswith("__pycache__"):
            return set()
        return {name for name in names if _is_compiled_from(Path(directory).parent, name, stale, tuple(texts))}

    shutil.copytree(SOURCE, into / "discreet", ignore=skipped, copy_function=_linked)
    for path, text in texts.items():
        target = into / "discreet" / path
        target.unlink()  # it may be a link to the original
        target.write_text(text, encoding="utf-8")
    return into


def _linked(source: str, target: str) -> None:
    """A hard link, which keeps the times that caches are checked by; a copy where there can be none.

    Nothing writes into a file of the package: Python and numba replace theirs.
    """
    try:
        os.link(source, target)
    except FileNotFoundError:  # another worker's temporary file
        return
    except OSError:
        shutil.copy2(source, target)


def _is_compiled_from(package: Path, name: str, stale: frozenset[str] | None, changed: tuple[str, ...]) -> bool:
    module = name.partition(".")[0]
    if name.endswith((".nbi", ".nbc")):
        return stale is None or module in stale
    return f"{package.relative_to(SOURCE)}/{module}.py".removeprefix("./") in changed


def _stale_modules(changed: tuple[str, ...]) -> frozenset[str] | None:
    """Modules whose compiled functions may hold code that changed; None for all of them."""
    if any(path.startswith(_INLINED) for path in changed):
        return None
    stale = {Path(path).stem for path in changed if path.startswith(_KERNELS)}
    uses = {path.stem: _imports(path) for path in (SOURCE / _KERNELS).glob("*.py")}
    while more := {name for name, used in uses.items() if used & stale} - stale:
        stale |= more
    return frozenset(stale)


def _imports(path: Path) -> set[str]:
    found = _IMPORTED.findall(path.read_text(encoding="utf-8"))
    return {name for module, names in found for name in ([module] if module else re.split(r"\W+", names))}
