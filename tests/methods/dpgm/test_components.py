"""Networks side by side: equal to networks apart, and no record moves more than its clip norm."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need the extra nets")
from torch import nn  # noqa: E402

import sfumato.methods.nets.sgd as sgd  # noqa: E402
from harness.privacy import STAGE, FakeRecords, accept_only_unit_scale  # noqa: E402
from sfumato.data_ledger.journal import Progress  # noqa: E402
from sfumato.errors import ConfigError  # noqa: E402
from sfumato.mechanisms.noise import NoNoise, SeededNoise  # noqa: E402
from sfumato.methods.dpgm.components import (  # noqa: E402
    AutoencoderGradients,
    MachineDirections,
    MachineGradients,
    StackedAutoencoders,
    StackedMachines,
)
from sfumato.methods.nets.autoencoder import Groups, Heads, Output  # noqa: E402
from sfumato.methods.nets.clip_norms import AdaptiveClip, ClipNorms  # noqa: E402
from sfumato.methods.nets.clipped import blocks_for, clip_factors  # noqa: E402
from sfumato.methods.nets.sgd import Descent, descend  # noqa: E402
from sfumato.models.nets.flat import Part  # noqa: E402
from sfumato.privacy.ledger import Ledger  # noqa: E402
from sfumato.privacy.plan import Plan, Stage  # noqa: E402

M, K = 7, 3
PARTS = (Part(slice(0, 4), levels=False), Part(slice(4, 7), levels=True))
RNG = np.random.default_rng(0)


def assign(vectors):
    return vectors[:, 4:].argmax(axis=1)


def vectors(n, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.random((n, 4)) < 0.4
    return np.hstack([numbers, np.eye(3)[rng.integers(0, 3, n)]]).astype(np.float32)


def autoencoders(hidden=(5,), k=K, rule=assign):
    biases = np.linspace(-1, 1, k * M).reshape(k, M)
    output = Output(Heads.NATIVE, (slice(4, 7),))
    return AutoencoderGradients(StackedAutoencoders(Groups(k), M, 2, hidden, output, biases), rule)


def machines(k=K, rule=assign):
    biases = np.linspace(-1, 1, k * M).reshape(k, M)
    network = StackedMachines(4, biases, PARTS)
    with torch.no_grad():
        network.weight.copy_(torch.from_numpy(np.random.default_rng(1).standard_normal((k, 4, M))))
    return MachineGradients(network, n_chains=6, gibbs_steps=2, assign=rule)


MAKE = {"autoencoders": autoencoders, "two layers": lambda: autoencoders((6, 4)), "machines": machines}


def gradients_of_one(name, row, normals):
    """The gradient of one record by other means: autograd of all parameters, or outer products."""
    if name == "machines":
        found = machines()
        c = int(assign(row[None])[0])
        weight, _, hidden = (p.double().numpy()[c] for p in found.parameters())
        v, chains = row.astype(float), found.chains[c].astype(float)
        h = 1 / (1 + np.exp(-(weight @ v + hidden)))
        chain_h = 1 / (1 + np.exp(-(chains @ weight.T + hidden)))
        parts = [
            np.mean([np.outer(a, b) for a, b in zip(chain_h, chains, strict=True)], axis=0) - np.outer(h, v),
            chains.mean(0) - v,
            chain_h.mean(0) - h,
        ]
        result = []
        for part in parts:
            whole = np.zeros((K, *part.shape))
            whole[c] = part
            result.append(whole)
        return result
    learner = MAKE[name]()
    stack = learner.network
    for p in learner.parameters():
        p.requires_grad_(True)
    x = torch.from_numpy(row[None])
    stack.groups.set(torch.from_numpy(assign(row[None])))
    with torch.enable_grad():
        loss = stack.losses(x, torch.from_numpy(normals[None])).sum()
    grads = torch.autograd.grad(loss, learner.parameters())
    return [g.numpy() for g in grads]


@pytest.mark.parametrize("name", MAKE)
def test_norms_and_clipped_sums_equal_a_loop_over_records(name):
    rows = vectors(25)
    learner = MAKE[name]()
    normals = RNG.standard_normal((25, learner.n_normals)).astype(np.float32)
    found, parts = learner.of(torch.from_numpy(rows), torch.from_numpy(normals))
    order = np.argsort(assign(rows), kind="stable")
    np.testing.assert_array_equal(parts, assign(rows)[order])
    alone = [gradients_of_one(name, rows[i], normals[i]) for i in order]
    norms = np.array([np.sqrt(sum((g**2).sum() for g in gs)) for gs in alone])
    np.testing.assert_allclose(found.norms, norms, rtol=1e-4)
    clip_norm = float(np.median(norms))
    sums = found.weighted(clip_factors(found.norms, clip_norm))
    for i, total in enumerate(sums):
        expected = sum(gs[i] * min(1, clip_norm / n) for gs, n in zip(alone, norms, strict=True))
        np.testing.assert_allclose(total, expected, atol=1e-4)


@pytest.mark.parametrize("name", MAKE)
def test_a_record_moves_its_own_network_alone(name):
    rows = vectors(1, seed=4)
    learner = MAKE[name]()
    found, _ = learner.of(torch.from_numpy(rows), torch.zeros(1, learner.n_normals))
    own = int(assign(rows)[0])
    for total in found.weighted(clip_factors(found.norms, 0.5)):
        for c in range(K):
            assert bool(total[c].any()) == (c == own)


class Whole:
    dimension = M

    def encode(self, rows):
        return rows["x"]


def ledger(count, probability=0.5, multiplier=2.0):
    stage = Stage(name=STAGE, noise_multiplier=multiplier, sampling_probability=probability, count=count)
    return Ledger(Plan([stage]), None)


def run(learner, rows, account, *, settings=None, noise=None, progress=None):
    chunk = [{"x": rows[: len(rows) // 2]}, {"x": rows[len(rows) // 2 :]}]
    descend(
        learner,
        FakeRecords(chunk),
        Whole(),
        settings or Descent(),
        stage=STAGE,
        ledger=account,
        noise=noise or SeededNoise(3),
        n_public=100,
        progress=progress,
    )


@pytest.fixture
def released(monkeypatch):
    """Every exact statistic and what was released for it."""
    import sfumato.mechanisms.norms as norms

    seen = []
    for module in (sgd, norms):
        original = module.noisy_sum

        def watched(exact, original=original, **kwargs):
            noisy = original(exact, **kwargs)
            seen.append((exact.open_in_mechanism().copy(), exact.norm_bound, exact.replace_distance, noisy))
            return noisy

        monkeypatch.setattr(module, "noisy_sum", watched)
    return seen


FOLLOWING = AdaptiveClip(share=0.3, edges=(0.05, 0.2, 0.5, 1.0, 3.0))


def expected_bound(name, clip_norm):
    """What is charged for a step of a hundred public records: 32-bit sums of networks may be off, machines have 64."""
    slack = 0.0 if name == "machines" else blocks_for(100).slack
    if isinstance(clip_norm, AdaptiveClip):
        return np.sqrt(clip_norm.share + (1 - clip_norm.share) * (1 + slack) ** 2)
    return clip_norm * (1 + slack)


@pytest.mark.parametrize("clip_norm", [0.2, FOLLOWING], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("name", MAKE)
def test_neighbours_are_no_further_apart_than_what_is_charged(name, clip_norm, released):
    """Every step's exact statistic with and without a record, at one membership: everybody in, no noise."""
    base, bound = vectors(20, seed=1), 1.0 if isinstance(clip_norm, AdaptiveClip) else clip_norm
    odd = [np.full(M, value, np.float32) for value in (0.0, 1.0, 1e18, np.nan, np.inf)]
    moves = []
    for x in (None, *odd, *vectors(15, seed=2), *(30 * vectors(15, seed=3))):
        rows = base if x is None else np.vstack([base, x])
        run(MAKE[name](), rows, ledger(1, 1.0), noise=NoNoise(0), settings=Descent(clip_norm=clip_norm))
        exact, norm_bound, distance, _ = released[-1]
        assert norm_bound == pytest.approx(expected_bound(name, clip_norm), rel=1e-12)
        moves.append(exact)
    apart = np.linalg.norm(np.array(moves[1:]) - moves[0], axis=1)
    assert np.isfinite(apart).all()
    assert apart.max() <= bound * (1 + 1e-5)
    assert apart.max() >= 0.95 * bound
    between = np.linalg.norm(np.array(moves[1:])[:, None] - np.array(moves[1:])[None], axis=2)
    assert between.max() <= distance * bound * (1 + 1e-5)


