"""Rules within a row of linked rows: every row keeps them, constants stay, and order is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fixtures.linked_rules import DOCUMENT, keeps_all, visits
from sfumato import MaxEntropy, NonPrivate, Schema, load
from sfumato.errors import ConfigError, SchemaError
from sfumato.release import blocks


@pytest.fixture(scope="module")
def release():
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=500)
    return method.fit(visits(), schema=Schema.from_dict(DOCUMENT), seed=0)


def test_every_row_keeps_the_rules_and_units_stay_units(release):
    rows = release.sample(2_000, seed=1)
    assert keeps_all(rows)
    units = rows.groupby("who")
    assert units.ngroups == 2_000
    assert (units["admitted"].diff().dropna() >= 0).all()
    assert units[["sex", "age"]].nunique().to_numpy().max() == 1


@pytest.mark.slow
def test_without_noise_shares_stay():
    frame = visits()
    method = MaxEntropy(epsilon=NonPrivate(), calibration_rows=2_000)
    rows = method.fit(frame, schema=Schema.from_dict(DOCUMENT), seed=0).sample(4_000, seed=0)
    assert keeps_all(rows)
    for name in ("ward", "pregnant", "sex"):
        real, made = (table[name].value_counts(normalize=True) for table in (frame, rows))
        assert real.sub(made).abs().max() < 0.06, name
    assert rows["stay"].mean() == pytest.approx(frame["stay"].mean(), rel=0.2)


def test_given_constants_keep_the_rules_as_they_are(release):
    rows = release.sample(200, seed=2, given={"age": 17, "sex": "m"})
    assert keeps_all(rows)
    assert set(rows["age"]) == {17}
    assert set(rows["ward"]) == {"child"}
    with pytest.raises(ConfigError, match="that are constant, got 'ward'"):
        release.sample(3, given={"ward": "a"})


def test_the_first_units_do_not_depend_on_how_many(release, tmp_path):
    release.save(tmp_path / "r.sfm")
    many, few = release.sample(100, seed=3), load(tmp_path / "r.sfm").sample(10, seed=3)
    pd.testing.assert_frame_equal(many[many["who"] <= 10], few)


def test_constants_that_no_unit_can_have_are_refused():
    document = {**DOCUMENT, "rules": [*DOCUMENT["rules"], {"never": {"sex": "m", "age": "50-100"}}]}
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=300)
    release = method.fit(visits(), schema=Schema.from_dict(document), seed=0)
    rows = release.sample(300, seed=0)
    assert not ((rows["sex"] == "m") & (rows["age"] >= 50)).any()
    with pytest.raises(ConfigError, match="Expected given values that keep the rules"):
        release.sample(3, given={"sex": "m", "age": 70})


def test_units_that_no_drawing_finds_are_refused(monkeypatch):
    """No man by the rules: sampling says so, and does not go on for ever."""
    document = {**DOCUMENT, "rules": [{"never": {"sex": "m", "age": "0-100"}}]}
    monkeypatch.setattr(blocks, "SAMPLE_BLOCK", 256)
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=300)
    release = method.fit(visits(), schema=Schema.from_dict(document), seed=0)
    assert set(release.sample(50, seed=0)["sex"]) == {"f"}
    with pytest.raises(ConfigError, match="Expected units whose rows can keep the rules"):
        release.sample(3, given={"sex": "m"})


def test_no_row_comes_before_a_constant_date_however_little_is_known_of_both():
    """Accounts of which the last ones open after most moves: no drawing finds all rows of theirs late enough."""
    rng, n = np.random.default_rng(0), 120
    rows = pd.DataFrame({"account": np.repeat(np.arange(n), 12)})
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 360, (n, 12))).ravel(), "D")
    rows["opened"] = days.to_series(index=rows.index).groupby(rows["account"]).transform("min")
    rows["date"], rows["closed"] = days, pd.Timestamp("2022-12-31")
    dates = {"kind": "datetime", "resolution": "day", "lower": "2022-01-01", "upper": "2022-12-31"}
    document = {
        "unit": {"column": "account", "max_rows": 12, "order": "date", "constant": ["opened", "closed"], "units": n},
        "columns": {"account": "identifier", "opened": dates, "date": dates, "closed": dates},
        "rules": [{"order": ["opened", "date", "closed"]}],
    }
    method = MaxEntropy(epsilon=0.1, delta=1e-6, calibration_rows=300)
    made = method.fit(rows, schema=Schema.from_dict(document), seed=0).sample(400, seed=0)
    assert (made["opened"] <= made["date"]).all()
    assert (made["date"] <= made["closed"]).all()
    assert (made.groupby("account")["date"].diff().dropna() >= pd.Timedelta(0)).all()
    assert made.groupby("account")["date"].nunique().mean() > 2


def test_no_row_follows_an_end_that_rules_put(monkeypatch):
    """Mended rows take labels over from others: of an end, the unit is drawn anew."""
    frame = visits()
    document = {**DOCUMENT, "unit": {**DOCUMENT["unit"], "ends": {"ward": "child"}}}
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=300)
    rows = method.fit(frame, schema=Schema.from_dict(document), seed=0).sample(2_000, seed=0)
    assert keeps_all(rows)
    ended = (rows["ward"] == "child").astype(int)
    assert ended.any()
    assert (ended.groupby(rows["who"]).cumsum() - ended == 0).all()


@pytest.mark.parametrize(
    "rule", [{"order": ["discharged", "admitted"]}, {"difference": {"age": ["discharged", "admitted"]}}], ids=str
)
def test_rules_that_compute_what_links_rows_are_refused(rule):
    with pytest.raises(SchemaError, match="leave the constants and the order of linked rows as they are"):
        Schema.from_dict({**DOCUMENT, "rules": [rule]})
