"""DPGM's printed algorithms: clusters, clip norms and clipped steps; and that they say that they are not private."""

import numpy as np
import pytest

from harness.papers import script

torch = pytest.importorskip("torch")
as_published = script("dpgm", "as_published")
NO_NOISE = as_published.Scale(0.0)


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _groups(n=3_000, seed=0):
    """Binary rows of ten kinds, each with columns of its own."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(10, size=n)
    kinds[:10] = np.arange(10)
    rows = np.zeros((n, 784), np.float32)
    rows.reshape(n, 14, 56)[np.arange(n), kinds] = 1
    flips = rng.random(rows.shape) < 0.01
    return np.abs(rows - flips), kinds


def test_features_have_norm_at_most_one():
    assert np.linalg.norm(as_published.phase_features(_groups()[0], 0), axis=1).max() <= 1 + 1e-6


def test_without_noise_the_ten_kinds_are_found():
    rows, kinds = _groups()
    features = as_published.phase_features(rows, 0)
    found = as_published.kernel_kmeans(features, features[:10], np.random.default_rng(0), NO_NOISE)
    assert as_published.clustering_accuracy(kinds, found) > 0.99


def test_noise_of_centres_has_the_printed_standard_deviation(monkeypatch):
    """√2·40 on sums, divided by the noisy count, in one iteration over one cluster."""
    monkeypatch.setattr(as_published, "KMEANS_ITERATIONS", 1)
    features, seen = np.zeros((20_000, 200), np.float32), []

    def one_cluster(rows, centres):
        seen.append(centres.copy())
        return np.zeros(len(rows))

    monkeypatch.setattr(as_published, "nearest", one_cluster)
    as_published.kernel_kmeans(features, np.zeros((1, 200), np.float32), np.random.default_rng(0))
    assert seen[-1].std() * 20_000 == pytest.approx(np.sqrt(2) * 40, rel=0.15)


def test_the_mode_is_the_upper_edge_of_the_fullest_bin_and_large_norms_are_not_counted():
    norms = torch.tensor([0.42] * 5 + [3.0] * 3 + [50.0] * 90 + [0.0] * 20)
    assert as_published.noisy_mode(norms, _generator(), NO_NOISE) == pytest.approx(0.5)


def test_a_step_clips_the_gradient_of_each_record():
    """Against gradients that torch finds record by record."""
    rows = torch.tensor(_groups(20)[0])
    network = as_published.Autoencoder(784, _generator(1))
    drawn = torch.randn(20, as_published.LATENT, generator=_generator(2))
    wanted = [torch.zeros_like(part) for part in (*network.weights, *network.biases)]
    norms = []
    gradients = [_gradients(network, rows[i : i + 1], drawn[i : i + 1]) for i in range(20)]
    norms = torch.stack([sum(part.pow(2).sum() for part in one).sqrt() for one in gradients])
    clip = as_published.noisy_mode(norms, _generator(), NO_NOISE)
    for one, norm in zip(gradients, norms, strict=True):
        for total, part in zip(wanted, one, strict=True):
            total += part * min(1.0, clip / float(norm)) / 7.0
    assert network.clipped_step(rows, 7.0, _generator(2), NO_NOISE) == pytest.approx(clip)
    found = [part.grad for part in (*network.weights, *network.biases)]
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted, strict=True))


def _gradients(network, row, drawn):
    parts = [part.clone().requires_grad_() for part in (*network.weights, *network.biases)]
    weights, biases = parts[:4], parts[4:]
    mean, log_variance = ((row @ weights[0] + biases[0]).relu() @ weights[1] + biases[1]).chunk(2, 1)
    latent = mean + (log_variance / 2).exp() * drawn
    made = (latent @ weights[2] + biases[2]).relu() @ weights[3] + biases[3]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(made, row, reduction="sum")
    return torch.autograd.grad(loss + 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(), parts)


def test_noise_of_a_step_has_the_printed_standard_deviation():
    network = as_published.Autoencoder(784, _generator(1))
    clip = network.clipped_step(torch.zeros(0, 784), 1.0, _generator())
    assert float(network.weights[0].grad.std()) == pytest.approx(np.sqrt(2) * clip, rel=0.02)


def test_without_noise_a_network_learns_its_records():
    rows = torch.tensor(_groups(200)[0][:, :784])
    network, generator = as_published.Autoencoder(784, _generator(1)), _generator(3)
    before = float(network._trace(rows, _generator(4))[2].detach())
    for _ in range(100):
        network.clipped_step(rows, 200.0, generator, NO_NOISE)
    assert float(network._trace(rows, _generator(4))[2].detach()) < 0.7 * before


def test_the_least_delta_is_far_above_the_printed_one():
    assert as_published.least_delta(60_000, 20) == pytest.approx(0.178, abs=1e-3)
    assert as_published.NOT_PRIVATE.startswith("NOT PRIVATE")
