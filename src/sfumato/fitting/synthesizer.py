"""Synthesizers: methods that state a plan, then fit it, charging the ledger, and issue a certificate."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Unpack, final

from sfumato.data_ledger.journal import Journal, written_out
from sfumato.engines.choice import engine_for
from sfumato.errors import ConfigError, SchemaError
from sfumato.fitting.account import Account, Exchange
from sfumato.fitting.arguments import (
    FitKeywords,
    FitOptions,
    check_resumable,
    noise_source,
    noisy_row_count,
    nominal_budget,
    refuse_criteria,
    require_room,
    row_count,
    warn_of_draft,
    warn_of_units,
)
from sfumato.fitting.contents import check_types, form_of, pandas_form, versions_of
from sfumato.fitting.discovery import discover
from sfumato.fitting.driver import Driver, Fit, FittedModel
from sfumato.fitting.planned_method import PlannedMethod
from sfumato.fitting.purposes import Facts
from sfumato.inference.agreement import warn_of_disagreements
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import DataSet, Sampler
from sfumato.maths.threads import few_threads
from sfumato.mechanisms.noise import NoiseSource
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import installed_versions, require_verified
from sfumato.privacy.certificate_form import PriorRelease, Protected
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records.database_records import DatabaseData
from sfumato.records.engine import Engine
from sfumato.records.linked import LinkedData
from sfumato.records.private import OpenData, PrivateData
from sfumato.records.table_sources import TableSources, open_records
from sfumato.release.model import ReleaseValue, read_release
from sfumato.release.samplers import build_sampler
from sfumato.release_front import Release
from sfumato.schema.code_lists import refuse_lists_of_data
from sfumato.schema.named_questions import require_formulas, with_questions
from sfumato.schema.open_schema import open_schema
from sfumato.schema.schema import Schema, SchemaLike
from sfumato.schema.schema_facts import with_areas
from sfumato.schema.shapes import PRIOR, require_able
from sfumato.schema.sources import with_discovered, without_rows


@dataclass(frozen=True, slots=True)
class _Prior:
    """The prior of a fit: what a certificate says of it, and the sampler of its plain rows."""

    stated: PriorRelease
    sampler: Sampler


@dataclass(frozen=True, kw_only=True)
class Synthesizer(PlannedMethod):
    """A method of making a release.

    Attributes:
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
    """

    @abstractmethod
    def run(self, fit: Fit) -> FittedModel:
        """Fit, charging every stage of the plan in order."""

    @final
    def fit(self, data: object, *, schema: SchemaLike, **options: Unpack[FitKeywords]) -> Release:
        """Fit a release.

        Privacy: (ε, δ) as the release's certificate says. All checks come before the first charge.

        Args:
            data: a path (.csv, .parquet, .npz, a folder of images), a pandas or polars frame, a pyarrow table, a
                data frame of Dask or Spark, or arrays (x, y); docs/inputs.md lists all.
            schema: public description of the data, or the path of one; what it leaves open (`discover: true`, or
                `OpenSchema.of`) is estimated.
            options: attributes of `FitOptions` by name, such as `target="income"`, `n_public=10_000`,
                `ledger="people.ledger"`.

        Raises:
            BudgetExceededError: the ledger cannot pay for the fit. Nothing was read or charged.
            EngineError: workers did not finish a pass. Nothing was drawn from that pass.
            ConfigError: an argument is outside its domain.
            SchemaError: the schema does not describe the data, or has facts that were read off the records.
            DataError: the data cannot be read.
        """
        return self.fit_with(FitOptions.from_keywords(options), data, schema)

    @final
    @few_threads
    def fit_with(
        self,
        options: FitOptions,
        data: object,
        schema: SchemaLike,
        exchange: Exchange | None = None,
    ) -> Release:
        """Check and plan, then charge, draw, and certify; as `fit`.

        With an exchange, sums are of the records of other holders too; `RoundPendingError` where theirs are not there.
        """
        refuse_lists_of_data(schema, data)
        schema = with_questions(with_areas(open_schema(schema), options.areas), options.questions)
        require_formulas(schema)
        warn_of_draft(schema, accept_draft=options.accept_draft)
        warn_of_units(schema)
        refuse_criteria(schema)
        rows = row_count(schema, options.n_public)
        if rows is None:
            schema = without_rows(schema)  # nothing is declared, so nothing is passed on
        budget = self._budget(rows)
        noise = noise_source(budget, options.seed)
        prior = _read_prior(options.prior, schema, self, private=noise.private)
        source = open_records(data, schema)
        with engine_for(source, options.workers, options.engine) as engine:
            records: PrivateData | LinkedData | DatabaseData
            if schema.tree is not None and isinstance(source, TableSources):
                records = DatabaseData(source, schema)
            else:
                records = LinkedData(source, schema) if schema.linked else PrivateData(source, schema, engine=engine)
            check_types(records.source, schema, as_source=options.as_source)
            allowed = budget or nominal_budget(rows)
            plan = calibrate(self.uncalibrated(schema, options.target, rows, allowed.delta), allowed)
            require_room(plan, rows)
            driver = Driver(
                plan=plan,
                journal=self._journal(
                    options, plan, schema, n_public=rows, private=noise.private, prior=prior, exchange=exchange
                ),
                ledger=Ledger(plan, budget, options.progress),
                noise=noise,
                method=self.method,
                methods=(type(self),),
                unit=Protected(**schema.protects),
                share=None if exchange is None else exchange.stated.share,
                source=source,
                rows_are_records=options.rows_are_records or schema.rows_are_records,
            )
            with driver.charged(options.ledger) as noise:
                return self._release(options, rows, budget, engine, driver, noise, records, prior, exchange)

    def _release(
        self,
        options: FitOptions,
        rows: int | None,
        budget: PrivacyBudget | None,
        engine: Engine | None,
        driver: Driver[Ledger],
        noise: NoiseSource,
        records: PrivateData | LinkedData | DatabaseData,
        prior: _Prior | None = None,
        exchange: Exchange | None = None,
    ) -> Release:
        """Read the records, and release: the account of the data is charged."""
        account, measured = Account(driver.ledger, noise, driver.journal, exchange), []
        source, schema = records.source, records.described
        target, open_columns, n = options.target, schema.open, rows
        if n is None:
            n = noisy_row_count(OpenData(source, schema, engine) if open_columns else records, account, measured)
        if open_columns:
            schema = discover(source, schema, n=n, account=account, measured=measured, engine=engine, target=target)
            schema = with_discovered(schema, open_columns)
            records = PrivateData(source, schema, estimated=open_columns, engine=engine)
        expected = None if prior is None else prior.sampler
        fitted = driver.silenced(lambda: self.run(Fit(records, account, Facts(schema, target, n), expected)))
        paid = driver.plan if exchange is None else Plan((*exchange.earlier, *driver.plan.stages))
        description = self._certificate_text(
            paid, budget, schema, n, declared=rows is not None, discovered=open_columns,
            source=type(source), computed=driver.computed and exchange is None, as_source=options.as_source,
            prior=None if prior is None else prior.stated, joint=None if exchange is None else exchange.stated,
        )  # fmt: skip
        # where one holder's records lie is none of the others' business
        form = pandas_form(schema) if exchange else form_of(source, schema, as_source=options.as_source)
        release = driver.final(fitted.release(driver.certificate(description), schema, form, measured))
        warn_of_disagreements(release)
        return release

    def _journal(
        self,
        options: FitOptions,
        plan: Plan,
        schema: Schema,
        *,
        n_public: int | None,
        private: bool,
        prior: _Prior | None,
        exchange: Exchange | None,
    ) -> Journal:
        if options.checkpoint is not None:
            check_resumable(schema, self.method, resumable=self.resumable)
        identity = {
            "method": self.method,
            "settings": {entry.name: written_out(getattr(self, entry.name)) for entry in fields(self)},
            "plan": repr(plan),
            "schema": schema.to_dict(),
            "n_public": n_public,
            "versions": installed_versions() | versions_of([type(self), *map(type, schema.columns.values())]),
            "target": options.target,
            "private": private,
            "seed": options.seed,
            "prior": None if prior is None else prior.stated.content,
            "joint": None if exchange is None else exchange.stated.session,
        }
        return Journal(options.checkpoint, identity)


def _read_prior(
    prior: ReleaseValue | str | os.PathLike[str] | None, schema: Schema, method: Synthesizer, *, private: bool
) -> _Prior | None:
    """Read the release that is the prior of a fit, if there is one, before anything is charged.

    Args:
        prior: a release, or the path of one.
        schema: of the fit.
        method: of the fit.
        private: whether the noise of the fit is secret: then that of the prior has to be.

    Raises:
        ConfigError: the method or the schema's shape takes none, or the prior's noise is not secret.
        SchemaError: the prior has other columns, or other facts of one.
        ReleaseError: it cannot be read, or its events cost more than it states.
    """
    if prior is None:
        return None
    if not method.takes_prior:
        raise ConfigError(f"Expected no prior for the method {method.method}, got one. Use the method max-entropy.")
    require_able(schema, PRIOR, "Leave the prior out")
    if schema.images:
        raise ConfigError("Expected a table for a prior, got images. Leave the prior out.")
    release = prior if isinstance(prior, ReleaseValue) else read_release(prior, ReleaseValue)
    _require_same(schema, release.schema)
    if private and not (release.certificate.private or release.certificate.measured_elsewhere):
        raise ConfigError(
            "Expected a prior of secret noise, got a release that guarantees nothing: what it shows of records would "
            "be in this one too. Name a private release."
        )
    if release.certificate.epsilon is not None:  # the certificate of the fit repeats what it states
        require_verified(release.certificate, "a prior")
    sampler = build_sampler(plain_schema(release.schema), release.sampler, release.parameters)
    if isinstance(sampler, DataSet):
        raise ConfigError("Expected a prior with a model to draw rows from, got a data set. Name another release.")
    certificate, hashes = release.certificate, release.hashes
    stated = PriorRelease(
        arrays=hashes.arrays, content=hashes.content, epsilon=certificate.epsilon, delta=certificate.delta
    )
    return _Prior(stated, sampler)


def _require_same(schema: Schema, other: Schema) -> None:
    """Refuse a prior of another schema: names, kinds, bounds, labels, and columns that rules leave."""
    for own, before in ((schema, other), (plain_schema(schema), plain_schema(other))):
        if own.released != before.released:
            differing = sorted({*own.released} ^ {*before.released})
            what = f"others in {', '.join(map(repr, differing))}" if differing else "them in another order"
            raise SchemaError(
                f"Expected a prior with the same columns as the schema, and the same rules, got {what}. Fit with the "
                "prior's schema, or leave the prior out."
            )
        for name in own.released:
            if own.columns[name] != before.columns[name]:
                raise SchemaError(
                    f"Expected a prior with the same facts of column {name!r} as the schema (kind, bounds, labels), "
                    "got others. Fit with the prior's schema, or leave the prior out."
                )
