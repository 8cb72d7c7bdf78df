"""Releases with sets beside other columns: forms, given items, files, pages, and what is refused by name."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from fixtures.set_tables import ITEMS, held, people, set_schema
from sfumato import MaxEntropy, Schema
from sfumato.columns import Boolean, ItemSet
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.evaluate import evaluate, total_variation

ROWS = 3_000
SCHEMA = set_schema(ROWS, max_length=3)
METHOD = MaxEntropy(epsilon=20.0, delta=1e-6, calibration_rows=2_000)


@pytest.fixture(scope="module")
def frame():
    return people(ROWS)


@pytest.fixture(scope="module")
def release(frame):
    return METHOD.fit(frame, schema=SCHEMA, target="sex", seed=0)


def fitted(data, schema=SCHEMA, **settings):
    method = dataclasses.replace(METHOD, calibration_rows=200)
    return method.fit(data, schema=schema, seed=0, **settings)


class TestForms:
    @pytest.mark.slow
    def test_frames_come_back_as_lists_of_known_items(self, frame):
        samples = {}
        for data in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            found = fitted(data).sample(200, seed=3)
            assert type(found) is type(data)
            found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
            samples[type(data)] = [list(cell) for cell in found["diagnoses"]]
            assert {item for cell in samples[type(data)] for item in cell} <= set(ITEMS)
            assert list(found.columns) == ["age", "sex", "diagnoses"]
        first, *others = samples.values()
        assert all(other == first for other in others)

    def test_files(self, frame, release, tmp_path):
        release.write_sample(tmp_path / "rows.parquet", 50, seed=0)
        rows = pq.read_table(tmp_path / "rows.parquet")
        assert pa.types.is_list(rows.schema.field("diagnoses").type)
        frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
        assert len(fitted(tmp_path / "rows.parquet").sample(3)) == 3
        assert len(fitted(tmp_path / "rows.jsonl").sample(3)) == 3
        with pytest.raises(ConfigError, match=r"'diagnoses'.*parquet"):
            release.write_sample(tmp_path / "rows.csv", 50)
        frame.to_csv(tmp_path / "real.csv", index=False)
        with pytest.raises(SchemaError, match=r"'diagnoses'.*lists of items"):
            fitted(tmp_path / "real.csv")

    def test_numbered_items_and_the_types_of_the_source(self, frame):
        schema = Schema(columns={**SCHEMA.columns, "diagnoses": ItemSet(n_items=4, max_length=2)}, rows=ROWS)
        lists = pa.array([[i % 4, 9] for i in range(ROWS)], pa.list_(pa.int16()))
        table = pa.table({"age": frame["age"], "sex": frame["sex"], "diagnoses": lists})
        with pytest.warns(UserWarning, match="storage types"):
            found = fitted(table, schema, as_source=True).sample(300, seed=0)
        assert found.schema.field("diagnoses").type.value_type == pa.int16()
        shares = np.bincount(found["diagnoses"].combine_chunks().flatten(), minlength=4) / 300
        assert np.abs(shares - 0.25).max() < 0.12

    def test_what_is_saved_samples_the_same(self, release, tmp_path):
        release.save(tmp_path / "sets.sfm")
        assert sfumato.load(tmp_path / "sets.sfm").sample(100, seed=4).equals(release.sample(100, seed=4))

    def test_rows_do_not_depend_on_their_number(self, release):
        assert release.sample(20_000, seed=5)[:50].equals(release.sample(50, seed=5))


class TestSamples:
    def test_no_set_is_longer_than_max_length(self, release):
        assert release.sample(5_000, seed=0)["diagnoses"].map(len).max() == 3

    def test_given_items(self, release):
        given = {"diagnoses": {"I10": True, "J45": False}, "sex": "f"}
        found = release.sample(2_000, seed=0, given=given)
        table = held(found)
        assert table["I10"].all()
        assert not table["J45"].any()
        assert set(found["sex"]) == {"f"}
        plain = release.sample(60_000, seed=1)
        others = held(plain)
        like = others["I10"] & ~others["J45"] & (plain["sex"] == "f")
        assert abs(table["E11"].mean() - others.loc[like, "E11"].mean()) < 0.06
        assert abs(found["age"].mean() - plain.loc[like, "age"].mean()) < 2.5

    def test_given_items_stay_where_sets_are_cut(self, release):
        given = {"diagnoses": {"I10": True, "E11": True, "I50": True}}
        assert all(set(cell) == {"I10", "E11", "I50"} for cell in release.sample(300, seed=0, given=given)["diagnoses"])

    def test_class_counts_beside_given_items(self, release):
        found = release.sample(class_counts={"f": 30, "m": 10}, given={"diagnoses": {"F32": True}}, seed=0)
        assert found["sex"].value_counts().to_dict() == {"f": 30, "m": 10}
        assert held(found)["F32"].all()

    def test_replicates(self, release):
        tables = list(release.replicates(2, n=500, seed=0))
        assert all(table["diagnoses"].map(len).max() <= 3 for table in tables)
        assert (held(tables[0]).mean() - held(tables[1]).mean()).abs().max() < 0.15


class TestWhatIsSaidOfThem:
    def test_evaluation_has_a_column_for_each_item(self, frame, release):
        schema, sample = SCHEMA, release.sample(ROWS, seed=0)
        assert total_variation(frame, frame, schema=schema, k=3) == 0
        empty = frame.assign(diagnoses=[[]] * ROWS)
        cut = frame.assign(diagnoses=[cell[:3] for cell in frame["diagnoses"]])
        assert total_variation(frame, empty, schema=schema, k=1) == pytest.approx(held(cut).mean().sum() / 7)
        found = evaluate(frame, sample, schema=schema, target="sex")
        assert found["fidelity"]["tvd_2way"] < 0.06
        assert found["utility"]["auroc"] > 0.6  # by depression

    @pytest.mark.slow
    def test_pages_and_answers_name_items(self, frame, release, tmp_path):
        release.report(tmp_path / "page.html")
        release.report(tmp_path / "real.html", real=frame[:500])
        for page in ("page.html", "real.html"):
            assert "diagnoses: E11" in (tmp_path / page).read_text()
        assert "diagnoses: E11" in release._repr_html_()
        assert "diagnoses: E11" in set(release.answers()["first"])

    def test_a_search_scores_them(self, frame):
        found = sfumato.tune(frame, method=[METHOD], schema=SCHEMA, mean_repetitions=1, seed=0)
        assert found.sample(100, seed=0)["diagnoses"].map(len).max() <= 3


class TestRefused:
    @pytest.mark.parametrize("method", ["dpgm", "p3gm", "independent-items", "latent-classes", "dpmix"])
    def test_by_other_methods(self, frame, method):
        with pytest.raises(ConfigError, match=f"beside other columns for the method {method}, got sets.*'diagnoses'"):
            sfumato.fit(frame, SCHEMA, epsilon=1.0, method=method)

    @pytest.mark.parametrize(
        ("changes", "target", "error", "message"),
        [
            ({"diagnoses": ItemSet(n_items=65, max_length=2)}, None, SchemaError, "at most 64 items"),
            ({}, "diagnoses", SchemaError, "sets in 'diagnoses'"),
            ({}, "diagnoses: I10", SchemaError, "released column"),
            ({"diagnoses: I10": Boolean()}, None, SchemaError, "'diagnoses: I10'"),
        ],
    )
    def test_before_a_record_is_read(self, frame, changes, target, error, message):
        schema = dataclasses.replace(SCHEMA, columns={**SCHEMA.columns, **changes})
        with pytest.raises(error, match=message):
            METHOD.plan(schema, target=target)

    def test_what_a_release_cannot_do(self, release):
        with pytest.raises(ConfigError, match="'diagnoses'"):
            release.sample(5, unique_rows="drop")
        for ask in (lambda: release.mean("diagnoses"), lambda: release.crosstab("diagnoses", "sex")):
            with pytest.raises(ConfigError, match="got 'diagnoses'"):
                ask()
        with pytest.raises(ConfigError, match="item of column 'diagnoses', got 'X'"):
            release.share({"diagnoses": "X"})

    def test_open_columns(self, frame):
        open_age = {"rows": ROWS, "columns": {"age": {"kind": "integer", "discover": True}}}
        open_age["columns"]["diagnoses"] = {"kind": "set", "items": list(ITEMS), "max_length": 2}
        with pytest.raises(SchemaError, match="images or sets"):
            sfumato.fit(frame, open_age, epsilon=1.0)


def test_processes_sum_to_the_same_release(frame):
    one, two = (fitted(frame, workers=workers) for workers in (None, 2))
    assert one.sample(50, seed=0).equals(two.sample(50, seed=0))
    assert all(np.array_equal(a.value, b.value) for a, b in zip(one.measurements, two.measurements, strict=True))


def test_a_manifest_that_names_another_sampler_is_refused(release, tmp_path):
    for sampler in (
        {"name": "independent_items"},
        {"name": "table_softmax", "target": "diagnoses"},
    ):
        dataclasses.replace(release, sampler=sampler).save(tmp_path / "bad.sfm", overwrite=True)
        with pytest.raises(ReleaseError):
            sfumato.load(tmp_path / "bad.sfm")
