"""A holder's side of one release of several holders: keys and a card, then rounds until the release is there.

A holder runs the fit of the whole as if all records were its own. Where the fit measures, the holder's sum goes out
with its part of the noise, under pads; the fit ends there, and goes on from its checkpoint when all messages are there.
So every holder has the same noisy sums, and makes the same release of them.

Where a holder drops out, the others begin a further attempt: new keys for pads, new shares, a new charge. It lies in
folders of its own, inside those of the attempt before, which then is over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.data_ledger.data_ledger import give_up
from sfumato.data_ledger.journal import charge_of, file_lock
from sfumato.errors import ConfigError, OutputError, RoundPendingError
from sfumato.fitting.arguments import FitOptions, check_resumable
from sfumato.holders.cards import SUFFIX, Agreement, Card, HolderSession, Keys, digest
from sfumato.holders.messages import KEYS, FileExchange, missing, write_bytes
from sfumato.io.atomic import atomic_path, refuse_existing
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.privacy.budget import EstimateCount
from sfumato.privacy.plan import Stage
from sfumato.release.files import refuse_place
from sfumato.release_front import Release
from sfumato.schema.open_schema import open_schema
from sfumato.schema.schema import Schema, SchemaLike

_STATE, _CHECKPOINT, _SESSION, _AGAIN = "holder.json", "fit.checkpoint", "session", "again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The state of a holder after a call of `holder_round`.

    Attributes:
        number: of the round whose message is written; 0 before the first, and where the release is there.
        waiting: the holders whose message is not there yet.
        cards: how many cards are not there yet.
        fingerprint: of the session, to be compared with the other holders; None where cards are missing.
        names: of all holders; empty where cards are missing.
        attempt: its number, from 1.
        release: the release; None before.
    """

    number: int = 0
    waiting: tuple[str, ...] = ()
    cards: int = 0
    fingerprint: str | None = None
    names: tuple[str, ...] = ()
    attempt: int = 1
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
        keys.write(partial / KEYS)
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
    without: Sequence[str] = (),
    rows_left: int | None = None,
    seed: int | None = None,
    rows_are_records: bool = False,
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
        ledger: the account of these data; charged once in each attempt, in its first round.
        without: holders who dropped out: the attempt is over, and the others begin a further one, for a charge of its
            own. Nothing is drawn before each of them has named the same holders.
        rows_left: with `without`, the public number of rows (units of linked rows) of the others together, where one of
            all was declared.
        seed: for tests only: reproducible noise, and a release that says it is not private.
        rows_are_records: as `fit`; in every call.

    Returns:
        What was written, and for whom it waits.

    Raises:
        ConfigError: the cards or a message do not belong to this session or round.
        DataError: a message is damaged or changed, or the records cannot be read.
        BudgetExceededError: the ledger cannot pay. Nothing was read or charged.
        OutputError: a file exists, or cannot be written.
    """
    if not (Path(folder) / _STATE).is_file():
        raise ConfigError(f"Expected {folder} to be the folder of a holder, got none. `sfumato model join` makes it.")
    with file_lock(Path(folder) / _STATE):  # two calls at once would draw two shares under the same pads
        attempts = [_Attempt.read(Path(folder), Path(messages))]
        first = attempts[0].session
        if first is None:
            return Round(cards=attempts[0].missing)
        if not _confirmed(attempts[0].folder / _SESSION, first, fingerprint, has_ledger=ledger is not None):
            return Round(fingerprint=first.fingerprint, names=tuple(first.names))
        while (last := attempts[-1]).begins_again(first, without, rows_left):
            if ledger is not None and (charged := charge_of(last.folder / _CHECKPOINT)) is not None:
                give_up(ledger, charged)
            attempts.append(_Attempt.read(last.folder / _AGAIN, last.messages / _AGAIN, first))
        last.refuse_others_who_left(first)
        if last.session is None:
            return Round(cards=last.missing, attempt=len(attempts))
        result = _round(attempts, last.session, data, Path(out), ledger, seed, rows_are_records=rows_are_records)
        return replace(result, attempt=len(attempts), fingerprint=last.session.fingerprint)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt at a release: the holder's folder, that of messages, its card, and the session of all cards."""

    folder: Path
    messages: Path
    own: Card
    missing: int
    session: HolderSession | None

    @classmethod
    def read(cls, folder: Path, messages: Path, first: HolderSession | None = None) -> _Attempt:
        """Read an attempt; of one after the first session, cards of those who are not in it are refused.

        Raises:
            ConfigError: the own card is not there, or cards make no session.
        """
        own = Card.read(folder / _STATE)
        cards = [Card.read(path) for path in sorted(messages.glob(f"*{SUFFIX}"))]
        if digest(own.to_dict()) not in [digest(card.to_dict()) for card in cards]:  # with the order of columns
            raise ConfigError(
                f"Expected the card of {own.name!r} in {messages}, got none, or another. Put it there again."
            )
        for card in cards:
            if first is not None and not (first.has_key_of(card) and card.name not in own.agreement.without):
                raise ConfigError(
                    f"Expected cards of those who go on in {messages}, got one of {card.name!r}, who does not, or "
                    "signed with another key than its first card. Take it away."
                )
        lacking = own.agreement.holders - len(cards)
        return cls(folder, messages, own, lacking, None if lacking > 0 else HolderSession.of(cards))

    def begins_again(self, first: HolderSession, without: Sequence[str], rows_left: int | None) -> bool:
        """Whether a further attempt follows: begun before, or begun here without some of the holders of this one.

        Its keys are new, and those of this attempt are removed: nothing of it can be read, or sent, any more.
        """
        further, agreement = self.folder / _AGAIN, self.own.agreement
        if not further.exists():
            dropped = sorted(set(without) - set(agreement.without))
            if not dropped:
                return False
            if not set(dropped) <= set(first.names) - {self.own.name}:
                raise ConfigError(f"Expected names of other holders to go on without, got {', '.join(dropped)}.")
            if (rows_left is None) != (agreement.rows is None):
                raise ConfigError(
                    "Expected the public number of rows of those who go on (--rows-left) where one of all was "
                    "declared, and none where it is estimated."
                )
            if (self.folder / _CHECKPOINT).exists() and not (self.folder / KEYS).exists():
                raise ConfigError("Expected a release that waits for other holders, got one that is there. Take it.")
            keys = Keys.read(self.folder / KEYS).further()
            card = keys.card(self.own.name, agreement.again(first.id, dropped, rows_left))
            with atomic_path(further, overwrite=False) as partial:
                partial.mkdir(mode=0o700)
                keys.write(partial / KEYS)
                card.write(partial / _STATE)
        place = self.messages / _AGAIN / f"{self.own.name}{SUFFIX}"
        place.parent.mkdir(exist_ok=True)
        if not os.path.lexists(place):
            Card.read(further / _STATE).write(place)
        (self.folder / KEYS).unlink(missing_ok=True)
        return True

    def refuse_others_who_left(self, first: HolderSession) -> None:
        """Refuse to draw, send or read anything where another holder says that this attempt is over.

        Raises:
            ConfigError: names it, and without whom it goes on.
        """
        for path in sorted((self.messages / _AGAIN).glob(f"*{SUFFIX}")):
            card = Card.read(path)
            stated = card.agreement
            if first.has_key_of(card) and (stated.after, stated.attempt) == (first.id, self.own.agreement.attempt + 1):
                raise ConfigError(
                    f"Expected holders who go on together, got {card.name!r}, who goes on without "
                    f"{', '.join(stated.without)}. Name the same holders with --without, if you "
                    "are none of them. Nothing is read of this attempt any more."
                )

    def events(self) -> tuple[Stage, ...]:
        """The events of a whole fit by this attempt, under names of their own."""
        agreement = self.own.agreement
        plan = MaxEntropy(epsilon=agreement.epsilon, delta=agreement.delta).plan(
            Schema.from_dict(dict(agreement.schema)), **agreement.options()
        )
        return tuple(replace(stage, name=f"{stage.name}, attempt {agreement.attempt}") for stage in plan.stages)


