"""From a table to a private model: a CSV file, a schema, a fit, coefficients by name, a private score.

Run it with ``python examples/table.py``. Everything is written to a temporary folder. The records are synthetic.
``discreet demo`` does the same with commands.
"""

import tempfile
from pathlib import Path

from discreet import DPLogisticRegression, Schema, TableModel
from discreet.datasets import hospital, schema_text, write_csv


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, stays = Path(name), hospital(16_000)
        write_csv(stays.rows(0, 12_000), folder / "patients.csv")
        write_csv(stays.rows(12_000, 16_000), folder / "held-out.csv")
        schema = Schema.from_toml(schema_text())  # from a codebook, never from the file
        print(schema.to_toml())

        model = TableModel(schema, DPLogisticRegression(epsilon=1.0))
        priced = model.quote(folder / "patients.csv").priced
        print(f"before a row is read: {len(priced.plan.releases)} kinds of release, epsilon {priced.price.epsilon:g}")
        model.fit(folder / "patients.csv")
        print("estimated:", model.schema_.columns["creatinine"])
        print(model.certificate_, end="\n\n")

        for c in model.coefficients(units="original"):
            noise = "" if c.noise is None else f"± {2 * c.noise:.2g}"
            print(f"{c.name:<24}{c.value:>+10.4f} {noise:<10}{c.unit}")
        print()
        print(model.private_score(folder / "held-out.csv", epsilon=0.5))

        saved = TableModel.load(model.save(folder / "model"))
        print("read back:", *saved.predict(folder / "held-out.csv")[:5])


if __name__ == "__main__":
    main()
