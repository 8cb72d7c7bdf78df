"""Who takes part in one release of several holders: cards with public keys, the session they make, and secret keys.

A session is the hash of all cards. Its fingerprint is to be compared by another way than the files came, by telephone
say: whoever could exchange cards could read what is meant for their owners.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.engines.work import machine
from sfumato.errors import ConfigError
from sfumato.io.atomic import atomic_path, write_or_refuse
from sfumato.io.strict_json import parse_object
from sfumato.io.untrusted import read_bounded
from sfumato.mechanisms.noise_shares import noise_part
from sfumato.privacy.budget import EstimateCount
from sfumato.privacy.certificate import installed_versions
from sfumato.privacy.certificate_form import HOLDER_NAME
from sfumato.schema.schema import Schema
from sfumato.schema.sources import without_rows

_FORMAT = "sfumato holder 1"
_MOST_BYTES = 16 << 20
SUFFIX = ".card.json"


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


def require_name(name: object) -> str:
    """Return the name of a holder, which is part of names of files; ConfigError where it is none."""
    if not isinstance(name, str) or not HOLDER_NAME.fullmatch(name):
        raise ConfigError(f"Expected the name of a holder in up to 40 letters, digits, - and _, got {name!r}.")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a holder shows the others.

    Attributes:
        name: of the holder.
        agreement: what it agreed on.
        exchange_key: X25519 public key, 64 hexadecimal digits.
        signing_key: Ed25519 public key, 64 hexadecimal digits.
        signature: with that key, of all else: whose key is known goes on with others by a further card.
    """

    name: str
    agreement: Agreement
    exchange_key: str
    signing_key: str
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy."""
        return {"format": _FORMAT, **asdict(self)}

    @property
    def stated(self) -> bytes:
        """What the signature is of."""
        return digest(replace(self, signature="").to_dict()).encode()

    def write(self, path: Path) -> None:
        """Write the card.

        Raises:
            OutputError: the file exists, or cannot be written.
        """
        with atomic_path(path, overwrite=False) as partial:
            write_or_refuse(path, lambda: partial.write_text(json.dumps(self.to_dict(), indent=1), encoding="utf-8"))

    @classmethod
    def read(cls, path: Path) -> Card:
        """Read a card.

        Raises:
            ConfigError: the file is none.
        """
        card, document = None, {}
        with contextlib.suppress(ValueError, KeyError, TypeError):
            document = parse_object(read_bounded(path, _MOST_BYTES))
            if document.pop("format") == _FORMAT:
                stated = cls(**{**document, "agreement": Agreement(**document["agreement"])})
                names = [require_name(name) for name in (stated.name, *stated.agreement.without)]
                keys = [bytes.fromhex(key).hex() for key in (stated.exchange_key, stated.signing_key)]
                if names and keys == [stated.exchange_key, stated.signing_key] and {len(key) for key in keys} == {64}:
                    card = stated if stated.signed(stated.stated, stated.signature) else None
        if card is None or card.to_dict().keys() != {"format", *document}:
            raise ConfigError(
                f"Expected {path} to be the card of a holder, got something else. `sfumato model join` writes one."
            )
        return card

    def signed(self, content: bytes, signature: str) -> bool:
        """Whether the holder signed a content."""
        with contextlib.suppress(InvalidSignature, ValueError):
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signing_key)).verify(
                bytes.fromhex(signature), content
            )
            return True
        return False


@dataclass(frozen=True, slots=True)
class HolderSession:
    """The holders of one release.

    Attributes:
        cards: by name.
    """

    cards: tuple[Card, ...]

    @classmethod
    def of(cls, cards: Sequence[Card]) -> HolderSession:
        """Return the session that cards make.

        Raises:
            ConfigError: two holders of one name or key, of other agreements, or not as many as agreed.
        """
        cards = sorted(cards, key=lambda card: card.name)
        names = [card.name for card in cards]
        folded = [name.casefold() for name in names]  # names of files
        for entries, what in (
            (folded, "names"),
            ([c.exchange_key for c in cards], "keys"),
            ([c.signing_key for c in cards], "keys"),
        ):
            if len(set(entries)) < len(entries):
                raise ConfigError(
                    f"Expected holders of different {what}, got two of the same. Take the older card away."
                )
        for card in cards[1:]:
            cards[0].agreement.require_same(card.agreement, card.name)
        if not cards or len(cards) != cards[0].agreement.holders:
            expected = "some" if not cards else str(cards[0].agreement.holders)
            raise ConfigError(
                f"Expected the cards of {expected} holders, got {len(cards)}: {', '.join(names) or 'none'}."
            )
        return cls(tuple(cards))

    @property
    def id(self) -> str:
        """The SHA-256 of all cards, in hexadecimal digits."""
        return digest([card.to_dict() for card in self.cards])

    @property
    def fingerprint(self) -> str:
        """The first 160 bits of `id`, in groups of four digits."""
        return " ".join(self.id[i : i + 4] for i in range(0, 40, 4))

    def card(self, name: str) -> Card:
        """Return the card of a holder."""
        return next(card for card in self.cards if card.name == name)

    def has_key_of(self, card: Card) -> bool:
        """Whether a card is signed with the key of the holder of its name."""
        return any((one.name, one.signing_key) == (card.name, card.signing_key) for one in self.cards)

    @property
    def names(self) -> list[str]:
        """The names of all holders, in order."""
        return [card.name for card in self.cards]


@dataclass(frozen=True, slots=True)
class Keys:
    """The secret keys of a holder."""

    exchange: X25519PrivateKey
    signing: Ed25519PrivateKey

    @classmethod
    def new(cls) -> Keys:
        """Return fresh keys."""
        return cls(X25519PrivateKey.generate(), Ed25519PrivateKey.generate())

    def further(self) -> Keys:
        """Return a fresh key for pads, with the same one to sign with: of a further attempt."""
        return Keys(X25519PrivateKey.generate(), self.signing)

    def card(self, name: str, agreement: Agreement) -> Card:
        """Return the card of the holder of these keys."""
        public = (key.public_key().public_bytes_raw().hex() for key in (self.exchange, self.signing))
        exchange_key, signing_key = public
        card = Card(name=require_name(name), agreement=agreement, exchange_key=exchange_key, signing_key=signing_key)
        return replace(card, signature=self.signing.sign(card.stated).hex())

    def write(self, path: Path) -> None:
        """Write the keys to a file that its owner alone may read."""
        content = (self.exchange.private_bytes_raw() + self.signing.private_bytes_raw()).hex()
        with atomic_path(path, overwrite=False, secret=True) as partial:
            write_or_refuse(path, lambda: partial.write_text(content, encoding="utf-8"))

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Read what `write` wrote.

        Raises:
            ConfigError: the file holds no keys.
        """
        with contextlib.suppress(ValueError):
            content = bytes.fromhex(read_bounded(path, _MOST_BYTES).decode("ascii"))
            return cls(
                X25519PrivateKey.from_private_bytes(content[:32]), Ed25519PrivateKey.from_private_bytes(content[32:])
            )
        raise ConfigError(f"Expected the secret keys of a holder in {path}, got none. `sfumato model join` makes them.")

    def pad_key(self, own: Card, other: Card, place: str) -> bytes:
        """Return the key of the pad that this holder and another have in common in one place, 32 bytes.

        Names and public keys of both are part of what the key is derived of: a card whose key is made from another
        one's gives other pads than that one, even where the shared secret is the same.

        Raises:
            ConfigError: the other holder's key gives no secret.
        """
        secret = b""
        with contextlib.suppress(ValueError):
            secret = self.exchange.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other.exchange_key)))
        if not secret:
            raise ConfigError(
                f"Expected a key for exchange in the card of {other.name!r}, got one that gives no secret."
            )
        both = sorted([[own.name, own.exchange_key], [other.name, other.exchange_key]])
        info = digest(["sfumato pad 1", place, both]).encode()
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(secret)
