"""One release of several holders: the bits of one fit of all records, whatever happens to files on the way."""

import contextlib
import json
import os
import shutil
import stat
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy

import sfumato.fitting.account as accounts
from fixtures.joint_fits import FITS, NAMES, SCHEMA, TABLES, Site, central_fit, kill_first_writes
from fixtures.sampling import few_simulations
from sfumato import MaxEntropy, create_ledger, load, read_ledger
from sfumato.errors import ConfigError, DataError, OutputError, SfumatoError
from sfumato.holders import holder_round, init_holder
from sfumato.holders.cards import Agreement, Card, HolderSession, Keys
from sfumato.holders.messages import ShareContext, masked, message_path, packed_message
from sfumato.mechanisms.noise_shares import noise_share

__all__ = ["few_simulations"]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_the_release_has_the_bits_of_one_fit_with_the_same_noise(tmp_path, monkeypatch):
    releases = Site(tmp_path, colluding=0).finished()
    central = central_fit(monkeypatch, TABLES.values(), SCHEMA)
    assert {r.hashes.arrays for r in releases.values()} == {central.hashes.arrays}


@pytest.mark.parametrize("colluding", [1, 2])
def test_releases_know_the_noise_of_all_holders(tmp_path, colluding):
    release = Site(tmp_path, colluding=colluding).finished()["west"]
    stages = {stage.name: stage.noise_multiplier for stage in release.certificate.events}
    assert stages == {s.name: s.noise_multiplier for s in MaxEntropy(epsilon=1.0, delta=1e-6).plan(SCHEMA).stages}
    for own in release.measurements:
        expected = stages[own.origin.stage] * own.origin.norm_bound * np.sqrt(3 / (3 - colluding))
        assert own.noise_std == pytest.approx(expected)


def test_all_holders_have_the_same_release_and_it_says_who_they_are(site):
    releases = site.finished()
    assert len({r.hashes for r in releases.values()}) == 1
    joint = load(site.folder / "west.sfm").certificate.joint
    assert (joint.names, joint.colluding) == (NAMES, 1)
    text = " ".join(releases["north"].certificate.assumptions)
    assert "records of 3 holders: north, south, west" in text
    assert "no two holders" in text


def test_noise_that_does_not_fit_the_holders_is_refused(site, tmp_path):
    release = site.finished()["north"]
    forged = replace(release.certificate, joint=replace(release.certificate.joint, colluding=0))
    with pytest.raises(SfumatoError, match="other noise"):
        write_and_load(replace(release, certificate=forged), tmp_path / "f.sfm")


def write_and_load(release, path):
    release.save(path)
    return load(path)


def test_nothing_goes_out_before_the_fingerprint_is_compared(site):
    assert not site.round("north", fingerprint=None).number
    with pytest.raises(ConfigError, match="fingerprint"):
        site.round("north", fingerprint="0000 " * 10)
    assert not list(site.messages.glob("*.round"))
    assert not (site.folder / "north" / "fit.checkpoint").exists()


def test_rows_that_a_program_computes_need_the_holders_word(tmp_path):
    tables = {name: pa.Table.from_pandas(table).to_batches for name, table in TABLES.items()}
    site = Site(tmp_path, tables=tables, ledger=True)
    with pytest.raises(ConfigError, match="a program computes"):
        site.round("north")
    assert not read_ledger(site.ledgers["north"]).fits
    assert site.round("north", rows_are_records=True).number == 1
    assert len(read_ledger(site.ledgers["north"]).fits) == 1


def test_cards_that_change_are_refused(site):
    site.round("north")
    card = Card.read(site.messages / "south.card.json")
    (site.messages / "south.card.json").unlink()
    Keys.new().card("south", card.agreement).write(site.messages / "south.card.json")
    with pytest.raises(ConfigError):
        site.round("north")
    with pytest.raises(ConfigError):
        site.round("north", fingerprint=None)


TURNED = {"columns": dict(reversed(SCHEMA["columns"].items())), "rows": 900}


