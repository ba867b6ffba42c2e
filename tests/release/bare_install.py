"""Does the package work where only it and its runtime dependencies are installed? Run by ``make release-check``.

Takes the interpreter of an environment in which the wheel was installed without extras. It runs outside of the
checkout, so that nothing but the installed package is imported.
"""

import subprocess
import sys
import tempfile

FIT = """
import sys
import numpy as np
import discreet
from discreet import DPLogisticRegression, DPRidge, load
from discreet.json_schemas import NAMES, json_schema
X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
model = DPLogisticRegression(epsilon=1.0, bounds=1.0, classes=(0, 1)).fit(X, (X[:, 0] > 0).astype(int))
same = load(model.save("model.discreet"))
assert abs(same.to_sklearn().predict_proba(2 * X) - model.predict_proba(2 * X)).max() < 1e-12
assert model.certificate_.verify().is_private
assert model._repr_html_()
assert [json_schema(name)["title"] for name in NAMES]
extras = {"pandas", "pyarrow", "matplotlib", "onnx", "mlflow", "dask", "pyspark", "psycopg", "yaml"}
assert not extras & set(sys.modules), extras & set(sys.modules)
print(discreet.__version__)
"""
EXTRAS = {
    "from discreet import Schema": "discreet[tables]",
    "from discreet import TableModel": "discreet[tables]",
    "import numpy as np; from discreet import DPRidge; "
    "DPRidge(bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3)).to_onnx('m.onnx')": "discreet[onnx]",
    "import numpy as np; from discreet import DPRidge; from discreet.models import log_to_mlflow; "
    "log_to_mlflow(DPRidge(bounds=1.0, target=(0, 1)).fit(np.eye(3), np.ones(3)))": "discreet[mlflow]",
    "from discreet import Ledger; Ledger('postgresql://nowhere/x').accounts()": "discreet[postgres]",
}
COMMANDS = {
    ("--version",): None,
    ("selftest",): None,
    ("price", "--help"): None,
    ("inspect", "model.discreet"): None,
    ("verify", "model.discreet"): None,
    ("certificate", "registry", "model.discreet"): None,
    ("export", "model.discreet", "--sklearn", "model.joblib"): None,
    ("export", "model.discreet", "--onnx", "model.onnx"): "discreet[onnx]",
    ("schema", "new", "table.csv"): "discreet[tables]",
    ("demo",): "discreet[tables]",
}


def main(python: str) -> None:
    """Run all of it, and stop at the first thing that is wrong."""
    with tempfile.TemporaryDirectory() as place:

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([python, *words], cwd=place, capture_output=True, text=True, timeout=600)

        done = run("-c", FIT)
        assert done.returncode == 0, done.stderr
        print(f"discreet {done.stdout.strip()}: a fit, a saved model, an exported pipeline")
        for code, extra in EXTRAS.items():
            done = run("-c", code)
            assert extra in done.stderr, (code, done.stderr)
        for words, needed in COMMANDS.items():
            done = run("-c", "from discreet.cli import main; main()", *words)
            if needed is None:
                assert done.returncode == 0, (words, done.stderr)
            else:
                assert done.returncode == 2, (words, done.stderr)
                assert needed in done.stderr, (words, done.stderr)
                assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        print(f"{len(EXTRAS) + len(COMMANDS)} features and commands: each works, or names the extra that it needs")


if __name__ == "__main__":
    main(sys.argv[1])
