"""The wall: the one folder in which raw records and exact sums are handled, and what it offers to the rest.

Everything that leaves it is either declared public or noised on the integer lattice and paid for by a plan. Other
packages import the names below from here and nothing from inside, which the import contracts check
(``pyproject.toml``). Each name is imported when it is first used.

Read ``curator.py`` for the questions, ``queries/`` for their proofs, ``lattice/lattice.py`` for the arithmetic and
``lattice/noise.py`` for the samplers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "curator": ("Curator", "promise"),
    "private_data": ("PrivateData",),
    "session": ("doubts", "idealised"),
    "queries.minimizers": ("Problem", "STEPS_NEED_N"),
    "queries.sampling": ("LEAST_ACCEPTANCE", "expected_acceptance"),
    # records: what may be handed in, and maps of it
    "records.containers": ("container_of", "two_dimensional"),
    "records.recoding": ("Recoding",),
    "records.split": ("Part", "split"),
    "records.stream": ("RecordStream", "gathered", "is_stream"),
    # tables: files and frames with a schema, and the features that a schema makes
    "tables.layout": ("Layout",),
    "tables.memory": ("available_memory", "needed_memory"),
    "tables.sources": ("DeclaredSource", "FrameSource", "Keeping", "Source"),
    "tables.table_files": ("open_table",),
    "tables.table_stream": ("FEATURES", "TableStream"),
    # scores of released models
    "metrics": ("METRICS", "measure_private"),
    "metrics.exact": ("measure_public",),
    "metrics.measurement": ("Measured",),
    "metrics.noisy_sums": ("Buyer", "plan_of"),
    "metrics.predictions": ("Released",),
    # for audits and tests: where randomness comes from, and who looks on
    "lattice.entropy": (
        "Entropy",
        "SeededEntropy",
        "SystemEntropy",
        "Words",
        "chacha20_blocks",
        "current_entropy",
        "uniform_below",
        "use_entropy",
    ),
    "observer": ("Measurement", "Observer", "current_observer", "observe"),
    "known_answers.installation": ("Check", "kernel_checks", "sampler_checks"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

if TYPE_CHECKING:
    from discreet.curator.curator import Curator as Curator
    from discreet.curator.curator import promise as promise
    from discreet.curator.known_answers.installation import Check as Check
    from discreet.curator.known_answers.installation import kernel_checks as kernel_checks
    from discreet.curator.known_answers.installation import sampler_checks as sampler_checks
    from discreet.curator.lattice.entropy import Entropy as Entropy
    from discreet.curator.lattice.entropy import SeededEntropy as SeededEntropy
    from discreet.curator.lattice.entropy import SystemEntropy as SystemEntropy
    from discreet.curator.lattice.entropy import Words as Words
    from discreet.curator.lattice.entropy import chacha20_blocks as chacha20_blocks
    from discreet.curator.lattice.entropy import current_entropy as current_entropy
    from discreet.curator.lattice.entropy import uniform_below as uniform_below
    from discreet.curator.lattice.entropy import use_entropy as use_entropy
    from discreet.curator.metrics import METRICS as METRICS
    from discreet.curator.metrics import measure_private as measure_private
    from discreet.curator.metrics.exact import measure_public as measure_public
    from discreet.curator.metrics.measurement import Measured as Measured
    from discreet.curator.metrics.noisy_sums import Buyer as Buyer
    from discreet.curator.metrics.noisy_sums import plan_of as plan_of
    from discreet.curator.metrics.predictions import Released as Released
    from discreet.curator.observer import Measurement as Measurement
    from discreet.curator.observer import Observer as Observer
    from discreet.curator.observer import current_observer as current_observer
    from discreet.curator.observer import observe as observe
    from discreet.curator.private_data import PrivateData as PrivateData
    from discreet.curator.queries.minimizers import STEPS_NEED_N as STEPS_NEED_N
    from discreet.curator.queries.minimizers import Problem as Problem
    from discreet.curator.queries.sampling import LEAST_ACCEPTANCE as LEAST_ACCEPTANCE
    from discreet.curator.queries.sampling import expected_acceptance as expected_acceptance
    from discreet.curator.records.containers import container_of as container_of
    from discreet.curator.records.containers import two_dimensional as two_dimensional
    from discreet.curator.records.recoding import Recoding as Recoding
    from discreet.curator.records.split import Part as Part
    from discreet.curator.records.split import split as split
    from discreet.curator.records.stream import RecordStream as RecordStream
    from discreet.curator.records.stream import gathered as gathered
    from discreet.curator.records.stream import is_stream as is_stream
    from discreet.curator.session import doubts as doubts
    from discreet.curator.session import idealised as idealised
    from discreet.curator.tables.layout import Layout as Layout
    from discreet.curator.tables.memory import available_memory as available_memory
    from discreet.curator.tables.memory import needed_memory as needed_memory
    from discreet.curator.tables.sources import DeclaredSource as DeclaredSource
    from discreet.curator.tables.sources import FrameSource as FrameSource
    from discreet.curator.tables.sources import Keeping as Keeping
    from discreet.curator.tables.sources import Source as Source
    from discreet.curator.tables.table_files import open_table as open_table
    from discreet.curator.tables.table_stream import FEATURES as FEATURES
    from discreet.curator.tables.table_stream import TableStream as TableStream


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
