"""A holder drops out: the others begin a further attempt, for a charge of its own, and nothing of the first is read."""

import contextlib
import shutil
from dataclasses import replace

import pytest

from fixtures.command_line import call
from fixtures.joint_fits import FITS, NAMES, SCHEMA, TABLES, Site, central_fit, kill_first_writes, table
from fixtures.sampling import few_simulations
from sfumato import EstimateCount, load, read_ledger
from sfumato.data_ledger.ledger_check import check_releases
from sfumato.errors import ConfigError, DataError, OutputError, SfumatoError
from sfumato.holders.cards import Card, Keys
from sfumato.holders.messages import message_path
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.certificate_form import JointFit
from sfumato.privacy.plan import Neighbours

__all__ = ["call", "few_simulations"]
LEFT = ("north", "south")
WITHOUT = {"without": ["west"], "rows_left": 600}


def dropped(folder, rounds=1, **options):
    """Three holders; the last is there for so many rounds less one, and then no more."""
    site = Site(folder, **options)
    for names in [("west", *LEFT)] * (rounds - 1) + [LEFT]:
        for name in names:
            site.round(name)
    return site


def gone_on(site, **options):
    """The releases of those who are left, by name."""
    site.round("north", **{**WITHOUT, **options})
    site.round("south", **{**WITHOUT, **options})
    site.tables = {name: site.tables[name] for name in LEFT}
    return site.finished()


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_others_go_on_and_both_attempts_are_charged_and_certified(tmp_path, rounds):
    site = dropped(tmp_path, rounds, ledger=True)
    assert site.round("north", **WITHOUT).cards == 1
    assert [fit.status for fit in read_ledger(site.ledgers["north"]).fits] == ["failed"]
    releases = gone_on(site)
    assert len({release.hashes.arrays for release in releases.values()}) == 1
    certificate = load(tmp_path / "north.sfm").certificate
    joint = certificate.joint
    assert (joint.names, joint.without, joint.attempts, certificate.n_public) == (LEFT, ("west",), 2, 600)
    fits = read_ledger(site.ledgers["north"]).fits
    assert [fit.status for fit in fits] == ["failed", "finished"]
    both = [(s.noise_multiplier, s.count) for fit in fits for s in fit.plan.stages]
    assert [(s.noise_multiplier, s.count) for s in certificate.events] == both
    paid = account_of_fits([fit.plan for fit in fits], 1e-6, Neighbours.ADD_REMOVE).epsilon
    assert certificate.epsilon == pytest.approx(paid, rel=1e-4)
    assert 1.3 < certificate.epsilon < 1.6
    certificate.verify()
    assert [c.standing for c in check_releases(site.ledgers["north"], [tmp_path / "north.sfm"])] == ["known"]
    assert "1 attempts that ended for want of west" in " ".join(certificate.assumptions)


def test_the_further_attempt_has_the_bits_of_one_fit_of_those_who_are_left(tmp_path, monkeypatch):
    releases = gone_on(dropped(tmp_path, colluding=0))
    central = central_fit(monkeypatch, [TABLES[name] for name in LEFT], {"columns": SCHEMA["columns"]}, n_public=600)
    assert {release.hashes.arrays for release in releases.values()} == {central.hashes.arrays}


def test_on_the_command_line(call, tmp_path):
    site = dropped(tmp_path, ledger=True)
    TABLES["north"].to_csv(tmp_path / "north.csv", index=False)
    arguments = ["model", "round", tmp_path / "north", tmp_path / "north.csv", "--messages", site.messages]
    arguments += ["--out", tmp_path / "all.sfm", "--ledger", site.ledgers["north"]]
    state = call(*arguments, "--without", "west", "--rows-left", 600, "--json").json
    assert (state["attempt"], state["cards"], state["round"], state["written"]) == (2, 1, 0, None)
    assert "name the same ones --without" in call(*arguments).out
    assert "failed" in call("ledger", "show", site.ledgers["north"]).out


def test_fewer_units_of_linked_rows_go_on(tmp_path):
    schema, options, tables = FITS["linked rows"]
    release = gone_on(dropped(tmp_path, schema=schema, tables=tables, **options), rows_left=200)["south"]
    assert (release.certificate.n_public, release.certificate.joint.attempts) == (200, 2)
    assert len(release.sample(20, seed=1)) > 0


def test_an_estimated_number_of_rows_is_estimated_again(tmp_path):
    site = dropped(tmp_path, schema={"columns": SCHEMA["columns"]}, n_public=EstimateCount())
    with pytest.raises(ConfigError, match="--rows-left"):
        site.round("north", **WITHOUT)
    assert gone_on(site, rows_left=None)["north"].certificate.n_public_source == "estimated"


