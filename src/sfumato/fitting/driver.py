"""The one driver of `fit`, of estimators and of `tune`: charge the account of the data, run, close, certify.

All checks of arguments, the plan and its calibration come before a `Driver` is made; no record is read before it has
charged.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, final

import numpy as np

from sfumato.columns.kinds import ColumnKind
from sfumato.data_ledger.data_ledger import Charge, charge_data, settled
from sfumato.data_ledger.journal import Journal, NoMoreNoise
from sfumato.errors import ConfigError, ModelWarning, SchemaWarning, require_instance
from sfumato.fitting.account import Account
from sfumato.fitting.contents import (
    AS_SOURCE,
    COMPUTED,
    assumptions_of,
    measurements_of,
    pandas_form,
    silenced,
    versions_of,
)
from sfumato.fitting.purposes import Facts
from sfumato.io.sources import Source
from sfumato.lenses.lens import Sampler
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate import Certificate, Description, SchemaNotes, describe, issue, measured_elsewhere
from sfumato.privacy.certificate_form import JointFit, LedgerCharge, PriorRelease, Protected, Weighting
from sfumato.privacy.ledger import Ledger, SearchLedger
from sfumato.privacy.plan import Plan
from sfumato.privacy.words import of_holders, of_keys, of_prior
from sfumato.records.engine import Records, Statistic
from sfumato.records.private import CodedRecords
from sfumato.release import SourceForm
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import with_package
from sfumato.release_front import Release
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import weighting_of
from sfumato.schema.sources import read_off, source_lines, with_discovered

Held = TypeVar("Held", Ledger, SearchLedger)
T = TypeVar("T")
_INTERIM = "a fit that goes on"


@dataclass(frozen=True, slots=True)
class FittedModel:
    """The result of a recipe: its sampler, the sampler's arrays, and the statistics they came from."""

    sampler: Mapping[str, Any]
    parameters: Mapping[str, np.ndarray]
    measurements: tuple[tuple[str, Noisy], ...]

    def release(
        self, certificate: Certificate, schema: Schema, form: SourceForm, measured: Iterable[tuple[str, Noisy]]
    ) -> Release:
        """Return the release of this; `measured` came before it."""
        return Release(
            schema=schema,
            certificate=certificate,
            sampler=with_package(self.sampler),
            parameters=self.parameters,
            measurements=measurements_of((*measured, *self.measurements)),
            form=form,
        )


def interim_release(fitted: FittedModel, facts: Facts, n_public: int) -> ReleaseValue:
    """What a fit measured so far, as a release that guarantees nothing and is never given to anybody.

    Args:
        fitted: of which all stages are charged.
        facts: of the fit.
        n_public: the public number of rows.
    """
    schema, unit = facts.described, Protected(**facts.described.protects)
    if schema.weight is not None:  # a declared total is compared with what was measured when the release is asked
        schema = replace(schema, weight=replace(schema.weight, total=None))
    return ReleaseValue(
        schema=schema,
        certificate=measured_elsewhere(_INTERIM, unit, n_public=n_public, declared=True),
        sampler=with_package(fitted.sampler),
        parameters=fitted.parameters,
        measurements=measurements_of(fitted.measurements),
        form=pandas_form(schema),
    )


class AccountHolder:
    """A run under an account."""

    account: Account

    @property
    def plan(self) -> Plan:
        """The calibrated plan, with the noise that is drawn: of several holders, of all of them together."""
        exchange = self.account.exchange
        return self.account.plan if exchange is None else self.account.plan.scaled(exchange.noise_factor)

    @property
    def ledger(self) -> Ledger:
        """For mechanisms that charge by themselves."""
        return self.account.ledger

    @property
    def noise(self) -> NoiseSource:
        """The source of randomness, for mechanisms that draw by themselves."""
        return self.account.noise


