"""What other libraries raise may quote cells: nothing of it stays attached to what the curator raises."""

import ast
from pathlib import Path

import pytest

import discreet
from discreet.errors import ClusterFailed, Unsupported, unquoted

CURATOR = Path(discreet.__file__).parent / "curator"
SECRET = "a cell"


def cell(kind=ValueError):
    raise kind(SECRET)


def nested():
    """An error that has others attached to it already."""
    try:
        cell()
    except ValueError as error:
        raise KeyError(SECRET) from error


@pytest.mark.parametrize("call", [cell, nested])
def test_nothing_stays_attached(call):
    with pytest.raises(Unsupported, match="ours") as caught, unquoted("ours"):
        call()
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_not_even_through_generators_and_other_blocks():
    def rows():
        with unquoted("ours"), memoryview(b""):
            yield 1
            cell()

    with pytest.raises(Unsupported, match="ours") as caught:
        list(rows())
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_only_what_is_listed_is_replaced():
    with pytest.raises(KeyError), unquoted("ours", ValueError):
        cell(KeyError)
    with pytest.raises(KeyboardInterrupt), unquoted("ours"):
        cell(KeyboardInterrupt)
    with pytest.raises(ClusterFailed, match="ours"), unquoted("ours", when=lambda _: True, kind=ClusterFailed):
        cell(KeyboardInterrupt)


def attached(text):
    """Lines with a new error raised while another is handled: in an except block, or in ``__exit__``."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) or (isinstance(node, ast.FunctionDef) and node.name == "__exit__"):
            found += [
                inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.Raise) and inner.exc is not None
            ]
    return found


def test_no_error_is_raised_while_another_is_handled():
    """``from None`` hides what is attached, and keeps it: use ``unquoted``, which detaches it, or raise afterwards."""
    paths = [*CURATOR.rglob("*.py"), CURATOR.parent / "errors.py"]
    found = {path.name: len(attached(path.read_text(encoding="utf-8"))) for path in paths}
    assert {name: count for name, count in found.items() if count} == {"errors.py": 1}


def test_the_walk_finds_them():
    assert attached("try:\n  f()\nexcept ValueError:\n  if g():\n    raise OurError() from None") == [5]
    assert attached("class A:\n  def __exit__(self, *_):\n    raise OurError()") == [3]
    assert attached("try:\n  f()\nexcept OurError:\n  raise\nexcept ValueError:\n  pass\nraise OurError()") == []