@pytest.mark.parametrize(
    ("fact", "names"),
    [
        ({"epsilon": 2.0}, "epsilon"),
        ({"schema": {**SCHEMA, "rows": 901}}, "rows"),
        ({"schema": TURNED}, "schema"),
        ({"colluding": 0}, "colluding"),
        ({}, "machine"),
    ],
)
def test_holders_who_agreed_on_something_else_are_refused(site, monkeypatch, fact, names):
    if not fact:
        monkeypatch.setattr("sfumato.holders.cards.machine", lambda: b"another")
    options = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-6, "messages": site.messages, "holders": 3, **fact}
    (site.messages / "south.card.json").unlink()
    init_holder(site.folder / "other", options.pop("schema"), name="south", **options)
    with pytest.raises(ConfigError, match=f"'south' to agree on .*{names}"):
        site.round("north", fingerprint=None)


@pytest.mark.parametrize("fact", ["machine", "installed_versions"])
@pytest.mark.parametrize("who", ["own", "other"])
def test_another_kind_of_machine_is_refused_before_anything_is_drawn_or_charged(tmp_path, monkeypatch, fact, who):
    """Floats are rounded otherwise there: of the holder itself, after its card was made, or of another one."""
    site, other = Site(tmp_path, ledger=True), {"machine": lambda: b"x", "installed_versions": lambda: {"python": "1"}}
    monkeypatch.setattr(f"sfumato.holders.cards.{fact}", other[fact])
    if who == "other":
        (site.messages / "south.card.json").unlink()
        init_holder(tmp_path / "new", SCHEMA, messages=site.messages, name="south", holders=3, epsilon=1.0, delta=1e-6)
        monkeypatch.undo()
        site.fingerprint = None
    with pytest.raises(ConfigError, match="machine"):
        site.round("north")
    assert not read_ledger(site.ledgers["north"]).fits
    assert not list(tmp_path.rglob("*.round"))
    assert not (tmp_path / "north" / "fit.checkpoint").exists()