@pytest.mark.parametrize("clip_norm", [0.3, FOLLOWING], ids=["fixed", "adaptive"])
def test_the_noise_has_the_stated_law_in_all_networks(clip_norm, released):
    run(autoencoders(), vectors(60), ledger(60), settings=Descent(clip_norm=clip_norm))
    noise = np.concatenate([(noisy.value - exact) / (2.0 * bound) for exact, bound, _, noisy in released])
    accept_only_unit_scale(noise)


def test_empty_networks_get_noise():
    rows = vectors(40)
    rows[:, 4:] = [1, 0, 0]  # all in the first
    learner = autoencoders()
    before = [p.detach().clone() for p in learner.parameters()]
    run(learner, rows, ledger(2))
    for p, b in zip(learner.parameters(), before, strict=True):
        for c in range(K):
            assert not torch.equal(p[c], b[c])


def test_one_network_of_one_part_is_the_plain_one(released):
    """k = 1 through stacked layers, and the same weights as an ordinary network."""
    learner = autoencoders(k=1, rule=lambda rows: np.zeros(len(rows), int))
    stack, rows = learner.network, vectors(30)
    plain = nn.Sequential(nn.Linear(M, 5), nn.ReLU(), nn.Linear(5, 2))
    with torch.no_grad():
        for linear, stacked in zip((plain[0], plain[2]), (stack.trunk[0], stack.mean), strict=True):
            linear.weight.copy_(stacked.weight[0])
            linear.bias.copy_(stacked.bias[0])
        stack.groups.set(torch.zeros(30, dtype=torch.long))
        x = torch.from_numpy(rows)
        torch.testing.assert_close(stack.mean(stack.trunk(x)), plain(x))


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("name", ["autoencoders", "machines"])
def test_it_learns_without_noise(name):
    rng = np.random.default_rng(5)
    bits = rng.random((600, 1)) < 0.5
    rows = np.hstack([np.repeat(bits, 4, axis=1), np.eye(3)[rng.integers(0, 3, 600)]]).astype(np.float32)
    learner = autoencoders((16,)) if name == "autoencoders" else machines()
    settings = Descent(clip_norm=10.0, learning_rate=2e-2)
    run(learner, rows, ledger(400, 1.0), noise=NoNoise(0), settings=settings)
    if name == "machines":
        draws = np.concatenate(
            [m.gibbs(c, 50, rng) for m, c in zip(learner.network.machines(), learner.chains, strict=True)]
        )
        pairs = np.concatenate([draws] * 1)[:, :4]
        assert np.abs(np.corrcoef(pairs[:, 0] + 1e-9 * rng.random(len(pairs)), pairs[:, 3])[0, 1]) > 0.3
        return
    outputs = np.concatenate([layers(rng.standard_normal((500, 2))) for layers in learner.network.layers()])
    assert np.corrcoef(outputs[:, 0], outputs[:, 3])[0, 1] > 0.8


