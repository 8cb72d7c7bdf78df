"""What is released lies on a public grid, sums are exact, and two attacks on floats fail."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from harness.cases import MECHANISMS, STATISTICS, vectors_of
from harness.privacy import STAGE, FakeRecords, join, ledger_for, make_exact, released
from sfumato.errors import ConfigError
from sfumato.estimators.records import MOST_WEIGHED_ROWS, WEIGHED_BITS
from sfumato.fitting.arguments import number_of_rows, require_room
from sfumato.mechanisms.contributions import (
    LINEAR_BITS,
    MOST_ROWS,
    PRODUCT_BITS,
    product_bits,
    row_by_row,
    whole_rows,
)
from sfumato.mechanisms.noise import NoNoise, SecureNoise, SeededNoise
from sfumato.mechanisms.queries import grid_step, noisy_second_moment, noisy_sum, on_grid
from sfumato.methods.mixtures.em_moments import PooledSquares
from sfumato.methods.nets.axes import VectorSum
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import ROWS_AT_ONCE, Exact, reduce

WHOLE = [name for name, case in STATISTICS.items() if case.statistic.step is not None]


class Vectors:
    """Vectors as they are."""

    dimension = 1

    def encode(self, rows):
        return vectors_of(rows)


def summed(values):
    """Our exact sum of numbers between 0 and 1."""
    statistic = VectorSum(Vectors(), 1.0)
    return reduce(statistic, FakeRecords([{"z": np.asarray(values, dtype=np.float64)[:, None]}]))


class TestContributions:
    @given(
        arrays.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.floats(width=64)),
        st.sampled_from([1e-3, 0.7, 1.0, 3.0, 1e6]),
        st.sampled_from([PRODUCT_BITS, LINEAR_BITS]),
    )
    def test_norms_are_within_the_bound_as_whole_numbers(self, vectors, clip_norm, bits):
        for row in whole_rows(vectors, clip_norm, bits):
            assert all(entry == int(entry) for entry in row)
            assert sum(int(entry) ** 2 for entry in row) <= 4**bits

    @pytest.mark.parametrize("dimension", [1, 3, 1000])
    def test_entries_are_the_nearest_with_their_sign(self, dimension):
        vectors = np.random.default_rng(0).standard_normal((200, dimension)) / dimension
        vectors[:, 0] = 0.0
        whole = whole_rows(vectors, 5.0)
        assert (np.abs(whole * 5.0 / 2**LINEAR_BITS - vectors * (1 - 1e-6)) <= 0.5001 * 5.0 / 2**LINEAR_BITS).all()
        assert (whole * vectors >= 0).all()

    @pytest.mark.parametrize("dimension", [100_000, 99_700])
    def test_records_that_rounding_makes_too_long_are_cut(self, dimension):
        """So many equal entries, of 207.24 and 207.56 steps."""
        nearest = round(2**16 / dimension**0.5)
        assert (dimension * nearest**2 > 4**16) == (dimension == 99_700)
        whole = whole_rows(np.stack([np.ones(dimension), -np.ones(dimension)]), 1.0, 16)
        assert sorted(np.unique(whole)) == [-207, 207]

    def test_products_in_blocks_do_not_depend_on_other_rows(self):
        rng = np.random.default_rng(1)
        rows, matrix = rng.standard_normal((3000, 37)), rng.standard_normal((37, 11))
        together = row_by_row(lambda some: some @ matrix, rows)
        for some in (slice(5, 6), slice(17, 900), slice(2000, 3000)):
            np.testing.assert_array_equal(row_by_row(lambda part: part @ matrix, rows[some]), together[some])
        assert row_by_row(lambda some: some @ matrix, rows[:0]).shape == (0, 11)


class TestSums:
    @pytest.mark.parametrize("name", WHOLE)
    def test_a_sum_is_that_of_fractions_in_any_order(self, name):
        case = STATISTICS[name]
        pool = case.pool[:12]
        parts = []
        for record in pool:
            total = case.statistic.zero()
            case.statistic.add(total, record)
            parts.append([int(entry) for entry in total.ravel()[:200]])
        expected = [sum(column) for column in zip(*parts, strict=True)]
        for seed in (0, 1):
            order = np.random.default_rng(seed).permutation(len(pool))
            chunks = [join([pool[i] for i in some]) for some in np.array_split(order, 1 + 3 * seed)]
            found = reduce(case.statistic, FakeRecords(chunks)).whole_in_mechanism()
            assert found.ravel()[:200].tolist() == expected

    def test_long_chunks_are_cut(self, monkeypatch):
        rng = np.random.default_rng(0)
        values = rng.random((ROWS_AT_ONCE + 77, 1))
        statistic, seen = VectorSum(Vectors(), 1.0), []
        found = reduce(statistic, FakeRecords([{"z": values}])).whole_in_mechanism()
        assert found.tolist() == [sum(int(entry) for entry in whole_rows(values, 1.0)[:, 0])]
        monkeypatch.setattr(VectorSum, "add", lambda self, total, rows: seen.append(len(rows["z"])))
        reduce(statistic, FakeRecords([{"z": values}]))
        assert seen == [ROWS_AT_ONCE, 77]

    def test_pieces_add_up_beyond_the_whole_numbers_of_floats(self):
        """Three pieces of 2^53 − 1 each: as floats, their sum would be even."""

        class Large(VectorSum):
            def add(self, total, rows):
                total += 2.0**53 - 1

        chunks = [{"z": np.zeros((1, 1))}] * 3
        assert reduce(Large(Vectors(), 1.0), FakeRecords(chunks)).whole_in_mechanism().tolist() == [3 * (2**53 - 1)]

    def test_what_does_not_fit_is_lost_modulo_2_64(self):
        big = np.array([2**62, -(2**62) + 3])
        noise_std = 2.0**-20
        finer, grid = grid_step(1.0, noise_std)
        drawn = SeededNoise(3).rounded_gaussian(2, noise_std, grid)
        found = on_grid(big, 1.0, noise_std, SeededNoise(3))
        for value, whole, extra in zip(found, big.tolist(), drawn.tolist(), strict=True):
            expected = (whole * 2 ** int(finer) + extra + 2**63) % 2**64 - 2**63
            assert value == float(expected) * float(grid)


class TestReleases:
    @pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].statistic.name in WHOLE])
    @pytest.mark.parametrize("multiplier", [0.01, 3.0, 5000.0])
    def test_they_are_on_the_grid_whatever_the_records(self, name, multiplier):
        case = MECHANISMS[name]
        statistic = case.statistic.statistic
        for chunk in (join(case.statistic.pool[:20]), join(case.statistic.pool[:21])):
            noisy, _ = released(case, chunk, SecureNoise(), multiplier)
            if case.symmetric:
                beside = ~np.eye(noisy.value.shape[-1], dtype=bool)
                parts = [
                    (np.diagonal(noisy.value, axis1=-2, axis2=-1), noisy.noise_std),
                    (noisy.value[..., beside], noisy.noise_std / np.sqrt(2)),
                ]
            else:
                parts = [(noisy.value, noisy.noise_std)]
            for value, noise_std in parts:
                step = np.asarray(statistic.step)
                if case.symmetric and step.ndim:
                    step = step.reshape(*step.shape[:-2], 1)  # one a matrix
                _, grid = grid_step(step, noise_std)
                assert (grid <= noise_std * 2.0**-24).all()
                places = zip(value.ravel().tolist(), np.broadcast_to(grid, value.shape).ravel().tolist(), strict=True)
                whole = [round(Fraction(entry) / Fraction(width)) for entry, width in places]  # of up to 53 bits
                np.testing.assert_array_equal(np.reshape(whole, value.shape).astype(np.float64) * grid, value)

    def test_a_release_is_the_sum_of_fractions_and_the_rounded_draw(self):
        values = np.random.default_rng(0).random(500)
        exact = summed(values)
        noisy = noisy_sum(exact, stage=STAGE, ledger=ledger_for(3.0), noise=SeededNoise(9))
        finer, grid = grid_step(exact.step, 3.0)
        draw = int(SeededNoise(9).rounded_gaussian(1, 3.0, grid)[0])
        total = sum(Fraction(float(entry)) for entry in whole_rows(values[:, None], 1.0)[:, 0])
        assert Fraction(float(noisy.value[0])) == (total * 2 ** int(finer[()]) + draw) * Fraction(float(grid[()]))

    def test_without_noise_it_is_the_sum(self):
        exact = summed([0.5, 0.25])
        noisy = noisy_sum(exact, stage=STAGE, ledger=ledger_for(3.0), noise=NoNoise())
        assert noisy.value[0] == pytest.approx(0.75, rel=1e-5)

    def test_more_noise_than_fits_is_refused_before_anything_is_charged(self):
        ledger = ledger_for(1e6)
        exact = Exact(np.zeros((2, 2), dtype=np.int64), name="s", norm_bound=1.0, replace_distance=1.0, step=2.0**-36)
        with pytest.raises(ConfigError, match="less noise"):
            noisy_second_moment(exact, stage=STAGE, ledger=ledger, noise=SeededNoise(0))
        assert not ledger.charged

    def test_moments_of_floats_are_refused_before_anything_is_charged(self):
        ledger = ledger_for(1.0)
        with pytest.raises(ConfigError, match="whole numbers"):
            noisy_second_moment(make_exact(np.zeros((2, 2)), step=None), stage=STAGE, ledger=ledger, noise=NoNoise())
        assert not ledger.charged


class TestCasacubertaEtAl:
    """One record of at most 1 changes a naive sum by nearly 2: its bound does not hold (CCS 2022, arXiv:2207.10635).

    In 32 bits, so that a test can hold the records: sums move in steps of 2^-12 below 4096 and of 2^-11 beyond, and a
    little more than half a step counts as a whole one. In 64 bits there are 2^14 records in place of every one here.
    """

    record = np.ones(1, dtype=np.float32)
    others = np.concatenate([np.ones(4095), np.full(4000, 2.0**-12 * (1 + 2.0**-10))]).astype(np.float32)

    def test_the_naive_sum_breaks_its_bound(self):
        without = np.cumsum(self.others)[-1]
        with_it = np.cumsum(np.concatenate([self.record, self.others]))[-1]
        assert without.dtype == np.float32
        assert float(with_it) - float(without) > 1.97
        # and the order of the same records moves it
        assert float(np.cumsum(np.concatenate([self.others, self.record]))[-1]) != float(with_it)

    def test_ours_moves_by_the_record_whatever_the_order(self):
        without = summed(self.others).whole_in_mechanism()
        alone = summed(self.record).whole_in_mechanism()
        assert alone[0] <= 2**LINEAR_BITS
        everyone = np.concatenate([self.record, self.others])
        for seed in range(3):
            shuffled = np.random.default_rng(seed).permutation(everyone)
            np.testing.assert_array_equal(summed(shuffled).whole_in_mechanism(), without + alone)

    def test_floats_of_64_bits_depend_on_the_order_too(self):
        values = np.random.default_rng(0).random(20_000)
        naive = {float(np.cumsum(np.random.default_rng(s).permutation(values))[-1]) for s in range(5)}
        assert len(naive) > 1
        ours = {int(summed(np.random.default_rng(s).permutation(values)).whole_in_mechanism()[0]) for s in range(5)}
        assert len(ours) == 1


class TestMironov:
    """The last bits of a noisy float tell what was noised (CCS 2012, doi:10.1145/2382196.2382264)."""

    @staticmethod
    def says_one(values):
        """Guess 1 where a number near 0 has no bits below those that a sum with 1 leaves."""
        near = values[np.abs(values) < 1 / 8]
        return np.mean(near * 2.0**53 == np.rint(near * 2.0**53))

    @staticmethod
    def releases(value, step):
        exact = make_exact(np.full(20_000, value), step=step)
        return noisy_sum(exact, stage=STAGE, ledger=ledger_for(1.0), noise=SecureNoise()).value

    def test_it_succeeds_on_naive_floats(self):
        assert self.says_one(self.releases(1.0, None)) == 1.0
        assert self.says_one(self.releases(0.0, None)) < 0.6

    def test_it_fails_on_the_grid(self):
        assert self.says_one(self.releases(1.0, 1.0)) == self.says_one(self.releases(0.0, 1.0)) == 1.0
        # and no other bits tell: those of the multiples are even or odd alike
        _, grid = grid_step(1.0, 1.0)
        for value in (0.0, 1.0):
            odd = np.mean(np.rint(self.releases(value, 1.0) / grid).astype(np.int64) & 1)
            assert abs(odd - 0.5) < 0.02


@pytest.mark.parametrize("n", [1, 2, 100, 2**24, 2**24 + 1, 1_600_000_000, 10**10, MOST_ROWS])
def test_hardening_6_sums_of_products_do_not_run_over(n):
    """Eight times as many records as declared, all at the bound in one entry, fit into 64 bits."""
    bits = product_bits(n)
    assert 8 * n * 4**bits <= 2**63
    assert bits == 18 or 8 * n * 4 ** (bits + 1) > 2**63  # and no bit is given away
    assert n <= 2**24 or bits < 18
    assert 12 <= bits <= 18


@pytest.mark.parametrize("n", [1, 2, 100, 2**12, 2**22, 2**22 + 1, 2**24 + 1, MOST_WEIGHED_ROWS])
def test_weighed_sums_do_not_run_over(n):
    """Eight times as many records as declared, all of the largest weight and at the bound in one entry."""
    product = product_bits(n, WEIGHED_BITS)
    linear = min(LINEAR_BITS, 2 * product)
    assert 8 * n * 2 ** (linear + WEIGHED_BITS) <= 2**63
    assert 8 * n * 4**product * 2**WEIGHED_BITS <= 2**63
    assert 2 * product + WEIGHED_BITS <= 2 * PRODUCT_BITS
    assert product == 12 or 8 * n * 4 ** (product + 1) * 2**WEIGHED_BITS > 2**63
    assert 10 <= product <= 12


@pytest.mark.parametrize("n", [1000, 1_600_000_000, MOST_ROWS])
def test_moments_of_any_number_of_rows_stay_moments_that_do_not_run_over(n):
    """A sum over n records, by the sum over one of them: all are alike, at the bound in one entry."""
    statistic = PooledSquares(vectors_of, 2, bits=product_bits(n))
    one = reduce(statistic, FakeRecords([{"z": np.array([[1.0, 0.0]])}])).whole_in_mechanism()
    total = int(one[0, 0]) * n
    assert total < 2**63
    found = float(np.int64(total)) * float(statistic.step)
    assert found == pytest.approx(n, rel=1e-3)  # of C²: the rounding of 12 bits, and the margin of clipping


@pytest.mark.parametrize("bits", [12, 15, 18])
def test_fewer_bits_are_no_longer_vectors(bits):
    vectors = np.random.default_rng(0).normal(size=(2000, 7)) * 3
    whole = whole_rows(vectors, 2.0, bits)
    assert (np.einsum("ij,ij->i", whole, whole) <= 4.0**bits).all()


def test_too_many_rows_and_too_little_noise_are_refused():
    assert number_of_rows(MOST_ROWS) == MOST_ROWS
    with pytest.raises(ConfigError, match="at most 68719476736"):
        number_of_rows(MOST_ROWS + 1)
    plan = Plan([Stage(name="moments", noise_multiplier=0.01)])
    require_room(plan, 10**9)
    with pytest.raises(ConfigError, match="smaller epsilon"):
        require_room(plan, 10**10)