@dataclass(frozen=True)
class Fit(AccountHolder):
    """The input of a recipe: the records, the account, public facts, and rows of an earlier release's model."""

    data: CodedRecords
    account: Account
    facts: Facts
    prior: Sampler | None = None

    @property
    def n_public(self) -> int:
        """The public number of rows, declared or measured."""
        return self.facts.rows

    @property
    def target(self) -> str | None:
        """The column whose classes are modelled apart."""
        return self.facts.target

    def measure(self, stage: str, statistic: Statistic, records: Records | None = None) -> Noisy:
        """Release a statistic of the records, by default as they come: see `Account.measure`."""
        return self.account.measure(stage, statistic, self.data if records is None else records)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Driver(Generic[Held]):
    """A fit, or a search, that is planned and checked.

    Attributes:
        plan: what the account of the data is charged, all of it.
        ledger: holds the fit to its plan.
        noise: the source of randomness.
        method: its name.
        methods: the classes whose code runs.
        unit: whom it protects, as a certificate says it.
        journal: what is kept of the fit; it says under which charge the fit began.
        share: session and attempt of a fit of several holders; None of others.
        source: where the records lie; None of arrays.
        rows_are_records: the holder's word, where a program computes the rows.
        charges: the charge in the account of the data, once it is made.
    """

    plan: Plan
    ledger: Held
    noise: NoiseSource
    method: str
    methods: tuple[type, ...]
    unit: Protected
    journal: Journal
    source: Source | None
    rows_are_records: bool
    share: str | None = None
    charges: list[Charge] = field(default_factory=list)

    def __post_init__(self) -> None:
        require_instance(bool, "True or False", rows_are_records=self.rows_are_records)
        computing = next(self.source.computing(), None) if self.source is not None else None
        if computing is not None and not self.rows_are_records:
            raise ConfigError(
                f"Expected a table or files, got rows that a program computes: {computing}. They are records if each "
                "is made of one record alone, without averages, ranks or counts of others: if so, say "
                "rows_are_records=True (--rows-are-records; in a schema, source: {rows_are_records: true}), else pass "
                "the table."
            )

    @property
    def computed(self) -> bool:
        """Whether a program of the holder's made the rows."""
        return self.source is not None and any(self.source.computing())

    @contextmanager
    def charged(self, path: str | os.PathLike[str] | None) -> Iterator[NoiseSource]:
        """Charge the account of the data, if there is one; records may be read in the block, with this source.

        What can be read only once, or may fail, is read into a private file before. How the block ends is noted in the
        account.

        Raises:
            DataError: it failed. Nothing was charged.
            BudgetExceededError: the account cannot pay. Nothing was charged.
            ConfigError: as `charge_data`; or a checkpoint that began under an account goes on without it.
            OutputError: a file cannot be written; after the block, as `settled`.
        """
        if path is None and self.journal.charge is not None:
            raise ConfigError(
                "Expected the ledger under which the checkpoint began, got none: it has to know when the fit ends, or "
                "an older copy of the checkpoint could be gone on with unpaid. Name it, or another checkpoint."
            )
        import pandas  # noqa: F401 - passes over units use it, and after the charge no import may fail

        if self.source is not None:
            self.source.keep()
        charged = charge_data(
            path, self.plan, method=self.method, unit=self.unit.name, private=self.noise.private,
            checkpoint=self.journal, share=self.share,
        )  # fmt: skip
        if charged is not None:
            self.charges.append(charged)
        with settled(charged, has_checkpoint=self.journal.active), warnings.catch_warnings():
            _show_rather_than_raise(SchemaWarning, ModelWarning)
            yield self.noise if charged is None or not charged.complete else NoMoreNoise(self.noise)

    def silenced(self, run: Callable[[], T]) -> T:
        """Return `run()`, the methods' own code: see `strangers.silenced`."""
        return silenced(run, self.methods, private=self.noise.private)

    def certificate(self, description: Description) -> Certificate:
        """Close the ledger, and issue the certificate of what was charged.

        Raises:
            LedgerError: not all of the plan was charged.
        """
        self.ledger.close()
        paid = [LedgerCharge(charge=c.number, chain=c.chain) for c in self.charges]
        return issue(description, private=self.noise.private, ledger=paid[-1] if paid else None)

    def final(self, release: Release) -> Release:
        """Return a release that is about to leave; the account notes it as the one that its charge pays for."""
        for charged in self.charges:
            charged.release = release.hashes
        return release


def _show_rather_than_raise(*ours: type[Warning]) -> None:
    """Have warnings of these kinds shown where filters raise them (`python -W error`): that loses what is paid for."""
    filters = list(warnings.filters)
    warnings.resetwarnings()
    for action, message, category, module, line in filters:
        shown = [("always", kind) for kind in ours if action == "error" and issubclass(kind, category)]
        for does, kind in (*shown, (action, category)):
            warnings.filters.append((does, message, kind, module, line))  # type: ignore[attr-defined]


def description_of(
    plan: Plan,
    budget: PrivacyBudget | None,
    *,
    methods: tuple[type, ...],
    schema: Schema | None = None,
    discovered: Iterable[str] = (),
    source: type = Source,
    computed: bool = False,
    declared: bool = True,
    as_source: bool = False,
    weight: Weighting | None = None,
    prior: PriorRelease | None = None,
    joint: JointFit | None = None,
    **known: Any,  # noqa: ANN401 - arguments of `describe`
) -> Description:
    """All of a certificate but `private`: `describe`, with its lines on the schema and on other packages' code."""
    kinds: Iterable[ColumnKind] = ()
    notes = SchemaNotes(weight=weight)
    lines = [COMPUTED] if computed else []
    lines += [*([AS_SOURCE] if as_source else []), *([] if prior is None else [of_prior(prior)])]
    if schema is not None:
        kinds = schema.columns.values()
        known["unit"] = Protected(**schema.protects)
        notes = SchemaNotes(
            discovered=list(discovered),
            origins=source_lines(with_discovered(schema, discovered)),
            read_off=read_off(schema),
            weight=weighting_of(schema),
        )
        lines += [] if schema.tree is None else of_keys(schema.tree.told_by_key, known["unit"].name)
    lines += [] if joint is None else of_holders(joint)
    described = describe(
        schema=notes,
        plan=plan,
        budget=budget,
        n_public_source="declared" if declared else "estimated",
        versions=versions_of([*methods, source, *map(type, kinds)]),
        assumed=[*lines, *assumptions_of(methods, source, kinds)],
        **known,
    )
    return replace(described, prior=prior, joint=joint)
