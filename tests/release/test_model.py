"""Sampling: reproducible, in blocks, in the form that was fitted."""

import os
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures import tables
from fixtures.releases import SMALL, small_frame
from sfumato import MaxEntropy
from sfumato.columns.kinds import Categorical
from sfumato.errors import ConfigError, OutputError, PrivacyWarning, ReleaseError, SchemaError
from sfumato.io.sources import open_source
from sfumato.release import SourceForm
from sfumato.release.blocks import SAMPLE_BLOCK, drawn_in_order
from sfumato.release_front import Release
from sfumato.schema.schema import Schema


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(people):
    first = people.sample(500, seed=3)
    pd.testing.assert_frame_equal(first, people.sample(500, seed=3))
    assert not first.equals(people.sample(500, seed=4))
    assert not people.sample(500).equals(people.sample(500))


@pytest.mark.parametrize("n", [0, 1, 17, SAMPLE_BLOCK - 1, SAMPLE_BLOCK, SAMPLE_BLOCK + 1])
def test_the_first_rows_do_not_depend_on_n(small, n):
    whole = pa.concat_tables(small.batches(2 * SAMPLE_BLOCK + 5, seed=9))
    some = pa.concat_tables(small.batches(n, seed=9))
    assert some.num_rows == n
    assert some.equals(whole.slice(0, n))


def test_blocks_differ(small):
    first, second = small.batches(2 * SAMPLE_BLOCK, seed=9)
    assert first.num_rows == second.num_rows == SAMPLE_BLOCK
    assert not first.equals(second)


def test_the_public_number_of_rows_is_the_default(small):
    assert len(small.sample(seed=0)) == 200


@pytest.mark.parametrize(
    "arguments",
    [{"n": -1}, {"n": 1.5}, {"n": "3"}, {"n": True}, {"seed": -1}, {"seed": 0.5}, {"seed": 2**63}],
    ids=str,
)
def test_arguments_outside_their_domain_are_refused_at_once(small, arguments):
    with pytest.raises(ConfigError):
        small.batches(**{"n": 5, **arguments})


def test_numbers_of_numpy_will_do(small):
    pd.testing.assert_frame_equal(small.sample(np.int64(20), seed=np.uint8(7)), small.sample(20, seed=7))


def test_rows_are_of_the_schema(people):
    rows = people.sample(5000, seed=0)
    assert tuple(rows.columns) == tables.RELEASED
    assert rows["sex"].isin(["f", "m"]).all()
    assert rows["age"].between(0, 100).all()
    assert rows["weight"].dropna().between(0, 120).all()
    np.testing.assert_allclose(rows["weight"].dropna() * 10, np.rint(rows["weight"].dropna() * 10))
    assert rows["seen"].between("2010-01-01", "2020-12-31").all()
    assert rows.dtypes.drop(["member"]).equals(tables.frame().dtypes[list(tables.RELEASED)].drop(["member"]))


def test_memory_does_not_grow_with_n(small):
    def peak(n):
        tracemalloc.start()
        rows = sum(batch.num_rows for batch in small.batches(n, seed=1))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert rows == n
        return size

    peak(1)
    assert peak(12 * SAMPLE_BLOCK) < 1.2 * peak(SAMPLE_BLOCK) + 1e6


