"""Plans of polars: computed as they are, once."""

import polars as pl

from fixtures.cells import read_cells as read
from fixtures.silence import silent
from sfumato.io.sources import open_source


def test_a_plan_is_computed_as_it_is(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;x\n2;\n")
    for plan in (pl.scan_csv(path, separator=";"), pl.read_csv(path, separator=";").lazy()):
        source = open_source(plan)
        assert (source.computed, source.container) == (True, "polars")
        assert read(source) == {"a": [1, 2], "b": ["x", None]}


def test_what_stops_it_is_not_shown(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": ["1", "no number"]}).write_parquet(path)
    source = open_source(pl.scan_parquet(path).with_columns(pl.col("a").cast(pl.Int32)))
    assert "the polars lazy frame" in silent(source.keep, "no number")


def test_a_frame_is_none():
    assert not open_source(pl.DataFrame({"a": [1]})).computed
