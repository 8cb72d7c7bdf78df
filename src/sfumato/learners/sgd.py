"""Private stochastic gradient descent: Poisson batches, clipped gradients, Gaussian noise, and any optimiser after.

    g̃ₜ = Σ_{i ∈ Sₜ} clip(∇ℓ(θₜ, xᵢ), C) + N(0, (σC)² I),   Sₜ a Poisson sample at rate q
    θₜ₊₁ = optimiser(θₜ, g̃ₜ/(q n)),   n public

 Every step is one `PoissonSampled(q, Gaussian(σ))` event, with its own sample; an empty sample still gets
its noise, and a large one is worked off in chunks, never cut. Proof: docs/proofs/sampled_gradients.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.data.engine import Exact, Records
from sfumato.errors import TrainingError, require_integer, require_positive
from sfumato.learners.batches import VectorEncoder, poisson_batches
from sfumato.learners.clipped import ClippedGradients
from sfumato.learners.progress import Progress
from sfumato.learners.schedules import Constant, Schedule
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import noisy_sum
from sfumato.privacy.ledger import Ledger

Losses = Callable[[Tensor, Tensor], Tensor]
_CHUNK = 1024  # records at a time; a public constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Public settings of a private descent.

    Attributes:
        clip_norm: C, bound on the norm of one record's gradient.
        learning_rate: of Adam.
        schedule: factor of the learning rate over the steps.
        averaging: weight of the past in a running mean of the weights, in [0, 1); 0 keeps the last.
        device: where the network is: "cpu" or "cuda". Noise is drawn on the CPU, in float64, wherever it is.
    """

    clip_norm: float = 1.0
    learning_rate: float = 1e-3
    schedule: Schedule = field(default_factory=Constant)
    averaging: float = 0.0
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_positive(clip_norm=self.clip_norm)
        require_positive(learning_rate=self.learning_rate)


@dataclass(frozen=True, slots=True)
class Task:
    """What is learned.

    Attributes:
        network: its parameters, all of them, are trained.
        losses: (vectors (b, d), standard normals (b, q)) → per-record losses (b,). Record i's loss may depend on row i
            of both alone.
        n_normals: q, random numbers that a record's loss takes. They come from the secret door too: whoever could
            predict them would know, of all later records, by whose presence they were shifted.
    """

    network: nn.Module
    losses: Losses
    n_normals: int = 0


def descend(
    task: Task,
    records: Records,
    encoder: VectorEncoder,
    settings: Descent,
    *,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    n_public: float,
    progress: Progress | None = None,
) -> None:
    """Train the task's network in place, as many steps as the stage has, charging each.

    Privacy: per step one `PoissonSampled(q, Gaussian(σ))` event. The statistic is the sum of a Poisson sample's
        clipped gradients: sensitivity C under add/remove, 2C under replace-one. Adam, schedule and averaging work on
        noisy gradients alone. Proof: docs/proofs/sampled_gradients.md.

    Args:
        task: what is learned.
        records: one per unit.
        encoder: of coded rows, to vectors.
        settings: public settings.
        stage: name of a stage with sampling.
        ledger: charged step by step, before each step's noise.
        noise: the door of randomness.
        n_public: public number of records: the divisor is q·n_public.
        progress: where to go on and what to keep.

    Raises:
        ConfigError: units of several records, or a network whose gradients cannot be clipped one by one.
    Reference: Abadi et al. 2016, arXiv:1607.00133.
    """
    planned = ledger.plan[stage]
    n_steps = require_integer(at_least=1, n_steps=planned.count)
    divisor = max(float(planned.sampling_probability or 1.0) * n_public, 1e-12)
    task.network.to(settings.device)
    clipped = ClippedGradients(task.network)
    state = _State(clipped.parameters(), settings)
    progress = progress or Progress()
    first, kept = progress.start()
    if first:
        state.restore(kept)
        ledger.replay(stage, first)
    batches = poisson_batches(
        records, encoder, n_steps - first, stage=stage, ledger=ledger, noise=noise, n_public=n_public
    )
    for step, batch in enumerate(batches, start=first):
        total = _guarded_sum(task, clipped, batch, settings, noise)
        exact = Exact(total, name=stage, norm_bound=settings.clip_norm, replace_distance=2.0)
        gradient = noisy_sum(exact, stage=stage, ledger=ledger, noise=noise).value
        state.step(gradient, divisor, settings.schedule.factor(step, n_steps))
        progress.done(step + 1, step + 1 == n_steps, state.keep)
    state.finish()


