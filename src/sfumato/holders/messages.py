"""A holder's message of a round: its share of a noisy sum under pads, with what it is of, signed.

    words = (share, 0, 0) + Σ_{j after i} pad(i, j) − Σ_{j before i} pad(i, j)     mod 2^64

The pads of two holders go out in the sum over all, and only there. The last two words have to add up to 0.

A message is a file in a folder that holders have in common; a holder has a copy of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import safetensors
import safetensors.numpy

from sfumato.engines.work import TAG_WORDS, pad
from sfumato.errors import ConfigError, DataError, RoundPendingError
from sfumato.holders.cards import Card, HolderSession, Keys, digest
from sfumato.io.atomic import atomic_path, write_or_refuse
from sfumato.io.strict_json import parse_object
from sfumato.io.untrusted import UnreadableFileError, read_bounded
from sfumato.measurements.query_form import write_query
from sfumato.mechanisms.noise_shares import noise_part
from sfumato.privacy.certificate_form import JointFit
from sfumato.privacy.plan import Stage
from sfumato.records.engine import Statistic

KEYS = "keys"
"""The file of a holder's secret keys."""
_SUFFIX = ".round"
_DIGEST_WORDS = 4
_START = hashlib.sha256(b"sfumato: nothing released yet").hexdigest()
_FORMAT = "sfumato round 1"
_HEADER_BYTES = 1 << 16
_MOST_BYTES = 1 << 31
_FAULTS = (safetensors.SafetensorError, ValueError, KeyError, TypeError, RecursionError)
"""Of files that are no messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareContext:
    """What a share is of; the same for all holders.

    Attributes:
        session: `HolderSession.id`.
        number: of the round, from 1.
        stage: of the plan, with its event.
        statistic: SHA-256 of what is summed.
        before: SHA-256 of all that was released before.
    """

    session: str
    number: int
    stage: str
    statistic: str
    before: str

    def to_dict(self) -> dict[str, str | int]:
        """Return a JSON-ready copy."""
        return {name: getattr(self, name) for name in self.__slots__}


def masked(share: np.ndarray, context: ShareContext, name: str, session: HolderSession, keys: Keys) -> np.ndarray:
    """Return a holder's share under the pads that it has in common with each of the others, uint64, shape (w + 2,).

    Args:
        share: int64, w numbers.
        context: of the share; pads of two holders who see different places have nothing in common.
        name: of the holder.
        session: all holders.
        keys: of the holder.

    Raises:
        ConfigError: a card gives no pads.
    """
    words = np.zeros(share.size + TAG_WORDS, dtype=np.uint64)
    words[: share.size] = share.reshape(-1).view(np.uint64)
    own = session.card(name)
    for card in session.cards:
        if card.name != name:
            common = pad(keys.pad_key(own, card, digest(context.to_dict())), 0, words.size)
            words += common if name < card.name else np.uint64(0) - common
    return words


def message_path(folder: Path, name: str, number: int) -> Path:
    """Return where a holder's message of a round lies."""
    return folder / f"{name}.{number}{_SUFFIX}"


