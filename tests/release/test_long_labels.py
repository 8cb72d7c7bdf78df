"""A small file must not make rows that fill the memory: a label may be long, and stands in the file but once."""

import json

import numpy as np
import pyarrow as pa
import pytest

from fixtures.hostile import forge
from sfumato import MaxEntropy, Schema, load
from sfumato.columns import Categorical, DateTime, Image, Integer, ItemSet
from sfumato.errors import ReleaseError

LONG = 100_000


def release_of(columns, length, tmp_path):
    """A release of categorical columns whose labels are of some length, as a stranger may write one."""
    kind = Categorical(categories=("u", "v"))
    schema = Schema(columns=dict.fromkeys(columns, kind), rows=1000)
    cells = np.random.default_rng(0).choice(["u", "v"], (1000, len(columns)))
    data = pa.table({name: cells[:, j] for j, name in enumerate(columns)})
    MaxEntropy(epsilon=1.0).fit(data, schema=schema, seed=0).save(tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    manifest = json.loads(path.read_text())
    for name in columns:
        manifest["schema"]["columns"][name]["categories"] = [letter * length for letter in "uv"]
    forge(manifest)
    path.write_text(json.dumps(manifest))
    return tmp_path / "r"


@pytest.fixture
def pool():
    """Arrow's memory of one test."""
    before = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counted)
    yield counted
    pa.set_memory_pool(before)


def test_hardening_4_five_rows_take_the_memory_of_five_rows(tmp_path, pool):
    release = load(release_of(["a"], LONG, tmp_path))
    table = pa.concat_tables(release.batches(5, seed=0))
    assert table.num_rows == 5
    assert pool.max_memory() < 64 * LONG  # once it was 16,384 of them


def test_a_block_is_bounded_by_its_bytes(tmp_path, pool):
    release = load(release_of(list("abcdefgh"), LONG, tmp_path))
    sizes = []
    for batch in release.batches(400, seed=0):
        sizes.append(batch.num_rows)
        del batch
    assert sum(sizes) == 400
    assert max(sizes) * 8 * LONG <= 2**26
    assert pool.max_memory() < 4 * 2**26


def test_rows_do_not_depend_on_how_many_are_made_at_once(tmp_path, monkeypatch):
    release = load(release_of(["a", "b"], 3, tmp_path))
    whole = pa.concat_tables(release.batches(2000, seed=3)).combine_chunks()
    monkeypatch.setattr("sfumato.release.blocks._BLOCK_BYTES", 600)
    parts = list(release.batches(2000, seed=3))
    assert max(part.num_rows for part in parts) == 100
    assert pa.concat_tables(parts).combine_chunks() == whole
    assert [part.num_rows for part in release.batches(0, seed=3)] == [0]


def test_rows_of_more_than_a_block_are_refused(tmp_path):
    with pytest.raises(ReleaseError, match="labels are too long"):
        load(release_of(["a", "b"], 9 << 20, tmp_path))


def test_the_most_bytes_of_a_cell():
    assert Categorical(categories=("a", "éé"), other="a longer one").cell_bytes == 12
    assert Integer(lower=-(2**60), upper=2**60).cell_bytes >= len(str(-(2**60)))
    assert DateTime(lower="2020-01-01", upper="2020-12-31", format="day %d of %B, %Y").cell_bytes >= 30
    assert ItemSet(items=("bread", "milk"), max_length=9).cell_bytes >= 2 * len("bread")
    assert Image(shape=(28, 28)).cell_bytes > 0  # a block of pictures is bounded by their pixels
