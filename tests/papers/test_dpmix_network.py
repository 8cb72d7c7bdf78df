"""DPMix's network by epoch: a stopped run goes on as if it had not stopped, and what is written down of it holds."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from harness.papers import PAPERS, script

torch = pytest.importorskip("torch")
network = script("dpmix", "network")
WRITTEN = json.loads((PAPERS / "dpmix" / "expected.json").read_text(encoding="utf-8"))["network_by_epoch"]["arms"]


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (600, 28, 28), dtype=np.uint8), rng.integers(0, 10, 600)
    return SimpleNamespace(x=x, y=y, test_x=x[:20], test_y=y[:20], shape=(28, 28), n_features=784)


@pytest.mark.parametrize("arm", network.ARMS)
@pytest.mark.slow
def test_a_stopped_run_goes_on(arm, images, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for folder in (whole, stopped):
        folder.mkdir()
    network.curve(arm, images, stopped, 1)
    assert network.curve(arm, images, stopped, 2) == network.curve(arm, images, whole, 2)
    states = [torch.load(folder / f"{arm}.pt", weights_only=True)["network"] for folder in (whole, stopped)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_labels_are_moved_to_sum_1_and_mixtures_to_mean_0(images):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((50, 28, 28)).astype(np.float32) + 3, rng.standard_normal((50, 10)).astype(np.float32)
    run = network.Run(network.ARMS["recipe"], images, x, y)
    assert run._y.sum(1).numpy() == pytest.approx(np.ones(50), abs=1e-5)
    assert np.allclose(np.diff(run._y.numpy(), axis=1), np.diff(y, axis=1), atol=1e-5)
    assert run._x.mean(0).abs().max() < 1e-5
    assert len(run._kept) == 5
    assert not set(run._kept.tolist()) & set(run._rest.tolist())


def test_the_published_arm_is_the_published_schedule(images):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((50, 28, 28)).astype(np.float32), rng.standard_normal((50, 10)).astype(np.float32)
    run = network.Run(network.ARMS["published"], images, x, y)
    assert network.ARMS["published"].training == network.MixtureTraining()
    assert len(run._rest) == 50
    assert np.array_equal(run._x[:, 0, 2:-2, 2:-2].numpy(), x)


def test_the_picked_epoch_has_the_least_loss():
    losses = [3.0, 1.0, 2.0]
    assert network.picked([{"loss": loss, "accuracy": 0.0} for loss in losses]) == 2


def test_averaging_is_of_the_steps_weights(images):
    """The mean lags behind: with decay 0 there is none, with a decay it is not the last step's weights."""
    x, y, _ = network.published_mixtures(images, network.DEGREE, network.EPSILON, seed=1)
    arm = replace(network.ARMS["recipe"], training=replace(network.ARMS["recipe"].training, batch_size=8))
    run = network.Run(arm, images, x, y)
    run.epoch(0)
    last, mean = (torch.cat([p.flatten() for p in part.parameters()]) for part in (run._network, run._mean))
    assert 0 < (last - mean).abs().max() < 0.1


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_down_holds_together(name):
    found = WRITTEN[name]
    assert found["best"] == max(found["accuracy"])
    if found.get("loss"):
        chosen = 1 + int(np.argmin(found["loss"]))
        assert found["picked"] == {"epoch": chosen, "accuracy": found["accuracy"][chosen - 1]}
