"""Total variation as a count of records: its value, how far neighbours are apart, its noise, and what is refused."""

import itertools

import numpy as np
import pytest

from harness.cases import TABLE
from harness.privacy import STAGE, FakeRecords, accept_only_unit_scale, ledger_for
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.misplaced import noisy_misplaced
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import Exact, reduce
from sfumato.search.pair_scores import MarginalCounts, MarginalLayout

SIZES = (3, 2)
STARTS = np.cumsum([0, *SIZES])
EDGE = 1 + 1e-12
SILENT = NoNoise()


def sealed(counts, *, unit=1):
    return Exact(
        np.asarray(counts, dtype=np.int64),
        name="counts",
        norm_bound=unit * np.sqrt(len(SIZES)),
        replace_distance=np.sqrt(2),
        step=1.0,
    )


def measured(counts, samples, noise=SILENT, **options):
    exact = sealed(counts, **options)
    return noisy_misplaced(exact, samples, STARTS, stage=STAGE, ledger=ledger_for(3.0), noise=noise)


def exact_value(counts, samples) -> float:
    """The largest N · TV of two tables, as its definition says."""
    found = []
    for a, b in itertools.pairwise(STARTS):
        h, m = counts[a:b], samples[a:b]
        found.append(np.abs(h - h.sum() * m / m.sum()).sum() / 2)
    return max(found)


def samples_of(rng, most):
    total = int(rng.integers(1, most))
    return np.concatenate([rng.multinomial(total, rng.dirichlet(np.full(size, 0.3))) for size in SIZES])


def record(i, j):
    """What one record adds: a 1 to a cell of each table."""
    return np.eye(SIZES[0], dtype=int)[i].tolist() + np.eye(SIZES[1], dtype=int)[j].tolist()


RECORDS = np.array([record(i, j) for i in range(SIZES[0]) for j in range(SIZES[1])])


def test_the_value_is_the_largest_number_of_records_in_other_cells():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.multinomial(rng.integers(0, 50), np.full(len(RECORDS), 1 / len(RECORDS))) @ RECORDS
        samples = samples_of(rng, 1000)
        assert float(measured(counts, samples).value) == pytest.approx(exact_value(counts, samples), abs=1e-9)


def test_neighbours_are_within_the_bound_and_come_near_it():
    """Every small table, every release of some samples, and every record that is added, removed or replaced."""
    rng = np.random.default_rng(1)
    largest = {"add": 0.0, "replace": 0.0}
    for _ in range(300):
        counts = rng.integers(0, 6, len(RECORDS)) @ RECORDS
        samples = samples_of(rng, 2000)
        base = float(measured(counts, samples).value)
        beside = [float(measured(counts + added, samples).value) for added in RECORDS]
        largest["add"] = max(largest["add"], *(abs(value - base) for value in beside))
        pairs = itertools.combinations(beside, 2)
        largest["replace"] = max(largest["replace"], *(abs(one - other) for one, other in pairs))
    assert 0.95 <= largest["add"] <= EDGE
    assert 0.95 <= largest["replace"] <= EDGE


@pytest.mark.parametrize("unit", [2, 5])
def test_a_unit_of_several_records_is_within_its_bound_and_comes_near_it(unit):
    rng = np.random.default_rng(2)
    added, replaced = 0.0, 0.0
    for _ in range(300):
        counts = rng.integers(0, 6, len(RECORDS)) @ RECORDS
        samples = samples_of(rng, 2000)
        owned = [RECORDS[rng.integers(0, len(RECORDS), rng.integers(0, unit + 1))].sum(axis=0) for _ in range(6)]
        owned += [unit * one for one in RECORDS]
        values = [float(measured(counts + rows, samples, unit=unit).value) for rows in owned]
        base = float(measured(counts, samples, unit=unit).value)
        added = max(added, *(abs(value - base) for value in values))
        replaced = max(replaced, max(values) - min(values))
    assert 0.9 * unit <= added <= unit * EDGE
    assert 0.9 * unit <= replaced <= unit * EDGE
    assert measured(counts, samples, SeededNoise(0), unit=unit).noise_std == pytest.approx(3.0 * unit)


def test_the_noise_has_the_stated_law_and_no_other():
    counts, samples, noise = 7 * RECORDS.sum(axis=0), np.array([4, 0, 4, 1, 7]), SeededNoise(3)
    true = exact_value(counts, samples)
    drawn = []
    for _ in range(5_000):
        noisy = measured(counts, samples, noise)
        assert noisy.noise_std == pytest.approx(3.0)
        assert noisy.value.shape == ()
        drawn.append((float(noisy.value) - true) / noisy.noise_std)
    accept_only_unit_scale(np.array(drawn))


def test_it_is_charged_before_noise_is_drawn_and_as_what_it_is():
    plan = Plan([Stage(name=STAGE, noise_multiplier=3.0, replace_distance=1.0)])
    ledger = Ledger(plan, None)
    noisy_misplaced(sealed([1, 2, 3, 4, 2]), [1, 1, 1, 2, 1], STARTS, stage=STAGE, ledger=ledger, noise=SeededNoise(0))
    ledger.close()

    class NeverDrawn(SeededNoise):
        def rounded_gaussian(self, *_):
            raise AssertionError("noise was drawn without a charge")

    with pytest.raises(LedgerError):
        noisy_misplaced(
            sealed([1, 2, 3, 4, 2]), [1, 1, 1, 2, 1], STARTS, stage=STAGE, ledger=ledger, noise=NeverDrawn(0)
        )


@pytest.mark.parametrize("samples", [[1, 1, 1, 2, 2], [0, 0, 0, 0, 0], [2, -1, 2, 1, 2], [1 << 21, 0, 0, 1 << 21, 0]])
def test_samples_that_are_no_counts_of_one_number_are_refused_before_a_charge(samples):
    ledger = ledger_for(3.0)
    with pytest.raises(ConfigError, match="one number of samples"):
        noisy_misplaced(sealed([1, 2, 3, 4, 2]), samples, STARTS, stage=STAGE, ledger=ledger, noise=NoNoise())
    assert not ledger.charged


def test_a_layout_of_a_schema():
    layout = MarginalLayout.of(TABLE, (), ways=1)
    rows = {
        "age": np.array([np.nan, 0.5]),
        "city": np.array([0, 3]),
        "paid": np.array([0.1, 0.9]),
        "member": np.array([0, 1]),
    }
    exact = reduce(MarginalCounts(layout), FakeRecords([rows]))
    noisy = noisy_misplaced(
        exact, exact.whole_in_mechanism(), layout.starts, stage=STAGE, ledger=ledger_for(1.0), noise=NoNoise()
    )
    assert float(noisy.value) == 0
