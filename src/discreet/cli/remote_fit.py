"""``discreet fit --remote``: a fit on a service that keeps the table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.errors import Refused
from discreet.cli.outputs import free

if TYPE_CHECKING:
    from discreet.models.table_model import TableModel


def fit_remotely(
    url: str,
    dataset: str | None,
    model: str,
    settings: dict[str, Any],
    theirs: tuple[Any, ...],
    out: Path | None,
    charge_id: str | None,
    checks: bool,
) -> "dict[str, Any] | TableModel":
    """Return the fitted model, whose folder was written to ``out``; the price alone where there is no place.

    ``theirs`` are options that are the service's to say: given, they are refused.
    """
    from discreet.cli.choices import estimator_named
    from discreet.models.table_model import TableModel
    from discreet.service_client import remote

    if dataset is None or any(theirs):
        raise Refused("--remote takes --dataset and the model's settings: the rest is the service's to say")
    if out is not None:
        free(out)
    service = remote(url)
    there = service.dataset(dataset)
    estimator = estimator_named(there.schema, model, settings)
    if out is None:
        return there.quote(estimator)
    return TableModel.load(service.save(there.submit(estimator, charge_id=charge_id, checks=checks), out))