def _guarded_sum(
    task: Task, clipped: ClippedGradients, batch: np.ndarray, settings: Descent, noise: NoiseSource
) -> np.ndarray:
    """Return the clipped sum; errors of libraries state shapes, and with them how many records are in a batch."""
    try:
        return _clipped_sum(task, clipped, batch, settings, noise)
    except (RuntimeError, MemoryError):
        pass
    raise TrainingError(
        "The network could not be run on a batch: it does not fit the vectors, or memory ran out. Nothing of this step "
        "was released. Check the network's inputs, or take a smaller batch."
    )


def _clipped_sum(
    task: Task, clipped: ClippedGradients, batch: np.ndarray, settings: Descent, noise: NoiseSource
) -> np.ndarray:
    """Return the sum of clipped gradients of a batch of any size as one vector, float64."""
    total = np.zeros(sum(p.numel() for p in clipped.parameters()))
    for start in range(0, len(batch), _CHUNK):
        part = batch[start : start + _CHUNK]
        normals = noise.normals((len(part), task.n_normals)).astype(np.float32)
        vectors = torch.from_numpy(part).to(settings.device)
        drawn = torch.from_numpy(normals).to(settings.device)
        sums, _ = clipped.sum_of(lambda _, x=vectors, e=drawn: task.losses(x, e), settings.clip_norm)
        place = 0
        for gradient in sums:
            flat = gradient.reshape(-1).cpu().numpy()
            total[place : place + flat.size] += flat
            place += flat.size
    return total


class _State:
    """Weights, optimiser and running mean: functions of noisy gradients."""

    def __init__(self, parameters: list[nn.Parameter], settings: Descent) -> None:
        self._parameters = parameters
        self._rate = settings.learning_rate
        self._averaging = settings.averaging
        self._mean = [p.detach().clone() for p in parameters] if settings.averaging else []
        self._optimiser = torch.optim.Adam(parameters, self._rate, fused=True)
        self._steps = 0

    def step(self, gradient: np.ndarray, divisor: float, factor: float) -> None:
        """Move the weights by a noisy sum of gradients."""
        flat = torch.from_numpy((gradient / divisor).astype(np.float32))
        place = 0
        for p in self._parameters:
            p.grad = flat[place : place + p.numel()].reshape(p.shape).to(p.device)
            place += p.numel()
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * factor
        self._optimiser.step()
        self._steps += 1
        # the running mean forgets its start: young means weigh the present more
        weight = min(self._averaging, self._steps / (self._steps + 10))
        for mean, p in zip(self._mean, self._parameters, strict=False):  # no means without averaging
            mean.lerp_(p.detach(), 1 - weight)

    def finish(self) -> None:
        """Leave the running mean, if there is one, in the network; let go of gradients."""
        with torch.no_grad():
            for mean, p in zip(self._mean, self._parameters, strict=False):
                p.copy_(mean)
        for p in self._parameters:
            p.grad = None

    def keep(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on."""
        kept = {"steps": np.array([self._steps], dtype=np.int64)}
        for i, p in enumerate(self._parameters):
            moments = self._optimiser.state[p]
            kept[f"weights{i}"] = p.detach().cpu().numpy()
            kept[f"first{i}"] = moments["exp_avg"].cpu().numpy()
            kept[f"second{i}"] = moments["exp_avg_sq"].cpu().numpy()
            if self._mean:
                kept[f"mean{i}"] = self._mean[i].cpu().numpy()
        return kept

    def restore(self, kept: dict[str, np.ndarray]) -> None:
        """Go on from what `keep` returned."""
        self._steps = int(kept["steps"][0])
        with torch.no_grad():
            for i, p in enumerate(self._parameters):
                p.copy_(torch.from_numpy(kept[f"weights{i}"]))
                self._optimiser.state[p] = {
                    "step": torch.tensor(float(self._steps), device=p.device),
                    "exp_avg": torch.from_numpy(kept[f"first{i}"].copy()).to(p.device),
                    "exp_avg_sq": torch.from_numpy(kept[f"second{i}"].copy()).to(p.device),
                }
                if self._mean:
                    self._mean[i].copy_(torch.from_numpy(kept[f"mean{i}"]))
