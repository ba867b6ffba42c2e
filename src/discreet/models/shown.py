"""How estimators look in a notebook: scikit-learn's diagram, above it the claim, and a link to the documentation.

Only the certificate, parameters and released attributes are shown. The link is the address that the installed package
names under ``Documentation``; there is none where it names no address.
"""

from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from sklearn import get_config
from sklearn.utils import estimator_html_repr

_PAGES = {"TableModel": "tables", "SchemaEncoder": "tables", "DPRandomizedSearch": "results", "TableSearch": "tables"}


@cache
def documentation() -> str:
    """Return the address of the documentation, empty where the package names none."""
    try:
        named = metadata("discreet").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    found = dict(entry.split(", ", 1) for entry in named if ", " in entry)
    return str(found.get("Documentation", "")).rstrip("/")


class Shown:
    """Displays an estimator with epsilon, delta and the relation of its fit."""

    _doc_link_module = "discreet"

    @property
    def _doc_link_template(self) -> str:
        page = _PAGES.get(type(self).__name__, "estimators")
        return f"{documentation()}/reference/api/{page}.html#discreet.{type(self).__name__}" if documentation() else ""

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {}

    def _claim_html(self) -> str:
        """Return the claim in one line, or that there is none yet."""
        made = getattr(self, "certificate_", None) if _is_fitted(self) else None
        if made is None:
            said = "not fitted: nothing was spent"
        else:
            relation = str(made.neighbors).replace("_", " ")
            said = f"{made.headline}: epsilon {made.epsilon:g}, delta {made.delta:g}, {relation}, per {made.unit}"
        return f'<p style="font-family: monospace">{escape(type(self).__name__)}: {escape(said)}</p>'

    @property
    def _repr_html_(self) -> Any:
        if get_config()["display"] != "diagram":
            raise AttributeError("there is no HTML unless scikit-learn's display is 'diagram'")
        return self._shown_html

    def _shown_html(self) -> str:
        return self._claim_html() + str(estimator_html_repr(self))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return shown | {"text/html": self._shown_html()} if get_config()["display"] == "diagram" else shown


def _is_fitted(estimator: Any) -> bool:
    return any(hasattr(estimator, name) for name in ("coef_", "estimator_", "best_estimator_"))
