"""What a release says of each column: known or estimated, kept, lost, and what would keep it."""

import datetime
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Integer, Open
from sfumato.report.column_lines import column_lines, cures, percent, worst

N = 4_000


def frame(seed=0):
    """Four common towns and 400 that have one row in ten among them, ages, and a code that every row has alone."""
    rng = np.random.default_rng(seed)
    town = np.where(rng.random(N) < 0.1, rng.integers(10, 410, N), rng.integers(0, 4, N)).astype(str)
    code = [f"c{i}" for i in range(N)]
    return pd.DataFrame({"town": town, "code": code, "age": rng.integers(18, 96, N), "member": rng.random(N) < 0.5})


def released(columns, data=None, epsilon=4.0, **facts):
    schema = Schema(columns=columns, rows=N, **facts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = MaxEntropy(epsilon=epsilon, delta=1e-6).fit(frame() if data is None else data, schema=schema, seed=0)
    return release, {line.name: line for line in column_lines(release)}


def test_estimated_columns_say_what_is_lost_and_how_to_keep_it():
    columns = {"town": Open(kind="categorical"), "age": Open(kind="integer")}
    release, lines = released(columns | {"code": Open(), "member": Boolean()})
    assert [line.known for line in lines.values()] == ["estimated", "estimated", "estimated", "declared"]
    town = lines["town"]
    assert town.kept.startswith("4 labels")
    assert town.lost == pytest.approx(0.1, abs=0.03)
    assert town.loss == f"{percent(town.lost)} of rows are 'other'"
    assert "categories: {file:" in town.cure
    assert "parents" in town.cure
    assert (lines["age"].lost, lines["age"].is_number) == (pytest.approx(0.0, abs=0.03), True)
    assert isinstance(release.schema.columns["code"], Identifier)
    assert lines["code"].lost == 1.0
    assert "left out" in lines["code"].loss
    assert lines["member"].text == "member: declared; 2 labels (false, true); anything else counted for no label."
    assert [line.name for line in worst(list(lines.values()))] == ["code", "town"]
    table = release.columns()
    assert table["column"].tolist() == list(lines)
    assert table.loc[0, ["known", "loss", "declare"]].tolist() == [town.known, town.loss, town.cure]
    assert list(cures([town, lines["member"]]).values()) == [["town"]]


def test_values_that_many_rows_share_are_named_with_where_their_share_lies():
    rng = np.random.default_rng(5)
    wage = np.where(rng.random(N) < 0.3, 7.25, rng.uniform(8, 300, N).round(2))
    hours = np.where(rng.random(N) < 0.5, 40, rng.integers(1, 90, N))
    start = np.where(
        rng.random(N) < 0.25, np.datetime64("2020-01-01"), np.datetime64("2019-01-01") + np.arange(N) % 700
    )
    data = pd.DataFrame({"wage": wage, "hours": hours, "start": start.astype("M8[D]").astype(str)})
    columns = {"wage": Continuous(lower=0, upper=500, resolution=0.01), "hours": Integer(lower=0, upper=99)}
    columns["start"] = DateTime(lower="2019-01-01", upper="2020-12-31")
    _, lines = released(columns, data)
    for name, value, real in (("wage", "7.25", 0.3), ("hours", "40", 0.505), ("start", "2020-01-01", 0.25)):
        found = re.search(rf", {re.escape(value)} in (\d+) % \((\d+) % to (\d+) %\) of rows$", lines[name].kept)
        share, low, high = map(int, found.groups())
        assert low - 1 <= 100 * real <= high + 1
        assert share == pytest.approx(100 * real, abs=3)
        assert high - low <= 6


def test_declared_columns_lose_nothing_but_what_is_read_as_other():
    towns = tuple(str(i) for i in range(4))
    columns = {"town": Categorical(categories=towns[:2], other="elsewhere"), "age": Integer(lower=0, upper=120)}
    columns["number"] = Integer(lower=2**60, upper=2**60 + 99)
    data = frame()[["town", "age"]].assign(number=lambda rows: 2**60 + rows["age"])
    release, lines = released(columns, data)
    assert lines["age"].text == "age: declared; 0 to 120."
    assert lines["number"].kept.startswith("1,152,921,504,606,846,976 to 1,152,921,504,606,847,075")
    assert lines["town"].lost == pytest.approx(0.55, abs=0.05)
    assert "'elsewhere'" in lines["town"].loss
    assert "elsewhere" in lines["town"].cure
    answer = Categorical(categories=(*towns[:2], "elsewhere"), other="elsewhere")
    _, lines = released(columns | {"town": answer}, data)
    assert not lines["town"].lost, "it is an answer of its own"
    rows = next(iter(release.batches(1000, seed=1)))
    assert {line.name for line in column_lines(release, rows)} == {"town", "age", "number"}


def test_labels_that_are_each_rarer_than_the_noise_are_told_and_those_of_groups_are_not():
    codes = tuple(str(i) for i in range(4)) + tuple(str(i) for i in range(10, 410))
    data = frame()[["town", "age"]]
    age = Integer(lower=0, upper=120)
    _, lines = released({"town": Categorical(categories=codes), "age": age}, data)
    town = lines["town"]
    hidden = int(town.loss.split(" labels")[0])
    assert 350 <= hidden <= 400
    assert town.lost == pytest.approx(0.1, abs=0.06)
    assert "parents" in town.cure
    grouped = Categorical(categories=codes, parents=("town",) * 4 + ("rural",) * 400, keep=codes[:4])
    _, lines = released({"town": grouped, "age": age}, data)
    assert lines["town"].text == "town: declared; 5 labels (0, 1, 2, 3, rural); anything else counted for no label."
    parents = ("town",) * 4 + ("rural",) * 400
    _, lines = released({"town": Categorical(categories=codes, parents=parents, keep=codes[:150]), "age": age}, data)
    assert "each rarer than the noise" in lines["town"].loss
    assert lines["town"].cure == "fewer codes in keep, or parents of more codes each"


def test_years_have_no_comma(tmp_path):
    columns = {"born": Integer(lower=1925, upper=2005), "wage": Continuous(lower=0, upper=25_000)}
    data = pd.DataFrame({"born": frame()["age"] + 1925, "wage": frame()["age"] * 100.0})
    _, lines = released(columns, data)
    share = percent((np.array(data["born"]) >= 2005).mean())
    assert lines["born"].kept.startswith("1925 to 2005, 2005 in ")
    assert float(lines["born"].kept.split()[-4]) == pytest.approx(float(share.split()[0]), abs=3)
    assert lines["wage"].kept == "0 to 25,000"


def test_values_that_many_rows_share_are_named():
    rng = np.random.default_rng(0)
    wage = np.where(rng.random(N) < 0.3, 7.25, rng.uniform(8, 60, N)).round(2)
    hours = np.where(rng.random(N) < 0.5, 40, rng.choice([20, 38], N))
    data = pd.DataFrame({"wage": wage, "hours": hours, "few": rng.integers(0, 5, N), "gap": np.nan})
    bounds = {"wage": Continuous(lower=0, upper=60, resolution=0.01), "hours": Integer(lower=0, upper=99)}
    bounds |= {"few": Integer(lower=0, upper=9), "gap": Continuous(lower=0, upper=1, resolution=0.01, nullable=True)}
    _, lines = released(bounds, data)
    wages, hours = (re.findall(r"([\d.]+) in (\d+) %", lines[name].kept) for name in ("wage", "hours"))
    assert [value for value, _ in wages] == ["7.25"]
    assert abs(int(wages[0][1]) - 30) <= 4
    assert hours[0][0] == "40"
    assert {value for value, _ in hours} == {"40", "20", "38"}
    assert (lines["few"].kept, lines["gap"].kept) == ("0 to 9", "0 to 1")


def test_pages_say_years_without_a_comma(tmp_path):
    columns = {"born": Integer(lower=1925, upper=2005), "wage": Continuous(lower=0, upper=25_000)}
    data = pd.DataFrame({"born": frame()["age"] + 1925, "wage": frame()["age"] * 100.0})
    release, _ = released(columns, data)
    shown = [release._repr_html_(), str(release.mean("born")), Schema(columns=columns)._repr_html_(), str(release)]
    release.report(page := tmp_path / "page.html")
    for text in [*shown, page.read_text(encoding="utf-8")]:
        assert not re.findall(r"\b[12],\d{3}\b(?!,)", text)
    assert "25,000" in release._repr_html_()


def test_what_may_lie_beyond_estimated_bounds_is_told():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"cost": np.where(rng.random(N) < 0.7, 0, 400 * rng.pareto(2.5, N)), "day": rng.random(N)})
    columns = {"cost": Open(kind="continuous"), "day": Open(kind="continuous")}
    release, lines = released(columns, data, epsilon=1.0)
    beyond = float((data["cost"] > release.schema.of_kind(Continuous)["cost"].upper).mean())
    most = float(re.findall(r"up to ([\d.]+) %", lines["cost"].loss)[0]) / 100
    assert beyond <= most < 0.2
    assert lines["cost"].cure == "lower and upper"
    few = data.iloc[:60]
    _, lines = released(columns, few, epsilon=0.3)
    assert all(line.lost >= 0.49 for line in lines.values()), "of 60 rows nothing stands out"


