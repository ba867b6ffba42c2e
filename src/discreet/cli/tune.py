"""``discreet tune``: the best of several candidates, privately, and what that costs."""

import json
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.options import (
    AllowLargeDelta,
    AsJson,
    Dataset,
    Delta,
    LedgerAddress,
    Relation,
    account,
    check_budget,
    echo_json,
    refuse_both,
)
from discreet.cli.terminal import Refused
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.models.search import TableSearch
    from discreet.models.search_price import Offer
    from discreet.schema.schema import Schema

DEMO_ROWS = 8000
DEMO = {"candidates": {"alpha": [1e-5, 1e-3, 1e-1], "solver": ["gd", "cd"]}}
_MOVED = {"bounds", "target"}


def tune(
    table: Annotated[
        list[Path] | None, typer.Argument(help="The table: files, a folder or a 'pattern*' of CSV or Parquet.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", "-s", help="Schema file with what is publicly known of the table (see discreet schema)."
        ),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="The candidates, and perhaps a model: .toml or .json.")
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The budget of everything together.")] = 1.0,
    delta: Delta = None,
    neighbors: Relation = Neighbors.REPLACE_ONE,
    allow_large_delta: AllowLargeDelta = False,
    stopping: Annotated[str, typer.Option(help="Runs: auto, poisson, geometric or logarithmic.")] = "auto",
    mean_runs: Annotated[float | None, typer.Option(help="Runs on average; at most 10 unless given.")] = None,
    validation_fraction: Annotated[float, typer.Option(help="The share of records that score.")] = 0.2,
    rows: Annotated[int | None, typer.Option(min=1, help="For --dry-run: how many records there will be.")] = None,
    ledger: LedgerAddress = None,
    dataset: Dataset = None,
    public: Annotated[bool, typer.Option("--public", help="The records are public: charge nothing.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the model.")] = Path("tuned"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the price; read no row.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Synthetic hospital stays instead of a table.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose among candidates with a guarantee for the whole: fits, scores and the choice.

    A secret, random number of runs: each draws a candidate at random, fits it on one part of the records and scores it
    on the rest, with noise. Only the best model leaves, in a folder as `discreet fit` writes it. Its certificate has
    the total price.

    The table and its schema are those of `discreet fit`. The settings list parameters to try; every combination is a
    candidate:

    `model = "logistic"` (optional: logistic for classes, ridge for numbers)

    `[candidates]` such as `alpha = [1e-4, 1e-2]` and `solver = ["gd", "cd"]`

    `[estimator]` (optional) parameters that all candidates share

    With a ledger (`discreet budget`), the whole selection is charged to the data set once, before a row is read.

    The time a run takes tells how many runs there were, which must stay secret: do not publish it.
    """
    refuse_both(public or demo, ledger, dataset)
    if not demo and (schema is None or settings is None or not (table or (dry_run and rows))):
        raise Refused(
            "give a table, --schema and --settings (or --rows with --dry-run in place of the table); or --demo"
        )
    declared, candidates = _demonstrated() if demo else _described(schema, settings)
    check_budget(epsilon, delta, neighbors, declared.rows or (rows if dry_run else None))
    unit = "record" if declared.person is None else "person"
    charge = account(ledger, dataset, str(neighbors), unit, charged=not (public or demo or dry_run))
    budget = {"epsilon": epsilon, "delta": delta, "neighbors": str(neighbors), **charge}
    budget["allow_large_delta"] = allow_large_delta
    if dry_run and rows:
        declared = replace(declared, rows=rows)
    words = {"stopping": stopping, "mean_runs": mean_runs, "validation_fraction": validation_fraction}
    search = _search(declared, candidates, **words, **budget)
    with _opened(declared, table or [], rows, demo=demo, dry_run=dry_run) as source:
        offer = search.quote(source)
        priced = _priced(offer, validation_fraction)
        if dry_run:
            _show(priced, None, as_json)
            return
        _tuned(search, source, out)
    certificate = search.certificate_
    priced |= {"chosen": {name: str(value) for name, value in search.best_params_.items()}}
    priced |= {"noisy_score": round(search.best_score_, 4), "model": str(out), "ledger": certificate.ledger}
    _show(priced, certificate.text(), as_json)


def _described(schema: Path | None, settings: Path | None) -> tuple["Schema", Json]:
    from discreet.schema.schema import Schema

    assert schema is not None
    assert settings is not None
    return Schema.load(schema), _settings(settings)


def _demonstrated() -> tuple["Schema", Json]:
    """Return the synthetic hospital's schema, with a range for every column, and candidates."""
    from discreet.datasets import CODEBOOK, schema_text
    from discreet.schema.schema import Schema

    declared = Schema.from_toml(schema_text())
    return declared.with_ranges({name: CODEBOOK[name][:2] for name in declared.private_columns}), DEMO


@contextmanager
def _opened(declared: "Schema", table: list[Path], rows: int | None, *, demo: bool, dry_run: bool) -> Iterator[Any]:
    """Yield the table: synthetic, only planned where --rows says how large it will be, or the one in the files."""
    from discreet.cli.options import table_of
    from discreet.curator import DeclaredSource
    from discreet.datasets import hospital, write_csv

    if dry_run and (rows or demo):
        declared.check()
        yield DeclaredSource(declared.needed, rows or DEMO_ROWS)
    elif demo:
        with tempfile.TemporaryDirectory() as folder:
            yield table_of([write_csv(hospital(rows or DEMO_ROWS), Path(folder) / "patients.csv")], declared)
    else:
        source = table_of(table, declared)
        declared.check(source.names)
        yield source


def _settings(path: Path) -> Json:
    try:
        text = path.read_text(encoding="utf-8-sig")
        settings = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError):
        raise Refused("the settings are neither TOML (.toml) nor JSON (.json)") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("candidates"), dict):
        raise Refused("the settings need [candidates], lists of parameters such as alpha = [1e-4, 1e-2]")
    if not isinstance(settings.get("estimator", {}), dict):
        raise Refused("[estimator] lists parameters that all candidates share, such as fit_intercept = false")
    unknown = sorted(set(settings) - {"model", "candidates", "estimator"})
    if unknown:
        remedy = ": what is known of the table is declared in the schema" if _MOVED & set(unknown) else ""
        raise Refused(f"unknown settings: {', '.join(unknown)}{remedy}")
    return settings


