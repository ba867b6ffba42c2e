"""``discreet fit``: from a table and a schema to a private model, its certificate and its report."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.budget import Neighbors
from discreet.cli.choices import ModelName, SolverName, model_named, show_quote
from discreet.cli.errors import INTERRUPTED, TERMINATED, Refused
from discreet.cli.inputs import reach, start_of
from discreet.cli.memory_check import check_memory
from discreet.cli.options import (
    AllowLargeDelta,
    AsJson,
    ChargeId,
    Checks,
    Cluster,
    CovType,
    Dataset,
    Delta,
    FormulaText,
    Inference,
    LedgerAddress,
    Memory,
    Relation,
    Scratch,
    Start,
    Terms,
    account,
    check_budget,
    echo_json,
    refuse_both,
    told,
)
from discreet.cli.remote_fit import fit_remotely

if TYPE_CHECKING:
    from discreet.ledger.account import Spent
    from discreet.models.table_model import TableModel
    from discreet.schema.schema import Schema

Table = Annotated[
    list[Path] | None, typer.Argument(help="The table: files, a folder or a 'pattern*' of CSV or Parquet.")
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", "-s", help="What is publicly known of it: see discreet schema.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="A new folder for the model and its report.")]
LossName = Annotated[
    str | None, typer.Option(help="With --model classifier or regressor: a registered loss, by its name.")
]
Remote = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Fit on a service that keeps the table: give --dataset, and no table."),
]
WithReport = Annotated[
    bool, typer.Option("--report/--no-report", help="Also write an HTML report (takes a few seconds).")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="With --dry-run: say why this solver, and what privacy will probably cost.")
]


def fit(
    command: typer.Context,
    table: Table = None,
    schema: SchemaFile = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="The budget: smaller is more private.")] = 1.0,
    out: Out = Path("model"),
    delta: Delta = None,
    neighbors: Relation = Neighbors.REPLACE_ONE,
    allow_large_delta: AllowLargeDelta = False,
    model: ModelName = "auto",
    solver: SolverName = "auto",
    loss: LossName = None,
    alpha: Annotated[float | None, typer.Option(help="The penalty's strength, where the model has one.")] = None,
    start: Start = None,
    formula: FormulaText = None,
    terms: Terms = "auto",
    inference: Inference = None,
    cov_type: CovType = None,
    ledger: LedgerAddress = None,
    dataset: Dataset = None,
    public: Annotated[bool, typer.Option("--public", help="The records are public: charge no ledger.")] = False,
    charge_id: ChargeId = None,
    checks: Checks = True,
    title: Annotated[str | None, typer.Option(help="The report's title.")] = None,
    report: WithReport = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its price; read no row.")] = False,
    explain: Explain = False,
    memory: Memory = None,
    scratch: Scratch = None,
    cluster: Cluster = None,
    remote: Remote = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a private model to a table, and write it with its certificate and a report to look at.

    First `discreet schema new table.csv`, and fill in what is publicly known. Then:

    - `discreet fit table.csv --schema schema.toml --epsilon 1 --dry-run`: the plan and its price. Rows are counted,
      not read. With `--explain`: why this solver, and what privacy will probably cost.

    - `discreet fit table.csv --schema schema.toml --epsilon 1 --out model`

    The table may be larger than memory: it is read in blocks, and encoded rows that memory does not hold are kept in
    scratch files that nobody else can open and that go with the command. `--dry-run` tells how much memory and disk
    that takes; a fit for which there is no room is refused before it is charged, where the number of rows is public.

    With `--cluster`, the workers of a Dask cluster read the files, each at the same path, and keep the encoded rows:
    none comes to this machine, which draws the noise and charges the ledger. Outside of this machine the address is
    encrypted (tls://, with the certificates of Dask's configuration).

    The folder is made whole or not at all: model.discreet, schema.toml, certificate.json, report.html, and the sums of
    these files. With a ledger (`discreet budget`), the fit is charged before the first row is read, and refused where
    the budget is spent; a fit that is interrupted after that stays charged, and with `--charge-id` it may be asked for
    again under the same charge.

    With `--remote`, the fit runs on a service (`discreet serve`) that keeps the table, and the model's folder is
    written here: `discreet fit --remote https://... --dataset patients --epsilon 0.5`. Your token is in the variable
    DISCREET_TOKEN.

    Next: `discreet inspect model`, `discreet verify model`, `discreet predict model new.csv`, `discreet score model
    held-out.csv --private --epsilon 0.1`.
    """
    from discreet.curator import limited, needs_of

    settings = {"epsilon": epsilon, "delta": delta, "neighbors": str(neighbors), "solver": solver, "alpha": alpha,
                "loss": loss, "allow_large_delta": allow_large_delta, **told(inference, cov_type)}  # fmt: skip
    if remote is not None:
        theirs = (table, schema, formula, ledger, public, start, memory, scratch, cluster, explain, terms != "auto")
        found = fit_remotely(remote, dataset, model, settings, theirs, None if dry_run else out, charge_id, checks)
        return echo_json(found) if isinstance(found, dict) else _show(found, out, as_json)
    refuse_both(public, ledger, dataset)
    reach(command, cluster)
    declared, source = _declared(schema, table, formula)
    check_budget(epsilon, delta, neighbors, declared.rows)
    charge = account(ledger, dataset, str(neighbors), _unit(declared), charged=not (public or dry_run))
    if charge_id is not None and not charge["ledger"] and not dry_run:
        raise Refused("a charge id is kept by a ledger: give --ledger and --dataset, or leave out --charge-id")
    account_facts = {**charge, "verbose": not quiet and sys.stderr.isatty()}
    chosen = _configured(model_named(declared, model, settings, account_facts), checks, start, terms)
    with limited(memory, scratch):
        needs = None if cluster else needs_of(chosen.stream(source).schema, source, neighbors)
        if dry_run:
            return show_quote(chosen.quote(source), as_json, needs, explain=explain)
        if needs is not None:
            check_memory(needs)
        page = (title or _title(chosen, table)) if report else ""
        _show(_fitted(chosen, source, out, charge_id, page), out, as_json)


