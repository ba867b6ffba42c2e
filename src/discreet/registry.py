"""Classes by name: built-in ones are listed here, others are added by a decorator.

A built-in class is imported when its name is first used. A class from outside the package is registered from the
moment its module is imported: in Python, or by ``load_plugins``. Names in files are looked up here and nowhere else, so
reading a file never imports code of others.

Plug-ins are modules of others that register solvers, losses, penalties or models. The command line looks in two places:
the entry-point group ``discreet.plugins`` of installed packages, and the environment variable ``DISCREET_PLUGINS``:
names of modules, or paths that end in ``.py``, separated by commas. They are loaded only where a command needs them: it
was given a name that is not built in, it lists names, or it reads a saved model. A plug-in runs with the rights of the
command. No file that discreet reads can make it load one.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Generic, TypeVar, cast

from discreet.errors import Unsupported

VARIABLE = "DISCREET_PLUGINS"
GROUP = "discreet.plugins"

BUILT_IN_SOLVERS = {
    "recipe": "discreet.default.Recipe",
    "gd": "discreet.solvers.GradientDescent",
    "sgd": "discreet.solvers.StochasticGradientDescent",
    "svrg": "discreet.solvers.VarianceReducedDescent",
    "agd": "discreet.solvers.AdaptiveDescent",
    "cd": "discreet.solvers.CoordinateDescent",
    "gcd": "discreet.solvers.GreedyCoordinateDescent",
    "output": "discreet.solvers.OutputPerturbation",
    "objective": "discreet.solvers.ObjectivePerturbation",
    "exponential": "discreet.solvers.ExponentialMechanism",
}
"""Short names of the solvers, and where each class is."""
BUILT_IN_LOSSES = {
    "logistic": "discreet.losses.Logistic",
    "smoothed_hinge": "discreet.losses.SmoothedHinge",
    "softmax": "discreet.losses.Softmax",
    "squared": "discreet.losses.Squared",
    "huber": "discreet.losses.Huber",
    "poisson": "discreet.losses.Poisson",
    "negative_binomial": "discreet.losses.NegativeBinomial",
    "gamma": "discreet.losses.Gamma",
    "tweedie": "discreet.losses.Tweedie",
    "quantile": "discreet.losses.Quantile",
}
"""Short names of the losses, and where each class is."""
BUILT_IN_PENALTIES = {
    "none": "discreet.penalties.NoPenalty",
    "l1": "discreet.penalties.L1",
    "l2": "discreet.penalties.L2",
    "elasticnet": "discreet.penalties.ElasticNet",
    "group_l2": "discreet.penalties.GroupL2",
    "box": "discreet.penalties.Box",
    "l2_ball": "discreet.penalties.L2Ball",
}
"""Short names of the penalties, and where each class is."""
BUILT_IN_MODELS = {
    "logistic": "discreet.models.DPLogisticRegression",
    "svm": "discreet.models.DPLinearSVC",
    "classifier": "discreet.models.DPClassifier",
    "ordinal": "discreet.models.DPOrdinalRegression",
    "linear": "discreet.models.DPLinearRegression",
    "ridge": "discreet.models.DPRidge",
    "lasso": "discreet.models.DPLasso",
    "elasticnet": "discreet.models.DPElasticNet",
    "huber": "discreet.models.DPHuberRegressor",
    "quantile": "discreet.models.DPQuantileRegressor",
    "poisson": "discreet.models.DPPoissonRegressor",
    "negative_binomial": "discreet.models.DPNegativeBinomialRegressor",
    "gamma": "discreet.models.DPGammaRegressor",
    "tweedie": "discreet.models.DPTweedieRegressor",
    "regressor": "discreet.models.DPRegressor",
}
"""Short names of the estimators, and where each class is."""

C = TypeVar("C", bound=type)
D = TypeVar("D", bound=type)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def not_a_tuple(cls: type) -> str | None:
    """Return what a class lacks that compiled loops are to take."""
    return None if issubclass(cls, tuple) and hasattr(cls, "_fields") else "a NamedTuple: compiled loops take no others"


class Registry(Generic[C]):
    """The classes of one kind (solvers, losses, ...), by short name and by class name.

    ``built_in`` maps short names to ``package.ClassName``; ``check`` says what a class from outside lacks.
    """

    def __init__(
        self, kind: str, built_in: Mapping[str, str], check: Callable[[type], str | None] = lambda cls: None
    ) -> None:
        self.kind, self._built_in, self._check = kind, built_in, check
        self._classes: dict[str, C] = {}

    def register(self, name: str) -> Callable[[D], D]:
        """Make a decorator that declares a class's short name; the name and the class's own must be free.

        A class that is defined again (a notebook's cell, a reloaded module) takes its own place.

        Parameters
        ----------
        name : str
            Letters, digits, - and _; what files, estimators and commands call the class by.

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
            self._refuse_taken(name, cls)
            self._classes[name] = cast(C, cls)
            return cls

        return declare

    def _refuse_taken(self, name: str, cls: type) -> None:
        for key, class_name in self._class_names().items():
            redefined = key == name and key not in self._built_in and class_name == cls.__name__
            if not redefined and (name == key or cls.__name__ == class_name):
                raise Unsupported(f"another {self.kind} is named {key!r} ({class_name}): rename yours")

    def _class_names(self) -> dict[str, str]:
        """Return short name -> class name, without importing a class."""
        built_in = {name: place.rpartition(".")[2] for name, place in self._built_in.items()}
        return built_in | {name: cls.__name__ for name, cls in self._classes.items()}

    def names(self) -> tuple[str, ...]:
        """Return all short names: the built-in ones, then those that were registered in this process."""
        return (*self._built_in, *self._classes)

    def __contains__(self, name: str) -> bool:
        return name in self._built_in or name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __getitem__(self, name: str) -> C:
        """Return the class of this short name; a built-in one's module is imported now."""
        if name in self._built_in:
            package, _, class_name = self._built_in[name].rpartition(".")
            return cast(C, getattr(import_module(package), class_name))
        if name not in self._classes:
            raise Unsupported(f"there is no {self.kind} {name!r}: there are {', '.join(self.names())}")
        return self._classes[name]

    def class_named(self, class_name: str) -> C | None:
        """Return the class whose own name this is, or None."""
        return next((self[name] for name, own_name in self._class_names().items() if own_name == class_name), None)

    def class_names(self) -> tuple[str, ...]:
        """Return the classes' own names."""
        return tuple(dict.fromkeys(self._class_names().values()))


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
