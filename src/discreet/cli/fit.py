"""``discreet fit`` and ``tune``: from a table and a schema to a private model, or to the best of several."""

import json
import sys
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
    ChargeId,
    Checks,
    ClassWeight,
    Cluster,
    CovType,
    Dataset,
    Delta,
    Dispersion,
    EvenIfEmpty,
    FormulaText,
    Inference,
    LedgerAddress,
    Memory,
    ModelName,
    Power,
    QuantileLevel,
    Relation,
    Scratch,
    SolverName,
    Start,
    Terms,
    account,
    check_budget,
    check_memory,
    connect,
    echo_json,
    free,
    inference_settings,
    model_named,
    of_large_tables,
    of_ledger,
    of_model,
    refuse_both,
    show_quote,
    start_of,
)
from discreet.cli.terminal import INTERRUPTED, TERMINATED, Refused, rich_console
from discreet.json_schemas import Json

if TYPE_CHECKING:
    from discreet.ledger.account import Spent
    from discreet.models.search import Offer, TableSearch
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema


Table = Annotated[
    list[Path] | None, typer.Argument(help="The table: files, a folder or a 'pattern*' of CSV or Parquet.")
]
SchemaFile = Annotated[
    Path | None,
    typer.Option("--schema", "-s", help="Schema file with what is publicly known of the table (see discreet schema)."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="New folder for the model and its report.")]
LossName = Annotated[
    str | None, of_model(help="Loss, with --model classifier or regressor: the name of a registered one.")
]
Remote = Annotated[
    str | None,
    of_large_tables(metavar="URL", help="Fit on a service that keeps the table: give --dataset instead of a table."),
]
WithReport = Annotated[
    bool, typer.Option("--report/--no-report", help="Also write an HTML report (takes a few seconds).")
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain", help="With --dry-run: explain the choice of solver, and what privacy will probably cost."
    ),
]


