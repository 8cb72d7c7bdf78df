"""What an author of a method, sampler, file format or kind of column needs, from one place. See docs/plugins.md.

A package joins by entry points of the groups `sfumato.methods`, `samplers`, `formats` and `kinds`.

>>> from sfumato.plugins import Facts, Fit, Fitted, Stage, Synthesizer, noisy_histogram, reduce
"""

from sfumato.columns.bounded import NumericKind, WholeKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.number_cells import read_floats, read_integers, read_parsed
from sfumato.columns.storage import store_float, store_integer
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
    "LevelKind",
    "Noisy",
    "NonNegativeSum",
    "NumericKind",
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
    "WholeKind",
    "check_names",
    "multiplier_for_share",
    "noisy_count",
    "noisy_histogram",
    "noisy_second_moment",
    "noisy_sum",
    "poisson_members",
    "project_to_simplex",
    "public_stream",
    "read_floats",
    "read_integers",
    "read_parsed",
    "reduce",
    "step_of",
    "store_float",
    "store_integer",
    "table_chunks",
    "whole_rows",
]
