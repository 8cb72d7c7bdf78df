"""Rules of a database: of one row, of a row with those above it, and of persons; kept exactly in every table."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.database import broken, hospital, ruled_document, ruled_hospital, schema
from sfumato import MaxEntropy, Schema
from sfumato.errors import ConfigError, SchemaError
from sfumato.release import blocks

N = 1500


@pytest.fixture(scope="module")
def tables():
    return ruled_hospital(N, 1)


@pytest.fixture(scope="module")
def release(tables):
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=1000)
    return method.fit(tables, schema=Schema.from_dict(ruled_document(N)), seed=1)


@pytest.fixture(scope="module")
def sample(release):
    return release.sample(3000, seed=2)


def test_every_row_keeps_the_rules_and_tables_stay_tables(tables, sample):
    assert set(broken(tables).values()) == {0}
    assert set(broken(sample).values()) == {0}
    visits, joined = sample["visits"], sample["measurements"].merge(sample["visits"], on="visit")
    assert ((joined["start"] <= joined["at"]) & (joined["at"] <= joined["end"])).all()
    dead = (visits["state"] == "dead").astype(int)
    assert dead.any()
    assert (dead.groupby(visits["person"]).cumsum() - dead == 0).all()
    assert visits.groupby("person")["start"].is_monotonic_increasing.all()
    assert visits["stay"].mean() == pytest.approx(tables["visits"]["stay"].mean(), rel=0.15)
    assert len(visits) / 3000 == pytest.approx(len(tables["visits"]) / N, abs=0.12)
    late = joined["reported"] - joined["end"]
    assert 1 < late.mean() < 12


def test_given_units_and_parts_keep_them(release, monkeypatch):
    men = release.sample(300, given={"sex": "m", "age": 80}, seed=3)
    assert set(broken(men).values()) == {0}
    assert set(men["persons"]["age"]) == {80}
    with pytest.raises(ConfigError, match="Expected given values that keep the rules"):
        release.sample(3, given={"sex": "m", "age": 90})
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 64)
    parts = list(release.table_batches(150, seed=2))
    assert len(parts) > 1
    joined = {name: pd.concat([part[name].to_pandas() for part in parts]) for name in parts[0]}
    assert set(broken(joined).values()) == {0}


def test_what_follows_is_asked_and_breaks_are_counted(release, tables, sample):
    visits = release.table("visits")
    for name in ("stay", "end"):
        answer = visits.mean(name)
        assert abs(answer.value - tables["visits"][name].mean()) < 4 * answer.std_error
    wrong = {name: frame.copy() for name, frame in tables.items()}
    wrong["measurements"].loc[:4, "reported"] = 0
    wrong["persons"].loc[wrong["persons"]["sex"] == "m", "age"] = 95
    rules = sfumato.evaluate.evaluate(wrong, sample, schema=Schema.from_dict(ruled_document(N)))["rules"]
    shares = rules["by_rule"]
    assert rules["broken"]["synthetic"] == 0
    assert shares["{order: [end, reported]}"]["real"] == pytest.approx(5 / len(wrong["measurements"]))
    assert shares["{never: {sex: m, age: 81-}}"]["real"] == pytest.approx((wrong["persons"]["sex"] == "m").mean())
    assert sfumato.evaluate.evaluate(hospital(60, 1), hospital(60, 1), schema=schema(60))["rules"] is None


def test_a_table_before_or_beside_is_not_of_a_row():
    for rule, message in (
        (
            {"if": {"drug": "a"}, "then": {"state": "ill"}},
            "over columns of one table and those above it, or an order of two columns",
        ),
        ({"order": ["start", "at"]}, "over columns other than 'at', as `within` says it"),
        ({"order": ["end", "start"]}, "got one by which 'start' follows from another column"),
        ({"sum": {"age": ["stay", "end"]}}, "got one by which 'age' follows from another column"),
        ({"sum": {"stay": ["reported", "end"]}}, "got one by which 'stay' follows from another column"),
    ):
        with pytest.raises(SchemaError, match=message):
            Schema.from_dict({**ruled_document(), "rules": [rule]})


def followed(n, seed):
    """Persons with visits and, of every other one, a death after these."""
    rng = np.random.default_rng(seed)
    persons = pd.DataFrame({"person": np.arange(n), "sex": rng.choice(["f", "m"], n)})
    visits = pd.DataFrame({"person": np.repeat(persons["person"], rng.integers(0, 6, n))})
    visits["day"] = rng.integers(0, 900, len(visits))
    last = visits.groupby("person")["day"].max().reindex(persons["person"]).fillna(0).to_numpy(dtype=int)
    died = rng.random(n) < 0.5
    deaths = pd.DataFrame({"person": persons["person"][died], "died": last[died] + rng.integers(0, 100, died.sum())})
    return {"persons": persons, "visits": visits, "deaths": deaths.reset_index(drop=True)}


def followed_document(n, names, of_deaths):
    tables = {
        "persons": {"key": "person", "rows": n, "columns": ["sex"]},
        "visits": {"of": "persons", "max_rows": 5, "order": "day", "columns": ["day"]},
        "deaths": {"of": "persons", "max_rows": 1, "columns": ["died"]} | of_deaths,
    }
    day = {"kind": "integer", "lower": 0, "upper": 1000}
    columns = {"person": "identifier", "sex": ["f", "m"], "day": day, "died": day}
    return {"tables": {name: tables[name] for name in names}, "columns": columns, "rules": [{"order": ["day", "died"]}]}


@pytest.mark.parametrize(
    ("names", "of_deaths", "epsilon"),
    [
        (("persons", "visits", "deaths"), {}, 6.0),
        (("persons", "visits", "deaths"), {"order": "died"}, 0.3),
        (("persons", "deaths", "visits"), {}, 0.3),
        (("persons", "deaths", "visits"), {"order": "died"}, 6.0),
    ],
)
def test_an_order_of_two_tables_of_a_person_holds_for_all_rows(names, of_deaths, epsilon):
    """Nobody is seen after death, whichever table is drawn first, and whether or not its date is its order."""
    tables, document = followed(800, 1), followed_document(800, names, of_deaths)
    method = MaxEntropy(epsilon=epsilon, delta=1e-6, calibration_rows=300)
    made = method.fit(tables, schema=Schema.from_dict(document), seed=1).sample(800, seed=1)
    dates = made["visits"].merge(made["deaths"], on="person")
    assert len(dates) > 200
    assert (dates["day"] <= dates["died"]).all()
    assert made["visits"].groupby("person")["day"].is_monotonic_increasing.all()
    if epsilon > 1:
        assert made["deaths"]["died"].mean() == pytest.approx(tables["deaths"]["died"].mean(), rel=0.15)
    wrong = {name: frame.copy() for name, frame in tables.items()}
    wrong["deaths"]["died"] = 0
    found = sfumato.evaluate.evaluate(wrong, made, schema=Schema.from_dict(document))["rules"]
    assert found["by_rule"]["{order: [day, died]}"]["synthetic"] == 0
    assert found["by_rule"]["{order: [day, died]}"]["real"] > 0.3


def test_a_row_above_that_allows_none_below_has_none():
    """Accounts that open after the last day of moves: noise gives them moves, and no drawing keeps the rule."""
    rng, n = np.random.default_rng(0), 150
    accounts = pd.DataFrame({"account": np.arange(n), "opened": rng.integers(0, 100, n)})
    moves = pd.DataFrame({"account": np.repeat(np.arange(n), 4)})
    moves["day"] = accounts["opened"].to_numpy()[moves["account"]] + rng.integers(0, 20, len(moves))
    document = {
        "tables": {
            "accounts": {"key": "account", "rows": n, "columns": ["opened", "sort"]},
            "loans": {"of": "accounts", "max_rows": 1, "columns": ["lent"]},
            "moves": {"of": "accounts", "key": "move", "max_rows": 4, "order": "day", "columns": ["day"]},
        },
        "columns": {
            "account": "identifier", "move": "identifier", "sort": ["a", "b"], "lent": ["no", "yes"],
            "opened": {"kind": "integer", "lower": 0, "upper": 400},
            "day": {"kind": "integer", "lower": 0, "upper": 120},
        },
        "rules": [{"order": ["opened", "day"]}],
    }  # fmt: skip
    loans = accounts[["account"]].assign(lent="no")
    tables = {"accounts": accounts.assign(sort="a"), "loans": loans, "moves": moves.assign(move=np.arange(len(moves)))}
    method = MaxEntropy(epsilon=0.1, delta=1e-6, calibration_rows=100)
    made = method.fit(tables, schema=Schema.from_dict(document), seed=1).sample(300, seed=1)
    joined = made["moves"].merge(made["accounts"], on="account")
    assert len(joined)
    assert (joined["opened"] <= joined["day"]).all()


def test_without_rows_there_is_nothing_to_keep():
    few = {name: frame.head(1 if name == "persons" else 0) for name, frame in ruled_hospital(60, 2).items()}
    method = MaxEntropy(epsilon=3.0, delta=1e-6, calibration_rows=60)
    release = method.fit(few, schema=Schema.from_dict(ruled_document(60)), seed=1)
    assert not any(broken(release.sample(40, seed=1)).values())
    assert [len(frame) for frame in release.sample(0, seed=1).values()] == [0, 0, 0, 0]
    assert np.isfinite(release.sample(40, seed=1)["persons"]["age"]).all()
