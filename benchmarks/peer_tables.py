"""The tables of `peers.py`, and the public codes that its peers see instead of values.

Adult is as in `adult.py`. The three NIST excerpts of the American Community Survey come with their schemas. Their
target is whether a person's income lies at or above the median of the state, PINCP_DECILE >= 5: a question with near
equal classes that census data are used for. PINCP and PINCP_DECILE are dropped, or they would answer it. Persons under
15 have no income of their own: false. The tables of P3GM's paper are as in `tables.py`.

A numeric column has 20 bins between the schema's bounds: of equal width, but in credit and esr, whose wide public
bounds would put nearly all rows into two or three of them. There they are equal on the scale of asinh(x/s), s a 200th
of the range: public too, and finer about 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import tables
from adult import COMPLETE_ROWS, POSITIVE, SCHEMA, TARGET
from nist_schema import published_schema

import sfumato
from sfumato.columns.kinds import Boolean, ColumnKind, Continuous, Integer, LevelKind
from sfumato.evaluate.fidelity import BINS, bin_codes, read_bins
from sfumato.io.sources import open_source

NIST_TARGET = "median_income_or_more"


@dataclass(frozen=True)
class Table:
    """Complete records, their public description and what is to be predicted."""

    frame: pd.DataFrame
    schema: sfumato.Schema
    target: str | None
    positive: str
    warped: bool = False
    """Whether bins are equal on the scale of asinh."""


def adult(folder: Path) -> Table:
    frame = pd.read_parquet(folder / "adult.parquet").dropna().reset_index(drop=True)
    if len(frame) != COMPLETE_ROWS:
        raise SystemExit("Expected adult.parquet to hold Adult, got another table.")
    return Table(frame, SCHEMA, TARGET, POSITIVE)


def nist(folder: Path, place: str, rows: int) -> Table:
    frame = pd.read_parquet(folder / f"sdnist_{place}2019.parquet")
    columns = dict(published_schema(folder / f"sdnist_{place}2019.schema.json").columns)
    decile = pd.to_numeric(frame["PINCP_DECILE"], errors="coerce")
    # pandas reads whole numbers with missing cells as floats
    frame = frame.astype(dict.fromkeys(("NOC", "NPF", "POVPIP"), "Int64"))
    frame = frame.drop(columns=["PINCP", "PINCP_DECILE"]).assign(**{NIST_TARGET: decile >= 5})
    del columns["PINCP"], columns["PINCP_DECILE"]
    missing = (*sfumato.Schema(columns={"x": Boolean()}).missing, "N")
    return Table(
        frame,
        sfumato.Schema(columns={**columns, NIST_TARGET: Boolean()}, rows=rows, missing=missing),
        NIST_TARGET,
        "true",
    )


def numeric(folder: Path, name: str) -> Table:
    frame, schema, target = tables.TABLES[name](folder)
    return Table(frame, schema, target, "1", warped=name != "isolet")


TABLES = {
    "adult": adult,
    "credit": lambda folder: numeric(folder, "credit"),
    "esr": lambda folder: numeric(folder, "esr"),
    "isolet": lambda folder: numeric(folder, "isolet"),
    "ma2019": lambda folder: nist(folder, "ma", 7_000),
    "tx2019": lambda folder: nist(folder, "tx", 8_000),
    "national2019": lambda folder: nist(folder, "national", 25_000),
}


def public_domain(schema: sfumato.Schema) -> dict[str, int]:
    """Name to number of codes: declared levels or 20 bins, and one more for missing where it is declared."""
    return {name: _size(schema.columns[name]) for name in schema.released}


def encode(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the codes of rows: the same cells as total variation counts, but of warped columns."""
    codes = dict(read_bins(open_source(frame), table.schema).columns)
    if table.warped:
        kinds = table.schema.columns
        numbers = [name for name in codes if isinstance(kinds[name], Integer | Continuous)]
        codes |= {name: _warp(kinds[name], frame[name].to_numpy(float)) for name in numbers}
    return pd.DataFrame(codes)


def decode(codes: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return rows of codes: labels, and for a bin a uniform one of its values."""
    rng, kinds = np.random.default_rng(0), table.schema.columns

    def values(name: str) -> np.ndarray:
        kind, found = kinds[name], codes[name].to_numpy()
        return (_unwarp if table.warped and isinstance(kind, Integer | Continuous) else _values)(kind, found, rng)

    return pd.DataFrame({name: values(name) for name in codes})


def _edges(kind: Integer | Continuous) -> tuple[float, float, float]:
    """Scale, and the bounds after warping; no column of a warped table is nullable."""
    scale = (kind.upper - kind.lower) / 200
    return scale, float(np.arcsinh(kind.lower / scale)), float(np.arcsinh(kind.upper / scale))


def _warp(kind: Integer | Continuous, values: np.ndarray) -> np.ndarray:
    scale, low, high = _edges(kind)
    share = (np.arcsinh(np.clip(values, kind.lower, kind.upper) / scale) - low) / (high - low)
    return np.clip(np.floor(share * BINS), 0, BINS - 1).astype(np.uint8)


def _unwarp(kind: Integer | Continuous, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    scale, low, high = _edges(kind)
    values = np.clip(
        scale * np.sinh(low + (high - low) * (codes + rng.random(len(codes))) / BINS), kind.lower, kind.upper
    )
    return np.rint(values).astype(int) if isinstance(kind, Integer) else values


def _size(kind: ColumnKind) -> int:
    levels = len(kind.labels) if isinstance(kind, LevelKind) else BINS
    return levels + bool(getattr(kind, "nullable", False))


def _values(kind: ColumnKind, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if isinstance(kind, LevelKind):
        return np.array([*kind.labels, None], dtype=object)[codes]
    if isinstance(kind, Integer):
        values = _whole_values(kind, codes, rng)
    elif isinstance(kind, Continuous):
        values = kind.lower + (kind.upper - kind.lower) * (codes + rng.random(len(codes))) / BINS
    else:
        raise TypeError(f"no bins for {type(kind).__name__}")
    return np.where(codes == BINS, np.nan, values) if kind.nullable else values


def _whole_values(kind: Integer, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a uniform one of the whole numbers in each bin; a bin without any gives the next one below it."""
    every = np.arange(kind.lower, kind.upper + 1)
    bins = bin_codes(kind, kind.code(pa.array(every), missing=()))
    first, end = np.searchsorted(bins, codes, "left"), np.searchsorted(bins, codes, "right")
    chosen = first + np.floor(rng.random(len(codes)) * (end - first)).astype(int)
    return every[np.where(first < end, chosen, np.clip(first - 1, 0, None))]