def alter(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def of_another_session(site, path):
    other = Site(site.folder / "again")
    other.round("south")
    shutil.copy(other.messages / path.name, path)


def forged(site, path):
    """Other numbers, with a header that says so, by somebody who has not the key."""
    packed = path.read_bytes()
    length = int.from_bytes(packed[:8], "little")
    header = json.loads(json.loads(json.loads(packed[8 : 8 + length])["__metadata__"]["message"])[0])
    place = ShareContext(**{name: header[name] for name in ShareContext.__slots__})
    words = safetensors.numpy.load(packed)["words"] + np.uint64(5)
    path.write_bytes(packed_message(words, place, "south", Keys.new()))


DAMAGE = {
    "forged": forged,
    "altered": lambda site, path: alter(path),
    "cut": lambda site, path: path.write_bytes(path.read_bytes()[:-8]),
    "empty": lambda site, path: path.write_bytes(b""),
    "text": lambda site, path: path.write_text("hello"),
    "doubled": lambda site, path: shutil.copy(message_path(site.messages, "north", 1), path),
    "another session": of_another_session,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_message_that_is_not_what_it_has_to_be_is_refused(tmp_path, damage):
    site = Site(tmp_path, ledger=True)
    for name in NAMES:
        site.round(name)
    path = message_path(site.messages, "south", 1)
    kept = path.read_bytes()
    DAMAGE[damage](site, path)
    before = site.ledgers["north"].read_bytes().count(b'"charge"')
    with pytest.raises((ConfigError, DataError), match="south"):
        site.round("north")
    path.write_bytes(kept)
    assert len(site.finished()) == 3
    assert site.ledgers["north"].read_bytes().count(b'"charge"') == before


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_missing_message_is_waited_for_and_written_again(site, rounds):
    for _ in range(rounds):
        site.round("south")
        site.round("west")
        if rounds == 2:
            site.round("north")
    lost = message_path(site.messages, "south", 1)
    content = lost.read_bytes()
    lost.unlink()
    if rounds == 1:
        assert site.round("north").waiting == ("south",)
    site.round("south")
    assert lost.read_bytes() == content
    assert len(site.finished()) == 3


def test_a_message_of_an_earlier_round_is_refused(site):
    for _ in range(2):
        for name in NAMES:
            site.round(name)
    shutil.copy(message_path(site.messages, "south", 1), message_path(site.messages, "south", 2))
    with pytest.raises(ConfigError, match="another round"):
        site.round("north")


def test_a_call_that_is_killed_at_any_write_goes_on(tmp_path, monkeypatch):
    """Each renaming of an output fails once: no share is drawn twice, no ledger charged twice, the release is one."""
    site, contents = Site(tmp_path, ledger=True), kill_first_writes(monkeypatch)
    for _ in range(60):
        for name in NAMES:
            with contextlib.suppress(KeyboardInterrupt, OutputError):  # the release is there, and its call ended
                site.round(name)
    assert len({load(site.folder / f"{name}.sfm").hashes.arrays for name in NAMES}) == 1
    messages = {path: kept for path, kept in contents.items() if path.suffix == ".round"}
    assert len(messages) == 2 * 2 * len(NAMES)  # the holder's own copies too
    assert all(len(kept) == 1 for kept in messages.values())
    assert all(path.read_bytes().count(b'"method"') == 1 for path in site.ledgers.values())


@pytest.mark.parametrize("number", [1, 2])
def test_the_last_holder_is_killed_before_its_message_is_written(tmp_path, monkeypatch, number):
    """All other messages are there, so that it could go on at once: they need its own."""
    site, real = Site(tmp_path), Path.replace
    if number == 2:
        for name in NAMES:
            site.round(name)
    site.round("south")
    site.round("west")

    def killed(source, target):
        if target.name == f"north.{number}.round":
            raise KeyboardInterrupt
        return real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            site.round("north")
    assert len(site.finished()) == 3


def test_a_file_in_place_of_the_first_message_is_told_before_the_charge(tmp_path):
    site = Site(tmp_path, ledger=True)
    planted = message_path(site.messages, "north", 1)
    planted.write_bytes(b"?")
    with pytest.raises(ConfigError, match="did not sign"):
        site.round("north")
    assert b'"method"' not in site.ledgers["north"].read_bytes()
    planted.unlink()
    assert site.round("north").number == 1
    planted.write_bytes(b"?")
    site.round("north")
    assert planted.stat().st_size > 1


def test_under_a_ledger_a_copied_folder_draws_no_second_share(tmp_path):
    site = Site(tmp_path, ledger=True)
    for name in NAMES:
        site.round(name)
    shutil.copytree(site.folder / "north", site.folder / "copy")
    site.round("north")
    (site.folder / "copy").rename(site.folder / "moved")
    shutil.rmtree(site.folder / "north")
    (site.folder / "moved").rename(site.folder / "north")
    with pytest.raises(ConfigError, match="checkpoint"):
        site.round("north")


def copied(site, name="north"):
    """A copy of a holder's folder; it and the folder go on, each as if the other were not there."""
    copy = shutil.copytree(site.folder / name, site.folder / f"copy of {name}")
    return copy, lambda folder: holder_round(
        folder, site.tables[name], messages=site.messages, out=site.folder / "out.sfm", ledger=site.ledgers[name],
        fingerprint=site.fingerprint,
    )  # fmt: skip


@pytest.mark.parametrize("first", ["folder", "copy"])
@pytest.mark.parametrize("moment", ["before the first round", "before the ledger has the charge"])
def test_of_two_copies_under_one_ledger_one_is_charged(tmp_path, monkeypatch, moment, first):
    """Though the common folder forgets what the first one wrote."""
    site = Site(tmp_path, ledger=True)
    if moment != "before the first round":
        with monkeypatch.context() as patch:
            patch.setattr("sfumato.data_ledger.data_ledger.write_ledger_file", killed)
            with pytest.raises(KeyboardInterrupt):
                site.round("north")
        assert (site.folder / "north" / "fit.checkpoint").exists()
    copy, go_on = copied(site)
    folders = [site.folder / "north", copy][:: 1 if first == "folder" else -1]
    assert go_on(folders[0]).number == 1
    message = message_path(site.messages, "north", 1)
    content = message.read_bytes()
    message.unlink()
    with pytest.raises(ConfigError, match="second one"):
        go_on(folders[1])
    assert not message.exists()
    assert not message_path(folders[1], "north", 1).exists()
    [fit] = read_ledger(site.ledgers["north"]).fits
    assert fit.share == f"{HolderSession.of(cards_of(site)).id} 1"
    assert go_on(folders[0]).number == 1
    assert message.read_bytes() == content


def killed(*_, **__):
    raise KeyboardInterrupt


def cards_of(site):
    return [Card.read(path) for path in site.messages.glob("*.card.json")]


def test_what_is_secret_is_readable_by_its_owner_alone(site):
    site.round("north")
    own = site.folder / "north"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert {stat.S_IMODE((own / name).stat().st_mode) for name in ("keys", "fit.checkpoint")} == {0o600}


AGREED = Agreement(
    schema={}, epsilon=1.0, delta=1e-6, rows=9, holders=3, colluding=1, target=None, versions={}, machine=""
)
PLACE = ShareContext(session="s", number=1, stage="a", statistic="b", before="c")


def three_holders():
    keys = {name: Keys.new() for name in NAMES}
    return keys, HolderSession.of([own.card(name, AGREED) for name, own in keys.items()])


def test_a_message_shows_nothing_of_its_share():
    """Fresh keys, the same share of zeros or of large numbers: words are uniform, and do not go along with it."""
    (keys, session), words = three_holders(), []
    shares = [np.zeros(4_000, dtype=np.int64), np.full(4_000, 1 << 40), np.arange(4_000)]
    for i, share in enumerate(shares):
        words.append(masked(share, replace(PLACE, number=i), "north", session, keys["north"])[:4_000])
        bits = np.unpackbits(words[-1].view(np.uint8)).reshape(4_000, 64).mean(axis=0)
        assert np.abs(bits - 0.5).max() < 6 * 0.5 / np.sqrt(4_000)
    difference = np.unpackbits((words[1] - words[0]).view(np.uint8)).mean()
    assert difference == pytest.approx(0.5, abs=6 * 0.5 / np.sqrt(256_000))
    total = np.sum([masked(shares[1], PLACE, n, session, own) for n, own in keys.items()], axis=0, dtype=np.uint64)
    assert (total[:4_000] == 3 << 40).all()
    assert not total[4_000:].any()


PRIME = 2**255 - 19


@pytest.mark.parametrize("made", ["upper case", "high bit", "inverse"])
def test_a_key_made_from_another_ones_takes_no_pad_off(made):
    """Cards whose shared secrets are those of north: written otherwise, or beside a point of order 2."""
    keys = {name: Keys.new() for name in NAMES}
    cards = {name: own.card(name, AGREED) for name, own in keys.items()}
    number = int.from_bytes(bytes.fromhex(cards["north"].exchange_key), "little")
    copies = {
        "upper case": cards["north"].exchange_key.upper(),
        "high bit": (number | 1 << 255).to_bytes(32, "little").hex(),
        "inverse": pow(number, -1, PRIME).to_bytes(32, "little").hex(),
    }
    session = HolderSession.of([cards["north"], cards["south"], replace(cards["west"], exchange_key=copies[made])])
    share = np.arange(500)
    words = masked(share, PLACE, "south", session, keys["south"])[:500]
    assert np.unpackbits((words - share.view(np.uint64)).view(np.uint8)).mean() == pytest.approx(0.5, abs=0.02)


def test_holders_who_were_told_different_things_have_no_pad_in_common():
    keys, session = three_holders()
    share = np.full(200, 7)
    for other in ({"before": "x"}, {"statistic": "x"}, {"stage": "x"}, {"number": 2}, {"session": "x"}):
        places = {"north": PLACE, "south": replace(PLACE, **other), "west": PLACE}
        words = [masked(share, places[n], n, session, own)[:200] for n, own in keys.items()]
        for some in (words, words[:2], [words[0], words[2]]):
            total = np.sum(some, axis=0, dtype=np.uint64)
            assert np.unpackbits(total.view(np.uint8)).mean() == pytest.approx(0.5, abs=0.03)


def test_a_second_share_of_a_round_is_refused(tmp_path):
    site = Site(tmp_path, ledger=True)
    site.round("north")
    (site.folder / "north" / "fit.checkpoint").unlink()
    with pytest.raises(ConfigError, match="second share"):
        site.round("north")


def test_between_rounds_the_ledger_says_that_the_fit_waits_for_others(tmp_path):
    site = Site(tmp_path, ledger=True)
    for _ in range(2):
        for name in NAMES:
            site.round(name)
        [fit] = read_ledger(site.ledgers["north"]).fits
        assert (fit.status, fit.ended) == ("waiting", None)
    site.finished()
    [fit] = read_ledger(site.ledgers["north"]).fits
    assert fit.status == "finished"


def test_an_older_checkpoint_draws_no_second_share(site):
    for name in NAMES:
        site.round(name)
    older = (site.folder / "north" / "fit.checkpoint").read_bytes()
    assert site.round("north").number == 2
    (site.folder / "north" / "fit.checkpoint").write_bytes(older)
    with pytest.raises(ConfigError, match="second share"):
        site.round("north")


def test_two_calls_at_once_draw_one_share(tmp_path, monkeypatch):
    site, draws = Site(tmp_path, ledger=True), []
    monkeypatch.setattr(
        accounts, "noise_share", lambda *args, **how: (draws.append(how["stage"]), noise_share(*args, **how))[1]
    )
    threads = [threading.Thread(target=site.round, args=("north",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert draws == ["marginals"]


def test_a_card_that_gives_no_secret_is_refused_before_the_charge(tmp_path):
    site = Site(tmp_path, ledger=True)
    card = Card.read(site.messages / "south.card.json")
    (site.messages / "south.card.json").unlink()
    keys = Keys.new()
    card = replace(keys.card("south", card.agreement), exchange_key="00" * 32, signature="")
    replace(card, signature=keys.signing.sign(card.stated).hex()).write(site.messages / "south.card.json")
    site.fingerprint = site.round("north", fingerprint=None).fingerprint
    with pytest.raises(ConfigError, match="south"):
        site.round("north")
    assert b'"method"' not in site.ledgers["north"].read_bytes()


def test_a_ledger_cannot_be_named_late(site):
    site.round("north")
    create_ledger(site.folder / "late", epsilon=3, delta=1e-5)
    site.ledgers = {"north": site.folder / "late"}
    with pytest.raises(ConfigError, match="ledger"):
        site.round("north", seed=0)


def test_a_pipe_in_place_of_a_card_or_message_is_refused(site):
    for name in NAMES:
        site.round(name)
    path = message_path(site.messages, "south", 1)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="south"):
        site.round("north")


def test_after_the_release_there_are_no_keys(site):
    site.finished()
    assert not (site.folder / "north" / "keys").exists()
    with pytest.raises(OutputError, match="Take it"):
        site.round("north")


@pytest.mark.parametrize("kind", FITS)
def test_shapes_of_data_and_facts(tmp_path, kind):
    schema, options, tables = FITS[kind]
    releases = Site(tmp_path, tables=tables, schema=schema, **options).finished()
    assert len({r.hashes.arrays for r in releases.values()}) == 1
    assert len(releases["north"].sample(20, seed=1)) > 0


def test_columns_to_discover_are_refused_before_anything_is_written(tmp_path):
    schema = {"columns": {"age": {"kind": "integer", "discover": True}}, "rows": 900}
    with pytest.raises(SfumatoError):
        Site(tmp_path, schema=schema)
    assert not (tmp_path / "north").exists()
