"""Evaluation under schemas that leave columns open, and of tables that lack columns of each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.command_line import call
from sfumato.errors import ConfigError, SchemaError
from sfumato.evaluate import evaluate

N = 400


def table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N), "code": rng.integers(1, 4, N), "sex": rng.choice(["f", "m"], N),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, N), "D"),
        }
    )  # fmt: skip


__all__ = ["call"]
KINDS = {"age": "integer", "code": "categorical", "sex": "unknown", "day": "datetime"}


def opened(**declared: object) -> sfumato.Schema:
    return sfumato.describe(table(0), {**KINDS, **declared})


def test_open_columns_are_declared_by_the_real_rows() -> None:
    found = evaluate(table(0), table(1), schema=opened(), target="sex")
    declared = {
        "age": {"kind": "integer", "lower": 18, "upper": 89},
        "code": {"kind": "categorical", "categories": ["1", "2", "3"], "other": "other", "nullable": True},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-04-08"},
    }
    own = evaluate(table(0), table(1), schema={"columns": declared}, target="sex")
    assert found["fidelity"]["tvd_1way"] == pytest.approx(own["fidelity"]["tvd_1way"], abs=0.02)
    assert found["utility"] is not None
    assert found["not_compared"] == {"real": [], "synthetic": []}


def test_a_column_that_one_table_lacks_is_named() -> None:
    real = table(0)
    renamed = table(1).rename(columns={"day": "date"})[["date", "sex", "code", "age"]]
    found = evaluate(real, renamed, schema=opened())
    assert found["not_compared"] == {"real": ["day"], "synthetic": ["date"]}
    declared = opened(day={"kind": "datetime", "lower": "2020-01-01", "upper": "2021-01-01"})
    with pytest.raises(SchemaError, match="day"):
        evaluate(real, renamed, schema=declared)
    with pytest.raises(ConfigError, match="in common"):
        evaluate(real, pd.DataFrame({"other": [1.0, 2.0]}), schema=opened())


def test_the_order_of_columns_does_not_matter() -> None:
    turned = table(1)[["sex", "day", "code", "age"]]
    found, again = (evaluate(table(0), rows, schema=opened()) for rows in (table(1), turned))
    assert found["fidelity"] == again["fidelity"]


def test_the_command_names_what_it_leaves_out_and_takes_an_open_schema(tmp_path, call) -> None:
    paths = {name: tmp_path / f"{name}.csv" for name in ("real", "lacks", "more")}
    real = table(0)
    real.to_csv(paths["real"], index=False)
    real.drop(columns="code").to_csv(paths["lacks"], index=False)
    real.assign(extra=1).to_csv(paths["more"], index=False)
    found = call("evaluate", "table", paths["real"], paths["lacks"])
    assert found.code == 0, found.err
    assert "Not compared: 'code' of REAL" in found.err + found.out
    found = call("evaluate", "table", paths["real"], paths["more"], "--json")
    assert found.json["not_compared"] == {"real": [], "synthetic": ["extra"]}
    (tmp_path / "open.yaml").write_text(str(opened()), encoding="utf-8")
    found = call("evaluate", "table", paths["real"], paths["more"], "--schema", tmp_path / "open.yaml", "--json")
    assert found.code == 0, found.err


@pytest.mark.slow
def test_of_a_release_its_own_schema_stands_for_an_open_one(tmp_path, call) -> None:
    real, path = table(0), tmp_path / "real.csv"
    real.to_csv(path, index=False)
    (tmp_path / "open.yaml").write_text(str(opened()), encoding="utf-8")
    release = sfumato.fit(path, opened(), epsilon=20.0, delta=1e-6)
    release.save(tmp_path / "r.sfm")
    found = call("evaluate", "table", path, tmp_path / "r.sfm", "--schema", tmp_path / "open.yaml", "--json").json
    assert found["fidelity"] == call("evaluate", "table", path, tmp_path / "r.sfm", "--json").json["fidelity"]
    assert release.evaluate(path)["private"] is False
