"""A holder's side of one release of several holders: keys and a card, then rounds until the release is there.

A holder runs the fit of the whole as if all records were its own. Where the fit measures, the holder's sum goes out
with its part of the noise, under pads; the fit ends there, and goes on from its checkpoint when all messages are there.
So every holder has the same noisy sums, and makes the same release of them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from sfumato.data_ledger.process import file_lock
from sfumato.errors import ConfigError, OutputError, RoundPendingError
from sfumato.fitting.arguments import check_resumable
from sfumato.fitting.fit_options import FitOptions
from sfumato.holders.agreement import Agreement, digest
from sfumato.holders.cards import SUFFIX, Card, HolderSession, Keys
from sfumato.holders.messages import SUFFIX as SUFFIX_OF_ROUNDS
from sfumato.holders.messages import (
    ShareContext,
    is_signed,
    masked,
    message_path,
    missing,
    packed_message,
    total_of,
    write_bytes,
)
from sfumato.io.atomic import atomic_path, refuse_existing
from sfumato.measurements.query_form import write_query
from sfumato.mechanisms.noise_shares import noise_part
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.privacy.budget import EstimateCount
from sfumato.privacy.certificate_form import JointFit
from sfumato.records.engine import Statistic
from sfumato.release_front import Release
from sfumato.schema.open_schema import open_schema
from sfumato.schema.schema import Schema, SchemaLike

_STATE, _KEYS, _CHECKPOINT, _SESSION = "holder.json", "keys", "fit.checkpoint", "session"
_DIGEST_WORDS = 4
_START = hashlib.sha256(b"sfumato: nothing released yet").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The state of a holder after a call of `holder_round`.

    Attributes:
        number: of the round whose message is written; 0 before the first, and where the release is there.
        waiting: the holders whose message is not there yet.
        cards: how many cards are not there yet.
        fingerprint: of the session, to be compared with the other holders; None where cards are missing.
        names: of all holders; empty where cards are missing.
        release: the release; None before.
    """

    number: int = 0
    waiting: tuple[str, ...] = ()
    cards: int = 0
    fingerprint: str | None = None
    names: tuple[str, ...] = ()
    release: Release | None = None


def init_holder(
    folder: str | os.PathLike[str],
    schema: SchemaLike,
    *,
    messages: str | os.PathLike[str],
    name: str,
    holders: int,
    epsilon: float,
    delta: float,
    colluding: int = 1,
    target: str | None = None,
    n_public: int | EstimateCount | None = None,
) -> Card:
    """Make a holder's keys and its card, for one release of the records of several holders. Reads no record.

    Args:
        folder: of this holder alone, secret: made here, with its keys; later the checkpoint of the fit.
        schema: public description of the records, the same for all holders. Its `rows` are those of all together.
        messages: a folder for what holders exchange: cards and messages of rounds.
        name: of this holder: up to 40 letters, digits, - and _.
        holders: how many there are, 2 to 100.
        epsilon: of the release, for each person.
        delta: of the release.
        colluding: t, how many of the k holders may put together what they know, and learn no more than the release: 1
            protects against each of them, 0 against all others alone. The noise is √(k/(k − t)) times as large.
        target: column whose classes are modelled apart.
        n_public: the public number of rows of all holders together; by default the schema's. `EstimateCount()` spends
            part of the budget on a noisy count.

    Returns:
        The card, which lies in `messages` as NAME.card.json.

    Raises:
        ConfigError, SchemaError: an argument is outside its domain, or no such fit can go on from a checkpoint.
        OutputError: the folder or the card exists, or cannot be written.
    """
    opened = open_schema(schema)
    synthesizer = MaxEntropy(epsilon=epsilon, delta=delta)
    plan_rows = n_public if n_public is not None else opened.n_records
    synthesizer.plan(opened, target=target, n_public=plan_rows)  # refuses what cannot be planned
    check_resumable(opened, synthesizer.method, resumable=synthesizer.resumable)
    rows = None if isinstance(plan_rows, EstimateCount) else plan_rows
    agreement = Agreement.of(
        opened, epsilon=epsilon, delta=delta, rows=rows, holders=holders, colluding=colluding, target=target
    )
    keys, state, common = Keys.new(), Path(folder), Path(messages)
    card = keys.card(name, agreement)
    if not common.is_dir():
        raise ConfigError(f"Expected the folder of messages {common} to exist, got none. Make it first.")
    refuse_existing(common / f"{name}{SUFFIX}", overwrite=False)
    with atomic_path(state, overwrite=False) as partial:
        partial.mkdir(mode=0o700)
        keys.write(partial / _KEYS)
        card.write(partial / _STATE)
    card.write(common / f"{name}{SUFFIX}")
    return card


