"""Sums in 32 bits: within the proven bound of the exact ones, so that neighbours are no further apart than charged."""

from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need the extra nets")
from torch import nn  # noqa: E402

import sfumato.methods.nets.shares as shares  # noqa: E402
from sfumato.mechanisms.noise import NoNoise  # noqa: E402
from sfumato.methods.nets.clipped import (  # noqa: E402  # noqa: E402
    UNIT,
    Blocks,
    ClippedGradients,
    RecordGradients,
    blocks_for,
    clip_factors,
    products_are_whole,
)
from sfumato.methods.nets.gradients import LossGradients  # noqa: E402
from sfumato.methods.nets.sgd import BatchSums  # noqa: E402
from sfumato.methods.nets.shares import LinearShare  # noqa: E402

FACTORS = 2 * 2.0**-24  # what clip factors and weighted gradients are rounded by: the margin of clipping covers it
SIZES = [1, 7, 30, 300, 600]


def found_of(inputs, grads, bias=False, slices=None):
    """Gradients of one linear layer, by their factors."""
    share = LinearShare.of(torch.as_tensor(inputs), torch.as_tensor(grads), bias, slices)
    return RecordGradients((share,), torch.sqrt(share.squared_norms()), torch.zeros(len(inputs)))


def sums_of(found, shapes, block, clip_norm=1.0):
    """The 32-bit sums, as one vector in 64 bits."""
    out = [torch.full(shape, float("nan")) for shape in shapes]
    scratch = torch.full((max(part.numel() for part in out),), float("nan"))
    found.sum_into(out, clip_factors(found.norms, clip_norm) / clip_norm, block, scratch)
    return torch.cat([part.double().reshape(-1) for part in out]).numpy()


def exact_of(found, clip_norm=1.0):
    total = found.weighted(clip_factors(found.norms, clip_norm) / clip_norm)
    return torch.cat([part.reshape(-1) for part in total]).numpy()


def sizes_of(found, clip_norm=1.0):
    """The sum of the norms of what is summed."""
    return float((clip_factors(found.norms, clip_norm) / clip_norm * torch.nan_to_num(found.norms, 0, 0)).sum())


