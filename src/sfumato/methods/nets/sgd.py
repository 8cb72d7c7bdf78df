"""Private stochastic gradient descent: Poisson batches, clipped gradients, Gaussian noise, and any optimiser after.

    g̃ₜ = Σ_{i ∈ Sₜ} clip(∇ℓ(θₜ, xᵢ), C) + N(0, (σC)² I),   Sₜ a Poisson sample at rate q
    θₜ₊₁ = optimiser(θₜ, g̃ₜ/(q n)),   n public

Every step is one `PoissonSampled(q, Gaussian(σ))` event, with its own sample; an empty sample still gets
its noise, and a large one is worked off in chunks, never cut. Sums are made in 32 bits, and what these may be wrong by
is part of the sensitivity. With `AdaptiveClip` the event also holds a histogram of
the gradients' norms. Proofs: docs/proofs/sampled_gradients.md, docs/proofs/clip_norms.md.

Batches up to a public size are summed in 32 bits, with a bounded error that the sensitivity covers (`slack`); larger
ones, which are rare, in 64. Copies to and from a device are one a step and go through pinned memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sfumato.errors import TrainingError, require_integer, require_positive
from sfumato.methods.nets.batches import VectorEncoder, poisson_batches
from sfumato.methods.nets.clip_norms import AdaptiveClip, ClipNorms
from sfumato.methods.nets.clipped import Blocks, RecordGradients, blocks_for, clip_factors
from sfumato.methods.nets.gradients import Gradients
from sfumato.plugins import (
    Exact,
    Fit,
    Ledger,
    NoiseSource,
    Progress,
    Records,
    drawn_ahead,
    noisy_norms_and_sum,
    noisy_sum,
    norm_bins,
    sampling_probability,
)

Factors = Callable[[Tensor, Tensor], Tensor]
"""Norms (b,) and parts (b,) → what gradients are multiplied with, (b,), 64-bit: clip factor ÷ clip norm."""

_CHUNK = 1024  # records at a time in 64 bits; a public constant


class BatchSums:
    """Clipped sums of batches.

    Args:
        gradients: what is learned; already on the device.
        device: where.
        expected: public mean of a batch's size.

    Attributes:
        size: numbers in a sum.
        slack: what rounding adds to the sensitivity of a sum, in clip norms.
    """

    def __init__(self, gradients: Gradients, device: str, expected: float) -> None:
        blocks = blocks_for(expected)
        self._blocks: Blocks | None = blocks if blocks is not None and gradients.narrow(blocks.block) else None
        self.slack = self._blocks.slack if self._blocks is not None else 0.0
        self._gradients, self._device = gradients, device
        self._parameters = gradients.parameters()
        self.size = sum(p.numel() for p in self._parameters)
        if self._blocks is not None:
            self._flat = torch.zeros(self.size, device=device)
            self._scratch = torch.empty(max(p.numel() for p in self._parameters), device=device)

    def of(self, batch: np.ndarray, factors: Factors, noise: NoiseSource) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Σ fᵢ gᵢ as one vector, float64, and norms and parts of the records, all exact.

        Args:
            batch: vectors, shape (b, d), float32.
            factors: of the records, by their norms and parts.
            noise: the source of randomness, for the normals that gradients take.
        """
        if self._blocks is not None and len(batch) <= self._blocks.most:
            return self._narrow(batch, factors, noise, self._blocks)
        total = torch.zeros(self.size, dtype=torch.float64, device=self._device)
        norms, parts = [np.empty(0)], [np.empty(0, dtype=np.int64)]
        for start in range(0, len(batch), _CHUNK):
            gradients, own = self._gradients.of(*self._inputs(batch[start : start + _CHUNK], noise))
            sums = gradients.weighted(factors(gradients.norms, own))
            for place, own_sum in zip(self._places(total), sums, strict=True):
                place += own_sum
            norms.append(gradients.norms.cpu().numpy())
            parts.append(own.cpu().numpy())
        return to_host(total), np.concatenate(norms), np.concatenate(parts)

    def _narrow(
        self, batch: np.ndarray, factors: Factors, noise: NoiseSource, blocks: Blocks
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not len(batch):
            return np.zeros(self.size), np.empty(0), np.empty(0, dtype=np.int64)
        gradients, parts = self._gradients.of(*self._inputs(batch, noise))
        if not isinstance(gradients, RecordGradients):
            raise TypeError("Expected gradients that can be summed in 32 bits, as they say. This is a bug.")
        gradients.sum_into(self._places(self._flat), factors(gradients.norms, parts), blocks.block, self._scratch)
        total = to_host(self._flat).astype(np.float64)
        return total, gradients.norms.cpu().numpy(), parts.cpu().numpy()

    def _inputs(self, batch: np.ndarray, noise: NoiseSource) -> tuple[Tensor, Tensor]:
        normals = noise.normals((len(batch), self._gradients.n_normals)).astype(np.float32)
        return to_device(batch, self._device), to_device(normals, self._device)

    def _places(self, flat: Tensor) -> list[Tensor]:
        """Return where each parameter is in a vector of all."""
        sizes = [p.numel() for p in self._parameters]
        return [part.view(p.shape) for part, p in zip(flat.split(sizes), self._parameters, strict=True)]


def to_device(array: np.ndarray, device: str) -> Tensor:
    """Return an array as a tensor: itself on the processor, else one copy from pinned memory that nothing waits for."""
    tensor = torch.from_numpy(array)
    return tensor if device == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def to_host(tensor: Tensor) -> np.ndarray:
    """Return a tensor as an array: itself on the processor, else one copy into pinned memory."""
    if tensor.device.type == "cpu":
        return tensor.numpy()
    pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return pinned.copy_(tensor).numpy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Public settings of a private descent.

    Attributes:
        clip_norm: C, bound on the norm of one record's gradient; or how it follows the gradients' norms.
        learning_rate: of Adam.
        device: where the network is: "cpu" or "cuda" (written with one copy a step each way, never run). Noise is drawn
            on the CPU, in float64, wherever it is.
    """

    clip_norm: float | AdaptiveClip = 1.0
    learning_rate: float = 1e-3
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not isinstance(self.clip_norm, AdaptiveClip):
            require_positive(clip_norm=self.clip_norm)
        require_positive(learning_rate=self.learning_rate)


def train(
    fit: Fit, stage: str, gradients: Gradients, records: Records, encoder: VectorEncoder, settings: Descent
) -> None:
    """Train a network in place for a stage of a fit; arguments, errors and privacy as `descend`."""
    descend(
        gradients, records, encoder, settings,
        stage=stage, ledger=fit.ledger, noise=fit.noise, n_public=fit.n_public, progress=fit.account.descent(stage),
    )  # fmt: skip


def descend(
    gradients: Gradients,
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
    """Train a network in place, as many steps as the stage has, charging each.

    Privacy: per step one `PoissonSampled(q, Gaussian(σ))` event. The statistic is the sum of a Poisson sample's
        clipped gradients: sensitivity C under add/remove, 2C under replace-one, and up to 1 % more where it is made
        in 32 bits (`BatchSums.slack`); of k networks side by side too, as a record feeds one of them. With
        `AdaptiveClip` it is that sum and a histogram of norms, jointly of norm 1 in units of noise. Adam works on
        noisy gradients alone. Proofs: docs/proofs/sampled_gradients.md,
        docs/proofs/clip_norms.md.

    Args:
        gradients: what is learned.
        records: one per unit.
        encoder: of coded rows, to vectors.
        settings: public settings.
        stage: name of a stage with sampling.
        ledger: charged step by step, before each step's noise.
        noise: the source of randomness; noise of the next step is drawn ahead in a second thread, from a source apart.
        n_public: public number of records: the divisor is q·n_public.
        progress: where to go on and what to keep.

    Raises:
        ConfigError: units of several records, or a network whose gradients cannot be clipped one by one.
    Reference: Abadi et al. 2016, arXiv:1607.00133.
    """
    n_steps = require_integer(at_least=1, n_steps=ledger.plan[stage].count)
    probability = sampling_probability(stage, ledger)
    divisor = max(probability * n_public, 1e-12)
    gradients.network.to(settings.device)
    state = _State(gradients, settings)
    sums = BatchSums(gradients, settings.device, divisor)
    progress = progress or Progress()
    first, state_arrays = progress.start()
    if first:
        state.restore(state_arrays)
        ledger.replay(stage, first)
    batches = poisson_batches(
        records, encoder, n_steps - first, stage=stage, ledger=ledger, noise=noise, n_public=n_public
    )
    with drawn_ahead(noise, sums.size + state.clip.cells, n_steps - first) as ahead:
        for step, batch in enumerate(batches, start=first):
            total, counts = _guarded_sum(sums, batch, state.clip, noise)
            if state.clip.following is None:
                bound = state.clip.fixed * (1 + sums.slack)
                exact = Exact(
                    total, name=stage, norm_bound=bound, replace_distance=2.0, sampling_probability=probability
                )
                gradient = noisy_sum(exact, stage=stage, ledger=ledger, noise=ahead).value
            else:
                norms, noisy = noisy_norms_and_sum(
                    counts, total, share=state.clip.following.share, slack=sums.slack, stage=stage, ledger=ledger,
                    noise=ahead, sampling_probability=probability,
                )  # fmt: skip
                gradient = state.clip.scaled(noisy.value, gradients.parameters())
                state.clip.norms.update(norms.value, norms.noise_std)
            state.step(gradient, divisor)
            gradients.stepped(step)
            progress.done(step + 1, step + 1 == n_steps, state.keep)
    state.finish()


class _Clip:
    """The clip norms of a descent: one for all parts, or one per part that follows released histograms."""

    def __init__(self, clip_norm: float | AdaptiveClip, n_parts: int) -> None:
        self.following = clip_norm if isinstance(clip_norm, AdaptiveClip) else None
        self.fixed = 1.0 if isinstance(clip_norm, AdaptiveClip) else clip_norm
        self.norms = ClipNorms(self.following or AdaptiveClip(), n_parts)
        self.cells = 0 if self.following is None else n_parts * self.norms.edges.size

    def factors(self, norms: Tensor, parts: Tensor) -> Tensor:
        """Return what gradients are multiplied with: their sum is in units of the clip norms."""
        if self.following is None:
            return clip_factors(norms, self.fixed) / self.fixed
        clip_norms = torch.from_numpy(self.norms.norms).to(norms.device)[parts]
        return clip_factors(norms, clip_norms) / clip_norms

    def counts(self, norms: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """Return how many records there are by part and bin of their norm, float64."""
        counts = np.zeros((len(self.norms.norms), self.norms.edges.size))
        np.add.at(counts, (parts, norm_bins(norms, self.norms.edges)), 1.0)
        return counts

    def scaled(self, total: np.ndarray, parameters: list[nn.Parameter]) -> np.ndarray:
        """Return a sum in units of clip norms as one of gradients."""
        result, place, k = np.empty_like(total), 0, len(self.norms.norms)
        for p in parameters:
            part = slice(place, place + p.numel())
            result[part] = (total[part].reshape(k, -1) * self.norms.norms[:, None]).ravel()
            place += p.numel()
        return result


def _guarded_sum(sums: BatchSums, batch: np.ndarray, clip: _Clip, noise: NoiseSource) -> tuple[np.ndarray, np.ndarray]:
    """Return the clipped sum and counts of norms; errors of libraries state shapes, and with them a batch's size."""
    try:
        total, norms, parts = sums.of(batch, clip.factors, noise)
        total *= clip.fixed  # of units of a fixed clip norm a sum of gradients; following, it is 1
        return total, clip.counts(norms, parts)
    except (RuntimeError, MemoryError):
        pass
    raise TrainingError(
        "The network could not be run on a batch: it does not fit the vectors, or memory ran out. Nothing of this step "
        "was released. Check the network's inputs, or take a smaller batch."
    )


class _State:
    """Weights and the optimiser: functions of noisy gradients."""

    def __init__(self, gradients: Gradients, settings: Descent) -> None:
        self._gradients, self._device = gradients, settings.device
        self.clip = _Clip(settings.clip_norm, gradients.n_parts)
        parameters = self._parameters = gradients.parameters()
        self._optimiser = torch.optim.Adam(parameters, settings.learning_rate, fused=True)
        self._steps = 0

    def step(self, gradient: np.ndarray, divisor: float) -> None:
        """Move the weights by a noisy sum of gradients."""
        mean = np.divide(gradient, divisor, out=np.empty(gradient.shape, np.float32), casting="same_kind")
        flat = to_device(mean, self._device)
        for p, part in zip(self._parameters, flat.split([p.numel() for p in self._parameters]), strict=True):
            p.grad = part.view(p.shape)
        self._optimiser.step()
        self._steps += 1

    def finish(self) -> None:
        """Let go of gradients."""
        for p in self._parameters:
            p.grad = None

    def keep(self) -> dict[str, np.ndarray]:
        """Return all that is needed to go on."""
        arrays = {"steps": np.array([self._steps], dtype=np.int64)}
        for i, p in enumerate(self._parameters):
            moments = self._optimiser.state[p]
            arrays[f"weights{i}"] = p.detach().cpu().numpy()
            arrays[f"first{i}"] = moments["exp_avg"].cpu().numpy()
            arrays[f"second{i}"] = moments["exp_avg_sq"].cpu().numpy()
        if self.clip.following is not None:
            arrays |= {f"clip {name}": array for name, array in self.clip.norms.keep().items()}
        return arrays | {f"other {name}": array for name, array in self._gradients.keep().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `keep` returned."""
        self._steps = int(arrays["steps"][0])
        with torch.no_grad():
            for i, p in enumerate(self._parameters):
                p.copy_(torch.from_numpy(arrays[f"weights{i}"]))
                self._optimiser.state[p] = {
                    "step": torch.tensor(float(self._steps), device=p.device),
                    "exp_avg": torch.from_numpy(arrays[f"first{i}"].copy()).to(p.device),
                    "exp_avg_sq": torch.from_numpy(arrays[f"second{i}"].copy()).to(p.device),
                }
        if self.clip.following is not None:
            self.clip.norms.restore({n.removeprefix("clip "): a for n, a in arrays.items() if n.startswith("clip ")})
        self._gradients.restore({n.removeprefix("other "): a for n, a in arrays.items() if n.startswith("other ")})
