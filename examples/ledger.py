"""A budget that outlives fits: an owner, two analysts, one cap. Run it with ``python examples/ledger.py``.

Everything is written to a temporary folder. The records are synthetic.
"""

import tempfile
from pathlib import Path

from sklearn.model_selection import GridSearchCV, KFold

from discreet import BudgetExceeded, DPLogisticRegression, DPRandomizedSearch, Ledger
from discreet.datasets import Table, hospital


def say(ledger: Ledger, what: str) -> None:
    """One line of the story: what happened, and what the account shows after it."""
    spent = ledger.spent("hospital")
    bar = ("#" * round(20 * spent.share)).ljust(20, ".")
    print(f"{what:<45}{spent.fits:>3} charges, added up {spent.summed_epsilon:.2f}  [{bar}]")


def ann(ledger: Ledger, table: Table) -> DPLogisticRegression:
    """A weekly model, under a name: a retry costs nothing and gives the same model."""
    model = DPLogisticRegression(
        epsilon=0.2, delta=1e-7, bounds=table.bounds, ledger=ledger.address, dataset="hospital"
    )
    model.fit(table.X, table.y, charge_id="weekly-07")
    say(ledger, "Ann fits her weekly model, epsilon 0.2")
    model.fit(table.X, table.y, charge_id="weekly-07")
    say(ledger, "her job is run again, under the same name")
    return model


def bob(ledger: Ledger, table: Table) -> None:
    """Tuning: within one charge, and then as one is used to."""
    model, grid = DPLogisticRegression(bounds=table.bounds), {"alpha": [1e-5, 1e-3, 1e-1]}
    account = {"ledger": ledger.address, "dataset": "hospital"}
    DPRandomizedSearch(model, grid, epsilon=0.5, delta=1e-7, **account).fit(table.X, table.y)
    say(ledger, "Bob selects among 3 settings, epsilon 0.5")
    model.set_params(epsilon=0.2, delta=1e-7, **account)
    try:
        GridSearchCV(model, grid, cv=KFold(5), error_score="raise").fit(table.X, table.y)
    except BudgetExceeded:
        say(ledger, "GridSearchCV, 16 fits at 0.2, is cut short")


def main() -> None:
    table = hospital(4000)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "budget.db")
        ledger.grant("hospital", epsilon=1.0, delta=1e-6)
        say(ledger, "the owner grants (1, 1e-6), for ever")
        model = ann(ledger, table)
        bob(ledger, table)

        ledger.grant("extract", epsilon=1.0, delta=1e-6)
        model.set_params(dataset="extract").fit(table.X[:1000], table.y[:1000])
        print("\nthe owner alone is told:", *ledger.notices(), sep="\n  ")
        certificate = model.certificate_
        print(f"\nthe ledger holds together: {ledger.verify(certificate, prices=True).entries} entries\n")
        print(certificate)


if __name__ == "__main__":
    main()
