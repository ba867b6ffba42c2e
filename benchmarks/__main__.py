"""``python -m benchmarks [name ...] [--json FILE] [--rounds N] [--check]``."""

import argparse
import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.rows import table

NAMES = (
    "gradient",
    "sgd",
    "fit",
    "startup",
    "noise",
    "sparse",
    "coordinates",
    "minimize",
    "whitened",
    "ledger",
    "audit",
    "foreign",
    "tables",
)
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "torch", "opacus", "jax", "jax-privacy", "skglm", "diffprivlib")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions = {package: found for package in PACKAGES if (found := _version(package)) is not None}
    return {"cpu": _cpu(), "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Ratios to peers, interleaved, minimum of N rounds."
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each comparison (more on a busy machine)")
    parser.add_argument(
        "--json", metavar="FILE", help="write the results there too; - for standard output instead of tables"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 where a target is missed")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}: choose from {', '.join(NAMES)}")
    found: dict[str, Any] = {"machine": machine(), "results": {}}
    quiet, missed = options.json == "-", False
    for name in options.names or NAMES:
        before = os.getloadavg()[0]
        rows = list(import_module(f"benchmarks.{name}").run(options.rounds))
        load = [before, os.getloadavg()[0]]
        missed = missed or any(row.is_met is False for row in rows)
        found["results"][name] = {"load": load, "rows": [row.as_dict() for row in rows]}
        if not quiet:
            print(table(f"{name} (load {load[0]:.1f} before, {load[1]:.1f} after)", rows), flush=True)
    text = json.dumps(found, indent=2)
    if quiet:
        print(text)
    elif options.json:
        with open(options.json, "w") as file:
            file.write(text + "\n")
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())