def packed_message(words: np.ndarray, context: ShareContext, name: str, keys: Keys) -> bytes:
    """Return a message as its file holds it; the same for the same words."""
    header = {
        "format": _FORMAT,
        "name": name,
        **context.to_dict(),
        "words": hashlib.sha256(words.tobytes()).hexdigest(),
    }
    content = json.dumps(header, sort_keys=True)
    signature = keys.signing.sign(content.encode()).hex()
    # one entry: several would come in any order, and the bytes would not be the same
    return safetensors.numpy.save({"words": words}, {"message": json.dumps([content, signature])})


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; OutputError where the system refuses."""
    with atomic_path(path, overwrite=True) as partial:
        write_or_refuse(path, lambda: partial.write_bytes(content))


def total_of(
    folder: Path, context: ShareContext, own: Mapping[str, np.ndarray], session: HolderSession, size: int
) -> np.ndarray | None:
    """Return the sum of all holders' shares, int64, shape (size,); None as long as a message is missing.

    Args:
        folder: where messages lie.
        context: of the round.
        own: the words of the holder, by its name.
        session: all holders.
        size: of a share.

    Raises:
        ConfigError: a message is of another session, round, statistic or release before.
        DataError: one is damaged, changed or not signed by its holder; or they do not add up.
    """
    total = np.zeros(size + TAG_WORDS, dtype=np.uint64)
    for card in session.cards:
        path = message_path(folder, card.name, context.number)
        words = own.get(card.name)
        if words is None:
            if not path.exists():
                return None
            words = _words(path, context, card.name, session, size)
        total += words
    if total[size:].any():
        raise DataError(
            f"Expected the messages of round {context.number} to add up, got pads left: a holder used other cards, or "
            "drew its share twice. Nothing was released of them. Begin anew with `sfumato model join`."
        )
    return total[:size].view(np.int64)


def is_signed(path: Path, name: str, session: HolderSession) -> bool:
    """Whether a file is a message of any round that a holder signed."""
    with contextlib.suppress(*_FAULTS):
        return _signed_header(read_bounded(path, _MOST_BYTES), name, session) is not None
    return False


def _signed_header(packed: bytes, name: str, session: HolderSession) -> Mapping[str, object] | None:
    """Return what a message says of itself, None if its holder did not sign it; any of `_FAULTS` where it is none."""
    length = int.from_bytes(packed[:8], "little")
    content, signature = json.loads(json.loads(packed[8 : 8 + length])["__metadata__"]["message"])
    signed = session.card(name).signed(str(content).encode(), str(signature))
    return parse_object(str(content)) if signed else None


def missing(folder: Path, session: HolderSession, name: str, number: int) -> list[str]:
    """Return the names of the other holders whose message of a round is not there."""
    return [n for n in session.names if n != name and not message_path(folder, n, number).exists()]


def _words(path: Path, context: ShareContext, name: str, session: HolderSession, size: int) -> np.ndarray:
    header, words = None, np.zeros(0, dtype=np.uint64)
    with contextlib.suppress(*_FAULTS):
        packed = read_bounded(path, 8 * (size + TAG_WORDS) + _HEADER_BYTES)
        header = _signed_header(packed, name, session)
        words = safetensors.numpy.load(packed)["words"]
    if header is None:
        raise DataError(
            f"Expected {path} to be a message of the holder {name!r}, got one that is damaged, changed or not signed "
            "with the key of its card. Ask for it again."
        )
    differing = [key for key, value in context.to_dict().items() if header.get(key) != value]
    if differing or header.get("name") != name or header.get("format") != _FORMAT:
        problem = _PROBLEMS[differing[0]] if differing else "another holder"
        raise ConfigError(f"Expected {path} to be of this round, got one of {problem}.")
    if (
        words.dtype != np.uint64
        or words.shape != (size + TAG_WORDS,)
        or (hashlib.sha256(words.tobytes()).hexdigest() != header.get("words"))
    ):
        raise DataError(f"Expected {path} to hold the numbers that {name!r} signed, got others. Ask for it again.")
    return words


_PROBLEMS = {
    "session": "another session: other cards, or an earlier `sfumato model join`",
    "number": "another round, under a wrong name",
    "stage": "another stage of the plan",
    "statistic": "another statistic: the processors of the holders round differently",
    "before": "a holder who has another release of an earlier round: one of the messages was given out twice",
}


@final
class FileExchange:
    """Shares of noisy sums, as files in a folder that holders have in common: an `Exchange` of an account.

    Args:
        folder: of messages.
        card: of this holder.
        session: all holders.
        own: the holder's own folder, with its keys, and a copy of each message that it wrote.
        earlier: the events of attempts before.
    """

    def __init__(
        self, folder: Path, card: Card, session: HolderSession, own: Path, earlier: tuple[Stage, ...] = ()
    ) -> None:
        agreement, name, self.earlier = card.agreement, card.name, earlier
        self.part = noise_part(agreement.holders, agreement.colluding)
        self.noise_factor = (agreement.holders * self.part) ** 0.5
        self.stated = JointFit(
            names=tuple(session.names), colluding=agreement.colluding, session=session.id,
            attempts=agreement.attempt, without=tuple(agreement.without),
        )  # fmt: skip
        self._folder, self._name, self._session, self._own = folder, name, session, own
        self._before, self._number = _START, 1

    def begin(self) -> None:
        """Refuse to draw a share where one of this round has been handed out.

        Raises:
            ConfigError: a message of the round is there, and no share of it in the checkpoint.
        """
        own, common = (message_path(folder, self._name, self._number) for folder in (self._own, self._folder))
        if os.path.lexists(own) or is_signed(common, self._name, self._session):
            raise ConfigError(
                f"Expected the share of round {self._number} in the checkpoint, as its message has been written, got "
                "none: the checkpoint was removed, or is an older one. A second share would show the first. Begin "
                "anew: all holders run `sfumato model join` again, in new folders."
            )
        if os.path.lexists(common):
            raise ConfigError(f"Expected no {common} yet, got a file that this holder did not sign. Take it away.")

    def masked(self, share: np.ndarray, statistic: Statistic, stage: str, event: int | None) -> np.ndarray:
        """Return a share under one-time pads that go out in the sum over all holders, and what it is of, uint64."""
        context = self._context(statistic, stage, event)
        words = masked(share, context, self._name, self._session, self._keys())
        return np.append(words, _words_of(context))

    def pending(self, words: np.ndarray, statistic: Statistic, stage: str, event: int | None) -> RoundPendingError:
        """Write the message of a round; return the error that ends it.

        Raises:
            ConfigError: the share is of another statistic.
        """
        context, path = self._context(statistic, stage, event), message_path(self._own, self._name, self._number)
        if not np.array_equal(words[-_DIGEST_WORDS:], _words_of(context)):
            raise ConfigError(
                "Expected the statistic of which the checkpoint has a share, got another: this machine, or Sfumato, is "
                "not the one that drew it. Go on where the round began."
            )
        if not path.exists():
            write_bytes(path, packed_message(words[:-_DIGEST_WORDS], context, self._name, self._keys()))
        self.hand_out()
        return RoundPendingError(self._number, str(self._folder / path.name))

    def hand_out(self) -> None:
        """Put the messages that were written so far where the other holders find them, where they are not there."""
        for path in sorted(self._own.glob(f"*{_SUFFIX}")):
            content, place, shared = path.read_bytes(), self._folder / path.name, None
            with contextlib.suppress(UnreadableFileError):
                shared = read_bounded(place, len(content))
            if shared != content:
                write_bytes(place, content)

    def total(self, words: np.ndarray, statistic: Statistic, stage: str, event: int | None) -> np.ndarray:
        """Return the sum of all holders' shares, int64, in the statistic's shape.

        Raises:
            RoundPendingError: a message is not there yet.
            ConfigError, DataError: as `total_of`.
        """
        pending = self.pending(words, statistic, stage, event)  # written, if the call before was killed in between
        shape, context = statistic.zero().shape, self._context(statistic, stage, event)
        size = int(np.prod(shape, dtype=np.int64))
        total = total_of(self._folder, context, {self._name: words[:-_DIGEST_WORDS]}, self._session, size)
        if total is None:
            raise pending
        return total.reshape(shape)

    def agree(self, value: np.ndarray) -> None:
        """Note what a round released."""
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        self._before, self._number = digest([self._before, content]), self._number + 1

    def _keys(self) -> Keys:
        return Keys.read(self._own / KEYS)

    def _context(self, statistic: Statistic, stage: str, event: int | None) -> ShareContext:
        return ShareContext(
            session=self._session.id, number=self._number, stage=stage if event is None else f"{stage} {event}",
            statistic=_digest_of(statistic), before=self._before,
        )  # fmt: skip


def _words_of(context: ShareContext) -> np.ndarray:
    """Return the SHA-256 of what a share is of, uint64, shape (4,)."""
    return np.frombuffer(bytes.fromhex(digest(context.to_dict())), dtype=np.uint64)


def _digest_of(statistic: Statistic) -> str:
    """Return the SHA-256 of what is summed: shape, bounds and steps, and the query, where it has one."""
    arrays: dict[str, np.ndarray] = {}
    query = getattr(statistic, "query", None)
    document = None if query is None else write_query(query, arrays)
    step = np.asarray(statistic.step, dtype=np.float64)
    arrays |= {"step": step}
    contents = {name: hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest() for name, a in arrays.items()}
    bounds = [float(statistic.norm_bound), float(statistic.replace_bound)]
    return digest([statistic.name, list(statistic.zero().shape), bounds, document, contents])
