"""What holders agree on before one release of all their records: the plan of one fit, and who may work together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sfumato.engines.work import machine
from sfumato.errors import ConfigError
from sfumato.mechanisms.noise_shares import noise_part
from sfumato.privacy.budget import EstimateCount
from sfumato.privacy.certificate import installed_versions
from sfumato.schema.schema import Schema
from sfumato.schema.sources import without_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The public facts of a joint fit by the method max-entropy.

    Attributes:
        schema: of all holders' records, as `Schema.to_dict`.
        epsilon, delta: of the release.
        rows: public number of all holders' records together; None to measure one.
        holders: how many there are, 2 to 100.
        colluding: how many of them may work together, and with whoever sees the messages, and learn no more.
        target: column whose classes are modelled apart.
        versions: of Python and the packages that the guarantee rests on.
        machine: hash of the kind of processor and of the linear algebra: others round differently.
        attempt: its number, from 1.
        without: holders of earlier attempts who are in this one no more.
        after: `HolderSession.id` of the first attempt; None in that.

    Raises:
        ConfigError: numbers of holders outside their domain.
    """

    schema: Mapping[str, Any]
    epsilon: float
    delta: float
    rows: int | None
    holders: int
    colluding: int
    target: str | None
    versions: Mapping[str, str]
    machine: str
    attempt: int = 1
    without: tuple[str, ...] = ()
    after: str | None = None

    def __post_init__(self) -> None:
        noise_part(self.holders, self.colluding)

    @classmethod
    def of(
        cls, schema: Schema, *, epsilon: float, delta: float, rows: int | None, holders: int, colluding: int,
        target: str | None,
    ) -> Agreement:  # fmt: skip
        """The agreement of holders that run this version."""
        return cls(
            schema=schema.to_dict(), epsilon=float(epsilon), delta=float(delta), rows=rows, holders=holders,
            colluding=colluding, target=target, versions=installed_versions(), machine=machine().hex(),
        )  # fmt: skip

    def again(self, session: str, without: Sequence[str], rows: int | None) -> Agreement:
        """Return what the others agree on after an attempt that ends for want of some holders.

        Args:
            session: `HolderSession.id` of the first attempt.
            without: those holders.
            rows: the public number of rows of the others together; None to measure it.

        Raises:
            ConfigError: too few are left, or a fact of the schema is of the records of all.
        """
        schema = Schema.from_dict(dict(self.schema))
        if schema.weight is not None and schema.weight.total is not None:
            raise ConfigError(
                "Expected no total of weights where fewer holders go on, got one, which is of all. Begin anew with "
                "`sfumato model join` and another schema."
            )
        return replace(
            self, schema=without_rows(schema).to_dict(), rows=rows, holders=self.holders - len(without),
            attempt=self.attempt + 1, without=(*self.without, *without), after=session,
        )  # fmt: skip

    def options(self) -> dict[str, Any]:
        """Return what `plan` and a fit are given: target and public number of rows, by name."""
        return {"target": self.target, "n_public": EstimateCount() if self.rows is None else self.rows}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy."""
        return asdict(self)

    def require_here(self) -> None:
        """Refuse to draw with other versions, or on a machine of another kind, than the card says.

        Raises:
            ConfigError: so it is. Its sums could differ from those of others, who then could open nothing.
        """
        if (dict(self.versions), self.machine) != (installed_versions(), machine().hex()):
            raise ConfigError(
                "Expected the kind of machine and the versions of `sfumato model join`, got others, which may round "
                "differently. Nothing was charged: go on where the card was made, or begin anew here."
            )

    def require_same(self, other: Agreement, name: str) -> None:
        """Refuse the card of a holder who agreed on something else.

        Raises:
            ConfigError: names it.
        """
        mine, theirs = self.to_dict(), other.to_dict()
        differing = [key for key, value in mine.items() if digest(value) != digest(theirs[key])]
        if differing:
            raise ConfigError(
                f"Expected the card of {name!r} to agree on {', '.join(differing)}, got another. All holders give the "
                "same schema, arguments and version of Sfumato, on machines of one kind."
            )


def digest(document: object) -> str:
    """Return the SHA-256 of a JSON-ready document; the order of columns is a part of it."""
    return hashlib.sha256(json.dumps(document, separators=(",", ":")).encode()).hexdigest()