def test_a_message_that_comes_late_opens_nothing(tmp_path):
    """All messages of the round are there: of those who left, of who has not said so, and of who dropped out."""
    site = dropped(tmp_path, ledger=True)
    late = Site(tmp_path / "copy")
    site.round("west")
    message = message_path(site.messages, "west", 1)
    content = message.read_bytes()
    message.unlink()
    site.round("north", **WITHOUT)
    charges = site.ledgers["south"].read_bytes()
    for place in (message, message_path(site.messages / "again", "west", 1)):
        place.write_bytes(content)
    for name in ("south", "west"):
        with pytest.raises(ConfigError, match=r"north.*without west"):
            site.round(name)
    assert site.round("north").cards == 1
    assert site.ledgers["south"].read_bytes() == charges
    assert not list(tmp_path.glob("*.sfm"))
    assert not (tmp_path / "north" / "keys").exists()
    with pytest.raises(ConfigError, match="of other holders"):
        late.round("north", without=["east"], rows_left=600)
    assert gone_on(site)["north"].certificate.joint.names == LEFT


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("damage", ["missing", "first attempt", "other holder", "altered"])
def test_each_message_of_the_further_attempt_is_needed_as_it_was_sent(tmp_path, number, damage):
    site = dropped(tmp_path, 2, ledger=True)
    for name in ("south", "north", "south"):
        site.round(name, **WITHOUT)  # south goes on to the second round at once
    path = message_path(site.messages / "again", "south", number)
    sent = path.read_bytes()
    if damage == "missing":
        path.unlink()
        assert site.round("north").waiting == ("south",)
    else:
        contents = {
            "first attempt": message_path(site.messages, "south", number).read_bytes(),
            "other holder": message_path(site.messages / "again", "north", 1).read_bytes(),
            "altered": sent[:-1] + bytes([sent[-1] ^ 1]),
        }
        path.write_bytes(contents[damage])
        with pytest.raises((ConfigError, DataError), match="south"):
            site.round("north")
    path.write_bytes(sent)
    assert len(gone_on(site)) == 2
    assert len(read_ledger(site.ledgers["north"]).fits) == 2


def test_a_message_of_the_further_attempt_is_none_of_the_first(tmp_path):
    site = dropped(tmp_path / "site")
    shutil.copytree(tmp_path / "site", tmp_path / "before")
    gone_on(site)
    sent = message_path(site.messages / "again", "south", 1)
    site.folder, site.messages, site.tables = tmp_path / "before", tmp_path / "before" / "shared", TABLES
    shutil.copy(sent, message_path(site.messages, "south", 1))
    with pytest.raises(ConfigError, match=r"south.*another session"):
        site.round("west")


def further_card(site, keys, name="south", **facts):
    """A card of the further attempt, as the holder of these keys would write it."""
    agreement = Card.read(site.messages / "again" / "north.card.json").agreement
    keys.card(name, replace(agreement, **facts)).write(site.messages / "again" / f"{name}.card.json")


@pytest.mark.parametrize("card", ["key", "dropped", "rows", "attempt", "pads of another"])
def test_cards_that_the_first_session_does_not_vouch_for_are_refused_before_a_charge(tmp_path, card):
    site = dropped(tmp_path, ledger=True)
    site.round("north", **WITHOUT)
    own = Keys.read(tmp_path / "south" / "keys")
    if card == "dropped":
        further_card(site, Keys.read(tmp_path / "west" / "keys"), name="west")
    else:
        facts = {"rows": {"rows": 601}, "attempt": {"attempt": 3}}.get(card, {})
        further_card(site, Keys.new() if card == "key" else own.further(), **facts)
    if card == "pads of another":  # of who passes cards on, and could then read what is meant for south
        path = site.messages / "again" / "south.card.json"
        before, other = Card.read(path).exchange_key, Card.read(site.messages / "west.card.json").exchange_key
        path.write_text(path.read_text().replace(before, other))
    with pytest.raises(ConfigError):
        site.round("north")
    assert len(read_ledger(site.ledgers["north"]).fits) == 1


def test_pads_of_a_further_attempt_are_of_new_keys_that_the_old_ones_vouch_for(tmp_path):
    site = dropped(tmp_path)
    before, first = (tmp_path / "north" / "keys").read_text(), Card.read(site.messages / "north.card.json")
    site.round("north", **WITHOUT)
    after, card = (
        (tmp_path / "north" / "again" / "keys").read_text(),
        Card.read(site.messages / "again" / "north.card.json"),
    )
    assert (before[:64] != after[:64], before[64:] == after[64:]) == (True, True)
    assert (first.exchange_key != card.exchange_key, first.signing_key == card.signing_key) == (True, True)


def test_a_further_attempt_that_was_removed_is_not_begun_once_more(tmp_path):
    site = dropped(tmp_path, ledger=True)
    site.round("south", **WITHOUT)
    site.round("north", **WITHOUT)
    shutil.rmtree(tmp_path / "north" / "again")
    with pytest.raises(ConfigError):
        site.round("north", **WITHOUT)


