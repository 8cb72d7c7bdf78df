"""What an author of a method, sampler, file format or kind of column needs, from one place. See docs/plugins.md.

A package joins by entry points of the groups `sfumato.methods`, `samplers`, `formats` and `kinds`.

>>> from sfumato.plugins import Facts, Fit, FittedModel, Stage, Synthesizer, noisy_histogram, reduce
"""

from sfumato.columns.bounded import NumericKind, WholeKind
from sfumato.columns.cells import read_floats, read_integers, read_parsed
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.storage import store_float, store_integer
from sfumato.data_ledger.journal import Progress
from sfumato.errors import ConfigError, DataError, ReleaseError, SchemaError
from sfumato.fitting.account import Account, arrays_of, noisy_of
from sfumato.fitting.arguments import FitOptions
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts, Pose, Preset, Purpose, Training
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.io.atomic import atomic_path, reason_of
from sfumato.io.chunks import Chunk, Source, check_names, table_chunks
from sfumato.io.formats import Format
from sfumato.io.sinks import write_table
from sfumato.lenses.date_columns import without_idle_distances
from sfumato.maths.gaussian import project_to_simplex
from sfumato.maths.streams import public_stream
from sfumato.measurements import Cells, MarginalQuery
from sfumato.mechanisms.ahead import drawn_ahead
from sfumato.mechanisms.contributions import (
    LINEAR_BITS,
    PRODUCT_BITS,
    SAFETY,
    clip_rows,
    product_bits,
    row_by_row,
    step_of,
    whole_rows,
)
from sfumato.mechanisms.mixing import (
    FixedDegreeMixing,
    MixableRecords,
    Mixing,
    MixtureBlock,
    MixtureSettings,
    PoissonMixing,
    SubsetMixing,
    label_share,
    noisy_mixtures,
    product_error,
)
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.norms import noisy_norms_and_sum, norm_bins
from sfumato.mechanisms.queries import Noisy, noisy_count, noisy_histogram, noisy_second_moment, noisy_sum, together
from sfumato.mechanisms.sampling import poisson_member_sets, poisson_members, sampling_probability
from sfumato.mechanisms.statistics import ClippedSum, Counts, NonNegativeSum, OuterProducts, QueryCounts
from sfumato.models.sets import SetEncoder
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import NonPrivate, PrivacyBudget, default_delta
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share, one_shot, sampled
from sfumato.records.engine import Exact, InParts, Records, Rows, Statistic, reduce
from sfumato.records.private import PrivateData
from sfumato.release.samplers import Sampler
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema import Schema

__all__ = [
    "LINEAR_BITS",
    "PRODUCT_BITS",
    "SAFETY",
    "Account",
    "Cells",
    "Certificate",
    "Chunk",
    "ClippedSum",
    "ColumnGrid",
    "ConfigError",
    "Counts",
    "DataError",
    "Exact",
    "Facts",
    "Fit",
    "FitOptions",
    "FittedModel",
    "FixedDegreeMixing",
    "Format",
    "Grid",
    "InParts",
    "Ledger",
    "LevelKind",
    "MarginalQuery",
    "MixableRecords",
    "Mixing",
    "MixtureBlock",
    "MixtureSettings",
    "NoiseSource",
    "Noisy",
    "NonNegativeSum",
    "NonPrivate",
    "NumericKind",
    "OuterProducts",
    "Plan",
    "PoissonMixing",
    "Pose",
    "Preset",
    "PrivacyBudget",
    "PrivateData",
    "Progress",
    "Purpose",
    "QueryCounts",
    "Records",
    "ReleaseError",
    "Rows",
    "Sampler",
    "Schema",
    "SchemaError",
    "SetEncoder",
    "Source",
    "Stage",
    "Statistic",
    "SubsetMixing",
    "Synthesizer",
    "TabularKind",
    "Training",
    "WholeKind",
    "account",
    "arrays_of",
    "atomic_path",
    "check_names",
    "clip_rows",
    "default_delta",
    "drawn_ahead",
    "label_share",
    "multiplier_for_share",
    "noisy_count",
    "noisy_histogram",
    "noisy_mixtures",
    "noisy_norms_and_sum",
    "noisy_of",
    "noisy_second_moment",
    "noisy_sum",
    "norm_bins",
    "one_shot",
    "poisson_member_sets",
    "poisson_members",
    "product_bits",
    "product_error",
    "project_to_simplex",
    "public_stream",
    "read_floats",
    "read_integers",
    "read_parsed",
    "reason_of",
    "reduce",
    "row_by_row",
    "sampled",
    "sampling_probability",
    "step_of",
    "store_float",
    "store_integer",
    "table_chunks",
    "together",
    "whole_rows",
    "without_idle_distances",
    "write_table",
]
