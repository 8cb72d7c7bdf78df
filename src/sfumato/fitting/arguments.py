"""What a caller hands to a fit, checked: schema, number of rows, target, and noise as budget and seed ask for it.

How many records there are: for those who do not declare a public number.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from sfumato.columns.kinds import ItemSet
from sfumato.columns.roles import role_of
from sfumato.errors import ConfigError, PrivacyWarning, SchemaError, require_integer
from sfumato.mechanisms.contributions import MOST_ROWS
from sfumato.mechanisms.noise import NoiseSource, NoNoise, SecureNoise, SeededNoise
from sfumato.privacy.budget import BuyCount, PrivacyBudget, default_delta
from sfumato.privacy.plan import Plan
from sfumato.privacy.words import NOT_COVERED
from sfumato.records.engine import Rows
from sfumato.rules.reading import numeric_columns
from sfumato.schema.schema import Schema
from sfumato.schema.sources import accepted, read_off

_NUMBERS = ("id", "uuid", "nr", "no", "number", "nummer", "key", "code")
_NOMINAL_EPSILON = 1.0  # only shapes the plan of a fit without noise


def warn_of_draft(schema: Schema, *, accept_draft: bool) -> None:
    """Refuse facts that were read off the records, or warn of them where the caller takes them as they are.

    Raises:
        SchemaError: says what to do.
    """
    accepted(schema, accept_draft=accept_draft)
    if read_off(schema):
        warnings.warn(
            f"Some {NOT_COVERED}. They can show a single person: {', '.join(read_off(schema))}.", PrivacyWarning, 4
        )


def warn_of_units(schema: Schema) -> None:
    """Warn of a table without a unit in which a column of no declared kind names persons, by its public name."""
    unknown = [name for name, kind in schema.open.items() if kind == "unknown"]
    numbered = [name for name in unknown if name.casefold().endswith(_NUMBERS)]  # `member` may be a truth value
    persons = [repr(name) for name in numbered if role_of(name) in ("person", "household")]
    if persons and schema.unit is None:
        warnings.warn(
            f"The guarantee is for a single row, and {persons[0]} names whose a row is. If one may have several rows, "
            f"declare `unit: {{column: {persons[0][1:-1]}, max_rows: N}}` in a schema: it protects them together.",
            PrivacyWarning,
            4,
        )


def refuse_criteria(schema: Schema) -> None:
    """Refuse criteria of acceptance, which a fit does not judge: to release without would pass over them.

    Raises:
        ConfigError: says who judges.
    """
    if schema.accept:
        raise ConfigError(
            "Expected a schema without `accept` for a fit, got criteria. `tune` judges by them, of one fit too: "
            "tune(data, [method], mean_repetitions=1, ...), or `sfumato tune --repetitions 1`."
        )


def row_count(schema: Schema, n_public: int | BuyCount | None) -> int | None:
    """Return the declared number of rows, or None if it is to be bought."""
    if isinstance(n_public, BuyCount):
        return None
    rows = schema.n_records if n_public is None else n_public
    if rows is None and schema.linked:
        assert schema.unit is not None
        tables = schema.unit.tables
        place = "`units:` into the schema's `unit`" if tables is None else f"`rows:` into the table {tables.units!r}"
        raise ConfigError(
            f"Expected a public number of units, got none. Put {place}, pass n_public=... (--rows), or buy a noisy "
            "count: n_public=BuyCount() (--buy-rows)."
        )
    if rows is None:
        raise ConfigError(
            "Expected a public number of rows, got none. Put `rows:` into the schema, pass n_public=... (--rows), "
            "or buy a noisy count: n_public=BuyCount() (--buy-rows)."
        )
    return number_of_rows(rows)


def require_room(plan: Plan, rows: int | None) -> None:
    """Refuse so little noise for so many rows that sums on its grid do not fit into 64 bits. Reads no record.

    A sum of n contributions of norm at most B is a whole number of steps of at least 2^-25 of the noise σB.

    Raises:
        ConfigError: a stage has too little noise.
    """
    least = (rows or 0) * 2.0**-37  # n·2^25/σ below 2^62
    tight = [stage.name for stage in plan.stages if stage.inclusion is None and stage.noise_multiplier < least]
    if tight:
        raise ConfigError(
            f"Expected more noise for stage {tight[0]!r} with so many rows: their sums on its grid do not fit into 64 "
            "bits. Ask for a smaller epsilon."
        )


def number_of_rows(n_public: object) -> int:
    """Return a public number of rows whose sums fit into the machine's whole numbers.

    Raises:
        ConfigError: it is none.
    """
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
            f"It has {', '.join(map(repr, schema.released))}."
        )
    if target in schema.of_kind(ItemSet) and len(schema.released) > 1:
        raise SchemaError(
            f"Expected target to be a column of labels or numbers, got sets in {target!r}. Choose another column."
        )
    plan = schema.rule_plan
    fixed = set() if plan is None else {*plan.follows, *plan.gaps}
    for rule in schema.rules:
        names = numeric_columns(rule)
        if schema.open.keys() & set(names):  # read once its bounds are estimated, which costs budget
            fixed.update(names[1:] if "order" in rule else names[:1])
    if target in fixed:
        raise SchemaError(
            f"Expected target to be a column that no rule computes or puts behind another, got target={target!r}. "
            "Choose another, or take the rule out."
        )


def nominal_budget(rows: int | None) -> PrivacyBudget:
    """Return the budget that shapes the plan of a fit without noise."""
    return PrivacyBudget(_NOMINAL_EPSILON, default_delta(rows or 100_000))


def noise_source(budget: PrivacyBudget | None, seed: int | None) -> NoiseSource:
    """Return the door of randomness: secret, of a seed, or without noise."""
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
