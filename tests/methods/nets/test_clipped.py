import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need the extra nets")
from torch import nn  # noqa: E402

from sfumato.errors import ConfigError  # noqa: E402
from sfumato.methods.nets.clipped import ClippedGradients, clip_factors  # noqa: E402

B = 24


def dense():
    return nn.Sequential(nn.Linear(64, 30), nn.ReLU(), nn.Linear(30, 7), nn.Tanh(), nn.Linear(7, 3, bias=False))


def narrow():
    return nn.Sequential(nn.Linear(64, 4), nn.GELU(), nn.Linear(4, 20, bias=False), nn.Identity(), nn.Linear(20, 3))


NETWORKS = {"dense": dense, "narrow": narrow}


def made(name: str):
    torch.manual_seed(0)
    network = NETWORKS[name]()
    return network, 3 * torch.rand(B, 64)


def clipped_sum(clipped, losses, clip_norm):
    """Σ clip(gradient of one record's loss, C), per parameter, and the losses."""
    found = clipped.per_record(losses)
    return found.weighted(clip_factors(found.norms, clip_norm)), found.losses


def losses(network, x):
    return (network(x) ** 2).sum(1)


def one_by_one(network, x, clip_norm):
    """The clipped sum by a loop over records, and their norms."""
    total = [torch.zeros_like(p) for p in network.parameters()]
    norms = []
    for record in x:
        gradients = torch.autograd.grad(losses(network, record[None]).sum(), list(network.parameters()))
        norms.append(float(torch.sqrt(sum((g**2).sum() for g in gradients))))
        for part, gradient in zip(total, gradients, strict=True):
            part += gradient * min(1.0, clip_norm / norms[-1])
    return total, np.array(norms)


@pytest.mark.parametrize("name", NETWORKS)
class TestSum:
    def test_it_equals_a_loop_over_records(self, name):
        network, x = made(name)
        _, norms = one_by_one(network, x, 1.0)
        clip_norm = float(np.median(norms))
        expected, _ = one_by_one(network, x, clip_norm)
        got, loss = clipped_sum(ClippedGradients(copy.deepcopy(network)), lambda net: losses(net, x), clip_norm)
        np.testing.assert_allclose(loss, losses(network, x).detach(), rtol=1e-5)
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=3e-5 * float(other.abs().max()) + 1e-7)

    def test_no_record_gives_more_than_the_bound(self, name):
        network, x = made(name)
        clipped = ClippedGradients(network)
        for scale in (1e-30, 1e-3, 1.0, 1e3, 1e15, 1e30):
            for i in range(4):
                got, _ = clipped_sum(clipped, lambda net, i=i, s=scale: losses(net, s * x[i : i + 1]), 0.5)
                assert float(torch.sqrt(sum((g.double() ** 2).sum() for g in got))) <= 0.5

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
    def test_a_bad_record_spoils_nothing(self, name, bad):
        network, x = made(name)
        spoilt = x.clone()
        spoilt[5] = bad
        clipped = ClippedGradients(network)
        keep = torch.arange(B) != 5
        alone, _ = clipped_sum(clipped, lambda net: losses(net, x[keep]), 0.5)
        beside, _ = clipped_sum(clipped, lambda net: losses(net, spoilt), 0.5)
        for one, other in zip(alone, beside, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)

    def test_a_huge_record_is_clipped(self, name):
        network, x = made(name)
        spoilt = x.clone()
        spoilt[5] = 3e38
        clipped = ClippedGradients(network)
        keep = torch.arange(B) != 5
        alone, _ = clipped_sum(clipped, lambda net: losses(net, x[keep]), 0.5)
        beside, _ = clipped_sum(clipped, lambda net: losses(net, spoilt), 0.5)
        assert float(torch.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(alone, beside, strict=True)))) <= 0.5 + 1e-5

    def test_a_record_adds_the_same_whoever_is_there(self, name):
        network, x = made(name)
        clipped = ClippedGradients(network)
        alone, _ = clipped_sum(clipped, lambda net: losses(net, x[:1]), 0.5)
        others, _ = clipped_sum(clipped, lambda net: losses(net, x[1:]), 0.5)
        together, _ = clipped_sum(clipped, lambda net: losses(net, x), 0.5)
        for a, b, c in zip(alone, others, together, strict=True):
            np.testing.assert_allclose(a + b, c, atol=1e-5)

    @pytest.mark.filterwarnings("ignore:Full backward hook is firing")
    def test_it_equals_opacus(self, name):
        GradSampleModule = pytest.importorskip("opacus", reason="opacus is an oracle of tests only").GradSampleModule
        network, x = made(name)
        _, norms = one_by_one(network, x, 1.0)
        clip_norm = float(np.median(norms))
        theirs = GradSampleModule(copy.deepcopy(network), loss_reduction="sum")
        losses(theirs, x).sum().backward()
        per_record = [p.grad_sample for p in theirs.parameters()]
        each = torch.sqrt(sum((g.flatten(1) ** 2).sum(1) for g in per_record))
        factors = (clip_norm / each).clamp_max(1.0)
        got, _ = clipped_sum(ClippedGradients(network), lambda net: losses(net, x), clip_norm)
        for one, other in zip(got, per_record, strict=True):
            expected = torch.einsum("b,b...->...", factors, other)
            np.testing.assert_allclose(one, expected, atol=3e-5 * float(expected.abs().max()) + 1e-7)