def holder_round(
    folder: str | os.PathLike[str],
    data: object,
    *,
    messages: str | os.PathLike[str],
    out: str | os.PathLike[str],
    fingerprint: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    seed: int | None = None,
) -> Round:
    """Go on with one release of the records of several holders, as far as the messages that are there allow.

    Privacy: (ε, δ) for each person whose rows one holder has, against the other holders, and whoever sees all messages,
        as long as no more than `colluding` of the holders work with them. Proof: docs/proofs/holders.md.

    Args:
        folder: that `init_holder` made.
        data: this holder's records, as `fit` takes them.
        messages: the folder of cards and messages, of all holders.
        out: where the release is written, when it is there.
        fingerprint: of the session, as the first call returns it, once the other holders have read out the same by
            another way than the files came. Without it no message is written: who exchanged cards on their way could
            read it.
        ledger: the account of these data; charged once, in the first round.
        seed: for tests only: reproducible noise, and a release that says it is not private.

    Returns:
        What was written, and for whom it waits.

    Raises:
        ConfigError: the cards or a message do not belong to this session or round.
        DataError: a message is damaged or changed, or the records cannot be read.
        BudgetExceededError: the ledger cannot pay. Nothing was read or charged.
        OutputError: a file exists, or cannot be written.
    """
    state, common, out = Path(folder), Path(messages), Path(out)
    if not (state / _STATE).is_file():
        raise ConfigError(f"Expected {state} to be the folder of a holder, got none. `sfumato model join` makes it.")
    with file_lock(state / _STATE):  # two calls at once would draw two shares under the same pads
        return _round(state, data, common, out, fingerprint, ledger, seed)


def _round(
    state: Path,
    data: object,
    common: Path,
    out: Path,
    fingerprint: str | None,
    ledger: str | os.PathLike[str] | None,
    seed: int | None,
) -> Round:
    own = Card.read(state / _STATE)
    cards = [Card.read(path) for path in sorted(common.glob(f"*{SUFFIX}"))]
    if digest(own.to_dict()) not in [digest(card.to_dict()) for card in cards]:  # with the order of columns
        raise ConfigError(f"Expected the card of {own.name!r} in {common}, got none, or another. Put it there again.")
    if len(cards) < own.agreement.holders:
        return Round(cards=own.agreement.holders - len(cards))
    session = HolderSession.of(cards)
    if not _confirmed(state / _SESSION, session, fingerprint, has_ledger=ledger is not None):
        return Round(fingerprint=session.fingerprint, names=tuple(session.names))
    first = FileExchange(common, own, session, state)
    first.hand_out()
    if not (state / _CHECKPOINT).exists():
        first.begin()  # before anything is charged
    if os.path.lexists(out):
        raise OutputError(f"Expected no release yet, got {out}, which exists. Take it, or name another file.")
    _check_keys(state, own, session)
    agreement, schema = own.agreement, Schema.from_dict(dict(own.agreement.schema))
    fit = MaxEntropy(epsilon=agreement.epsilon, delta=agreement.delta)
    options = FitOptions(
        target=agreement.target, n_public=EstimateCount() if agreement.rows is None else agreement.rows,
        checkpoint=state / _CHECKPOINT, ledger=ledger, seed=seed,
    )  # fmt: skip
    while True:
        exchange = FileExchange(common, own, session, state)
        try:
            release = fit.fit_with(options, data, schema, exchange=exchange)
        except RoundPendingError as pending:
            waiting = missing(common, session, own.name, pending.number)
            if waiting:
                return Round(number=pending.number, waiting=tuple(waiting), fingerprint=session.fingerprint)
            continue
        (state / _KEYS).unlink(missing_ok=True)  # what the checkpoint keeps under pads stays so, and needs none
        release.save(out)
        return Round(fingerprint=session.fingerprint, release=release)


