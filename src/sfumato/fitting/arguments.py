"""Arguments of a fit, checked: schema, number of rows, target, and noise as budget and seed ask for it.

Where no public number of rows is declared, part of the budget is spent on a noisy count.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypedDict, final

import numpy as np

from sfumato.columns.kinds import ItemSet, TabularKind
from sfumato.columns.roles import numbers_people
from sfumato.errors import (
    ConfigError,
    PrivacyWarning,
    SchemaError,
    did_you_mean,
    require_flag,
    require_integer,
    require_name,
    require_path,
)
from sfumato.fitting.account import Account
from sfumato.mechanisms.contributions import MOST_ROWS
from sfumato.mechanisms.noise import NoiseSource, NoNoise, SecureNoise, SeededNoise
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.budget import EstimateCount, PrivacyBudget, default_delta
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.privacy.words import NOT_COVERED
from sfumato.records.engine import Engine, Records, Rows
from sfumato.release.model import ReleaseValue
from sfumato.rules.rule_entries import numeric_columns
from sfumato.schema.schema import Schema
from sfumato.schema.shapes import TARGET, require_able, require_taken
from sfumato.schema.sources import accepted, read_off

COUNT_STAGE = "count"
_COUNT_SHARE = 0.01
_NOMINAL_EPSILON = 1.0  # only shapes the plan of a fit without noise


def warn_of_draft(schema: Schema, *, accept_draft: bool) -> None:
    """Refuse facts that were read off the records (`SchemaError`), or warn of them where the caller accepts them."""
    accepted(schema, accept_draft=accept_draft)
    if read_off(schema):
        warnings.warn(
            f"Some {NOT_COVERED}. They can show a single person: {', '.join(read_off(schema))}.", PrivacyWarning, 4
        )


def warn_of_units(schema: Schema) -> None:
    """Warn of a table without a unit in which a column of no declared kind names persons, by its public name."""
    unknown = [name for name, kind in schema.open.items() if kind == "unknown"]
    persons = [repr(name) for name in unknown if numbers_people(name)]
    if persons and schema.unit is None:
        warnings.warn(
            f"The guarantee is for a single row, and {persons[0]} names whose a row is. If one may have several rows, "
            f"declare `unit: {{column: {persons[0][1:-1]}, max_rows: N}}` in a schema: it protects them together.",
            PrivacyWarning,
            4,
        )


def refuse_criteria(schema: Schema) -> None:
    """Refuse criteria of acceptance, which a fit does not judge: to release without would pass over them."""
    if schema.accept:
        raise ConfigError(
            "Expected a schema without `accept` for a fit, got criteria. `tune` judges by them, of one fit too: "
            "tune(data, schema, method=[method], mean_repetitions=1, ...), or `sfumato model tune --repetitions 1`."
        )


def row_count(schema: Schema, n_public: int | EstimateCount | None) -> int | None:
    """Return the declared number of rows, or None if it is to be measured."""
    if isinstance(n_public, EstimateCount):
        return None
    rows = schema.n_records if n_public is None else n_public
    if rows is None:
        what, place = "rows", "`rows:` into the schema"
        if schema.linked:
            tables = schema.unit.tables if schema.unit else None
            what, place = "units", "`units:` into the schema's `unit`"
            place = place if tables is None else f"`rows:` into the table {tables.units!r}"
        raise ConfigError(
            f"Expected a public number of {what}, got none. Put {place}, pass n_public=... (--rows), or have it "
            "estimated with part of the budget: n_public=EstimateCount() (--rows estimate)."
        )
    return number_of_rows(rows)


def require_room(plan: Plan, rows: int | None) -> None:
    """Refuse so little noise for so many rows that sums on its grid do not fit into 64 bits. Reads no record.

    A sum of n contributions of norm at most B is a whole number of steps of at least 2^-25 of the noise σB.
    """
    least = (rows or 0) * 2.0**-37  # n·2^25/σ below 2^62
    tight = [stage.name for stage in plan.stages if stage.inclusion is None and stage.noise_multiplier < least]
    if tight:
        raise ConfigError(
            f"Expected more noise for stage {tight[0]!r} with so many rows: their sums on its grid do not fit into 64 "
            "bits. Ask for a smaller epsilon."
        )


def number_of_rows(n_public: object) -> int:
    """Return a public number of rows; one whose sums do not fit into 64 bits is refused (`ConfigError`)."""
    n = require_integer(at_least=1, hint="Declare the public number of rows.", n_public=n_public)
    if n > MOST_ROWS:
        raise ConfigError(
            f"Expected n_public to be at most {MOST_ROWS}, got {n_public=}: sums of more do not fit into 64 bits. "
            "Fit parts of the data, each with a budget and a ledger of its own."
        )
    return n


def check_target(schema: Schema, target: str | None) -> None:
    """Refuse a target that is no released column."""
    if target is None:
        return
    if target not in schema.released:
        raise SchemaError(
            f"Expected target to be a released column of the schema, got target={target!r}. "
            f"It has {', '.join(map(repr, schema.released))}.{did_you_mean(target, schema.released)}"
        )
    if target in schema.of_kind(ItemSet) and len(schema.released) > 1:
        raise SchemaError(
            f"Expected target to be a column of labels or numbers, got sets in {target!r}. Choose another column."
        )
    plan = schema.rule_plan
    fixed = set() if schema.tree is None else set(schema.tree.totals)
    fixed |= set() if plan is None else {*plan.follows, *plan.gaps}
    for rule in schema.rules:
        names = numeric_columns(rule)
        if schema.open.keys() & set(names):  # read once its bounds are estimated, which costs budget
            fixed.update(names[1:] if "order" in rule else names[:1])
    if target in fixed:
        raise SchemaError(
            f"Expected target to be a column that no rule or total computes or puts behind another, got {target=}. "
            "Choose another, or take the rule out."
        )


def check_schema(schema: Schema, target: str | None, takes: Collection[str], method: str) -> None:
    """Refuse a shape of data that a method does not take, its target, and open columns beside images or sets."""
    check_target(schema, target)
    require_taken(schema, takes, method)
    if target is not None and schema.unit is not None and target not in schema.unit.constant:
        require_able(schema, TARGET, f"Make {target!r} a constant of the unit, or leave target out")
    if schema.open and len(schema.open) + len(schema.of_kind(TabularKind)) < len(schema.released):
        raise SchemaError("Expected a table to discover columns of, got images or sets. Declare all columns.")


def check_resumable(schema: Schema, method: str, *, resumable: bool) -> None:
    """Refuse a checkpoint of a fit that cannot go on from one."""
    if not resumable:
        raise ConfigError(
            f"Expected no checkpoint for the method {method}, got one: it keeps no releases. Leave it out."
        )
    if schema.open:
        raise ConfigError(
            "Expected no checkpoint with columns to discover, got one: what they are found to be is not kept. "
            "Leave it out, or declare the columns."
        )


def nominal_budget(rows: int | None) -> PrivacyBudget:
    """Return the budget that shapes the plan of a fit without noise."""
    return PrivacyBudget(_NOMINAL_EPSILON, default_delta(rows or 100_000))


def noise_source(budget: PrivacyBudget | None, seed: int | None) -> NoiseSource:
    """Return the source of randomness: secret, of a seed, or without noise."""
    if seed is not None:
        require_integer(at_least=0, seed=seed)
    if budget is None:
        return NoNoise(seed)
    return SecureNoise() if seed is None else SeededNoise(seed)


@dataclass(frozen=True)
class RowCount:
    """The number of records. One record adds 1; under replace-one nothing changes. Value: shape ()."""

    name: str = "number of rows"
    norm_bound: float = 1.0
    replace_bound: float = 1.0
    step: float = 1.0

    def zero(self) -> np.ndarray:
        """Return 0."""
        return np.zeros(())

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        total += len(next(iter(rows.values())))


def count_stage() -> Stage:
    """Return the stage of a noisy number of rows, with a relative noise multiplier."""
    multiplier = multiplier_for_share(_COUNT_SHARE)
    return Stage(name=COUNT_STAGE, noise_multiplier=multiplier, replace_distance=1.0, measures="the number of rows")


def noisy_row_count(records: Records, account: Account, measured: list[tuple[str, Noisy]]) -> int:
    """Measure the number of records, at least 1; `measured` takes it in."""
    count = account.measure(COUNT_STAGE, RowCount(), records)
    measured.append((RowCount.name, count))
    return max(1, round(float(count.value)))


class SearchKeywords(TypedDict, total=False):
    """Attributes of `FitOptions` that a search takes as keyword arguments."""

    target: str | None
    areas: Sequence[str] | None
    questions: Sequence[Any] | None
    n_public: int | EstimateCount | None
    seed: int | None
    ledger: str | os.PathLike[str] | None
    as_source: bool
    accept_draft: bool
    rows_are_records: bool


class FitKeywords(SearchKeywords, total=False):
    """Attributes of `FitOptions` as keyword arguments of a fit: all of them."""

    progress: Callable[[str], None] | None
    checkpoint: str | os.PathLike[str] | None
    workers: int | None
    engine: Engine | None
    prior: ReleaseValue | str | os.PathLike[str] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of a fit beside data, schema and method: keyword arguments of `fit`; `tune` takes the first nine.

    Attributes:
        target: column whose classes are modelled apart; by default one class.
        areas: columns of labels that all others are counted by; by default the schema's.
        questions: that the fit measures with a part of its budget, such as `"ols: income ~ age"`,
            `{"mean": "income", "by": ["region", "sex"]}`; by default the schema's.
        n_public: the public number of rows (of linked rows, of units), from 1; by default the schema's.
            `EstimateCount()` spends part of the budget on a noisy count.
        seed: a whole number from 0, for tests and papers only: reproducible noise, and a release that says it is not
            private.
        ledger: the account of these data, a file that `create_ledger` made: it is charged the whole plan before a
            record is read, and the charge stands whatever becomes of the fit.
        as_source: whether samples have the storage types of the source, where these hold their values, rather than
            types that follow from the schema. One cell may decide such a type (a column of whole numbers becomes one
            of floats where a value is missing): they are published and NOT covered by the guarantee, and the
            certificate says so.
        accept_draft: go on with facts that were read off the records (`draft: true`, `source: data`). The guarantee
            does not cover them; certificate and report say so.
        rows_are_records: the holder's word that each row is made of one record alone, without averages, ranks or counts
            of others. A query, a view, a plan (of polars, DuckDB, Dask, Spark), a stream and a function compute rows,
            and are refused without it. They run once, before anything is charged, and the certificate says so.
        progress: called with the name of each stage when it has been charged, as often as it is charged.
        checkpoint: a file that keeps what has been released so far. If it is there, the fit goes on from it and
            charges nothing twice: the call and the data have to be the same. It holds no record. Remove it when the
            release is saved: a third call would give the same release again.
        workers: processes of this machine that sum over the records, from 1; the release is the same, bit for bit.
        engine: a cluster that sums over the records, instead of workers: `Dask(client)` or `Spark(session)` of
            `sfumato.engines`. A data frame of Dask or Spark brings its own.
        prior: a release of the same schema, such as last year's, or its file: the model follows it where noise hides
            the records. It costs nothing, as it is public; whoever is in the data of both has both ε added.

    Raises:
        ConfigError: names the option that is outside its domain.

    Example:
        >>> FitOptions(target="income", workers=4).workers
        4
    """

    target: str | None = None
    areas: Sequence[str] | None = None
    questions: Sequence[Any] | None = None
    n_public: int | EstimateCount | None = None
    seed: int | None = None
    ledger: str | os.PathLike[str] | None = None
    as_source: bool = False
    accept_draft: bool = False
    rows_are_records: bool = False
    progress: Callable[[str], None] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    workers: int | None = None
    engine: Engine | None = None
    prior: ReleaseValue | str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        require_name(target=self.target)
        if self.n_public is not None and not isinstance(self.n_public, EstimateCount):
            number_of_rows(self.n_public)
        if self.seed is not None:
            require_integer(at_least=0, seed=self.seed)
        for name in ("ledger", "checkpoint"):
            if getattr(self, name) is not None:
                require_path(**{name: getattr(self, name)})
        for name in ("as_source", "accept_draft", "rows_are_records"):
            require_flag(**{name: getattr(self, name)})
        if self.progress is not None and not callable(self.progress):
            # its type only: what was passed by mistake may be records
            raise ConfigError(
                f"Expected progress to be a function of a stage's name, got {type(self.progress).__name__}."
            )
        if not isinstance(self.prior, ReleaseValue | str | os.PathLike | None):
            raise ConfigError(
                f"Expected prior to be a release or the path of one, got {type(self.prior).__name__}. Save one first, "
                "or load it."
            )
        self._check_engine()

    def _check_engine(self) -> None:
        if self.workers is not None and self.engine is not None:
            raise ConfigError("Expected workers or engine, got both. Name one.")
        if self.workers is not None:
            require_integer(at_least=1, workers=self.workers)
        if self.engine is not None and not callable(getattr(self.engine, "summed", None)):
            raise ConfigError(
                "Expected engine to be Dask(client), Spark(session) or Processes(n) of sfumato.engines, got a "
                f"{type(self.engine).__name__}."
            )

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any], *, of: type[SearchKeywords] = FitKeywords) -> Self:
        """The options among a caller's keyword arguments; ConfigError where one is no option of `of`."""
        for name in keywords:
            if name not in of.__annotations__:
                raise ConfigError(
                    f"Expected keyword arguments {', '.join(of.__annotations__)}, got {name!r}."
                    f"{did_you_mean(name, ('schema', 'epsilon', 'method', 'delta', *of.__annotations__))} Settings "
                    "stand beside a method's name, method='max-entropy', or in its class."
                )
        return cls(**keywords)
