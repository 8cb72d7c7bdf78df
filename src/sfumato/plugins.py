"""What an author of a method, a sampler or a file format needs, from one place. The guide: docs/plugins.md.

A package joins by entry points of the groups `sfumato.methods`, `sfumato.samplers` and `sfumato.formats`.

>>> from sfumato.plugins import Facts, Fit, Fitted, Stage, Synthesizer, noisy_histogram, reduce
"""

from sfumato.errors import ConfigError, DataError, ReleaseError, SchemaError
from sfumato.fitting.driver import Fit, Fitted
from sfumato.fitting.facts import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.io.chunks import Chunk, Source, check_names, table_chunks
from sfumato.io.formats import Format
from sfumato.maths.gaussian import project_to_simplex
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.contributions import step_of, whole_rows
from sfumato.mechanisms.queries import Noisy, noisy_count, noisy_histogram, noisy_second_moment, noisy_sum
from sfumato.mechanisms.sampling import poisson_members
from sfumato.mechanisms.statistics import ClippedSum, Counts, NonNegativeSum, OuterProducts
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.records.engine import Exact, Rows, Statistic, reduce
from sfumato.records.private import PrivateData
from sfumato.release.samplers import Sampler
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema import Schema

__all__ = [
    "Chunk",
    "ClippedSum",
    "ColumnGrid",
    "ConfigError",
    "Counts",
    "DataError",
    "Exact",
    "Facts",
    "Fit",
    "Fitted",
    "Format",
    "Grid",
    "Noisy",
    "NonNegativeSum",
    "OuterProducts",
    "Plan",
    "PrivateData",
    "ReleaseError",
    "Rows",
    "Sampler",
    "Schema",
    "SchemaError",
    "Source",
    "Stage",
    "Statistic",
    "Synthesizer",
    "check_names",
    "multiplier_for_share",
    "noisy_count",
    "noisy_histogram",
    "noisy_second_moment",
    "noisy_sum",
    "poisson_members",
    "project_to_simplex",
    "public_stream",
    "reduce",
    "step_of",
    "table_chunks",
    "whole_rows",
]
