"""The falsifier's network looks back alone, its clipped gradients are those of single rows, and codes come back."""

import numpy as np
import pandas as pd
import pytest

from harness.papers import script
from sfumato import Schema

torch = pytest.importorskip("torch")
autoregressive = script("p3gm", "autoregressive")
SIZES = {"indicators": [3, 4, 5, 2], "numbers": [3] + [5] * 24}


@pytest.fixture(params=SIZES)
def network(request):
    torch.manual_seed(0)
    return autoregressive.Made(SIZES[request.param], hidden=32)


def codes_of(network, n=7):
    generator = torch.Generator().manual_seed(1)
    return torch.stack([torch.randint(size, (n,), generator=generator) for size in network.sizes], 1)


def test_a_column_depends_on_those_before_it_alone(network):
    if network.direct is not None:
        torch.nn.init.normal_(network.direct)
    codes = codes_of(network)
    for j in range(len(network.sizes)):
        other = codes.clone()
        other[:, j] = (other[:, j] + 1) % network.sizes[j]
        pairs = zip(*(network(network.inputs(c)).split(network.sizes, 1) for c in (codes, other)), strict=True)
        moved = [bool((a - b).abs().max() > 1e-7) for a, b in pairs]
        assert not any(moved[: j + 1])
        assert any(moved[j + 1 :]) or j == len(network.sizes) - 1


def test_clipped_gradients_are_those_of_rows_one_by_one(network):
    codes, norm = codes_of(network), 1.0
    wanted = {name: torch.zeros_like(value) for name, value in network.named_parameters()}
    clipped = 0
    for row in codes.split(1):
        network.zero_grad()
        network.loss(network.inputs(row), row).backward()
        length = torch.sqrt(sum(value.grad.square().sum() for value in network.parameters()))
        clipped += int(length > norm)
        for name, value in network.named_parameters():
            wanted[name] += value.grad * min(1.0, norm / float(length))
    assert clipped
    names = {id(value): name for name, value in network.named_parameters()}
    found = {names[id(parameter)]: total for parameter, total in network.clipped(codes, norm)}
    assert found.keys() == wanted.keys()
    for name, total in wanted.items():
        torch.testing.assert_close(found[name], total, rtol=1e-4, atol=1e-6)


def test_a_taught_law_is_drawn():
    codes = torch.randint(2, (4_000, 1), generator=torch.Generator().manual_seed(0)).repeat(1, 3)
    network = autoregressive.Made([2, 2, 2], hidden=16)
    autoregressive.teach(network, codes, steps=300, seed=0, rate=1e-2)
    drawn = network.draw(torch.tensor([0, 1] * 500)).numpy()
    assert (drawn == drawn[:, :1]).mean() > 0.98


def test_codes_come_back_as_values_of_samples():
    schema = Schema.from_dict({"columns": {"x": (0.0, 1.0), "y": ["a", "b"]}})
    frame = pd.DataFrame({"x": np.linspace(0, 1, 500), "y": ["a", "b"] * 250})
    data = autoregressive.Data("made", frame, frame, schema, "y", "a")
    coding = autoregressive.Coding(data, frame)
    codes = coding.codes(frame)
    assert coding.names == ["y", "x"]
    assert coding.sizes == [2, autoregressive.PARTS]
    rows = coding.values(codes, np.random.default_rng(0))
    assert (rows["y"] == frame["y"]).all()
    assert np.abs(rows["x"] - frame["x"]).max() < 1.5 / autoregressive.PARTS
    assert rows["x"].isin(frame["x"]).all()


def test_a_share_of_the_budget_is_less_than_it():
    assert autoregressive.part_of(1.0, 1.0) == pytest.approx(1.0, abs=1e-3)
    assert 0.5 < autoregressive.part_of(1.0, 0.5) < 0.8
