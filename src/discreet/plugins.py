"""Plug-ins: modules of others that register solvers, losses, penalties or models.

In Python nothing has to be found: import the module. The command line looks in two places: the entry-point group
``discreet.plugins`` of installed packages, and the environment variable ``DISCREET_PLUGINS``: names of modules, or
paths that end in ``.py``, separated by commas. They are loaded only where a command needs them: it was given a name
that is not built in, it lists names, or it reads a saved model.

A plug-in runs with the rights of the command. No file that discreet reads can make it load one.
"""

import os
import sys
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from discreet.errors import Unsupported

VARIABLE = "DISCREET_PLUGINS"
GROUP = "discreet.plugins"


def load_plugins() -> None:
    """Import every plug-in that an installed package or the environment names, once.

    Raises
    ------
    Unsupported
        If one of them cannot be imported.
    """
    _load(os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _load(named: str) -> None:
    for point in entry_points(group=GROUP):
        _import(point.value.partition(":")[0].strip())
    for name in filter(None, (part.strip() for part in named.split(","))):
        _import(name)


def _import(name: str) -> None:
    try:
        if name.endswith(".py"):
            _import_file(Path(name))
        else:
            import_module(name)
    except Exception as error:
        raise Unsupported(f"the plug-in {name} cannot be imported ({type(error).__name__}: {error})") from error


def _import_file(path: Path) -> None:
    module_name = f"discreet_plugin_{path.stem}"
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError("there is no such file")
    sys.modules[module_name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