def test_times_of_day_have_the_bounds_of_the_day(tmp_path):
    """Their page and their lines asked for a year."""
    hours = np.random.default_rng(0).integers(7, 19, N)
    data = frame()[["age"]].assign(at=[datetime.time(int(hour), 30) for hour in hours])
    release, lines = released({"age": Integer(lower=0, upper=120), "at": Open()}, data, epsilon=8.0)
    assert isinstance(release.schema.columns["at"], DateTime)
    assert (lines["at"].known, lines["at"].loss) == ("estimated", "")
    assert release.mean("at").low < release.mean("at").high
    release.report(tmp_path / "page.html")


def test_facts_of_one_column_may_have_several_sources():
    sources = {"age": {"lower": "law", "upper": "discovered"}}
    _, lines = released({"age": Integer(lower=0, upper=90)}, frame()[["age"]], sources=sources)
    assert lines["age"].known == "lower declared, upper estimated"
    assert lines["age"].cure


def test_columns_of_one_value_are_lost():
    _, lines = released({"rare": Open(kind="categorical")}, pd.DataFrame({"rare": [f"r{i}" for i in range(N)]}))
    assert lines["rare"].lost == 1.0
    assert "same label" in lines["rare"].loss
    _, lines = released({"zero": Open(kind="integer")}, pd.DataFrame({"zero": np.zeros(N, int)}))
    assert lines["zero"].lost == 1.0


def test_without_noise_too():
    columns = {"town": Open(kind="categorical"), "age": Open(kind="integer")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = MaxEntropy(epsilon=NonPrivate()).fit(frame()[["town", "age"]], schema=Schema(columns=columns, rows=N))
    assert [line.known for line in column_lines(release)] == ["estimated", "estimated"]


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.004, "0.4 %"), (0.83, "83 %"), (0.9997, "more than 99 %"), (1.0, "100 %")]
)
def test_shares_in_per_cent(share, text):
    assert percent(share) == text
