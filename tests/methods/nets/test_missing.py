"""Missing numbers of methods with a decoder: as often as they were, and where they were."""

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch", reason="networks need the extra nets")

import sfumato
from sfumato.columns.kinds import Boolean, Continuous, Integer
from sfumato.schema.schema import Schema
from sfumato.settings import StandardNormal

N = 4000
SCHEMA = Schema(
    rows=N,
    columns={
        "age": Integer(lower=0, upper=99, nullable=True),
        "share": Continuous(lower=0.0, upper=1.0, nullable=True),
        "ill": Boolean(),
    },
)


@pytest.fixture(scope="module")
def table():
    """Ages are missing of 2 % of the well and of 30 % of the ill; shares never."""
    rng = np.random.default_rng(0)
    ill = rng.random(N) < 0.4
    age = rng.integers(0, 100, N).astype(object)
    age[rng.random(N) < np.where(ill, 0.3, 0.02)] = None
    return pa.table({"age": pa.array(age.tolist(), pa.int64()), "share": rng.random(N), "ill": ill})


@pytest.mark.parametrize(
    ("method", "settings", "target", "least"),
    [
        ("p3gm", {}, "ill", 0.1),
        pytest.param("dpgm", {}, None, 0.02, marks=pytest.mark.slow),
        pytest.param("p3gm", {"prior": StandardNormal()}, None, None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_numbers_are_missing_as_often_as_they_were(table, method, settings, target, least):
    release = sfumato.fit(table, SCHEMA, epsilon=8.0, method=method, settings=settings, target=target, seed=0)
    rows = release.sample(10_000, seed=1)
    missing, ill = np.asarray(rows["age"].is_null()), np.asarray(rows["ill"])
    assert missing.mean() == pytest.approx(0.13, abs=0.03)
    assert np.asarray(rows["share"].is_null()).mean() < 0.02
    if least is not None:
        assert missing[ill].mean() - missing[~ill].mean() > least