def fit(
    command: typer.Context,
    table: Table = None,
    schema: SchemaFile = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget: smaller is more private.")] = 1.0,
    out: Out = Path("model"),
    delta: Delta = None,
    neighbors: Relation = Neighbors.REPLACE_ONE,
    allow_large_delta: AllowLargeDelta = False,
    model: ModelName = "auto",
    solver: SolverName = "auto",
    loss: LossName = None,
    alpha: Annotated[float | None, of_model(help="Strength of the penalty, if the model has one.")] = None,
    start: Start = None,
    formula: FormulaText = None,
    terms: Terms = "auto",
    class_weight: ClassWeight = None,
    power: Power = None,
    dispersion: Dispersion = None,
    quantile: QuantileLevel = None,
    inference: Inference = None,
    cov_type: CovType = None,
    even_if_empty: EvenIfEmpty = False,
    ledger: LedgerAddress = None,
    dataset: Dataset = None,
    public: Annotated[bool, of_ledger("--public", help="The records are public: charge nothing.")] = False,
    charge_id: ChargeId = None,
    checks: Checks = True,
    title: Annotated[str | None, typer.Option(help="The report's title.")] = None,
    report: WithReport = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its price; read no rows.")] = False,
    explain: Explain = False,
    memory: Memory = None,
    scratch: Scratch = None,
    cluster: Cluster = None,
    remote: Remote = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a private model to a table, and write it with its certificate and an HTML report.

    First run `discreet schema new table.csv` and fill in what is publicly known. Then:

    - `discreet fit table.csv --schema schema.toml --epsilon 1 --dry-run`: show the plan and its price. Rows are
      counted, not read. With `--explain`: why this solver, and what privacy will probably cost.

    - `discreet fit table.csv --schema schema.toml --epsilon 1 --out model`

    The table may be larger than memory: it is read in blocks, and encoded rows that memory does not hold are kept in
    private scratch files that are removed when the command ends. `--dry-run` shows how much memory and disk that takes.
    If the number of rows is public, a fit that does not fit this machine is refused before it is charged.

    With `--cluster`, the workers of a Dask cluster read the files, each at the same path, and keep the encoded rows:
    no row reaches this machine, which draws the noise and charges the ledger. Connections to other machines must be
    encrypted (tls://, with the certificates of Dask's configuration).

    The folder is written completely or not at all: model.discreet, schema.toml, certificate.json, report.html, and
    their checksums. With a ledger (`discreet budget`), the fit is charged before the first row is read, and refused if
    the budget is spent. A fit that is interrupted after that stays charged; with `--charge-id` it can be repeated under
    the same charge.

    With `--remote`, the fit runs on a service (`discreet serve`) that keeps the table, and the model's folder is
    written here, for example `discreet fit --remote https://... --dataset patients --epsilon 0.5`. Set your token in
    DISCREET_TOKEN.

    Next: `discreet inspect model`, `discreet verify model`, `discreet predict model new.csv`, `discreet score model
    held-out.csv --private --epsilon 0.1`.
    """
    from discreet.curator import limited, needs_of, source_of

    if loss is not None:  # it may be a plug-in's
        from discreet.registry import load_plugins

        load_plugins()
    settings: Json = {"epsilon": epsilon, "delta": delta, "neighbors": str(neighbors), "solver": solver, "alpha": alpha,
                "loss": loss, "allow_large_delta": allow_large_delta}  # fmt: skip
    settings |= {"class_weight": class_weight or None}
    settings |= {"power": power, "dispersion": dispersion, "quantile": quantile}
    settings |= inference_settings(inference, cov_type, even_if_empty=even_if_empty)
    if remote is not None:
        where = (table, schema, formula, ledger, public, memory, scratch, cluster)
        theirs = (*where, start, explain, class_weight, terms != "auto")
        answer = fit_remotely(remote, dataset, model, settings, theirs, None if dry_run else out, charge_id, checks)
        return echo_json(answer) if isinstance(answer, dict) else _show(answer, out, as_json)
    refuse_both(public, ledger, dataset)
    connect(command, cluster)
    if not table or schema is None:
        raise Refused("give a table and --schema (see discreet schema new), or --remote and --dataset")
    declared = _declared(schema, formula)
    source = source_of(list(table), declared.separator)
    declared.check(source.names)
    check_budget(epsilon, delta, neighbors, declared.rows)
    charge = account(ledger, dataset, str(neighbors), _unit(declared), charged=not (public or dry_run))
    if charge_id is not None and not charge["ledger"] and not dry_run:
        raise Refused("--charge-id needs a ledger: give --ledger and --dataset, or leave it out")
    account_facts = {**charge, "verbose": not quiet and sys.stderr.isatty()}
    chosen = _configured(model_named(declared, model, settings, account_facts), checks, start, terms)
    with limited(memory, scratch):
        needs = None if cluster else needs_of(chosen.stream(source).schema, source, neighbors)
        if dry_run:
            return show_quote(chosen.quote(source), as_json, needs, explain=explain)
        if needs is not None:
            check_memory(needs)
        column = declared.target and declared.target.column
        page = (title or f"A private model of {column}, from {table[0].name}") if report else ""
        with _written_to(out, chosen, page):
            chosen.fit(source, charge_id=charge_id)
        _show(chosen, out, as_json)


def _unit(declared: "Schema") -> str:
    return "record" if declared.person is None else "person"


def _configured(chosen: "TableModel", checks: bool, start: Path | None, terms: str) -> "TableModel":
    """Set what is not a setting of the estimator by name."""
    chosen.checks, chosen.terms = checks, terms
    if start is not None:
        chosen.estimator.set_params(start=start_of(start, chosen.schema))
    return chosen


def _declared(schema: Path, formula: str | None) -> "Schema":
    from discreet.schema.schema import Schema

    declared = Schema.load(schema)
    return declared if formula is None else Schema.from_formula(formula, declared)


@contextmanager
def _written_to(out: Path, model: "TableModel", title: str) -> Iterator[None]:
    """Write the model that the block fits as a folder: whole or not at all, at a place that was free beforehand.

    An interruption reports what there is of the fit, and that the charge stays.
    """
    from discreet.models.persist import new_folder, write_folder

    interruptions: list[BaseException] = []
    try:
        with new_folder(out) as folder:
            yield
            write_folder(model, folder, _page(model, title, interruptions) if title else {})
        for interruption in interruptions:
            raise interruption
    except (KeyboardInterrupt, SystemExit) as end:
        name, code = ("interrupted", INTERRUPTED) if isinstance(end, KeyboardInterrupt) else ("ended", TERMINATED)
        typer.echo(f"discreet: {name}: {_remains(model, out, bool(title))}; what was charged stays charged", err=True)
        raise typer.Exit(code) from None
    except OSError as error:
        if not hasattr(model, "estimator_"):  # nothing was charged yet
            raise
        reason = (error.strerror or "it cannot be written").lower()
        raise Refused(f"{out}: {reason}: no model was written; what was charged stays charged") from None


def _page(model: "TableModel", title: str, interruptions: list[BaseException]) -> dict[str, str]:
    """Return the report; nothing where it cannot be made: a model that is paid for is not lost for it.

    An interruption is reported once the model is written: ``interruptions`` keeps it until then.
    """
    from discreet.models.persist import REPORT
    from discreet.report.model_report import report_of

    try:
        return {REPORT: report_of(model, title, _spent(model)).html()}
    except Exception as error:
        typer.echo(f"discreet: no report was written ({type(error).__name__}); the model is complete", err=True)
    except (KeyboardInterrupt, SystemExit) as end:
        interruptions.append(end)
    return {}


def _remains(model: "TableModel", out: Path, report: bool) -> str:
    """Say what there is of a fit that was interrupted."""
    from discreet.models.persist import REPORT, is_folder

    if not hasattr(model, "estimator_") or not is_folder(out):
        return "no model was written"
    missing = ", but there is no report" if report and not (out / REPORT).exists() else ""
    return f"the fit is done, and the model is complete in {out}{missing}"


def _spent(model: "TableModel") -> "Spent | None":
    from discreet.ledger.ledger import Ledger

    ledger, dataset = model.estimator_.ledger, model.estimator_.dataset
    return ledger.spent(dataset) if isinstance(ledger, Ledger) and dataset else None


def _effects(model: "TableModel") -> str:
    """Return the summary, or why there is none: the model is complete all the same."""
    from discreet.errors import Unsupported

    try:
        return str(model.summary())
    except Unsupported as reason:
        return str(reason)


def _show(model: "TableModel", out: Path, as_json: bool) -> None:
    from discreet.models.persist import REPORT

    certificate = model.certificate_
    if as_json:
        page = str(out / REPORT) if (out / REPORT).exists() else None
        echo_json({"model": str(out), "report": page, "certificate": json.loads(certificate.to_json())})
        return
    typer.echo(certificate.summary())
    if getattr(model.estimator_, "inference", None):
        typer.echo(f"\n{_effects(model)}")
    look = f" Look at {out / REPORT}" if (out / REPORT).exists() else ""
    typer.echo(f"\nWritten to {out}.{look}")
    typer.echo(f"Next: discreet inspect {out}; discreet verify {out}; discreet predict {out} NEW-ROWS")


def fit_remotely(
    url: str,
    dataset: str | None,
    model: str,
    settings: Json,
    theirs: tuple[object, ...],
    out: Path | None,
    charge_id: str | None,
    checks: bool,
) -> "Json | TableModel":
    """Return the fitted model, whose folder was written to ``out``; the price alone where there is no place.

    ``theirs`` are options that are the service's to say: given, they are refused.
    """
    from discreet.cli.options import estimator_named
    from discreet.models.table_model import TableModel
    from discreet.service_client import remote

    if dataset is None or any(theirs):
        raise Refused("--remote takes --dataset and the model's settings: the service decides the rest")
    if out is not None:
        free(out)
    service = remote(url)
    there = service.dataset(dataset)
    estimator = estimator_named(there.schema, model, settings)
    if out is None:
        return there.quote(estimator)
    return TableModel.load(service.save(there.submit(estimator, charge_id=charge_id, checks=checks), out))


DEMO_ROWS = 8000
DEMO = {"candidates": {"alpha": [1e-5, 1e-3, 1e-1], "solver": ["gd", "cd"]}}
_MOVED = {"bounds", "target"}


def tune(
    table: Table = None,
    schema: SchemaFile = None,
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
    charge = account(ledger, dataset, str(neighbors), _unit(declared), charged=not (public or demo or dry_run))
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
            _show_search(priced, None, as_json)
            return
        _tuned(search, source, out)
    certificate = search.certificate_
    priced |= {"chosen": {name: str(value) for name, value in search.best_params_.items()}}
    priced |= {"noisy_score": round(search.best_score_, 4), "model": str(out), "ledger": certificate.ledger}
    _show_search(priced, certificate.text(), as_json)


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


def _show_search(search: Json, certificate: str | None, as_json: bool) -> None:
    if as_json:
        echo_json(search)
        return
    from rich.table import Table

    console = rich_console()
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