def _unit(declared: "Schema") -> str:
    return "record" if declared.person is None else "person"


def _configured(chosen: "TableModel", checks: bool, start: Path | None, terms: str) -> "TableModel":
    """Set what is not a setting of the estimator by name."""
    chosen.checks, chosen.terms = checks, terms
    if start is not None:
        chosen.estimator.set_params(start=start_of(start, chosen.schema))
    return chosen


def _declared(schema: Path | None, table: list[Path] | None, formula: str | None) -> tuple["Schema", Any]:
    from discreet.curator import source_of
    from discreet.schema.schema import Schema

    if not table or schema is None:
        raise Refused("give a table and --schema (see discreet schema new), or --remote and --dataset")
    declared = Schema.load(schema)
    declared = declared if formula is None else Schema.from_formula(formula, declared)
    source = source_of(list(table), declared.separator)
    declared.check(source.names)
    return declared, source


def _fitted(model: "TableModel", source: Any, out: Path, charge_id: str | None, title: str) -> "TableModel":
    """The fit in its folder; an interruption reports what there is of it, and that the charge stays."""
    try:
        return _made(model, source, out, charge_id, title)
    except (KeyboardInterrupt, SystemExit) as end:
        said, code = ("interrupted", INTERRUPTED) if isinstance(end, KeyboardInterrupt) else ("ended", TERMINATED)
        typer.echo(f"discreet: {said}: {_left(model, out, bool(title))}; what was charged stays charged", err=True)
        raise typer.Exit(code) from None
    except OSError as error:
        if not hasattr(model, "estimator_"):  # nothing was charged yet
            raise
        reason = (error.strerror or "it cannot be written").lower()
        raise Refused(f"{out}: {reason}: no model was written; what was charged stays charged") from None


def _made(model: "TableModel", source: Any, out: Path, charge_id: str | None, title: str) -> "TableModel":
    """The fit, and its folder: whole or not at all, the place found free before anything is charged."""
    from discreet.models.model_folder import new_folder, write

    stopped: list[BaseException] = []
    with new_folder(out) as folder:
        model.fit(source, charge_id=charge_id)
        write(model, folder, _page(model, title, stopped) if title else {})
    for end in stopped:
        raise end
    return model


def _page(model: "TableModel", title: str, stopped: list[BaseException]) -> dict[str, str]:
    """The report; nothing where it cannot be made: a model that is paid for is not lost for it.

    An interruption is reported once the model is written: ``stopped`` keeps the interruption until then.
    """
    from discreet.models.model_folder import REPORT
    from discreet.report.table_report import report_of

    try:
        return {REPORT: report_of(model, title, _spent(model)).html()}
    except Exception as error:
        typer.echo(f"discreet: there is no report ({type(error).__name__}); the model is complete", err=True)
    except (KeyboardInterrupt, SystemExit) as end:
        stopped.append(end)
    return {}


def _left(model: "TableModel", out: Path, report: bool) -> str:
    """What there is of a fit that was interrupted."""
    from discreet.models.model_folder import REPORT, is_folder

    if not hasattr(model, "estimator_") or not is_folder(out):
        return "no model was written"
    missing = ", but there is no report" if report and not (out / REPORT).exists() else ""
    return f"the fit stands, and the model is complete in {out}{missing}"


def _spent(model: "TableModel") -> "Spent | None":
    ledger, dataset = model.estimator_.ledger, model.estimator_.dataset
    return ledger.spent(dataset) if ledger and dataset else None


def _title(model: "TableModel", table: list[Path] | None) -> str:
    assert table
    assert model.schema.target is not None
    return f"A private model of {model.schema.target.column}, from {table[0].name}"


def _effects(model: "TableModel") -> str:
    """The summary; why there is none where noise hides the effects: the model is complete all the same."""
    from discreet.errors import Unsupported

    try:
        return str(model.summary())
    except Unsupported as reason:
        return str(reason)


def _show(model: "TableModel", out: Path, as_json: bool) -> None:
    from discreet.models.model_folder import REPORT

    certificate = model.certificate_
    if as_json:
        page = str(out / REPORT) if (out / REPORT).exists() else None
        found = {"model": str(out), "report": page, "certificate": json.loads(certificate.to_json())}
        echo_json(found)
        return
    typer.echo(certificate.summary())
    if getattr(model.estimator_, "inference", None):
        typer.echo(f"\n{_effects(model)}")
    look = f" Look at {out / REPORT}" if (out / REPORT).exists() else ""
    typer.echo(f"\nWritten to {out}.{look}")
    typer.echo(f"Next: discreet inspect {out}; discreet verify {out}; discreet predict {out} NEW-ROWS")
