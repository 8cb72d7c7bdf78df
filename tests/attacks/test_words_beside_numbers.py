"""One record more, or another one, with any cell in a column of numbers and words: coupled fits are the same."""

import numpy as np
import pandas as pd
import pytest

from harness.coupling import attack, leaves
from sfumato import MaxEntropy, Schema
from sfumato.columns import Categorical, Integer
from sfumato.io.sources import open_source
from sfumato.schema.open_schema import OpenSchema

N = 300
LONE = "a word of one person"
OPEN = [("<5", False), (LONE, False), (LONE, True), (12, True), (None, False), ("<12", True)]
CLOSED = [("<5", True), (LONE, False), (None, True), ("3.5", False), (1e300, False)]
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
DECLARED = Schema(
    columns={
        "x": Integer(lower=0, upper=40, atoms=("<5", "unknown"), nullable=True),
        "sex": Categorical(categories=("f", "m")),
    },
    rows=N,
)


def table():
    numbers = np.random.default_rng(0).integers(5, 40, N).tolist()
    cells = ["<5" if i % 4 == 0 else "unknown" if i % 30 == 1 else number for i, number in enumerate(numbers)]
    return pd.DataFrame({"x": pd.Series(cells, dtype=object), "sex": ["f", "m"] * (N // 2)})


@pytest.mark.parametrize(("cell", "replaced", "is_open"), [*((*c, True) for c in OPEN), *((*c, False) for c in CLOSED)])
def test_any_cell_of_one_record(monkeypatch, cell, replaced, is_open):
    schema = OpenSchema.of(open_source(table()), rows=N) if is_open else DECLARED

    def fit(data):
        return leaves(MaxEntropy(epsilon=8.0, delta=1e-6).fit(data, schema=schema, seed=1))

    one, record = table(), pd.DataFrame({"x": pd.Series([cell], dtype=object), "sex": ["f"]})
    other = pd.concat([one.iloc[:-1] if replaced else one, record], ignore_index=True)
    attack(monkeypatch, fit, one, other, replaced=replaced)