def test_of_two_copies_of_a_further_attempt_one_is_charged(tmp_path):
    site = dropped(tmp_path, ledger=True)
    for name in LEFT:
        site.round(name, **WITHOUT)
    shutil.copytree(tmp_path / "north", tmp_path / "copy")
    assert site.round("north").number == 2
    for path in (site.messages / "again").glob("north.*.round"):
        path.unlink()
    (tmp_path / "north").rename(tmp_path / "first")
    (tmp_path / "copy").rename(tmp_path / "north")
    with pytest.raises(ConfigError, match="second one"):
        site.round("north")
    fits = read_ledger(site.ledgers["north"]).fits
    assert [fit.share.split()[1] for fit in fits] == ["1", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("holders", [10, 50])
def test_many_holders_of_whom_some_drop_out(tmp_path, holders):
    names = [f"h{i}" for i in range(holders)]
    site = Site(
        tmp_path, names=names, tables={name: table(i % 3, 40) for i, name in enumerate(names)},
        schema={**SCHEMA, "rows": 40 * holders}, colluding=2,
    )  # fmt: skip
    left = names[:-3]
    for name in left:
        site.round(name)
    site.tables = {name: site.tables[name] for name in left}
    for name in left:
        site.round(name, without=names[-3:], rows_left=40 * len(left))
    releases = site.finished()
    assert len({release.hashes for release in releases.values()}) == 1
    joint = releases["h0"].certificate.joint
    assert (len(joint.names), len(joint.without), joint.attempts) == (holders - 3, 3, 2)
    assert joint.noise_factor == pytest.approx(((holders - 3) / (holders - 5)) ** 0.5)


def test_two_drop_out_one_after_the_other(tmp_path):
    names = (*NAMES, "east")
    tables = {name: table(i) for i, name in enumerate(names)}
    site = Site(tmp_path, names=names, tables=tables, ledger=True, schema={**SCHEMA, "rows": 1200})
    for name in ("north", "south"):
        site.round(name, without=["west"], rows_left=900)
    for name in ("north", "south"):
        site.round(name, without=["west", "east"], rows_left=600)
    joint = gone_on(site)["south"].certificate.joint
    assert (joint.names, joint.without, joint.attempts) == (LEFT, ("west", "east"), 3)
    assert len(read_ledger(site.ledgers["south"]).fits) == 1  # the second attempt was never complete


def test_who_cannot_go_on_is_told_before_anything_is_written(tmp_path):
    site = dropped(tmp_path, colluding=2)
    for options, problem in (
        (WITHOUT, "fewer that may work together"),
        ({"without": ["north"], "rows_left": 600}, "other holders"),
        ({"without": ["west"]}, "--rows-left"),
    ):
        with pytest.raises(ConfigError, match=problem):
            site.round("north", **options)
    assert not (site.messages / "again").exists()
    assert not (tmp_path / "north" / "again").exists()


def test_a_total_of_weights_is_of_all(tmp_path):
    tables = {name: TABLES[name].assign(w=1.0) for name in NAMES}
    columns = {**SCHEMA["columns"], "w": (0, 2)}
    schema = {"columns": columns, "rows": 900, "weight": {"column": "w", "upper": 2, "total": 900}}
    site = dropped(tmp_path, schema=schema, tables=tables)
    with pytest.raises(ConfigError, match="total of weights"):
        site.round("north", **WITHOUT)


def test_a_call_that_is_killed_at_any_write_goes_on(tmp_path, monkeypatch):
    """Each renaming of an output fails once: each attempt is charged once, and no message is written twice."""
    site, contents = dropped(tmp_path, ledger=True), kill_first_writes(monkeypatch)
    for _ in range(60):
        for name in LEFT:
            with contextlib.suppress(KeyboardInterrupt, OutputError):  # the release is there, and its call ended
                site.round(name, **WITHOUT)
    assert len({load(tmp_path / f"{name}.sfm").hashes.arrays for name in LEFT}) == 1
    messages = [written for path, written in contents.items() if path.suffix == ".round"]
    assert len(messages) == 2 * 2 * len(LEFT)  # the holder's own copies too
    assert all(len(written) == 1 for written in messages)
    for name in LEFT:
        assert [fit.status for fit in read_ledger(site.ledgers[name]).fits] == ["failed", "finished"]


@pytest.mark.parametrize("facts", [{"attempts": 1}, {"attempts": 3}, {"without": ()}, {"without": ("north",)}])
def test_a_certificate_of_attempts_that_cannot_have_been_is_refused(tmp_path, facts):
    joint = JointFit(names=LEFT, colluding=1, session="0" * 64, attempts=2, without=("west",))
    assert joint.is_sound
    assert not replace(joint, **facts).is_sound
    assert joint.has_events(["a, attempt 1", "b, attempt 1", "a", "b"])
    for names in (["a", "b"], ["a, attempt 1", "b"], ["a, attempt 2", "a"], ["a, attempt 1", "a", "b"]):
        assert not joint.has_events(names)


def test_noise_is_that_of_those_who_are_left(tmp_path):
    release = gone_on(dropped(tmp_path))["north"]
    stages = {s.name: s.noise_multiplier for s in release.certificate.plan.stages}
    for own in release.measurements:
        assert own.noise_std == pytest.approx(stages[own.origin.stage] * own.origin.norm_bound * 2**0.5)
    forged = replace(release.certificate, joint=replace(release.certificate.joint, names=(*LEFT, "east")))
    replace(release, certificate=forged).save(tmp_path / "forged.sfm")
    with pytest.raises(SfumatoError, match="other noise"):
        load(tmp_path / "forged.sfm")