def _search(declared: "Schema", settings: Json, **words: Any) -> "TableSearch":
    from discreet.cli.options import model_named, registered_models
    from discreet.models.search import DPRandomizedSearch, TableSearch
    from discreet.registry import load_plugins

    name, shared = settings.get("model", "auto"), settings.get("estimator", {})
    load_plugins()  # candidates may name their solvers
    if name not in ("auto", *registered_models()):
        raise Refused(f"the model is one of {', '.join(('auto', *registered_models()))}")
    estimator = model_named(declared, name, {}, {}).estimator
    assert estimator is not None
    strange = [key for key in shared if key not in estimator.get_params() or key in ("bounds", "classes", "target")]
    if strange:
        raise Refused(f"[estimator] cannot set {', '.join(strange)}: it has {type(estimator).__name__}'s parameters")
    return TableSearch(declared, DPRandomizedSearch(estimator.set_params(**shared), settings["candidates"], **words))


def _tuned(search: "TableSearch", source: object, out: Path) -> None:
    """Select, and write the folder whole or not at all; that its place is free is found out before the charge."""
    from discreet.models.persist import new_folder, write_folder

    with new_folder(out) as folder:
        write_folder(search.fit(source).best_estimator_, folder)


def _priced(offer: "Offer", validation_fraction: float) -> Json:
    return {
        "epsilon": offer.total.epsilon,
        "delta": offer.total.delta,
        "neighbors": str(offer.total.neighbors),
        "price": offer.price.epsilon,
        "accountants": offer.price.accountants,
        "candidates": len(offer.planned),
        "stopping": offer.stopping.name,
        "mean_runs": offer.stopping.mean,
        "run_epsilon": offer.run.epsilon,
        "validation_fraction": validation_fraction,
    }


def _show(search: Json, certificate: str | None, as_json: bool) -> None:
    if as_json:
        echo_json(search)
        return
    from rich.table import Table

    from discreet.cli.console import Console

    console = Console(markup=False, highlight=False)
    looks: Json = {"title_justify": "left", "title_style": "bold", "box": None, "show_header": False}
    table = Table(title="What the selection costs", **looks)
    table.add_row("total", f"epsilon = {search['epsilon']:.6g}, delta = {search['delta']!r}, {search['neighbors']}")
    accountants = ", ".join(f"{name} {value:.6g}" for name, value in search["accountants"].items())
    table.add_row("price", f"{search['price']:.6g} ({accountants})")
    table.add_row("candidates", f"{search['candidates']}, whose number does not affect the price")
    table.add_row("runs", f"{search['stopping']}, {search['mean_runs']:g} on average; how many must stay secret")
    held = f"a fit on {1 - search['validation_fraction']:.0%} of the records, a score on the rest"
    table.add_row("each run", f"epsilon = {search['run_epsilon']:.6g} for {held}")
    if certificate is not None:
        chosen = ", ".join(f"{name} = {value}" for name, value in search["chosen"].items())
        table.add_row("chosen", f"{chosen}; noisy score {search['noisy_score']:.4g}")
        table.add_row("written", search["model"])
    console.print(table)
    if certificate is not None:
        console.print(f"\n{certificate}", soft_wrap=True)
