"""Errors of other libraries in discreet's words: theirs may quote cells.

``raise ... from None`` hides such an error from a traceback, and keeps it in ``__context__``, where a logger or a
debugger finds it. Here it is dropped.
"""

from collections.abc import Callable

from discreet.errors import DiscreetError, Unsupported


class unquoted:  # reads like a statement
    """Raise a refusal in place of some errors that the block raises, and attach nothing to it.

    Parameters
    ----------
    words
        What is said instead.
    *errors
        The errors that are replaced. None: all that are Exceptions.
    when
        Says of an error of another kind whether it is replaced, too.
    kind
        The class of the refusal.

    Examples
    --------
    >>> from discreet.curator.unquoted import unquoted
    >>> try:
    ...     with unquoted("this is no number", ValueError):
    ...         float("a cell")
    ... except ValueError as error:
    ...     print(error, error.__context__)
    this is no number None
    """

    def __init__(
        self,
        words: str,
        *errors: type[BaseException],
        when: Callable[[BaseException], bool] = lambda error: False,
        kind: type[DiscreetError] = Unsupported,
    ) -> None:
        self._words, self._errors, self._when, self._kind = words, errors or (Exception,), when, kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not (isinstance(error, self._errors) or self._when(error)):
            return
        refusal = self._kind(self._words)
        try:
            raise refusal
        finally:  # after Python has attached the error that is being handled
            refusal.__context__ = None
