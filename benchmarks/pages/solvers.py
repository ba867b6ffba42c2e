"""The comparison of solvers as tables: cells for the terminal, Markdown for the documentation, CSV for the rest."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from benchmarks.measures.accuracy import mean_and_error

Cells = list[list[str]]


def cell(values: Sequence[float]) -> str:
    """An accuracy in percent with its standard error."""
    mean, error = mean_and_error(values)
    return f"{100 * mean:.2f} ± {100 * error:.2f}"


def cells(table: dict[str, Any]) -> Cells:
    """One row a method, one column an epsilon; the references need no budget and are the same in all columns."""
    rows = [
        [method["label"], *(cell(point["accuracies"]) for point in method["points"])] for method in table["methods"]
    ]
    width = len(rows[0]) - 1
    rows.append(["majority class", *[cell(table["majority"])] * width])
    rows.append(["without privacy", *[cell(table["non_private"])] * width])
    return rows


def best_in_column(table: dict[str, Any]) -> list[int]:
    """For each epsilon, the row of the private method with the highest mean."""
    means = [[mean_and_error(point["accuracies"])[0] for point in method["points"]] for method in table["methods"]]
    return [max(range(len(means)), key=lambda row: means[row][column]) for column in range(len(means[0]))]


def markdown(results: dict[str, Any]) -> str:
    """A Markdown table for each data table; the best private method in bold."""
    parts = []
    for table in results["tables"]:
        epsilons = [f"{epsilon:g}" for epsilon in results["protocol"]["epsilons"]]
        rows = cells(table)
        for column, row in enumerate(best_in_column(table)):
            rows[row][column + 1] = f"**{rows[row][column + 1]}**"
        parts += [
            f"{table['title']}, {table['rows']:,} rows, {table['columns']} columns; accuracy in percent at epsilon =",
            "",
            "| method | " + " | ".join(epsilons) + " |",
            "|---" * (len(epsilons) + 1) + "|",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
    return "\n".join(parts).rstrip()


def as_csv(results: dict[str, Any]) -> str:
    """One line a fit: table, method, epsilon, repeat, fold, accuracy. References have no epsilon."""
    folds = results["protocol"]["folds"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "method", "epsilon", "repeat", "fold", "accuracy"])

    def write(table: str, method: str, epsilon: str, accuracies: Sequence[float]) -> None:
        for number, accuracy in enumerate(accuracies):
            writer.writerow([table, method, epsilon, number // folds, number % folds, repr(accuracy)])

    for table in results["tables"]:
        for method in table["methods"]:
            for point in method["points"]:
                write(table["name"], method["method"], f"{point['epsilon']:g}", point["accuracies"])
        for reference in ("majority", "non_private"):
            write(table["name"], reference, "", table[reference])
    return text.getvalue()
