"""A holder's message of a round: its share of a noisy sum under pads, with what it is of, signed.

    words = (share, 0, 0) + Σ_{j after i} pad(i, j) − Σ_{j before i} pad(i, j)     mod 2^64

The pads of two holders go out in the sum over all, and only there. The last two words have to add up to 0.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from sfumato.engines.pads import TAG_WORDS, pad
from sfumato.errors import ConfigError, DataError
from sfumato.holders.agreement import digest
from sfumato.holders.cards import HolderSession, Keys, bytes_of
from sfumato.io.atomic import atomic_path, write_or_refuse
from sfumato.io.strict_json import parse_object

SUFFIX = ".round"
_FORMAT = "sfumato round 1"
_HEADER_BYTES = 1 << 16
_MOST_BYTES = 1 << 31
_FAULTS = (OSError, safetensors.SafetensorError, ValueError, KeyError, TypeError, RecursionError)
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
    return folder / f"{name}.{number}{SUFFIX}"


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
        return _signed_header(bytes_of(path, _MOST_BYTES), name, session) is not None
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
        packed = bytes_of(path, 8 * (size + TAG_WORDS) + _HEADER_BYTES)
        header = _signed_header(packed, name, session)
        words = safetensors.numpy.load(packed)["words"]
    if header is None:
        raise DataError(
            f"Expected {path} to be a message of the holder {name!r}, got one that is damaged, changed or not signed "
            "with the key of its card. Ask for it again."
        )
    differing = [key for key, value in context.to_dict().items() if header.get(key) != value]
    if differing or header.get("name") != name or header.get("format") != _FORMAT:
        raise ConfigError(f"Expected {path} to be of this round, got one of {_problem(differing)}.")
    if (
        words.dtype != np.uint64
        or words.shape != (size + TAG_WORDS,)
        or (hashlib.sha256(words.tobytes()).hexdigest() != header.get("words"))
    ):
        raise DataError(f"Expected {path} to hold the numbers that {name!r} signed, got others. Ask for it again.")
    return words


def _problem(differing: Sequence[str]) -> str:
    texts = {
        "session": "another session: other cards, or an earlier `sfumato model join`",
        "number": "another round, under a wrong name",
        "stage": "another stage of the plan",
        "statistic": "another statistic: the processors of the holders round differently",
        "before": "a holder who has another release of an earlier round: one of the messages was given out twice",
    }
    return texts[differing[0]] if differing else "another holder"