def _check_keys(state: Path, own: Card, session: HolderSession) -> None:
    """Refuse keys that are not those of the card, and cards that give no pads, before anything is charged.

    After the release there are no keys, and the checkpoint needs none.
    """
    if not (state / _KEYS).exists() and (state / _CHECKPOINT).exists():
        return
    keys = Keys.read(state / _KEYS)
    if digest(keys.card(own.name, own.agreement).to_dict()) != digest(own.to_dict()):
        raise ConfigError(f"Expected the keys of the card of {own.name!r} in {state}, got others. Put the first back.")
    for card in session.cards:
        if card.name != own.name:
            keys.pad_key(own, card, "")


def _confirmed(path: Path, session: HolderSession, fingerprint: str | None, *, has_ledger: bool) -> bool:
    """Whether the holder has compared the fingerprint of this session, now or before; it is kept.

    Raises:
        ConfigError: the fingerprint is of other cards, or cards or ledger are others than in the first round.
    """
    if fingerprint is not None and fingerprint.split() != session.fingerprint.split():
        raise ConfigError(
            "Expected the fingerprint of the cards that are here, got another. Somebody exchanged a card, or one is "
            "old: ask for the cards again, and compare once more."
        )
    known = f"{session.id} {'with' if has_ledger else 'without'} a ledger"
    if path.is_file():
        if path.read_text(encoding="utf-8") != known:
            raise ConfigError(
                "Expected the cards, and the ledger, that the first round had, got others. Put the first cards back, "
                "and name the same ledger, or none if there was none."
            )
        return True
    if fingerprint is None:
        return False
    write_bytes(path, known.encode())
    return True


@final
class FileExchange:
    """Shares of noisy sums, as files in a folder that holders have in common: an `Exchange` of an account.

    Args:
        folder: of messages.
        card: of this holder.
        session: all holders.
        own: the holder's own folder, with its keys, and a copy of each message that it wrote.
    """

    def __init__(self, folder: Path, card: Card, session: HolderSession, own: Path) -> None:
        agreement, name = card.agreement, card.name
        self.part = noise_part(agreement.holders, agreement.colluding)
        self.noise_factor = (agreement.holders * self.part) ** 0.5
        self.stated = JointFit(names=tuple(session.names), colluding=agreement.colluding, session=session.id)
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
        for path in sorted(self._own.glob(f"*{SUFFIX_OF_ROUNDS}")):
            content, place = path.read_bytes(), self._folder / path.name
            if not place.is_file() or place.read_bytes() != content:
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
        return Keys.read(self._own / _KEYS)

    def _context(self, statistic: Statistic, stage: str, event: int | None) -> ShareContext:
        return ShareContext(
            session=self._session.id, number=self._number, stage=_event(stage, event),
            statistic=_digest_of(statistic), before=self._before,
        )  # fmt: skip


def _words_of(context: ShareContext) -> np.ndarray:
    """Return the SHA-256 of what a share is of, uint64, shape (4,)."""
    return np.frombuffer(bytes.fromhex(digest(context.to_dict())), dtype=np.uint64)


def _event(stage: str, event: int | None) -> str:
    return stage if event is None else f"{stage} {event}"


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
