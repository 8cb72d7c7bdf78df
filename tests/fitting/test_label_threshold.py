"""How rare a label may be and still be kept: the forecast against what discovery does."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fixtures.costly import slow_after
from sfumato import MaxEntropy, Schema
from sfumato.columns.bounded import OPEN_UNITS
from sfumato.columns.kinds import Categorical, Identifier, Open
from sfumato.data_ledger.journal import Journal
from sfumato.fitting.account import Account
from sfumato.fitting.discovery import discover, label_threshold
from sfumato.io.sources import open_source
from sfumato.mechanisms.noise import SeededNoise
from sfumato.privacy.ledger import Ledger
from sfumato.schema.unit import Unit


def _found_labels(schema, plan, counts, seed):
    """Return the labels that one discovery finds of labels with these counts of units, all rows of a unit alike."""
    m = 1 if schema.unit is None else schema.unit.max_rows
    words = np.repeat([f"w{i}" for i in range(len(counts))], np.asarray(counts) * m)
    columns = {name: words if name == "word" else np.arange(len(words)) % 50 for name in schema.open}
    frame = pd.DataFrame(columns | ({} if schema.unit is None else {"who": np.arange(len(words)) // m}))
    account = Account(Ledger(plan, None), SeededNoise(seed), Journal(None, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(open_source(frame), schema, n=len(words), account=account, measured=[], target="word")
    return set(found.of_kind(Categorical)["word"].labels)


@pytest.mark.parametrize("epsilon", slow_after(1, [0.5, 4.0]))
@pytest.mark.parametrize(("others", "max_rows"), [((), 1), (("continuous",) * 7, 1), (("unknown",) * 3, 4)])
def test_the_threshold_of_labels_is_forecast(epsilon, others, max_rows):
    columns = {"word": Open(kind="categorical")} | {f"x{i}": Open(kind=kind) for i, kind in enumerate(others)}
    unit = None if max_rows == 1 else Unit(column="who", max_rows=max_rows)
    columns |= {} if unit is None else {"who": Identifier()}
    schema = Schema(columns=columns, unit=unit, rows=100_000)
    plan = MaxEntropy(epsilon=epsilon, delta=1e-6).plan(schema)
    forecast = label_threshold(plan, schema)
    assert forecast is not None
    counts = np.repeat([round(forecast / 1.5), round(forecast), round(forecast * 1.5)], 12)
    kept = np.zeros(3)
    for seed in range(2):
        found = _found_labels(schema, plan, counts, seed)
        kept += [sum(f"w{i}" in found for i in range(12 * part, 12 * part + 12)) / 24 for part in range(3)]
    assert kept[0] < 0.15
    assert 0.2 < kept[1] < 0.8
    assert kept[2] > 0.85


def test_without_open_labels_there_is_no_threshold():
    schema = Schema(columns={"age": Open(kind="integer")}, rows=1000)
    assert label_threshold(MaxEntropy(epsilon=1).plan(schema), schema) is None


def test_of_a_unit_one_row_is_read():
    """The noise is that of one row, and how many units there are is measured."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(3_000), 5)
    frame = pd.DataFrame({"who": who, "word": np.where(rng.random(15_000) < 0.5, "a", "b"), "x": rng.random(15_000)})
    columns = {"who": Identifier(), "word": Open(kind="categorical"), "x": Open(kind="continuous")}
    schema = Schema(columns=columns, unit=Unit(column="who", max_rows=5), rows=15_000)
    release = MaxEntropy(epsilon=1, delta=1e-6).fit(frame, schema=schema, seed=0)
    assert set(release.schema.of_kind(Categorical)["word"].labels) == {"a", "b", "other"}
    listed = next(m for m in release.measurements if m.name == OPEN_UNITS)
    plan = MaxEntropy(epsilon=1, delta=1e-6).plan(schema)
    assert listed.noise_std == pytest.approx(
        plan["discovery"].noise_multiplier * 4**0.5
    )  # numbers of x are counted twice
    assert abs(float(listed.value[-1]) - 3_000) < 5 * listed.noise_std
