"""A small table with cells that nobody may see again, its schemas, and what a ledger says of it."""

import csv
from pathlib import Path

import numpy as np

from tests.promises.crash.observing import snapshot

MARK = "MARKED-CELL"
"""In a name, in cells that are no numbers, no known category, no class: never to be seen in an output."""
LEDGER = ("--ledger", "budget.db", "--dataset", "people")
HEADER = ("name", "age", "income", "color", "smoker", "visits", "label")
FEATURES = """
[columns.age]
range = [0, 120]

[columns.income]
range = [0, 100]

[columns.color]
categories = ["red", "blue"]

[columns.smoker]
boolean = true
"""
SCHEMA = f"""
ignore = ["name", "visits"]

[target]
column = "label"
classes = ["low", "high"]
{FEATURES}"""
NUMBERS = f"""
ignore = ["name", "label"]

[target]
column = "visits"
range = [0, 20]
{FEATURES}"""
PERSONS = SCHEMA.replace('["name", "visits"]', '["visits"]\nperson = "name"')
BOUGHT = SCHEMA.replace("range = [0, 100]", 'range = "private"\nwithin = [0, 100000]')


def cells(n: int = 400, seed: int = 0) -> list[list[str]]:
    """Rows that can be learned from, some of them with cells that are amiss."""
    rng = np.random.default_rng(seed)
    ages, incomes = rng.integers(18, 90, n), rng.uniform(0, 100, n)
    rows = []
    for i, (age, income) in enumerate(zip(ages.tolist(), incomes.tolist(), strict=True)):
        high = age + income / 2 + rng.normal(scale=10) > 80
        color, smoker = rng.choice(["red", "blue"]), ("yes", "no")[i % 2]
        visits, label = str(int(rng.poisson(age / 15))), "high" if high else "low"
        rows.append([f"{MARK} {i // 2}", str(age), f"{income:.1f}", color, smoker, visits, label])
    for i, column in ((3, 1), (5, 2), (7, 3), (9, 4), (11, 5), (13, 6)):
        if i < n:
            rows[i][column] = MARK
    return rows


def write_table(path: Path, n: int = 400, seed: int = 0) -> Path:
    """As CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(cells(n, seed))
    return path


def write_parquet(path: Path, n: int = 400, seed: int = 0) -> Path:
    """As Parquet, every column a text."""
    import pyarrow as pa
    import pyarrow.parquet

    columns = zip(*cells(n, seed), strict=True)
    pyarrow.parquet.write_table(pa.table(dict(zip(HEADER, map(list, columns), strict=True))), path)
    return path


def poison(path: Path) -> Path:
    """Overwrite all that a Parquet file holds of cells; its footer stays."""
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:footer] = b"\xaa" * (footer - 4)
    path.write_bytes(content)
    return path


def charges(ledger: str | Path = "budget.db") -> int:
    """How many charges there are, by SQL alone."""
    return len(snapshot(ledger).charges)


def hidden(folder: Path) -> list[str]:
    """What a command left behind that it should not have."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".") or path.suffix == ".tmp")
