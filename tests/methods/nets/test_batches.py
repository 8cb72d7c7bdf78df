import numpy as np
import pytest

from harness.privacy import STAGE, FakeRecords
from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import SeededNoise
from sfumato.methods.nets.batches import poisson_batches
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage


class Identity:
    dimension = 2

    def encode(self, rows):
        return np.stack([rows["i"], rows["i"] ** 2], axis=1)


def ledger(probability: float, count: int = 200) -> Ledger:
    stage = Stage(name=STAGE, noise_multiplier=1.0, sampling_probability=probability, count=count)
    return Ledger(Plan([stage]), None)


def records(n: int, chunks: int = 3, **kwargs) -> FakeRecords:
    return FakeRecords([{"i": part.astype(float)} for part in np.array_split(np.arange(n), chunks)], **kwargs)


def batches(source, probability, n_steps, **kwargs):
    settings = {"stage": STAGE, "ledger": ledger(probability), "noise": SeededNoise(1), "n_public": 100, **kwargs}
    return list(poisson_batches(source, Identity(), n_steps, **settings))


class TestPoissonBatches:
    def test_members_are_whole_records(self):
        for batch in batches(records(50), 0.3, 20):
            assert batch.dtype == np.float32
            np.testing.assert_array_equal(batch[:, 1], batch[:, 0] ** 2)
            assert len(np.unique(batch[:, 0])) == len(batch)

    def test_membership_is_independent_with_the_planned_probability(self):
        n, steps, q = 40, 4000, 0.2
        members = np.zeros((steps, n), dtype=bool)
        for step, batch in enumerate(batches(records(n), q, steps)):
            members[step, batch[:, 0].astype(int)] = True
        # per record, per pair of records, and for one record from step to step; 6 standard deviations
        assert np.abs(members.mean(0) - q).max() < 6 * np.sqrt(q * (1 - q) / steps)
        pairs = (members.T.astype(float) @ members) / steps
        off = pairs[~np.eye(n, dtype=bool)]
        assert np.abs(off - q**2).max() < 6 * np.sqrt(q**2 * (1 - q**2) / steps)
        again = (members[1:] & members[:-1]).mean(0)
        assert np.abs(again - q**2).max() < 6 * np.sqrt(q**2 / steps)
        sizes = members.sum(1)
        assert abs(sizes.var() / (n * q * (1 - q)) - 1) < 0.2  # binomial, not of fixed size
        assert sizes.min() < n * q - 3
        assert sizes.max() > n * q + 3

    def test_memory_changes_how_often_the_source_is_read_but_not_the_law(self):
        passes = []

        class Counted(FakeRecords):
            def coded(self):
                passes.append(1)
                return super().coded()

        source = Counted(records(50).chunks)
        assert len(batches(source, 0.5, 30, held_bytes=4 * 2 * 50 * 10)) == 30  # ten steps of 50 expected members
        assert len(passes) == 3

    def test_memory_is_reckoned_from_the_public_number_of_records(self):
        for n in (10, 5000):
            passes = []

            class Counted(FakeRecords):
                def coded(self, passes=passes):
                    passes.append(1)
                    return super().coded()

            batches(Counted(records(n).chunks), 0.5, 30, held_bytes=4 * 2 * 50 * 10)
            assert len(passes) == 3

    def test_every_record_at_probability_one(self):
        assert all(len(batch) == 17 for batch in batches(records(17), 1.0, 3))

    def test_no_record(self):
        assert [batch.shape for batch in batches(FakeRecords([]), 0.5, 4)] == [(0, 2)] * 4

    def test_units_of_several_records_are_refused(self):
        with pytest.raises(ConfigError, match="max_rows"):
            batches(records(10, max_rows_per_unit=2), 0.5, 1)

    def test_a_stage_without_sampling_is_refused(self):
        plain = Ledger(Plan([Stage(name=STAGE, noise_multiplier=1.0)]), None)
        with pytest.raises(ConfigError, match="Poisson"):
            batches(records(10), 0.5, 1, ledger=plain)
