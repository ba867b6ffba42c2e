"""The coverage study as a Markdown table."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

HEAD = (
    "| model, tables | n | p | epsilon, relation | coverage (error) | by class | standard error / plain | "
    "size at .05 (plain) | power (plain) |\n|---|---:|---:|---|---|---|---:|---|---|"
)


def markdown(paths: Iterable[Path]) -> str:
    """Return the table of all designs that were run."""
    lines = [line(json.loads(path.read_text(encoding="utf-8"))) for path in paths if path.is_file()]
    return "\n".join([HEAD, *lines])


def line(found: dict[str, Any]) -> str:
    """Return a design's line."""
    design, truth, classes = found["design"], np.array(found["truth"]), np.array(found["classes"])
    setting = f"{design['epsilon']:g}, {design['relation']}"
    start = f"| {design['model']}, {design['data']} | {design['n']:,} | {design['p']} | {setting} |"
    answered = [table for table in found["tables"] if "refused" not in table]
    if not answered:
        return f"{start} refused: too little signal | | | | |"
    values = {name: np.array([table[name] for table in answered], dtype=float) for name in answered[0]}
    shown = np.isfinite(values["se"])
    covered = np.where(shown, (values["low"] <= truth) & (truth <= values["high"]), np.nan)
    each = covered[~np.isnan(covered)]
    error = math.sqrt(0.95 * 0.05 / len(answered))  # of one coefficient; the mean's is smaller
    seen = [name for name in dict.fromkeys(classes.tolist()) if shown[:, classes == name].any()]
    by_class = ", ".join(f"{name} {np.nanmean(covered[:, classes == name]):.3f}" for name in seen)
    ratio = np.nanmedian(values["se"] / values["plain_se"])
    plain_p = np.abs(values["plain"] / values["plain_se"]) > 1.959964
    null = (truth == 0) & (classes != "intercept")
    real = ~null & (classes != "intercept")
    rejected = np.where(shown, values["p"] < 0.05, np.nan)
    size = f"{np.nanmean(rejected[:, null]):.3f} ({plain_p[:, null].mean():.3f})" if null.any() else ""
    power = f"{np.nanmean(rejected[:, real]):.2f} ({plain_p[:, real].mean():.2f})" if real.any() else ""
    hidden = "" if shown.all() else f"; {1 - shown.mean():.0%} hidden"
    refused = len(found["tables"]) - len(answered)
    left = f"; {refused} of {len(found['tables'])} refused" if refused else ""
    tail = f"{each.mean():.3f} ({error:.3f}){hidden}{left} | {by_class} | {ratio:.2f} | {size} | {power} |"
    return f"{start} {tail}"
