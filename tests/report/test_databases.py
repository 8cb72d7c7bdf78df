"""The page of a database: a part for every table, and what links them."""

import re

import numpy as np
import pytest

from fixtures.database import ruled_document, ruled_hospital
from sfumato import MaxEntropy, Schema
from sfumato.evaluate.database_scores import count_units, read_tables
from sfumato.report.linked import linked_content

N = 300
SCHEMA = Schema.from_dict(ruled_document(N))


@pytest.fixture(scope="module")
def tables():
    return ruled_hospital(N, 1)


@pytest.fixture(scope="module")
def release(tables):
    return MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=100).fit(tables, schema=SCHEMA, seed=1)


@pytest.mark.slow
def test_every_table_has_its_part_and_links_go_where_they_say(release, tables, tmp_path):
    release.report(tmp_path / "page.html")
    release.report(tmp_path / "real.html", real=tables)
    for name in ("page", "real"):
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
        assert [f"Columns of {table}" in page for table in tables] == [True] * 4
        assert [f"Linked rows of {table}" in page for table in tables] == [False, True, True, True]
        assert "number of visits" in page
        broken = re.findall(r"<code>(\{.*?\})</code></th><td class=\"number\">([0-9.]+)", page)
        assert {share for _, share in broken} == {"0.00"}
        assert len(broken) == len(SCHEMA.rules)


def test_a_table_is_read_with_the_rows_above_it(tables):
    found = read_tables(tables, SCHEMA)
    assert count_units(tables, SCHEMA) == N
    joined = tables["measurements"].merge(tables["visits"], on="visit").merge(tables["persons"], on="person")
    known = found["measurements"].known
    for name, span in (("value", 10), ("end", 1000), ("age", 100)):
        assert np.allclose(np.sort(known.columns[name]), np.sort(joined[name]) / span)
    assert np.corrcoef(known.columns["value"], known.columns["score"])[0, 1] == pytest.approx(
        np.corrcoef(joined["value"], joined["score"])[0, 1]
    )
    assert found["persons"].rows is None
    assert found["visits"].rows.n_units == N


def test_a_table_without_rows_has_no_part(release, tables):
    none = {**tables, "drugs": tables["drugs"].head(0)}
    assert list(read_tables(none, SCHEMA)) == ["persons", "visits", "measurements"]
    assert list(linked_content(release, none, 0)["tables"]) == ["persons", "visits", "measurements"]