@pytest.mark.parametrize("name", NETWORKS)
def test_mixed_precision_of_the_caller_changes_nothing(name):
    network, x = made(name)
    clipped = ClippedGradients(network)
    plain, _ = clipped_sum(clipped, lambda net: losses(net, x), 0.5)
    with torch.autocast("cpu", torch.bfloat16):
        mixed, _ = clipped_sum(clipped, lambda net: losses(net, x), 0.5)
    for one, other in zip(plain, mixed, strict=True):
        assert one.dtype == torch.float64
        np.testing.assert_array_equal(one, other)


def test_squares_do_not_underflow():
    """An input of 1e19 and an output gradient of 2e-23: a record of norm 2e-4."""
    layer = nn.Linear(1, 1, bias=False)
    got, _ = clipped_sum(ClippedGradients(layer), lambda net: 2e-23 * net(torch.full((1, 1), 1e19)).sum(1), 1e-6)
    assert 0 < float(got[0].abs().max()) <= 1e-6


def test_a_record_moves_a_large_sum_by_no_more_than_the_bound():
    network, x = made("dense")
    clipped = ClippedGradients(network)
    many = x.repeat(40, 1)
    without, _ = clipped_sum(clipped, lambda net: losses(net, many), 0.5)
    beside, _ = clipped_sum(clipped, lambda net: losses(net, torch.cat([100 * x[:1], many])), 0.5)
    assert float(torch.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(without, beside, strict=True)))) <= 0.5 * (
        1 + 1e-6
    )


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        return self.layer(self.layer(x))


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(64, 2), nn.Linear(64, 2)

    def forward(self, x):
        return self.used(x)


class TestRefusals:
    @pytest.mark.parametrize(
        "layer",
        [
            nn.BatchNorm1d(64),
            nn.BatchNorm1d(64, affine=False),  # couples records without a parameter
            nn.LayerNorm(64),
            nn.Dropout(0.5),
            nn.Embedding(3, 64),
            nn.Bilinear(3, 4, 5),
            nn.Conv2d(1, 4, 3),
            nn.Flatten(0),  # couples records
            nn.Unflatten(0, (2, 2)),
        ],
        ids=lambda layer: type(layer).__name__,
    )
    def test_a_layer_that_cannot_be_clipped(self, layer):
        with pytest.raises(ConfigError, match=type(layer).__name__):
            ClippedGradients(nn.Sequential(layer, nn.Linear(64, 2)))

    def test_a_parameter_of_two_layers(self):
        one, other = nn.Linear(8, 8), nn.Linear(8, 8)
        other.weight = one.weight
        with pytest.raises(ConfigError, match="share no parameters"):
            ClippedGradients(nn.Sequential(one, other))

    @pytest.mark.parametrize(("network", "problem"), [(Twice(), "used once"), (Branch(), "one that is not")])
    def test_a_layer_not_used_once(self, network, problem):
        with pytest.raises(ConfigError, match=problem):
            clipped_sum(ClippedGradients(network), lambda net: losses(net, torch.rand(3, 64)), 1.0)

    def test_inputs_of_more_than_two_axes(self):
        with pytest.raises(ConfigError, match="axes"):
            clipped_sum(ClippedGradients(nn.Linear(4, 2)), lambda net: net(torch.rand(3, 5, 4)).sum((1, 2)), 1.0)
