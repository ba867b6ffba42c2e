"""A marker in cells, and a watch over everything that a run shows: no message may contain it."""

import contextlib
import io
import logging
import traceback
import warnings

SECRET = "Xq7Zsecret"
"""Stands in cells only; no name of a file, a column or a label contains it."""


class Shown(list):
    """The texts that a run showed, and the exception it ended with."""

    error: BaseException | None = None


@contextlib.contextmanager
def watched():
    """Everything that is raised (with its causes), warned, logged and printed inside the block; raises nothing."""
    found, out, log = Shown(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        warnings.simplefilter("always")
        try:
            yield found
        except Exception as error:
            found.error = error
    logging.getLogger().removeHandler(handler)
    found += [out.getvalue(), log.getvalue(), *(str(warning.message) for warning in warned)]
    if found.error is not None:
        found += traceback.format_exception(found.error)
        found += [repr(link.args) for link in _chain(found.error)]


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__  # also one that a traceback would not show


def assert_discreet(found):
    """No secret in what was shown; nothing was warned, logged or printed at all."""
    assert not any(SECRET in text for text in found), "a cell was shown"
    quiet = found if found.error is None else found[:2]
    assert not any(quiet), "something was printed, logged or warned"
