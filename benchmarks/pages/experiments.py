"""Experiments as Markdown: the question, the figure, and each claim with its statistic."""

from collections.abc import Mapping, Sequence

from benchmarks.experiments.harness import Row, experiment


def markdown(found: Mapping[str, Sequence[Row]]) -> str:
    """Return a section per experiment."""
    return "\n\n".join(_section(name, rows) for name, rows in found.items())


def _section(name: str, rows: Sequence[Row]) -> str:
    made = experiment(name)
    lines = [f"### {made.title}", "", made.question, "", f"![{made.title}](../figures/{name}.png)", ""]
    lines += ["| claim | statistic | expected | holds |", "|---|---:|---|---|"]
    for claim in made.claims:
        found = f"{claim.value(rows):.3g} ± {round(claim.error(rows), 12):.2g}"
        lines.append(f"| {claim.text} | {found} | {claim.limits} | {claim.verdict(rows)} |")
    verdicts = [claim.verdict(rows) for claim in made.claims]
    runs = len({row["seed"] for row in rows})
    holds = f"{verdicts.count('yes')} of {len(verdicts)} claims hold"
    return "\n".join([*lines, "", f"{holds}: {len(rows)} fits, {runs} seeds for each point."])
