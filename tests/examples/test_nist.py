"""The official score of NIST's cycle, by values worked out by hand, and a run of its script on a small table."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.columns.kinds import Categorical, Continuous, Integer

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import nist
from nist_schema import published_schema

REAL = pd.DataFrame({"PUMA": ["25-1", "25-1", "25-2", "25-2"], "SEX": [1, 1, 2, 2], "MSP": [None, "1", "1", "1"]})


def test_the_score_is_by_puma():
    assert nist.score(REAL, REAL) == 1000
    # one of four cells moves: shares differ by a quarter in two cells, so 500 (2 - 1/2)
    assert nist.score(REAL, REAL.assign(SEX=[1, 2, 2, 2])) == 750
    # every pair of SEX and MSP has its share, each in the other area; without PUMA nothing is wrong
    swapped = REAL.assign(PUMA=REAL["PUMA"].to_numpy()[::-1])
    assert nist.score(REAL, swapped) == 0
    assert nist.score(REAL.drop(columns="PUMA"), swapped.drop(columns="PUMA")) == 1000


def test_pairs_leave_puma_and_industry_out():
    assert list(nist.distances(REAL.assign(INDP="170", DEYE=1), REAL.assign(INDP="N", DEYE=1))) == [
        ("DEYE", "MSP"), ("DEYE", "SEX"), ("MSP", "SEX"),
    ]  # fmt: skip
    assert nist.score(REAL.assign(INDP="170"), REAL.assign(INDP="N")) == 1000


def test_a_missing_cell_is_a_level_and_tables_may_differ_in_rows():
    made = pd.concat([REAL, REAL], ignore_index=True)
    assert nist.score(REAL, made) == 1000
    assert nist.score(REAL, REAL.fillna("N")) == 1000
    assert nist.score(REAL, REAL.fillna("1")) == 750


def test_numbers_are_in_percentile_bins_of_the_real_ones():
    real = pd.Series([10, 20, 20, 40, None])  # ranks 1/4, 5/8 twice, 1
    made = pd.Series([5, 10, 15, 20, 20.9, 21, 100, None, 0, -3])
    bins, codes = nist.percentile_codes(real, made)
    assert bins.tolist() == [5, 12, 12, 19, -1]
    assert codes.tolist() == [5, 5, 12, 12, 12, 19, 19, -1, 0, -3]  # nothing real is in bin 0
    real = pd.Series(range(-20, 20))
    bins, codes = nist.percentile_codes(real, pd.Series([-30, -20, -18, 0, 19]))
    assert bins.tolist() == [0, *np.repeat(range(1, 20), 2), 19]
    assert codes.tolist() == [0, 0, 1, 10, 19]


def test_density_is_in_bins_of_its_logarithm():
    assert nist.DENSITY_EDGES[2] == pytest.approx(10 * 5336.47 ** (8 / 20))
    values = pd.Series([1.0, 150.9, 151, 309, 310, 52_864.7, 90_000])
    assert nist.density_codes(values).tolist() == [0, 0, 1, 1, 2, 13, 13]


def test_what_nist_publishes_of_a_column_is_its_kind(tmp_path):
    entries = {
        "SEX": {"dtype": "int64", "values": [1, 2]},
        "DENSITY": {"dtype": "float64", "min": 16, "max": 52864},
        "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1"]},
        "PINCP": {"dtype": "object", "has_null": True, "null_value": "N", "min": -9000, "max": 1},
    }
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"schema": entries}))
    schema = published_schema(path)
    assert {name: texts[0] for name, texts in schema.missing_of.items()} == {"MSP": "N", "PINCP": "N"}
    assert dict(schema.columns) == {
        "SEX": Categorical(categories=("1", "2")),
        "DENSITY": Continuous(lower=16, upper=52864),
        "MSP": Categorical(categories=("1",), nullable=True),
        "PINCP": Integer(lower=-9000, upper=1, nullable=True),
    }


@pytest.fixture
def folder(tmp_path):
    """An excerpt of 300 rows of the nine industry-focused columns and of its schema."""
    rng = np.random.default_rng(0)
    levels = {name: ["1", "2"] for name in nist.INDUSTRY.split()} | {"PUMA": ["25-00503", "25-00703"]}
    frame = pd.DataFrame({name: rng.choice(labels, 300) for name, labels in levels.items()})
    frame.loc[:9, "EDU"] = "N"
    frame.to_parquet(tmp_path / "sdnist_ma2019.parquet")
    schema = {name: {"dtype": "object", "values": labels} for name, labels in levels.items()}
    schema["EDU"] |= {"has_null": True, "null_value": "N"}
    (tmp_path / "sdnist_ma2019.schema.json").write_text(json.dumps({"schema": schema}))
    return tmp_path


def test_a_release_is_scored_beside_random_rows(folder, monkeypatch, capsys):
    out = folder / "figures.jsonl"
    words = [str(folder), "--columns", "9", "--runs", "1", "--target", "PUMA", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["nist.py", *words])
    nist.main()
    figures = [json.loads(line) for line in out.read_text().splitlines()]
    assert [figure["of"].split()[0] for figure in figures] == ["max-entropy,", "random", "random", "random"]
    assert all(0 < figure["score"] < 1000 for figure in figures)
    printed = capsys.readouterr()
    assert f"{figures[0]['score']:.6f} | skipped" in printed.out
    assert "sdnist: skipped" in printed.err


def test_a_score_unlike_the_package_ends_the_run(folder, monkeypatch):
    table = nist.excerpt(folder, "ma", 9)
    monkeypatch.setattr(nist, "their_score", lambda *_: 999.0)
    arguments = argparse.Namespace(runs=0, epsilon=1.0, target=None, areas=None, seed=0, sdnist=Path("python"))
    with pytest.raises(SystemExit, match=r"Expected the score of sdnist, 999\.0"):
        list(nist.figures(table, arguments))