class TestBound:
    @pytest.mark.parametrize("expected", [*SIZES, 0.2, 900])
    def test_it_holds_if_every_rounding_is_the_worst(self, expected):
        """Terms of norm 1, rounded as often as may be: always up in one neighbour's sum, always down in the other."""
        blocks = blocks_for(expected)
        additions = -(-blocks.most // blocks.block) - 1
        up = Fraction(1 + UNIT) ** (blocks.block + additions) - 1
        down = 1 - Fraction(1 - UNIT) ** (blocks.block + additions)
        apart = 1 + blocks.most * up + (blocks.most - 1) * down
        assert apart <= 1 + Fraction(blocks.slack)
        assert Fraction(blocks.slack) <= Fraction(101, 100) * (apart - 1) + Fraction(1, 10**6)

    def test_figures(self):
        assert blocks_for(300).slack == pytest.approx(0.00438, abs=1e-5)
        assert blocks_for(64).slack < 0.0012
        assert blocks_for(5000) is None  # then 64 bits, at no cost in noise
        assert all(b.slack <= 0.01 for b in map(blocks_for, range(1, 1500)) if b is not None)

    def test_it_grows_with_records_and_block(self):
        assert Blocks(300, 64).slack < Blocks(300, 128).slack < Blocks(300, 300).slack < Blocks(600, 300).slack


SHAPES = ((1, 1), (3, 2), (40, 17))
KINDS = ("aligned", "cancelling", "spread", "tiny", "huge", "unbalanced", "subnormal", "long")


def factors_of(kind, n, inputs, outputs, rng):
    """Inputs and output gradients that try to make sums of 32 bits wrong."""
    a, g = rng.uniform(0.5, 1, (n, inputs)), rng.uniform(0.5, 1, (n, outputs))
    match kind:
        case "cancelling":
            g *= rng.choice([-1, 1], (n, 1))
        case "spread":
            a *= 10.0 ** rng.uniform(-6, 0, (n, inputs))
        case "tiny":
            a, g = a * 1e-30, g * 1e-20
        case "huge":
            a, g = a * 1e30, g * 1e30
        case "unbalanced":
            a, g = a * 10.0 ** rng.uniform(-25, 38, (n, 1)), g * 10.0 ** rng.uniform(-25, 38, (n, 1))
        case "subnormal":
            a[:, 0], g[:, 0] = 1e-41, 1e-42
            a[::3] = 1e-40
        case "long":
            a, g = a * 3.4e38, g * 3.4e38
    with np.errstate(over="ignore"):
        return a.astype(np.float32), g.astype(np.float32)


@pytest.mark.parametrize("flush", [False, True], ids=["", "flushed to zero"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_is_within_the_bound_of_the_exact_one(kind, shape, flush):
    """Whatever the factors; the slack is the errors of two sums."""
    rng = np.random.default_rng(0)
    inputs, outputs = shape
    for n, bias in ((1, True), (64, False), (150, True), (300, True)):
        blocks = blocks_for(n)
        found = found_of(*factors_of(kind, n, inputs, outputs, rng), bias=bias)
        wanted = [(outputs, inputs), (outputs,)] if bias else [(outputs, inputs)]
        torch.set_flush_denormal(flush)
        got = sums_of(found, wanted, blocks.block)
        torch.set_flush_denormal(False)
        off = np.linalg.norm(got - exact_of(found))
        assert off <= blocks.rounding * sizes_of(found) + n * FACTORS
        assert off <= blocks.slack / 2 + n * FACTORS


@pytest.mark.parametrize("scale", [1e-25, 1e-20, 1.0, 1e20, 3e38])
def test_unclipped_sums_are_close_whatever_the_clip_norm(scale):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((50, 6)).astype(np.float32)
    g = (rng.standard_normal((50, 5)) * min(scale, 1e37)).astype(np.float32)
    found = found_of(a, g)
    clip_norm = float(found.norms.max()) * 2
    got, expected = sums_of(found, [(5, 6)], 64, clip_norm), exact_of(found, clip_norm)
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())
    assert np.abs(expected).max() > 0.01


@pytest.fixture(scope="module")
def searched():
    """How far apart the 32-bit sums of neighbours are, over many neighbours: one weight, and a block that shifts."""
    rng, apart = np.random.default_rng(5), []
    for trial in range(400):
        n = int(rng.integers(60, 369))
        sign = np.where(rng.random((n, 1)) < (0.5 if trial % 4 == 0 else 0.0), -1, 1)
        g = (sign * rng.uniform(0.3, 1.2, (n, 1))).astype(np.float32)
        where = int(rng.integers(0, n + 1))
        more = np.insert(g, where, 1.5 * rng.choice([-1, 1]), axis=0).astype(np.float32)
        sums = [sums_of(found_of(np.ones_like(x), x), [(1, 1)], 64)[0] for x in (g, more)]
        apart.append(abs(sums[1] - sums[0]))
    return np.array(apart)


def test_neighbours_are_within_the_bound_and_beyond_it_without_the_slack(searched):
    assert searched.max() <= 1 + blocks_for(300).slack
    assert searched.max() > 1 + 1e-6  # so it is needed


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_bad_record_counts_as_zero(bad):
    rng = np.random.default_rng(2)
    a, g = factors_of("aligned", 20, 4, 3, rng)
    spoilt = [(a.copy(), g.copy()) for _ in range(2)]
    spoilt[0][0][7], spoilt[1][1][7] = bad, bad
    rest = np.arange(20) != 7
    expected = sums_of(found_of(a[rest], g[rest], bias=True), [(3, 4), (3,)], 64)
    for inputs, grads in spoilt:
        got = sums_of(found_of(inputs, grads, bias=True), [(3, 4), (3,)], 64)
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_networks_side_by_side_are_summed_apart():
    rng = np.random.default_rng(3)
    a, g = factors_of("cancelling", 200, 4, 3, rng)
    slices = (slice(0, 150), slice(150, 150), slice(150, 200))
    found = found_of(a, g, bias=True, slices=slices)
    got = sums_of(found, [(3, 3, 4), (3, 3)], 64)
    np.testing.assert_allclose(got, exact_of(found), atol=1e-5)
    assert not got[12:24].any()


def test_products_that_lose_bits_are_noticed(monkeypatch):
    """Settings of torch let products round factors to 8 or 11 bits."""
    assert products_are_whole([(30, 20), (1, 5)], 64, "cpu")
    original = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b, **o: original(a.bfloat16().float(), b.bfloat16().float(), **o))
    assert not products_are_whole([(30, 20)], 64, "cpu")


class TestBatches:
    def sums(self, expected=30.0):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 6))
        gradients = LossGradients(network, lambda x, _: ((network(x) - x) ** 2).sum(1))
        return gradients, BatchSums(gradients, "cpu", expected)

    def total(self, gradients, sums, n):
        batch = np.random.default_rng(n).random((n, 6)).astype(np.float32)

        def factors(norms, _):
            return clip_factors(norms, 0.2) / 0.2

        total, norms, parts = sums.of(batch, factors, NoNoise(0))
        assert len(norms) == len(parts) == n
        found, _ = gradients.of(torch.from_numpy(batch), torch.empty(n, 0))
        return total, torch.cat([part.reshape(-1) for part in found.weighted(factors(found.norms, None))]).numpy()

    def test_what_is_larger_than_the_public_size_is_summed_in_64_bits(self):
        gradients, sums = self.sums()
        most = blocks_for(30).most
        for n in (1, 30, most, most + 1, 5 * most, 3000):
            got, expected = self.total(gradients, sums, n)
            off = np.abs(got - expected).max()
            if n <= most:
                assert off <= 1e-5
            else:
                assert off <= 1e-9
        got, expected = self.total(gradients, sums, most)
        assert np.abs(got - expected).max() > 1e-9  # 32 bits tell

    @pytest.mark.parametrize(("n", "products"), [(10, 1), (300, 4)])
    def test_no_product_is_of_more_records_than_a_block(self, n, products, monkeypatch):
        original, seen = torch.mm, []

        def watched(left, right, **options):
            seen.append(left.shape[1])
            return original(left, right, **options)

        gradients, sums = self.sums(expected=300)
        monkeypatch.setattr(shares.torch, "mm", watched)
        self.total(gradients, sums, n)
        assert max(seen) == min(n, blocks_for(300).block)
        assert len(seen) == 4 * products  # of two layers with weights and biases

    def test_the_slack_is_public(self):
        gradients, sums = self.sums()
        before = sums.slack
        for n in (0, 1, 30, 500):
            self.total(gradients, sums, n) if n else sums.of(np.empty((0, 6), np.float32), None, NoNoise(0))
            assert sums.slack == before == blocks_for(30).slack

    def test_large_batches_are_planned_in_64_bits(self):
        gradients, sums = self.sums(expected=5000)
        assert sums.slack == 0
        got, expected = self.total(gradients, sums, 40)
        np.testing.assert_allclose(got, expected, atol=1e-12)

    def test_where_products_lose_bits_sums_are_made_in_64(self, monkeypatch):
        monkeypatch.setattr(ClippedGradients, "narrow", lambda self, block: False)
        gradients, sums = self.sums()
        assert sums.slack == 0
        got, expected = self.total(gradients, sums, 40)
        np.testing.assert_allclose(got, expected, atol=1e-12)
