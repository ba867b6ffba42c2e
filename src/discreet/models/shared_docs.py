"""What the estimators' docstrings have in common, written once: parameters that mean the same in all of them.

A class describes its own parameters and attributes; ``filled`` adds the others, in the order of the signature and with
its defaults, so that ``help`` shows all of them.
"""

import inspect
import re

PARAMETERS = {
    "epsilon": ("float", "The budget of one fit. ``inf``: no privacy, marked so in the certificate."),
    "delta": ("float", "None: 1/n^2 where n is public, and never more than 1e-6. 0: pure epsilon-DP."),
    "bounds": (
        "Bounds, float, list or dict",
        "What is publicly known of the features: a ``Bounds``, or a bare range (1.0, a list of (low, high), a\n"
        "dictionary by column). Required.",
    ),
    "classes": ("sequence", "The labels, in order, where ``bounds`` does not name them."),
    "target": ("tuple of float", "The range (low, high) of the target, where ``bounds`` does not name it."),
    "penalty": ("str or penalty object", '``"l2"``, ``"l1"``, ``"elasticnet"`` (half of alpha each), or None.'),
    "alpha": ("float", "Strength of the penalty, in training coordinates. The intercept is penalized too."),
    "solver": (
        "str or solver object",
        '``"auto"`` chooses by public facts. By name: ``"whitened"``, ``"gd"``, ``"sgd"``, ``"svrg"``, ``"cd"``,\n'
        '``"gcd"``, ``"agd"``, ``"output"``, ``"objective"``, ``"exponential"``. Or an object of ``discreet.solvers``.',
    ),
    "neighbors": ("str", 'What a neighbor is: ``"replace_one"``, ``"zero_out"`` or ``"add_remove"``.'),
    "allow_large_delta": ("bool", "Permit delta >= 1/n, which allows publishing a whole record."),
    "fit_intercept": ("bool", "Whether there is a constant feature."),
    "start": (
        "tuple or None",
        "The point that steps start from, (coefficients, intercept) in the user's own units: those of a public or\n"
        "released model, ``start=(model.coef_, model.intercept_)``. Not private, so free. None: zeros.",
    ),
    "public_moments": (
        "tuple or None",
        "(means, covariance) or (means, standard deviations) of the features in the user's own units, from a public\n"
        "sample, a codebook or a published table. Not private, so free: ``Whitened`` and ``Standardized`` estimate\n"
        "none of these, and steps get their budget. None: estimated with privacy budget.",
    ),
    "inference": (
        "str or None",
        '``"sandwich"``: reserve a part of the budget for standard errors, confidence intervals and p-values of a\n'
        "population's effects; see ``summary``. None: nothing is reserved.",
    ),
    "cov_type": ("str", '``"robust"``, ``"model"`` or ``"cluster"``: which covariance ``inference`` estimates.'),
    "ledger": (
        "Ledger, str, Path or False",
        "Where fits are charged before they read a record. None: the configured ledger; False: none.",
    ),
    "dataset": ("str", "The registered name of the data in the ledger."),
    "verbose": ("bool", "Whether to show a progress bar."),
}
ATTRIBUTES = {
    "coef_": ("ndarray", "Coefficients in the user's own units. Private: they may be published."),
    "intercept_": ("ndarray or float", "The intercept, of each output."),
    "coef_noise_": (
        "ndarray or None",
        "Standard deviation of each coefficient due to privacy noise, if known.",
    ),
    "intercept_noise_": (
        "ndarray, float or None",
        "The same for the intercept; see ``intervals``.",
    ),
    "certificate_": ("Certificate", "What may be claimed of the model."),
    "n_features_in_": ("int", "The number of features."),
}


def filled(cls: type) -> str | None:
    """Return the docstring of an estimator with the shared entries; None where it has none."""
    if not cls.__doc__:
        return None
    text = inspect.cleandoc(cls.__doc__)
    own, attributes = _entries(text, "Parameters"), _entries(text, "Attributes")
    parameters = {
        name: own.get(name) or _entry(name, *PARAMETERS[name], default=one.default)
        for name, one in inspect.signature(cls.__init__).parameters.items()  # type: ignore[misc]
        if name in own or name in PARAMETERS
    }
    attributes |= {name: _entry(name, *one) for name, one in ATTRIBUTES.items()}
    parts = {"Parameters": parameters, "Attributes": attributes}
    rest = re.split(r"\n(?=[A-Z][a-z ]+\n-{3,}\n)", text)
    head, tail = rest[0], [one for one in rest[1:] if not one.startswith(("Parameters\n", "Attributes\n"))]
    made = [f"{name}\n{'-' * len(name)}\n" + "\n".join(found.values()) + "\n" for name, found in parts.items()]
    return "\n".join([head, *made, *tail])


def _entry(name: str, kind: str, text: str, *, default: object = inspect.Parameter.empty) -> str:
    shown = "" if default is inspect.Parameter.empty else f", default={default!r}".replace("'", '"')
    return f"{name} : {kind}{shown}\n" + "\n".join(f"    {line}" for line in text.splitlines())


def _entries(text: str, section: str) -> dict[str, str]:
    """Return name -> entry of a section of a docstring; an entry of several names counts for each."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n[A-Z][a-z ]+\n-{{3,}}\n|\Z)", text, re.MULTILINE | re.DOTALL)
    entries = re.split(r"\n(?=\S)", found.group(1).rstrip()) if found else []
    return {name: one for one in entries for name in re.split(r", ", one.split(" : ")[0].splitlines()[0])}
