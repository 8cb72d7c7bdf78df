"""A private release of a table with hostile names, and its folder to publish."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.command_line import call
from fixtures.publish_names import LABELS, NAMES, TITLE
from sfumato import MaxEntropy, Schema
from sfumato.columns import Boolean, Categorical, Continuous, DateTime, Integer

__all__ = ["call"]


@pytest.fixture(scope="session")
def hostile():
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame({
        NAMES[0]: np.array(LABELS)[rng.integers(0, 4, n)],
        NAMES[1]: rng.integers(0, 10, n),
        NAMES[2]: rng.random(n),
        NAMES[3]: rng.random(n) < 0.5,
        NAMES[4]: pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        NAMES[5]: np.array(["no", "yes"])[rng.integers(0, 2, n)],
    })  # fmt: skip
    columns = {
        NAMES[0]: Categorical(categories=LABELS),
        NAMES[1]: Integer(lower=0, upper=9),
        NAMES[2]: Continuous(lower=0, upper=1, resolution=0.01),
        NAMES[3]: Boolean(),
        NAMES[4]: DateTime(lower="2024-01-01", upper="2024-12-31"),
        NAMES[5]: Categorical(categories=("no", "yes")),
    }
    schema = Schema(columns=columns, rows=n, sources={NAMES[1]: {"lower": "law", "upper": "codebook"}})
    return MaxEntropy(epsilon=1.0).fit(frame, schema=schema, target=NAMES[5])


@pytest.fixture(scope="session")
def folder(hostile, tmp_path_factory):
    place = tmp_path_factory.mktemp("pack")
    hostile.save(place / "r.sfm")
    sfumato.new_key(place / "key")
    sfumato.sign_release(place / "r.sfm", place / "key")
    sfumato.pack(
        place / "r.sfm",
        place / "out",
        n=50,
        seed=3,
        formats=("csv", "parquet"),
        publication={"title": TITLE, "publisher": "Office", "license": "CC-BY-4.0", "date": "2026-01-02"},
        public_key=place / "key.pub",
    )
    return place / "out"
