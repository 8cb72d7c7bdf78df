"""Linked rows with sets beside other columns: what a set has to do with that of the row before, and what comes back."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sfumato
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.errors import ConfigError, SchemaError
from sfumato.evaluate import evaluate

N = 1_500
ITEMS = ["asthma", "flu", "gout"]
DOCUMENT = {
    "unit": {"column": "who", "max_rows": 4, "order": "day", "constant": ["sex"], "units": N},
    "columns": {
        "who": "identifier",
        "day": {"kind": "integer", "lower": 0, "upper": 400},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "ill": {"kind": "set", "items": ITEMS, "max_length": 2},
    },
}


def visits(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Asthma stays, flu comes and goes, and gout is of men alone."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n), rng.integers(1, 5, n))
    place = np.arange(who.size) - np.searchsorted(who, who)
    sex, chronic = rng.integers(0, 2, n), rng.random(n) < 0.3
    held = np.stack([chronic[who], rng.random(who.size) < 0.2, (rng.random(who.size) < 0.4) & (sex[who] == 1)], axis=1)
    return pd.DataFrame(
        {
            "who": who, "day": rng.integers(0, 100, n)[who] + 60 * place + rng.integers(0, 60, who.size),
            "sex": np.array(["f", "m"])[sex[who]],
            "ill": [[name for name, has in zip(ITEMS, row, strict=True) if has][:2] for row in held.tolist()],
        }
    )  # fmt: skip


def stays(frame: pd.DataFrame, item: str) -> float:
    """The share of rows with the item among those whose row before has it."""
    frame = frame.sort_values(["who", "day"], kind="stable")
    has = frame["ill"].map(lambda cell: item in list(cell)).astype(float)
    before = has.groupby(frame["who"]).shift()
    return float(has[before == 1].mean())


@pytest.fixture(scope="module")
def frame():
    return visits()


@pytest.fixture(scope="module")
def release(frame):
    return MaxEntropy(epsilon=NonPrivate(), calibration_rows=2_000).fit(frame, schema=DOCUMENT, seed=0)


def test_items_stay_and_go_as_they_did(frame, release):
    rows = release.sample(3_000, seed=1)
    for item in ITEMS:
        assert stays(rows, item) == pytest.approx(stays(frame, item), abs=0.06)
    assert stays(frame, "asthma") > 3 * stays(frame, "flu")
    assert rows["ill"].map(len).max() <= 2
    assert {item for cell in rows["ill"] for item in cell} == set(ITEMS)
    women = release.sample(300, seed=1, given={"sex": "f"})
    assert set(women["sex"]) == {"f"}
    assert np.mean([("gout" in list(cell)) for cell in women["ill"]]) < 0.05


def test_all_rows_are_asked_about(frame, release):
    for item in ITEMS:
        real = frame["ill"].map(lambda cell, item=item: item in cell).mean()
        assert release.share({"ill": [item]}).value == pytest.approx(real, abs=1e-3)
    assert release.set_size("ill").value == pytest.approx(frame["ill"].map(len).mean(), abs=2e-3)
    with pytest.raises(ConfigError, match=r"column of first rows here: ask share\(\{'ill: "):
        release.units.set_size("ill")
    by = release.set_size("ill", by="sex")
    for sex in ("f", "m"):
        assert by[sex].value == pytest.approx(frame.loc[frame["sex"] == sex, "ill"].map(len).mean(), abs=5e-3)
    first = frame.sort_values(["who", "day"]).groupby("who").first()
    real = first["ill"].map(lambda cell: "flu" in cell).mean()
    assert release.units.share({"ill: flu": True}).value == pytest.approx(real, abs=1e-3)


def test_scores_and_files(frame, release, tmp_path):
    scores = evaluate(frame, release.sample(N, seed=2), schema=release.schema)
    assert set(scores["linked"]["labels"]) == {f"ill: {item}" for item in ITEMS}
    assert scores["linked"]["labels"]["ill: asthma"] < 0.06
    release.write_sample(tmp_path / "rows.parquet", 50, seed=0)
    assert pq.read_table(tmp_path / "rows.parquet").column("ill").type.value_type == "string"
    release.save(tmp_path / "r.sfm")
    again = sfumato.load(tmp_path / "r.sfm").sample(20, seed=3)
    assert again["ill"].map(list).tolist() == release.sample(20, seed=3)["ill"].map(list).tolist()
    release.report(tmp_path / "page.html")


def test_a_constant_is_no_set():
    unit = {**DOCUMENT["unit"], "constant": ["sex", "ill"]}
    with pytest.raises(SchemaError, match="got sets in column 'ill'"):
        Schema.from_dict({**DOCUMENT, "unit": unit})