@pytest.mark.filterwarnings("ignore:The storage types:sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "csv", "parquet"])
def test_tables_come_back_as_they_came(container, tmp_path):
    frame = small_frame()
    data = {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame(pl.from_pandas(frame)).with_columns(
            pl.col("label").cast(pl.Enum(["no", "yes"])), pl.col("grade").cast(pl.Categorical)
        ),
        "pyarrow": lambda: pa.Table.from_pandas(frame, preserve_index=False),
        "csv": lambda: tables.write_csv(tmp_path / "d.csv", frame),
        "parquet": lambda: frame.to_parquet(tmp_path / "d.parquet") or tmp_path / "d.parquet",
    }[container]()
    release = MaxEntropy(epsilon=1.0).fit(data, schema=SMALL, target="label", seed=1, as_source=True)
    release.check()
    rows = release.sample(50, seed=2)
    if container == "pandas":
        assert rows.dtypes.equals(frame.dtypes)
    elif container == "polars":
        assert rows.schema == data.schema
    else:
        source = open_source(data)
        assert {f.name: f.type for f in rows.schema} == dict(source.storage)
    assert container == release.form.container


def test_pictures_come_back_as_they_came(pictures):
    rows = pictures.sample(30, seed=1)
    assert set(rows) == {"x", "y"}
    assert rows["x"].shape == (30, 4, 4)
    assert rows["x"].dtype == np.uint8
    assert set(rows["y"].tolist()) <= {0, 1, 2}
    whole = pictures.sample(40_000, seed=1)
    np.testing.assert_array_equal(whole["x"][:30], rows["x"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_samples_are_written_as_they_are_drawn(people, tmp_path, suffix):
    path = tmp_path / f"rows{suffix}"
    people.write_sample(path, 20_000, seed=5)
    if suffix == ".parquet":
        assert pq.read_table(path).equals(pa.concat_tables(people.batches(20_000, seed=5)))
    else:
        assert len(pd.read_csv(path)) == 20_000
    first = path.read_bytes()
    with pytest.raises(OutputError, match="--overwrite"):
        people.write_sample(path, 5)
    people.write_sample(path, 20_000, seed=5, overwrite=True)
    assert path.read_bytes() == first
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_release_says_what_it_is_and_nothing_more(people):
    text = repr(people)
    assert "table_softmax" in text
    assert "NOT PRIVATE" in text
    assert "240" not in text


def changed(release, **fields):
    form = release.form
    parts = {"container": form.container, "storage": form.storage, "dtypes": form.dtypes}
    parts |= {"keys": form.keys} | fields
    return Release(
        release.schema, release.certificate, release.sampler, release.parameters,
        release.measurements, SourceForm(**parts),
    )  # fmt: skip


def test_a_storage_type_that_cannot_hold_a_column_is_refused(small):
    for storage in (pa.int8(), pa.time32("s"), pa.null(), pa.dictionary(pa.int8(), pa.date32())):
        with pytest.raises(SchemaError, match="'grade'"):
            changed(small, storage={**small.form.storage, "grade": storage}).check()


@pytest.mark.parametrize("dtype", ["int8", "float16", "datetime64[ns]", "bool", "m8[s]", ","])
def test_dtypes_of_another_storage_are_refused(small, dtype):
    dtypes = {**small.form.dtypes, "age": dtype}
    with pytest.raises(ReleaseError, match="dtypes"):
        changed(small, dtypes=dtypes).check()


def test_levels_that_are_never_drawn_keep_their_place():
    kind = Categorical(categories=("a", "b", "c", "d"))
    frame = pd.DataFrame({"g": pd.Categorical(["a", "b"] * 100, categories=list("abcd"))})
    schema = Schema(columns={"g": kind}, rows=200)
    with pytest.warns(PrivacyWarning):
        release = MaxEntropy(epsilon=1.0).fit(frame, schema=schema, seed=1, as_source=True)
    assert list(release.sample(5, seed=0)["g"].cat.categories) == list("abcd")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"given": {"age": 4}}, {"class_counts": {"yes": 30_000, "no": 10_000}}], ids=str
)
def test_workers_draw_the_rows_of_one_process(small, options):
    n = None if "class_counts" in options else 2 * SAMPLE_BLOCK + 77
    alone = pa.concat_tables(small.batches(n, seed=5, **options))
    together = pa.concat_tables(small.batches(n, seed=5, workers=2, **options))
    assert together.equals(alone)


def test_a_number_of_workers_that_is_none_is_refused(small):
    with pytest.raises(ConfigError, match="workers"):
        small.batches(5, workers=0)


class Dying:
    """A worker that ends."""

    def each(self, block, classes):
        os._exit(3)


@pytest.mark.slow
def test_a_worker_that_ends_is_one_clear_error():
    with pytest.raises(ReleaseError, match="A worker ended"):
        list(drawn_in_order(Dying(), [(0, None), (1, None)], 2))
