"""What an analyst may ask for: a model by name with plain settings, never code, paths or addresses.

Everything here follows from the schema, the number of rows where it is public, and the request.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.accounting.pricing import PricedPlan
from discreet.curator import DeclaredSource, Layout, Source
from discreet.errors import Unsupported
from discreet.json_schemas import Json
from discreet.ledger.account import Account
from discreet.models.base import MODELS, default_model
from discreet.models.fit import Quote
from discreet.models.forecast import Forecast, forecast
from discreet.models.scores import priced_score
from discreet.models.table_model import TableModel
from discreet.parameters import Share, conforms
from discreet.schema.cell_meaning import SchemaError, parsed
from discreet.schema.schema import Schema
from discreet.serve.settings import ServiceError

OWN = ("bounds", "classes", "target", "ledger", "dataset", "verbose", "start", "public_moments", "neighbors")
"""Parameters that are the service's, or the schema's, to set."""
LARGEST_EPSILON = 1000.0
LONGEST_TEXT = 100
_SCORE = ("epsilon", "delta", "metric", "level")


@dataclass(frozen=True)
class Specification:
    """A fit as an analyst describes it: the model's short name, its settings, and whether cells are checked."""

    model: str
    settings: Json
    checks: bool = True

    @classmethod
    def of(cls, given: object, schema: Schema) -> "Specification":
        """Read a request, and refuse what is no plain setting of the model."""
        if not isinstance(given, Mapping):
            raise ServiceError("the settings of a fit are a table: epsilon = 0.5, and perhaps model, solver, alpha")
        given = dict(given)
        name, checks = given.pop("model", "auto"), given.pop("checks", True)
        name = default_model(schema) if name == "auto" else name
        if not isinstance(name, str) or name not in MODELS.names():
            raise ServiceError(f"model is one of auto, {', '.join(MODELS.names())}")
        if not isinstance(checks, bool):
            raise ServiceError("checks is true or false")
        parameters = set(MODELS[name]().get_params(deep=False)) - set(OWN)
        unknown = sorted(str(key)[:LONGEST_TEXT] for key in given if key not in parameters)
        if unknown:
            raise ServiceError(f"{name} takes {', '.join(sorted(parameters))}, and not {', '.join(unknown[:5])}")
        for key, value in given.items():
            if not (value is None or _is_plain(value)):
                raise ServiceError(f"{key} is a name, a finite number, or true or false")
        if not _is_epsilon(given.get("epsilon")):
            raise ServiceError(f"epsilon must be positive, such as 0.5, and at most {LARGEST_EPSILON:g}")
        return cls(name, given, checks)

    @classmethod
    def from_toml(cls, text: str, schema: Schema) -> "Specification":
        """Read a request that was pasted as TOML."""
        try:
            return cls.of(parsed(text), schema)
        except SchemaError as error:
            raise ServiceError(str(error).replace("the schema", "what you pasted")) from None

    def model_of(self, schema: Schema, account: Account, **charged: object) -> TableModel:
        """Return the model, not fitted; the relation is the data set's."""
        estimator = MODELS[self.model]()
        assert schema.target is not None
        if hasattr(estimator, "classes") != (schema.target.classes is not None):
            raise ServiceError(
                f"{self.model} is for another kind of target: leave model out, and one that suits is used"
            )
        words = {**self.settings, "neighbors": str(account.neighbors), "ledger": False, **charged}
        return TableModel(schema, estimator.set_params(**words), checks=self.checks)

    def with_delta(self, delta: float) -> "Specification":
        """With the delta that was quoted, so that a later run asks for exactly the same."""
        return Specification(self.model, {**self.settings, "delta": delta}, self.checks)

    def to_dict(self) -> Json:
        """Plain values, as ``of`` reads them."""
        return {"model": self.model, **self.settings, "checks": self.checks}

    @property
    def text(self) -> str:
        """One text for one request."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)


@dataclass(frozen=True)
class ScoreSpecification:
    """A private score as an analyst describes it: of the model of an earlier job, on the rows of a data set."""

    job: str
    settings: Json

    @classmethod
    def of(cls, given: object) -> "ScoreSpecification":
        """Read a request, and refuse what is no plain setting of a score."""
        if not isinstance(given, Mapping) or not isinstance(given.get("job"), str):
            raise ServiceError(
                "the settings of a score are a table with job, the id of a fit that is done, and epsilon"
            )
        unknown = sorted(str(key)[:LONGEST_TEXT] for key in set(given) - {"job", *_SCORE})
        if unknown:
            raise ServiceError(f"a score takes job, {', '.join(_SCORE)}, and not {', '.join(unknown[:5])}")
        settings = {key: value for key, value in given.items() if key != "job" and value is not None}
        if not all(map(_is_plain, settings.values())) or not isinstance(settings.get("metric", ""), str):
            raise ServiceError("the settings of a score are finite numbers, and metric is a name")
        if not conforms(settings.get("level", 0.95), Share) or not conforms(settings.get("delta", 0.0), float):
            raise ServiceError("level is a number between 0 and 1, such as 0.95, and delta one such as 1e-6")
        if not _is_epsilon(settings.get("epsilon")):
            raise ServiceError(f"epsilon must be positive, such as 0.1, and at most {LARGEST_EPSILON:g}")
        return cls(given["job"], settings)

    def priced(self, model: TableModel, facts: "Facts") -> PricedPlan:
        """Return what the score would release, at its price; no record is read."""
        if (model.schema_.person is None) != (facts.schema.person is None):
            raise ServiceError("the model protects another unit than this data set: one of them has a person column")
        words = {**self.settings, "neighbors": str(facts.account.neighbors)}
        return priced_score(model.estimator_, model.rows(facts.source), **words)

    def with_delta(self, delta: float) -> "ScoreSpecification":
        """With the delta that was priced, so that a later run asks for exactly the same."""
        return ScoreSpecification(self.job, {**self.settings, "delta": delta})

    def to_dict(self) -> Json:
        """Plain values, as ``of`` reads them."""
        return {"job": self.job, **self.settings}


@dataclass(frozen=True)
class Facts:
    """What is public of a data set: its schema, the ledger's terms, the number of rows where neighbors agree on it."""

    schema: Schema
    account: Account
    rows: int | None

    @classmethod
    def of(cls, schema: Schema, account: Account, source: Source | None) -> "Facts":
        """Count rows where their number is public; persons are declared."""
        if account.unit != ("record" if schema.person is None else "person"):
            raise ServiceError(
                f"{account.name}: the ledger protects a {account.unit}, and the schema does not: a schema with a "
                "person column protects persons, one without protects records"
            )
        if schema.rows is not None or not account.neighbors.n_is_public:
            return cls(schema, account, schema.rows)
        if schema.person is not None:
            raise ServiceError(f"{account.name}: declare the number of persons: rows = ... in the schema")
        return cls(schema, account, None if source is None else source.count())

    @property
    def source(self) -> DeclaredSource:
        """A table to plan with, that has nothing to read."""
        return DeclaredSource(self.schema.needed, self.rows or 1)

    def quote(self, specification: Specification) -> Quote:
        """Price a fit; no record is read."""
        return specification.model_of(self.schema, self.account).quote(self.source)

    def forecast(self, specification: Specification) -> Forecast:
        """Simulate what privacy will cost, on synthetic rows."""
        if self.rows is None:
            raise Unsupported(
                "the number of rows is private here, and a forecast needs one: use discreet forecast --rows"
            )
        layout = Layout(self.schema)
        estimator = specification.model_of(self.schema, self.account).estimator.set_params(bounds=layout.bounds)
        grid: Json = {"seeds": 3, "epsilons": [], "n_grid": []}
        return forecast(estimator, self.rows, None, indicators=layout.indicators, **grid)


def _is_epsilon(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 < value <= LARGEST_EPSILON


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    if isinstance(value, int):  # truth values, too
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)
