"""``python -m benchmarks COMMAND``: the commands are the modules of ``commands``."""

import typer

from benchmarks.commands.accuracy import accuracy
from benchmarks.commands.audits import audits
from benchmarks.commands.consistency import consistency
from benchmarks.commands.coordinates import coordinates
from benchmarks.commands.coverage import coverage
from benchmarks.commands.defaults import defaults
from benchmarks.commands.experiments import experiments
from benchmarks.commands.inference import inference
from benchmarks.commands.scale import scale
from benchmarks.commands.shown import shown
from benchmarks.commands.solvers import solvers
from benchmarks.commands.speed import speed
from benchmarks.commands.tuned import tuned
from benchmarks.commands.wide import wide
from discreet.cli.terminal import OneLineErrors

app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Accuracy and speed, on synthetic data and on public tables: run the documentation's comparisons again.",
)
COMMANDS = (
    accuracy, audits, consistency, coordinates, coverage, defaults, experiments, inference, scale, shown, solvers,
    speed, tuned, wide,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