def _round(
    attempts: Sequence[_Attempt],
    session: HolderSession,
    data: object,
    out: Path,
    ledger: str | os.PathLike[str] | None,
    seed: int | None,
    *,
    rows_are_records: bool,
) -> Round:
    """Go on with the last attempt."""
    state, common, own = attempts[-1].folder, attempts[-1].messages, attempts[-1].own
    first = FileExchange(common, own, session, state)
    first.hand_out()
    if not (state / _CHECKPOINT).exists():
        first.begin()  # before anything is charged
    if os.path.lexists(out):
        raise OutputError(f"Expected no release yet, got {out}, which exists. Take it, or name another file.")
    refuse_place(out, overwrite=False)
    own.agreement.require_here()
    _check_keys(state, own, session)
    agreement, schema = own.agreement, Schema.from_dict(dict(own.agreement.schema))
    fit = MaxEntropy(epsilon=agreement.epsilon, delta=agreement.delta)
    options = FitOptions(
        **agreement.options(), checkpoint=state / _CHECKPOINT, ledger=ledger, seed=seed,
        rows_are_records=rows_are_records,
    )  # fmt: skip
    earlier = tuple(stage for attempt in attempts[:-1] for stage in attempt.events())
    while True:
        exchange = FileExchange(common, own, session, state, earlier)
        try:
            release = fit.fit_with(options, data, schema, exchange=exchange)
        except RoundPendingError as pending:
            waiting = missing(common, session, own.name, pending.number)
            if waiting:
                return Round(number=pending.number, waiting=tuple(waiting))
            continue
        (state / KEYS).unlink(missing_ok=True)  # what the checkpoint keeps under pads stays so, and needs none
        release.save(out)
        return Round(release=release)


def _check_keys(state: Path, own: Card, session: HolderSession) -> None:
    """Refuse keys that are not those of the card, and cards that give no pads, before anything is charged.

    After the release there are no keys, and the checkpoint needs none.
    """
    if not (state / KEYS).exists() and (state / _CHECKPOINT).exists():
        return
    keys = Keys.read(state / KEYS)
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
        if path.read_bytes() != known.encode():
            raise ConfigError(
                "Expected the cards, and the ledger, that the first round had, got others. Put the first cards back, "
                "and name the same ledger, or none if there was none."
            )
        return True
    if fingerprint is None:
        return False
    write_bytes(path, known.encode())
    return True
