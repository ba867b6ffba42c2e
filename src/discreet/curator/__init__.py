"""The wall: the one folder in which raw records and exact sums are handled, and what it offers to the rest.

Everything that leaves it is either declared public or noised on the integer lattice and paid for by a plan. Other
packages import the names below from here and nothing from inside, which the import contracts check
(``pyproject.toml``). Each name is imported when it is first used.

Read ``curator.py`` for the questions, ``queries/`` for their proofs, ``lattice.py`` for the arithmetic and
``noise.py`` for the samplers.
"""

from typing import TYPE_CHECKING

from discreet.lazy_names import lazy_names

if TYPE_CHECKING:
    from discreet.curator.clusters.dask import DaskRows as DaskRows
    from discreet.curator.clusters.dask import cluster as cluster
    from discreet.curator.clusters.dask import local_cluster as local_cluster
    from discreet.curator.curator import Claim as Claim
    from discreet.curator.curator import Curator as Curator
    from discreet.curator.curator import given_with as given_with
    from discreet.curator.curator import issued as issued
    from discreet.curator.curator import promise as promise
    from discreet.curator.known_draws import Check as Check
    from discreet.curator.known_draws import kernel_checks as kernel_checks
    from discreet.curator.known_draws import sampler_checks as sampler_checks
    from discreet.curator.metrics.metrics import METRICS as METRICS
    from discreet.curator.metrics.metrics import ROC_RATES as ROC_RATES
    from discreet.curator.metrics.metrics import check_measurable as check_measurable
    from discreet.curator.metrics.metrics import expected_interval as expected_interval
    from discreet.curator.metrics.metrics import measure_private as measure_private
    from discreet.curator.metrics.metrics import measure_public as measure_public
    from discreet.curator.metrics.noisy_sums import Measured as Measured
    from discreet.curator.metrics.noisy_sums import Metric as Metric
    from discreet.curator.metrics.noisy_sums import NoisySums as NoisySums
    from discreet.curator.metrics.noisy_sums import plan_of as plan_of
    from discreet.curator.metrics.row_values import Groups as Groups
    from discreet.curator.metrics.row_values import Released as Released
    from discreet.curator.noise import Entropy as Entropy
    from discreet.curator.noise import SeededEntropy as SeededEntropy
    from discreet.curator.noise import SystemEntropy as SystemEntropy
    from discreet.curator.noise import chacha20_words as chacha20_words
    from discreet.curator.noise import current_entropy as current_entropy
    from discreet.curator.noise import uniform_below as uniform_below
    from discreet.curator.noise import use_entropy as use_entropy
    from discreet.curator.private_data import PrivateData as PrivateData
    from discreet.curator.private_data import rehearsal as rehearsal
    from discreet.curator.queries.effects import Edges as Edges
    from discreet.curator.queries.effects import Shells as Shells
    from discreet.curator.queries.minimizers import LEAST_ACCEPTANCE as LEAST_ACCEPTANCE
    from discreet.curator.queries.minimizers import ONE_ROW as ONE_ROW
    from discreet.curator.queries.minimizers import STEPS_NEED_N as STEPS_NEED_N
    from discreet.curator.queries.minimizers import Problem as Problem
    from discreet.curator.queries.minimizers import expected_acceptance as expected_acceptance
    from discreet.curator.queries.moments import Magnitudes as Magnitudes
    from discreet.curator.records.admission import container_of as container_of
    from discreet.curator.records.admission import is_dask as is_dask
    from discreet.curator.records.admission import one_dimensional as one_dimensional
    from discreet.curator.records.admission import two_dimensional as two_dimensional
    from discreet.curator.records.derived import Part as Part
    from discreet.curator.records.derived import ThresholdRows as ThresholdRows
    from discreet.curator.records.derived import split as split
    from discreet.curator.records.derived import split_elsewhere as split_elsewhere
    from discreet.curator.records.recoding import Recoding as Recoding
    from discreet.curator.records.storage import limited as limited
    from discreet.curator.records.stream import ArrayRows as ArrayRows
    from discreet.curator.records.stream import Cone as Cone
    from discreet.curator.records.stream import RecordStream as RecordStream
    from discreet.curator.records.stream import gathered as gathered
    from discreet.curator.records.stream import is_stream as is_stream
    from discreet.curator.session import Measurement as Measurement
    from discreet.curator.session import Observer as Observer
    from discreet.curator.session import current_observer as current_observer
    from discreet.curator.session import doubts as doubts
    from discreet.curator.session import idealized as idealized
    from discreet.curator.session import observe as observe
    from discreet.curator.tables.encode import DEGREE as DEGREE
    from discreet.curator.tables.encode import Layout as Layout
    from discreet.curator.tables.encode import curve_on as curve_on
    from discreet.curator.tables.files import open_table as open_table
    from discreet.curator.tables.files import source_of as source_of
    from discreet.curator.tables.frames import DeclaredSource as DeclaredSource
    from discreet.curator.tables.frames import FrameSource as FrameSource
    from discreet.curator.tables.frames import Keeping as Keeping
    from discreet.curator.tables.frames import Source as Source
    from discreet.curator.tables.stream import FEATURES as FEATURES
    from discreet.curator.tables.stream import Needs as Needs
    from discreet.curator.tables.stream import TableStream as TableStream
    from discreet.curator.tables.stream import needs_of as needs_of

__getattr__, __dir__, __all__ = lazy_names(__spec__)
