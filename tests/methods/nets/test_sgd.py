import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need the extra nets")
from torch import nn  # noqa: E402

import sfumato.methods.nets.sgd as batch_sums  # noqa: E402
import sfumato.methods.nets.sgd as sgd  # noqa: E402
from harness.privacy import STAGE, FakeRecords, accept_only_unit_scale  # noqa: E402
from sfumato.data_ledger.journal import Progress  # noqa: E402
from sfumato.errors import LedgerError, TrainingError  # noqa: E402
from sfumato.mechanisms.noise import NoNoise, SeededNoise  # noqa: E402
from sfumato.methods.nets.clipped import blocks_for  # noqa: E402
from sfumato.methods.nets.gradients import LossGradients  # noqa: E402
from sfumato.methods.nets.sgd import Descent, descend  # noqa: E402
from sfumato.privacy.ledger import Ledger  # noqa: E402
from sfumato.privacy.plan import Plan, Stage  # noqa: E402

D = 6


class Whole:
    dimension = D

    def encode(self, rows):
        return rows["x"]


def ledger(count: int, probability: float = 0.5, noise_multiplier: float = 2.0) -> Ledger:
    return Ledger(
        Plan([Stage(name=STAGE, noise_multiplier=noise_multiplier, sampling_probability=probability, count=count)]),
        None,
    )


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(D, 5), nn.Tanh(), nn.Linear(5, D))


def reconstruction(net):
    return LossGradients(net, lambda x, _: ((net(x) - x) ** 2).sum(1))