class TestClipNorms:
    def test_quantiles_of_what_stands_out_of_the_noise(self):
        norms = ClipNorms(AdaptiveClip(edges=(1.0, 2.0, 4.0, 8.0), rank=0.5, memory=0.0), 2)
        np.testing.assert_array_equal(norms.norms, [4, 4])
        norms.update(np.array([[100.0, 300.0, 50.0, -3.0], [1.0, -1.0, 0.5, 2.0]]), 2.0)
        np.testing.assert_array_equal(norms.norms, [2, 4])  # of noise alone nothing is learned

    def test_the_published_rule_takes_the_fullest_bin(self):
        norms = ClipNorms(AdaptiveClip.published(), 1)
        counts = np.zeros((1, 100))
        counts[0, 36] = 50
        norms.update(counts, 4.0)
        assert norms.norms[0] == pytest.approx(3.7)
        assert AdaptiveClip.published().share == pytest.approx(1 / 17)  # multipliers 4 and 1

    def test_they_follow_gradients(self, released):
        learner, settings = autoencoders(), Descent(clip_norm=AdaptiveClip(share=0.3, start=50.0))
        run(learner, vectors(400), ledger(30, 0.9, 0.5), settings=settings)
        sums = [exact for exact, *_ in released]
        assert np.linalg.norm(sums[-1][22 * K :]) > 2 * np.linalg.norm(sums[0][22 * K :])

    @pytest.mark.parametrize(
        "wrong",
        [{"edges": (1.0,)}, {"edges": (2.0, 1.0)}, {"edges": (0.0, 1.0)}, {"share": 1.0}, {"rank": 0.0},
         {"memory": 1.0}, {"start": 0.0}],
    )  # fmt: skip
    def test_wrong_settings(self, wrong):
        with pytest.raises(ConfigError):
            AdaptiveClip(**wrong)


