"""Fixed clip norms against ones that follow the gradients, at equal ε: loss of held-out training images.

    python papers/dpgm/clipping.py --data FOLDER [--steps 200] [--runs 1]

One autoencoder of DPGM on MNIST, 794 → 200 → 8 and back; 50,000 training images, batches of 500, noise multiplier 1 for
every step whatever the clipping, so that all runs cost the same. A third of the other 10,000 training images is scored,
without noise: not private. Test images are not read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from sfumato.columns.kinds import Categorical, Image
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.noise import SeededNoise
from sfumato.methods.dpgm.components import AutoencoderGradients, StackedAutoencoders
from sfumato.methods.nets.autoencoder import Groups, Heads, Output
from sfumato.methods.nets.clip_norms import AdaptiveClip
from sfumato.methods.nets.sgd import Descent, descend
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.nets.flat import ImageVectors
from sfumato.privacy.accounting import account
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.schema.schema import Schema

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, pyplot, read
from jobs import Results

TRAINED, BATCH, SIGMA, DELTA = 50_000, 500, 1.0, 1e-5
FIXED = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
FOLLOWING = {
    "follows the median": AdaptiveClip(),
    "follows the lower tenth": AdaptiveClip(rank=0.1),
    "as published": AdaptiveClip.published(),
    "as published, up to 100": AdaptiveClip.published(most=100.0),
}


class Held:
    """Vectors in memory, as records and their own encoder."""

    max_rows_per_unit = 1

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors, self.dimension = vectors, vectors.shape[1]

    def coded(self):
        yield {"x": self.vectors}

    def encode(self, rows):
        return rows["x"]


def loss(vectors: np.ndarray, held_out: np.ndarray, clip: float | AdaptiveClip, n_steps: int, seed: int) -> float:
    """Return the mean loss of held-out vectors after a private descent."""
    d, records = vectors.shape[1], Held(vectors)
    biases = np.full((1, d), -2.0)
    output = Output(Heads.NATIVE, (slice(784, d),))
    stack = StackedAutoencoders(Groups(1), d, 8, (200,), output, biases)
    gradients = AutoencoderGradients(stack, lambda rows: np.zeros(len(rows), dtype=np.int64))
    descend(
        gradients,
        records,
        records,
        Descent(clip_norm=clip, learning_rate=1e-3),
        stage="s",
        ledger=Ledger(plan(n_steps), None),
        noise=SeededNoise(seed),
        n_public=TRAINED,
    )
    stack.groups.set(torch.zeros(len(held_out), dtype=torch.long))
    normals = public_stream(0, 5).standard_normal((len(held_out), 8)).astype(np.float32)
    with torch.no_grad():
        return float(stack.losses(torch.from_numpy(held_out), torch.from_numpy(normals)).mean())


def plan(n_steps: int) -> Plan:
    """Return the plan that all runs are charged for."""
    return Plan([Stage(name="s", noise_multiplier=SIGMA, sampling_probability=BATCH / TRAINED, count=n_steps)])


def main() -> None:
    """Measure what is missing, and draw."""
    arguments = parser(__doc__, "dpgm", repeats=("runs", 1))
    arguments.add_argument("--steps", type=int, default=200)
    options = arguments.parse_args()
    with np.load(read(options) / "mnist.npz") as arrays:
        columns = {"x": Image(shape=(28, 28), dtype="uint8"), "y": Categorical(categories=tuple("0123456789"))}
        layout = ImageLayout.of(Schema(columns=columns, rows=TRAINED))
        whole = ImageVectors(layout).encode({"x": arrays["x_train"], "y": arrays["y_train"].astype(np.int32)})
    results = Results(options.out / "clipping.jsonl")
    settings: dict[str, float | AdaptiveClip] = {f"fixed {c:g}": c for c in FIXED} | FOLLOWING
    table = {
        name: [
            results.get(
                f"{name} | {options.steps} steps | run {seed}",
                lambda clip=clip, seed=seed: loss(whole[:TRAINED], whole[TRAINED:][::3], clip, options.steps, seed),
            )
            for seed in range(options.runs)
        ]
        for name, clip in settings.items()
    }
    epsilon = account(plan(options.steps), DELTA).epsilon
    means = {name: round(float(np.mean(found)), 2) for name, found in table.items()}
    results.note(f"held-out loss, {options.steps} steps, ε = {epsilon:.3g}", means)
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 5))
    axis.plot(FIXED, [means[f"fixed {c:g}"] for c in FIXED], marker="o", label="fixed")
    for i, name in enumerate(FOLLOWING):
        axis.axhline(means[name], color=f"C{i + 1}", linestyle="--", label=name)
    axis.set(xscale="log", xlabel="clip norm", ylabel="held-out loss", title=f"MNIST, ε = {epsilon:.2g} for all")
    axis.legend()
    figure.tight_layout()
    figure.savefig(Path(options.out) / "clipping.png", dpi=120)


if __name__ == "__main__":
    main()