def records(n: int, seed: int = 0) -> FakeRecords:
    x = np.random.default_rng(seed).random((n, D))
    return FakeRecords([{"x": x[: n // 3]}, {"x": x[n // 3 :]}])


def run(task, source, account, *, settings=None, noise=None, progress=None):
    descend(
        task,
        source,
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
    """Every exact sum and what was released for it."""
    seen = []
    original = sgd.noisy_sum

    def watched(exact, **kwargs):
        noisy = original(exact, **kwargs)
        seen.append((exact, noisy))
        return noisy

    monkeypatch.setattr(sgd, "noisy_sum", watched)
    return seen


class TestAccount:
    def test_every_step_is_charged_before_its_noise(self, released):
        account = ledger(7)
        run(reconstruction(network()), records(60), account)
        assert account.charged == ((STAGE, 7),)
        account.close()
        assert len(released) == 7

    def test_more_steps_than_planned_cannot_be_had(self):
        account = ledger(2)
        run(reconstruction(network()), records(60), account)
        with pytest.raises(LedgerError):
            run(reconstruction(network()), records(60), account)


class TestNoise:
    def test_it_has_the_stated_law(self, released):
        run(reconstruction(network()), records(60), ledger(150), settings=Descent(clip_norm=0.3))
        for exact, noisy in released:
            assert exact.norm_bound == 0.3 * (1 + blocks_for(50).slack)  # half of 100 public records
            assert exact.replace_distance == 2.0
            assert noisy.noise_std == exact.norm_bound * 2.0
        accept_only_unit_scale(np.concatenate([n.value - e.open_in_mechanism() for e, n in released]) / 0.6)

    def test_an_empty_sample_gets_its_noise(self, released):
        net = network()
        before = [p.detach().clone() for p in net.parameters()]
        run(reconstruction(net), FakeRecords([]), ledger(3))
        assert all(not exact.open_in_mechanism().any() for exact, _ in released)
        assert all(not torch.equal(p, b) for p, b in zip(net.parameters(), before, strict=True))

    def test_a_seed_gives_the_same_weights_again(self):
        nets = [network(), network()]
        for net in nets:
            run(reconstruction(net), records(60), ledger(20), noise=SeededNoise(11))
        for one, other in zip(*(net.parameters() for net in nets), strict=True):
            assert torch.equal(one, other)

    def test_none_at_all_learns(self):
        net, source = network(), records(200)
        x = torch.tensor(np.concatenate([chunk["x"] for chunk in source.chunks])).float()

        def loss() -> float:
            with torch.no_grad():
                return float(((net(x) - x) ** 2).sum(1).mean())

        before = loss()
        run(reconstruction(net), source, ledger(200), noise=NoNoise(), settings=Descent(learning_rate=1e-2))
        assert loss() < before / 3


class TestSensitivity:
    def test_a_record_moves_the_sum_by_at_most_the_clip_norm_and_nothing_else(self, released):
        """Neighbour search: every step's exact sum with and without a record, whatever the record, at one membership.

        Without noise and with everybody in every batch, the first sums of neighbours differ by the record's part.
        """
        base = np.random.default_rng(1).random((30, D))
        odd = [np.full(D, v) for v in (0.0, 1.0, -1.0, 1e3, 1e18, np.nan, np.inf)]
        odd += list(np.random.default_rng(2).standard_normal((30, D)) * 10)
        clip_norm, moves = 0.2, []
        for x in (None, *odd):
            rows = base if x is None else np.vstack([base, x])
            run(
                reconstruction(network()),
                FakeRecords([{"x": rows}]),
                ledger(1, probability=1.0),
                noise=NoNoise(),
                settings=Descent(clip_norm=clip_norm),
            )
            moves.append(released[-1][0].open_in_mechanism())
        apart = np.array([np.linalg.norm(move - moves[0]) for move in moves[1:]])
        assert np.isfinite(apart).all()
        assert apart.max() <= clip_norm * (1 + 1e-5)
        assert apart.max() >= 0.99 * clip_norm
        pairs = np.linalg.norm(np.array(moves[1:])[:, None] - np.array(moves[1:])[None], axis=2)
        assert pairs.max() <= 2 * clip_norm * (1 + 1e-5)

    def test_the_rounding_of_neighbours_sums_is_charged(self, released):
        """Sums of one weight, with a record more at some place: beyond the clip norm by rounding, within the bound."""
        rng, apart = np.random.default_rng(7), []
        line = nn.Linear(D, 1, bias=False)
        for _ in range(40):
            rows = np.zeros((int(rng.integers(100, 140)), D))
            rows[:, 0] = rng.uniform(0.3, 1.2, len(rows))
            more = np.insert(rows, int(rng.integers(len(rows))), 1.5 * np.eye(D)[0], axis=0)
            for x in (rows, more):
                task = LossGradients(net := copy.deepcopy(line), lambda v, _, net=net: net(v).sum(1))
                run(task, FakeRecords([{"x": x}]), ledger(1, 1.0), noise=NoNoise())
            without, beside = (exact for exact, _ in released[-2:])
            apart.append(np.linalg.norm(beside.open_in_mechanism() - without.open_in_mechanism()))
            assert without.norm_bound == beside.norm_bound == 1 + blocks_for(100).slack
        assert 1 + 1e-6 < max(apart) <= released[-1][0].norm_bound

    def test_a_large_batch_is_worked_off_whole(self, released, monkeypatch):
        source = records(500)
        sums = []
        for chunk in (7, 10_000):
            monkeypatch.setattr(batch_sums, "_CHUNK", chunk)
            run(reconstruction(network()), source, ledger(1, probability=1.0), noise=NoNoise())
            sums.append(released[-1][0].open_in_mechanism())
        np.testing.assert_allclose(*sums, atol=1e-4)

    def test_the_divisor_is_public(self, released):
        """Weights after one noiseless plain step depend on the records through the sum alone."""
        steps = []
        for n in (30, 60):
            net = network()
            before = torch.cat([p.detach().reshape(-1) for p in net.parameters()])
            source = FakeRecords([{"x": np.zeros((n, D))}])
            run(reconstruction(net), source, ledger(1, probability=1.0), noise=NoNoise())
            steps.append((torch.cat([p.detach().reshape(-1) for p in net.parameters()]) - before).numpy())
            exact = released[-1][0].open_in_mechanism()
            assert np.isfinite(exact).all()
        # Adam's first step has the gradient's sign only, whatever it was divided by
        np.testing.assert_allclose(np.abs(steps[0])[np.abs(steps[0]) > 0], 1e-3, rtol=1e-2)

    def test_random_numbers_of_a_loss_come_from_the_secret_door(self):
        asked = []

        class Watched(SeededNoise.__base__):
            private, silent = False, False

            def __init__(self):
                super().__init__(bytes(32))

            def normals(self, shape):
                asked.append(shape)
                return super().normals(shape)

        net = network()
        task = LossGradients(net, lambda x, e: ((net(x + e) - x) ** 2).sum(1), n_normals=D)
        run(task, records(60), ledger(3), noise=Watched())
        assert len(asked) == 3
        assert all(shape[1] == D for shape in asked)


def test_an_error_does_not_tell_how_many_are_in_a_batch():
    """Libraries put shapes into their messages."""
    wrong = nn.Sequential(nn.Linear(D + 1, 2))
    with pytest.raises(TrainingError) as error:
        run(LossGradients(wrong, lambda x, _: wrong(x).sum(1)), records(317), ledger(1, 1.0))
    assert "317" not in str(error.value)
    assert error.value.__context__ is None


class Remembering(Progress):
    def __init__(self, stop_after: int | None, kept=(0, None)):
        self.kept, self.stop_after = kept, stop_after

    def start(self):
        return self.kept[0], self.kept[1] or {}

    def done(self, step, last, state):
        self.kept = (step, {name: array.copy() for name, array in state().items()})
        if step == self.stop_after:
            raise KeyboardInterrupt


def test_a_stopped_descent_goes_on_where_it_was_and_is_charged_once():
    """Without noise and with everybody in every batch, going on gives the same weights as never having stopped."""
    settings = Descent(learning_rate=1e-2)
    whole = network()
    run(reconstruction(whole), records(40), ledger(20, 1.0), noise=NoNoise(), settings=settings)
    stopped = Remembering(stop_after=8)
    with pytest.raises(KeyboardInterrupt):
        run(
            reconstruction(network()),
            records(40),
            ledger(20, 1.0),
            noise=NoNoise(),
            settings=settings,
            progress=stopped,
        )
    account, resumed = ledger(20, 1.0), network(seed=9)
    again = Remembering(None, stopped.kept)
    run(reconstruction(resumed), records(40), account, noise=NoNoise(), settings=settings, progress=again)
    account.close()
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=1e-5)


STEPS = 20


def weights_by_step():
    """Return the network, and its weights after every step, as a checkpoint has them."""
    net, kept = network(), []

    class Watched(Progress):
        def done(self, step, last, keep):
            kept.append({name: array.copy() for name, array in keep().items()})

    run(
        reconstruction(net),
        records(40),
        ledger(STEPS, 1.0),
        noise=NoNoise(),
        settings=Descent(),
        progress=Watched(),
    )
    return net, kept


def test_the_last_weights_are_taken():
    net, kept = weights_by_step()
    assert np.array_equal(next(iter(net.parameters())).detach().numpy(), kept[-1]["weights0"])
