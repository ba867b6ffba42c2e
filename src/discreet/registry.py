"""Classes by name: built-in ones are found by listing their package's files, a user's own by a decorator.

``@register("svrg")`` above a class is all that a built-in class needs: the files of its package are searched for such
lines (as text, nothing is imported), and a module is imported when its name is first asked for. A class from outside
the package is known from the moment its module is imported. Names in files are looked up here and nowhere else, so
that reading a file never imports code of others.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Generic, TypeVar, cast

from discreet.errors import Unsupported

C = TypeVar("C", bound=type)
D = TypeVar("D", bound=type)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def declared_in(package: str, decorator: str) -> dict[str, tuple[str, str]]:
    """Return name -> (module, class name) for each ``@decorator("name")`` in a package's files. Imports nothing."""
    line = re.compile(rf'^@{decorator}\("([^"]+)"\)\n(?:@.*\n)*class (\w+)', re.MULTILINE)
    root, *folders = package.split(".")
    found: dict[str, tuple[str, str]] = {}
    for file in sorted(files(root).joinpath(*folders).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            module = f"{package}.{file.name.removesuffix('.py')}"
            found |= {name: (module, made) for name, made in line.findall(file.read_text(encoding="utf-8"))}
    return found


def not_a_tuple(cls: type) -> str | None:
    """Return what a class lacks that compiled loops are to take."""
    return None if issubclass(cls, tuple) and hasattr(cls, "_fields") else "a NamedTuple: compiled loops take no others"


class Registry(Generic[C]):
    """The classes of one kind (solvers, losses, ...), by short name and by class name.

    ``decorator`` is the name under which the package's files call ``register``; ``check`` says what a class lacks.
    """

    def __init__(
        self,
        kind: str,
        packages: str | tuple[str, ...],
        decorator: str,
        check: Callable[[type], str | None] = lambda cls: None,
    ) -> None:
        self._packages = (packages,) if isinstance(packages, str) else packages
        self.kind, self._decorator, self._check = kind, decorator, check
        self._classes: dict[str, C] = {}

    @cached_property
    def _built_in(self) -> dict[str, tuple[str, str]]:
        """Short name -> (module, class name) of the packages' own classes."""
        listed = (declared_in(package, self._decorator) for package in self._packages)
        return {name: made for some in listed for name, made in some.items()}

    def register(self, name: str) -> Callable[[D], D]:
        """Make a decorator that declares a class's short name; the name and the class's own must be free.

        A class that is defined again (a notebook's cell, a reloaded module) takes its own place.

        Parameters
        ----------
        name : str
            Letters, digits, - and _; what files, estimators and commands call the class by.

        Returns
        -------
        callable
            The decorator, which returns the class as it is.

        Raises
        ------
        Unsupported
            If the name is none or is taken, or the class lacks what its kind needs.

        Examples
        --------
        >>> from discreet.losses import register_loss
        >>> register_loss("my loss")
        Traceback (most recent call last):
        discreet.errors.Unsupported: the name of a loss must be letters, digits, - and _, such as 'my-loss'
        """
        if not _NAME.fullmatch(name):
            raise Unsupported(f"the name of a {self.kind} must be letters, digits, - and _, such as 'my-{self.kind}'")

        def declare(cls: D) -> D:
            missing = self._check(cls)
            if missing is not None:
                raise Unsupported(f"{cls.__name__} must be {missing}")
            if not cls.__module__.startswith(tuple(f"{package}." for package in self._packages)):
                self._refuse_taken(name, cls)
            self._classes[name] = cast(C, cls)
            return cls

        return declare

    def _refuse_taken(self, name: str, cls: type) -> None:
        known = {key: made for key, (_, made) in self._built_in.items()}
        known |= {key: one.__name__ for key, one in self._classes.items()}
        for key, made in known.items():
            again = key == name and key not in self._built_in and made == cls.__name__
            if not again and (name == key or cls.__name__ == made):
                raise Unsupported(f"another {self.kind} is named {key!r} ({made}): rename yours")

    def names(self) -> tuple[str, ...]:
        """Return all short names: the built-in ones, then those that were registered in this process."""
        return tuple(dict.fromkeys((*self._built_in, *self._classes)))

    def __contains__(self, name: str) -> bool:
        return name in self._built_in or name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __getitem__(self, name: str) -> C:
        """Return the class of this short name; a built-in one's module is imported now."""
        if name in self._built_in:
            import_module(self._built_in[name][0])
        if name not in self._classes:
            raise Unsupported(f"there is no {self.kind} {name!r}: there are {', '.join(self.names())}")
        return self._classes[name]

    def class_named(self, class_name: str) -> C | None:
        """Return the class whose own name this is, or None."""
        for name, (_, made) in self._built_in.items():
            if made == class_name:
                return self[name]
        return next((cls for cls in self._classes.values() if cls.__name__ == class_name), None)

    def class_names(self) -> tuple[str, ...]:
        """Return the classes' own names."""
        own = (cls.__name__ for cls in self._classes.values())
        return tuple(dict.fromkeys((*(made for _, made in self._built_in.values()), *own)))
