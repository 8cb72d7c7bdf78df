"""Releases of a table with words beside numbers: samples, what is given, and answers of both."""

import json

import numpy as np
import pandas as pd
import pytest

from fixtures.sampling import small_simulations
from sfumato import DPGM, MaxEntropy, Schema, combine_releases, load
from sfumato.columns import Boolean, Categorical, Integer
from sfumato.errors import ConfigError

__all__ = ["small_simulations"]

N = 6_000
SHARES = {"number": 0.62, "<5": 0.3, "unknown": 0.05, None: 0.03}
COUNT = {"lower": 0, "upper": 100, "atoms": ("<5", "unknown", 30)}


def table(seed=0):
    rng = np.random.default_rng(seed)
    which = rng.choice(4, N, p=list(SHARES.values()))
    region = rng.choice(["a", "b"], N)
    numbers = rng.poisson(np.where(region == "a", 25, 35))
    cells = [int(x) if k == 0 else list(SHARES)[k] for k, x in zip(which, numbers, strict=True)]
    return pd.DataFrame({"cases": cells, "region": region})


def schema(**kind):
    columns = {"cases": Integer(**COUNT, **({"nullable": True} | kind)), "region": Categorical(categories=("a", "b"))}
    return Schema(columns=columns, rows=N)


def numbers_of(cells):
    return pd.to_numeric(cells, errors="coerce")


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def release(frame):
    return MaxEntropy(epsilon=3.0).fit(frame, schema=schema())


def test_samples_have_them_as_often(release, frame, tmp_path):
    rows = release.sample(seed=1)
    for word in ("<5", "unknown"):
        assert abs((rows["cases"] == word).mean() - (frame["cases"] == word).mean()) < 0.02
    assert abs(rows["cases"].isna().mean() - frame["cases"].isna().mean()) < 0.02
    own, real = numbers_of(rows["cases"]), numbers_of(frame["cases"])
    assert abs(own.mean() - real.mean()) < 0.5
    by_region = own.groupby(rows["region"]).mean()
    assert by_region["b"] - by_region["a"] == pytest.approx(10, abs=1.5)
    release.save(tmp_path / "r.sfm")
    assert load(tmp_path / "r.sfm").sample(50, seed=1).equals(release.sample(50, seed=1))
    release.sample(seed=1).to_csv(tmp_path / "rows.csv", index=False)
    again = MaxEntropy(epsilon=3.0).fit(tmp_path / "rows.csv", schema=schema())
    assert abs((again.sample(seed=2)["cases"].to_pandas() == "<5").mean() - 0.3) < 0.03


@pytest.mark.parametrize(("value", "cell"), [("<5", "<5"), (" unknown", "unknown"), (30, "30"), ("28", "28")])
def test_a_word_or_a_number_is_given(release, value, cell):
    assert set(release.sample(40, given={"cases": value}, seed=1)["cases"]) == {cell}
    assert release.sample(40, given={"cases": None}, seed=1)["cases"].isna().all()
    with pytest.raises(ConfigError, match="whole number"):
        release.sample(40, given={"cases": "<6"})


def test_answers(release, frame):
    cells = frame["cases"]
    numbers = numbers_of(cells)
    for condition, count in (
        ("<5", (cells == "<5").sum()),
        ((20, 30), numbers.between(20, 30).sum()),
        (None, cells.isna().sum()),
    ):
        answer = release.count({"cases": condition})
        assert abs(answer.value - count) < 5 * answer.std_error + 25
    assert release.mean("cases").value == pytest.approx(numbers.mean(), abs=0.7)
    assert release.missing("cases").value == pytest.approx(cells.isna().mean(), abs=0.015)
    assert abs(release.quantile("cases").value - numbers.median()) <= 2
    by_region = release.share({"cases": "<5"}, by="region")
    assert by_region["a"].value == pytest.approx(0.3, abs=0.05)
    lines = release.answers().query("first == 'cases (word)' and kind == 'share'")
    assert lines["answered"].tolist() == ["yes"]
    with pytest.raises(ConfigError, match="'<5', 'unknown', got 'x'"):
        release.count({"cases (word)": "x"})


def test_pages_and_scores(release, frame, tmp_path):
    release.report(tmp_path / "page.html", real=frame)
    assert "cases (word)" in (tmp_path / "page.html").read_text()
    assert release.evaluate(frame)["fidelity"]["tvd_1way"] < 0.05
    release.certificate.verify()
    assert "atoms" in release.schema._repr_html_()


def test_without_missing_cells_every_cell_is_a_number_or_a_word(frame):
    release = MaxEntropy(epsilon=3.0).fit(frame, schema=schema(nullable=False))
    cells = release.sample(seed=1)["cases"]
    assert not cells.isna().any()
    assert set(cells[numbers_of(cells).isna()]) == {"<5", "unknown"}
    with pytest.raises(ConfigError, match="not declare `nullable`"):
        release.missing("cases")
    with pytest.raises(ConfigError, match="not nullable"):
        release.sample(5, given={"cases": None})


def test_parts_are_weighed_by_their_numbers():
    parts = [table(1), table(2)]
    parts[1].loc[numbers_of(parts[1]["cases"]).notna() & (parts[1].index % 2 == 0), "cases"] = "<5"
    both = combine_releases([MaxEntropy(epsilon=9.0).fit(part, schema=schema()) for part in parts], disjoint=True)
    whole = pd.concat(parts)["cases"]
    assert both.mean("cases").value == pytest.approx(numbers_of(whole).mean(), abs=0.5)
    assert both.share({"cases": "<5"}).value == pytest.approx((whole == "<5").mean(), abs=0.02)


def test_other_doors_and_methods(frame, tmp_path):
    """The same records as lines of JSON, where a number is one, by a method that knows of no lens."""
    lines = [{"cases": cell, "region": region, "member": i % 2 == 0} for i, (cell, region) in enumerate(frame.values)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    columns = {**schema().columns, "member": Boolean()}
    release = DPGM(epsilon=3.0).fit(tmp_path / "rows.jsonl", schema=Schema(columns=columns, rows=N))
    cells = release.sample(2_000, seed=1)["cases"].to_pandas()
    assert (cells == "<5").mean() > 0.1
    assert numbers_of(cells).notna().mean() > 0.3
