"""What every synthesizer does: state a plan, then fit it, charging the ledger, and issue a certificate."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from sfumato.data.private import PrivateData
from sfumato.data.schema import Schema
from sfumato.data.sources import open_source
from sfumato.errors import ConfigError, SchemaError, require_integer
from sfumato.learners.counts import RowCount
from sfumato.data.engine import reduce
from sfumato.mechanisms.noise import NoiseSource, NoNoise, SecureNoise, SeededNoise
from sfumato.mechanisms.queries import Noisy, noisy_count
from sfumato.privacy.budget import BuyCount, NonPrivate, PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import issue
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.release import Measurement, Release, SourceForm

COUNT_STAGE = "count"
_COUNT_SHARE = 0.01
_NOMINAL_EPSILON = 1.0  # only shapes the plan of a fit without noise


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a recipe hands back: its sampler, the sampler's arrays, and the statistics they came from."""

    sampler: Mapping[str, Any]
    parameters: Mapping[str, np.ndarray]
    measurements: tuple[tuple[str, Noisy], ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """What a recipe gets: the records, the account, the door of randomness, and public facts."""

    data: PrivateData
    ledger: Ledger
    noise: NoiseSource
    n_public: int
    target: str | None


@dataclass(frozen=True, kw_only=True)
class Synthesizer(ABC):
    """A method of making a release.

    Attributes:
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
    """

    method: ClassVar[str]

    epsilon: float | NonPrivate
    delta: float | None = field(default=None)

    @abstractmethod
    def stages(self, schema: Schema, *, target: str | None, n_public: int | None) -> list[Stage]:
        """Return the stages of this method with relative noise multipliers, from public facts alone."""

    @abstractmethod
    def run(self, fit: Fit) -> Fitted:
        """Fit, charging every stage of the plan in order."""

    @final
    def plan(
        self, schema: Schema, *, target: str | None = None, n_public: int | BuyCount | None = None
    ) -> Plan:
        """Return the calibrated plan: every stage with its noise multiplier. Reads no record.

        Args:
            schema: public description of the table.
            target: column whose classes are modelled apart.
            n_public: the public number of units; by default the schema's `rows`; `BuyCount()` buys one.

        Raises:
            ConfigError: an argument is outside its domain, or no number of rows is declared.
            SchemaError: the target is not a column that has classes.
        """
        rows = _row_count(schema, n_public)
        return calibrate(self._uncalibrated(schema, target, rows), self._budget(rows) or _nominal(rows))

    def _uncalibrated(self, schema: Schema, target: str | None, rows: int | None) -> Plan:
        _check_target(schema, target)
        stages = self.stages(schema, target=target, n_public=rows)
        if rows is None:
            count = Stage(
                name=COUNT_STAGE,
                noise_multiplier=multiplier_for_share(_COUNT_SHARE),
                replace_distance=1.0,
                measures="the number of rows",
            )
            stages = [count, *stages]
        return Plan(stages)

    def _budget(self, rows: int | None) -> PrivacyBudget | None:
        if isinstance(self.epsilon, NonPrivate):
            return None
        if self.delta is None and rows is None:
            raise ConfigError("Expected delta=... when the number of rows is bought: its default needs that number.")
        delta = self.delta if self.delta is not None else default_delta(rows)  # type: ignore[arg-type]
        budget = PrivacyBudget(self.epsilon, delta)
        if rows is not None:
            budget.warn_if_delta_is_large(rows)
        return budget

    @final
    def fit(
        self,
        data: object,
        *,
        schema: Schema | str | os.PathLike[str],
        target: str | None = None,
        n_public: int | BuyCount | None = None,
        seed: int | None = None,
    ) -> Release:
        """Fit a release.

        Privacy: (ε, δ) as the release's certificate says. All checks come before the first charge.

        Args:
            data: a path (.csv, .parquet, .npz), a pandas or polars frame, a pyarrow table, or arrays (x, y).
            schema: public description of the data, or the path of one.
            target: column whose classes are modelled apart; one class if not given.
            n_public: the public number of units; by default the schema's `rows`; `BuyCount()` buys one.
            seed: for tests and papers only: reproducible noise, and a release that says it is not private.

        Returns:
            The release.

        Raises:
            ConfigError: an argument is outside its domain.
            SchemaError: the schema does not describe the data.
            DataError: the data cannot be read.
        """
        schema = schema if isinstance(schema, Schema) else Schema.load(schema)
        rows = _row_count(schema, n_public)
        budget = self._budget(rows)
        noise = _noise(budget, seed)
        records = PrivateData(open_source(data), schema)
        plan = calibrate(self._uncalibrated(schema, target, rows), budget or _nominal(rows))
        ledger = Ledger(plan, budget)
        measured: tuple[tuple[str, Noisy], ...] = ()
        if rows is None:
            counted = noisy_count(
                reduce(RowCount(), records), stage=COUNT_STAGE, ledger=ledger, noise=noise
            )
            measured = (("number of rows", counted),)
        n = rows if rows is not None else max(1, round(float(measured[0][1].value)))
        fitted = self.run(Fit(records, ledger, noise, n, target))
        ledger.close()
        return self._release(records, plan, budget, noise, n, rows is not None, fitted, measured)

    def _release(  # noqa: PLR0913
        self,
        records: PrivateData,
        plan: Plan,
        budget: PrivacyBudget | None,
        noise: NoiseSource,
        n: int,
        declared: bool,
        fitted: Fitted,
        measured: tuple[tuple[str, Noisy], ...],
    ) -> Release:
        schema = records.schema
        certificate = issue(
            plan=plan,
            budget=budget,
            method=self.method,
            private=noise.private,
            unit={
                "name": "row" if schema.unit is None else schema.unit.column,
                "max_rows": records.max_rows_per_unit,
            },
            n_public=n,
            n_public_source="declared" if declared else "bought",
        )
        measurements = tuple(
            Measurement(name, noisy.value, noisy.noise_std, noisy.symmetric)
            for name, noisy in (*measured, *fitted.measurements)
        )
        source = records.source
        released = schema.released
        form = SourceForm(
            container=source.container,
            storage=records.storage,
            dtypes={name: source.dtypes[name] for name in released if name in source.dtypes},
            keys={name: source.keys[name] for name in released if name in source.keys},
        )
        return Release(schema, certificate, fitted.sampler, fitted.parameters, measurements, form)


def _row_count(schema: Schema, n_public: int | BuyCount | None) -> int | None:
    """Return the declared number of rows, or None if it is to be bought."""
    if isinstance(n_public, BuyCount):
        return None
    rows = schema.rows if n_public is None else n_public
    if rows is None:
        raise ConfigError(
            "Expected a public number of rows, got none. Put `rows:` into the schema, pass n_public=... (--rows), "
            "or buy a noisy count: n_public=BuyCount() (--buy-rows)."
        )
    return require_integer(at_least=1, n_public=rows)


def _check_target(schema: Schema, target: str | None) -> None:
    if target is None:
        return
    if target not in schema.released:
        raise SchemaError(
            f"Expected target to be a released column of the schema, got target={target!r}. "
            f"It has {', '.join(map(repr, schema.released))}."
        )


def _nominal(rows: int | None) -> PrivacyBudget:
    return PrivacyBudget(_NOMINAL_EPSILON, default_delta(rows or 100_000))


def _noise(budget: PrivacyBudget | None, seed: int | None) -> NoiseSource:
    if budget is None:
        return NoNoise()
    return SecureNoise() if seed is None else SeededNoise(seed)