class Remembering(Progress):
    def __init__(self, stop_after, kept=(0, None)):
        self.kept, self.stop_after = kept, stop_after

    def start(self):
        return self.kept[0], self.kept[1] or {}

    def done(self, step, last, state):
        self.kept = (step, {name: array.copy() for name, array in state().items()})
        if step == self.stop_after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["autoencoders", "machines"])
def test_a_stopped_descent_goes_on_where_it_was(name):
    rows, settings = vectors(40), Descent(clip_norm=FOLLOWING, learning_rate=1e-2)
    make = {"autoencoders": lambda: autoencoders(), "machines": machines}[name]
    whole, stopped, resumed = make(), Remembering(8), make()
    # a machine's gradients take no random numbers; the autoencoder's are left out by rows that all are alike
    noise = NoNoise
    if name == "autoencoders":
        for learner in (whole, resumed):
            learner.n_normals = 2
        rows[:] = rows[0]
    run(whole, rows, ledger(20, 1.0), noise=noise(0), settings=settings)
    with pytest.raises(KeyboardInterrupt):
        run(make(), rows, ledger(20, 1.0), noise=noise(0), settings=settings, progress=stopped)
    account = ledger(20, 1.0)
    run(resumed, rows, account, noise=noise(0), settings=settings, progress=Remembering(None, stopped.kept))
    account.close()
    tolerance = 1e-5 if name == "machines" else 0.2
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=tolerance)


def test_a_direction_whose_terms_cancel_is_not_called_too_short():
    """A record that is nearly its machine's only chain: squares of 1e5 that leave next to nothing."""
    rng = np.random.default_rng(0)
    v = torch.from_numpy((rng.random((1, 1500)) < 0.5).astype(float))
    chain_h = torch.from_numpy(rng.random((1, 1, 200)))
    for away in (0.0, 1e-12, 1e-9, 1e-6):
        h = chain_h[0] + away
        found = MachineDirections.of(v, h, v[None], chain_h, (slice(0, 1),))
        true = away * np.sqrt(200) * np.sqrt(float((v**2).sum()) + 1)
        assert float(found.norms[0]) >= true
        assert float(found.norms[0]) <= 1.1 * true + 1e-2
