"""Releases of linked rows of format 1, written on 2026-11-23, load and sample for ever: of one table and of two."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato

FOLDER = Path(__file__).parent / "fixtures"
ONE, TWO = FOLDER / "format_1_linked.sfm", FOLDER / "format_1_two_tables.sfm"
NAMES = ("counts of runs by class", "counts of cells", "second moments")
BOTH = pytest.mark.parametrize("path", [ONE, TWO], ids=["one table", "two tables"])


def rows(path, n, **asked):
    """Samples as one frame: of two tables, visits with the columns of their person."""
    made = sfumato.load(path).sample(n, seed=3, **asked)
    if path == ONE:
        return made.to_pandas()
    persons, visits = (made[name].to_pandas() for name in ("persons", "visits"))
    assert persons["who"].tolist() == list(range(1, n + 1))
    return visits.rename(columns={"person": "who"}).merge(persons, on="who")


@BOTH
def test_samples_are_linked_rows_in_their_domain(path):
    found = rows(path, 1_000)
    assert set(found.columns) == {"who", "day", "sex", "born", "score", "state"}
    assert found.groupby("who").size().between(1, 4).all()
    assert found["who"].nunique() == 1_000 if path == ONE else 700 < found["who"].nunique() < 900
    assert (found.groupby("who")["day"].diff().dropna() >= 0).all()
    assert (found.groupby("who")[["sex", "born"]].nunique(dropna=False) == 1).all(axis=None)
    assert found["day"].between(0, 600).all()
    assert found["score"].between(0, 100).all()
    assert set(found["state"]) == {"well", "ill"}
    pd.testing.assert_frame_equal(rows(path, 1_000), found)


@BOTH
def test_the_first_units_do_not_depend_on_n(path):
    many, few = rows(path, 400), rows(path, 10)
    pd.testing.assert_frame_equal(many[many["who"] <= 10].reset_index(drop=True), few, check_dtype=False)


@BOTH
def test_what_goes_with_what_is_kept(path):
    found = rows(path, 4_000)
    by_unit = found.groupby("who")
    before, seen = by_unit["score"].shift(), by_unit.cumcount() > 0
    assert np.corrcoef(before[seen], found["score"][seen])[0, 1] > 0.75
    assert ((found["state"] == "ill") == (found["score"] > 55)).mean() > 0.8
    means = found.groupby("sex")["score"].mean()
    assert 5 < means["m"] - means["f"] < 11
    assert by_unit["day"].diff().mean() == pytest.approx(40, abs=5)


@BOTH
def test_constants_are_given(path):
    found = rows(path, 300, given={"sex": "f", "born": 1950})
    assert set(found["sex"]) == {"f"}
    assert set(found["born"]) == {1950}


@BOTH
def test_its_certificate_can_still_be_recomputed(path):
    certificate = sfumato.load(path).certificate
    assert not certificate.private, "it was made with a seed"
    assert certificate.unit.name == "who"
    assert certificate.recompute() == pytest.approx(certificate.epsilon, abs=1e-6)
    certificate.verify()


@BOTH
def test_it_is_written_again_byte_for_byte(path, tmp_path):
    sfumato.load(path).save(tmp_path / "again.sfm")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(tmp_path / "again.sfm") as after:
        assert before.namelist() == after.namelist()
        assert all(before.read(name) == after.read(name) for name in before.namelist())
        assert ("tables" in json.loads(before.read("manifest.json"))["schema"]) == (path == TWO)


@BOTH
def test_its_measurements_are_those_of_units_and_of_steps(path):
    found = sfumato.load(path).measurements
    assert {m.name for m in found} == {f"{part}: {name}" for part in ("units", "steps") for name in NAMES}
    assert all(m.noise_std > 0 for m in found)
