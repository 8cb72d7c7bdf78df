"""The score of a search: counts of pairs of cells, and how well they tell near samples from far ones."""

import numpy as np
import pytest

from fixtures import tables
from sfumato.io.sources import open_source
from sfumato.mechanisms.queries import Noisy
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema
from sfumato.search.pair_scores import pair_layout, squared_distance

SCHEMA = tables.schema()
LAYOUT = pair_layout(SCHEMA, "income")
NOISE_STD = 60.0


def counts(frame):
    total = np.zeros(LAYOUT.starts[-1])
    for rows in PrivateData(open_source(frame), SCHEMA).coded():
        LAYOUT.count(total, rows)
    return total


@pytest.fixture(scope="module")
def samples():
    """Records, a sample of the same law, and one whose columns are shuffled against each other."""
    records, near, far = (tables.frame(4_000, seed) for seed in (0, 1, 2))
    far["income"] = np.random.default_rng(0).permutation(far["income"])
    return counts(records), counts(near), counts(far)


def noisy(records, rng):
    return Noisy(records + NOISE_STD * rng.standard_normal(records.size), NOISE_STD)


def test_every_record_is_once_in_every_table(samples):
    for start, end in zip(LAYOUT.starts, LAYOUT.starts[1:], strict=False):
        assert samples[0][start:end].sum() == 4_000
    assert len(LAYOUT.tables) == 21


def test_the_distance_is_unbiased_and_small_for_samples_of_the_same_law(samples):
    records, near, far = samples
    rng = np.random.default_rng(3)
    for other in (near, far):
        exact = squared_distance(Noisy(records, 0.0), other, LAYOUT)
        found = [squared_distance(noisy(records, rng), other, LAYOUT) for _ in range(200)]
        assert np.mean(found) == pytest.approx(exact, abs=4 * np.std(found) / np.sqrt(200))


def test_samples_without_a_record_have_a_distance(samples):
    """As of steps, where no unit has a second row: all cells of theirs are 0."""
    records, near, _ = samples
    none = np.zeros_like(near)
    shares = records / 4_000
    assert squared_distance(Noisy(records, 0.0), none, LAYOUT) == pytest.approx(shares @ shares / len(LAYOUT.tables))
    assert squared_distance(Noisy(none, 0.0), none, LAYOUT) == 0.0


def test_tables_without_a_record_are_shares_of_no_less_than_their_noise(samples):
    """A number of records below its own noise is no divisor: the distance stays that of shares."""
    none = np.zeros_like(samples[0])
    rng = np.random.default_rng(5)
    found = [squared_distance(noisy(none, rng), samples[1], LAYOUT) for _ in range(200)]
    assert np.abs(found).max() < 2.0


def test_one_noise_for_all_ranks_better_than_a_noise_for_each(samples):
    """The design: what scores share cancels, so differences have less noise than scores bought apart."""
    records, near, far = samples
    rng = np.random.default_rng(4)
    gaps, apart = [], []
    for _ in range(200):
        one, other = noisy(records, rng), noisy(records, rng)
        gaps.append(squared_distance(one, far, LAYOUT) - squared_distance(one, near, LAYOUT))
        apart.append(squared_distance(one, far, LAYOUT) - squared_distance(other, near, LAYOUT))
    assert np.mean(gaps) > 4 * np.std(gaps)
    assert np.std(gaps) < 0.6 * np.std(apart)


def test_wide_tables_pair_each_column_with_the_target_or_the_next():
    columns = "\n".join(f"  c{j}: {{kind: integer, lower: 1, upper: 9}}" for j in range(400))
    schema = tables.read_schema(f"rows: 100\ncolumns:\n{columns}\n  y: boolean\n")
    with_target, without = pair_layout(schema, "y"), pair_layout(schema, None)
    assert with_target.tables == tuple((j, 400) for j in range(400))
    assert without.tables[:2] == ((0, 1), (1, 2))
    assert without.tables[-1] == (400, 0)


def test_a_table_of_one_column():
    schema = Schema(columns={"sex": SCHEMA.columns["sex"]}, rows=10)
    assert pair_layout(schema, None).tables == ((0, 0),)


def test_levels_are_merged_evenly():
    labels = ", ".join(f"v{i}" for i in range(40))
    schema = tables.read_schema(
        f"rows: 9\ncolumns:\n  a: {{kind: categorical, categories: [{labels}]}}\n  b: boolean\n"
    )
    layout = pair_layout(schema, None)
    total = np.zeros(layout.starts[-1])
    layout.count(total, {"a": np.arange(40, dtype=np.int32), "b": np.zeros(40, dtype=np.int32)})
    shares = total.reshape(16, 3)[:, 0]
    assert shares.sum() == 40
    assert set(shares) == {1.0, 2.0, 3.0}  # the last run holds what is no label, too
