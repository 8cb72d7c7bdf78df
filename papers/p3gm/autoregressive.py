"""Falsifier of networks over the default method: a masked autoregressive network, with and without noise.

    python papers/p3gm/autoregressive.py --data FOLDER [--only adult credit isolet fashion_mnist] [--runs 2]
        [--arms default start records both private] [--test]

The bar, set before the first run: without noise, the network has to be better by .01 than the default method at ε = 1
on two of the four data sets, by mean AUROC of four classifiers that samples teach (tables), or by accuracy of a
network (images). If it does not, no private form can. If it does, `private` says what is left of it at ε = 1.

The network (MADE: Germain and others, 2015) gives each column's law given those before it, the target first: numbers
as the 32 parts (images: 16) that samples of the release cut them into, labels as they are; within a part, values are
those of samples. Arms: `default`, the release itself; `start`, the network taught by 100,000 of its samples alone;
`records`, by records alone, without noise; `both`, by samples and then by records; `private`, a release at a share of
the budget (of ρ: `--share`), then DP-SGD on records from the start its samples gave. Epochs on records: those of the
best likelihood on a tenth of them. Two accounts are put together as Gaussians, which flatters `private` a little.

Data are training rows: a third of them is scored on; `--test` reads test rows. None of these figures is private.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import torch
from cells import DELTA, parser, peer_tables, read, split
from dp_accounting import gaussian_mechanism

import sfumato
from sfumato.columns.kinds import Categorical, Image, LevelKind
from sfumato.evaluate import total_variation
from sfumato.evaluate.utility import classifier_scores
from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).parents[1]))
import images as image_protocol
from jobs import Results

ARMS = ("default", "start", "records", "both", "private")
TABLES, IMAGES = ("adult", "credit", "isolet"), ("fashion_mnist",)
PARTS, IMAGE_PARTS, SAMPLES = 32, 16, 100_000
START_STEPS, RECORD_EPOCHS = 2000, 20
PRIVATE_BATCH, PRIVATE_EPOCHS, CLIP_NORM = 512, 20, 1.0
WIDE = 20  # columns from which inputs are numbers, not indicators


@dataclass(frozen=True)
class Data:
    """Records to fit to and to score on, in one of two protocols."""

    name: str
    train: pd.DataFrame
    held: pd.DataFrame
    schema: sfumato.Schema
    target: str
    positive: str | None

    @property
    def is_images(self) -> bool:
        return self.name in IMAGES

    def release(self, epsilon: float) -> pd.DataFrame:
        """Samples of the default method."""
        if not self.is_images:
            method = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA)
            return pd.DataFrame(method.fit(self.train, schema=self.schema, target=self.target).sample(SAMPLES))
        method = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA, purpose=sfumato.Training())
        made = method.fit((_pictures(self.train), self.train["y"].to_numpy()), schema=self.schema).sample(SAMPLES // 2)
        return _frame(made["x"], made["y"].astype(int))

    def score(self, made: pd.DataFrame) -> dict[str, float]:
        """AUROC and AUPRC of four classifiers, or accuracy of a network."""
        made = made.iloc[: len(self.train)]
        if self.is_images:
            held = _pictures(self.held), self.held["y"].to_numpy()
            found = image_protocol.accuracy(_pictures(made), made["y"].to_numpy(), *held, epochs=3, batch=128, seed=0)
            return {"accuracy": round(found[-1], 4)}
        scores = classifier_scores(made, self.held, schema=self.schema, target=self.target, positive=self.positive)
        scores |= {"tvd_2way": total_variation(self.train, made, schema=self.schema, k=2)}
        return {name: round(scores[name], 4) for name in ("auroc", "auprc", "tvd_2way")}


def _pictures(frame: pd.DataFrame) -> np.ndarray:
    return frame.drop(columns="y").to_numpy(np.uint8).reshape(-1, 28, 28)


def _frame(x: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x.reshape(len(x), -1)).assign(y=y)


def data_of(folder: Path, name: str, *, test: bool) -> Data:
    """Two thirds of the training rows and the other third, or all of them and test rows."""
    if name in TABLES:
        table = peer_tables.TABLES[name](folder)
        train, held = split(table.frame, share=0.1, seed=0)
        if not test:
            train, held = split(train, share=1 / 3, seed=1)
        assert table.target is not None
        return Data(name, train, held, table.schema, table.target, table.positive)
    with np.load(folder / f"{name}.npz") as stored:
        train, held = (_frame(stored[f"x_{part}"], stored[f"y_{part}"]) for part in ("train", "test"))
    if not test:
        train, held = train.iloc[: image_protocol.VALIDATION_FROM], train.iloc[image_protocol.VALIDATION_FROM :]
    columns = {"x": Image(shape=(28, 28)), "y": Categorical(categories=image_protocol.LABELS)}
    return Data(name, train, held, sfumato.Schema(columns=columns, rows=len(train)), "y", None)


class Coding:
    """Columns as codes, the target first: labels, and parts of numbers between quantiles of a release's samples."""

    def __init__(self, data: Data, samples: pd.DataFrame) -> None:
        self._samples = samples
        names = [name for name in samples.columns if name != data.target]
        self.names = [data.target, *names]
        most = IMAGE_PARTS if data.is_images else PARTS
        self._edges: dict[Any, np.ndarray] = {}
        self._labels: dict[Any, np.ndarray] = {}
        for name in self.names:
            kind = None if data.is_images else data.schema.columns[name]
            if name == data.target or isinstance(kind, LevelKind):
                self._labels[name] = np.unique(pd.concat([samples[name], data.train[name]]).astype(str))
            else:
                values = samples[name].to_numpy(float)
                self._edges[name] = np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[1:-1]))
        self.sizes = [len(self._labels[n]) if n in self._labels else len(self._edges[n]) + 1 for n in self.names]
        codes = self.codes(samples)
        self._rows = [np.argsort(column, kind="stable") for column in codes.T]
        self._starts = [
            np.searchsorted(column[rows], np.arange(size + 1))
            for column, rows, size in zip(codes.T, self._rows, self.sizes, strict=True)
        ]

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Return codes (rows, columns)."""
        columns = [
            np.searchsorted(self._labels[name], frame[name].astype(str).to_numpy())
            if name in self._labels
            else np.searchsorted(self._edges[name], frame[name].to_numpy(float), side="right")
            for name in self.names
        ]
        return np.stack(columns, 1).astype(np.int64)

    def values(self, codes: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows: a sample's value of the same part; the label itself."""
        frame = {}
        for name, column, rows, starts in zip(self.names, codes.T, self._rows, self._starts, strict=True):
            low, high = starts[column], starts[column + 1]
            chosen = rows[np.minimum(low + (rng.random(len(column)) * (high - low)).astype(int), len(rows) - 1)]
            values = self._samples[name].to_numpy()[chosen]
            if name in self._labels:
                exact = self._labels[name][column]
                values = exact.astype(int) if isinstance(values[0], np.integer) else exact
            frame[name] = values
        return pd.DataFrame(frame)[list(self._samples.columns)]


class Made(torch.nn.Module):
    """Logits of each column's codes given those before it; one hidden layer and, for few columns, a linear part."""

    def __init__(self, sizes: list[int], hidden: int = 512) -> None:
        super().__init__()
        self.sizes, self.wide = sizes, len(sizes) > WIDE
        inputs = np.repeat(np.arange(len(sizes)), [1 if self.wide and j else s for j, s in enumerate(sizes)])
        outputs = np.repeat(np.arange(len(sizes)), sizes)
        degrees = np.linspace(0, len(sizes) - 1.001, hidden).astype(int)
        self.register_buffer("_into", torch.tensor(degrees[:, None] >= inputs[None]).float())
        self.register_buffer("_out", torch.tensor(outputs[:, None] > degrees[None]).float())
        self.register_buffer("_past", torch.tensor(outputs[:, None] > inputs[None]).float())
        self.first, self.last = torch.nn.Linear(len(inputs), hidden), torch.nn.Linear(hidden, len(outputs))
        self.direct = None if self.wide else torch.nn.Parameter(torch.zeros(len(outputs), len(inputs)))

    def inputs(self, codes: torch.Tensor) -> torch.Tensor:
        """Indicators of codes; of many columns, numbers in [-1, 1] but for the first."""
        if self.wide:
            one = torch.nn.functional.one_hot(codes[:, 0], self.sizes[0]).float()
            return torch.cat([one, 2 * codes[:, 1:] / (torch.tensor(self.sizes[1:]) - 1).clamp(min=1) - 1], 1)
        columns = [torch.nn.functional.one_hot(c, s) for c, s in zip(codes.T, self.sizes, strict=True)]
        return torch.cat(columns, 1).float()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        into, out = self.first.weight * self._into, self.last.weight * self._out
        hidden = torch.relu(torch.nn.functional.linear(x, into, self.first.bias))
        logits = torch.nn.functional.linear(hidden, out, self.last.bias)
        return logits if self.direct is None else logits + torch.nn.functional.linear(x, self.direct * self._past)

    def loss(self, x: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Mean negative log likelihood of rows, nats."""
        parts = self(x).split(self.sizes, 1)
        each = [torch.nn.functional.cross_entropy(p, c) for p, c in zip(parts, codes.T, strict=True)]
        return torch.stack(each).sum()

    def clipped(self, codes: torch.Tensor, norm: float) -> list[tuple[torch.nn.Parameter, torch.Tensor]]:
        """Sums over rows of the loss's gradients, each row's clipped to a norm.

        A row's gradient by a masked matrix is an outer product under the mask, so its norm follows from both vectors
        and no such matrix is made for a row.
        """
        x = self.inputs(codes)
        before = torch.nn.functional.linear(x, self.first.weight * self._into, self.first.bias).detach()
        before.requires_grad_()
        hidden = torch.relu(before)
        logits = torch.nn.functional.linear(hidden, self.last.weight * self._out, self.last.bias)
        if self.direct is not None:
            logits = logits + torch.nn.functional.linear(x, self.direct * self._past)
        parts = zip(logits.split(self.sizes, 1), codes.T, strict=True)
        loss = torch.stack([torch.nn.functional.cross_entropy(p, c, reduction="sum") for p, c in parts]).sum()
        inner, outer = torch.autograd.grad(loss, [before, logits])
        hidden = hidden.detach()
        layers = [(self.first.weight, inner, x, self._into), (self.last.weight, outer, hidden, self._out)]
        if self.direct is not None:
            layers.append((self.direct, outer, x, self._past))
        squared = inner.square().sum(1) + outer.square().sum(1)
        squared += sum(((d.square() @ m) * v.square()).sum(1) for _, d, v, m in layers)
        factors = (norm / squared.sqrt().clamp(min=norm))[:, None]
        sums = [(weight, (factors * d).T @ v * m) for weight, d, v, m in layers]
        return [*sums, (self.first.bias, (factors * inner).sum(0)), (self.last.bias, (factors * outer).sum(0))]

    @torch.no_grad()
    def draw(self, labels: torch.Tensor) -> torch.Tensor:
        """Return codes of rows with these labels, column by column."""
        codes = torch.zeros(len(labels), len(self.sizes), dtype=torch.int64)
        codes[:, 0] = labels
        starts = np.cumsum([0, *self.sizes])
        into, out = self.first.weight * self._into, self.last.weight * self._out
        for j in range(1, len(self.sizes)):
            x = self.inputs(codes)
            seen = self._out[starts[j]].bool()
            hidden = torch.relu(torch.nn.functional.linear(x, into[seen], self.first.bias[seen]))
            block = slice(starts[j], starts[j + 1])
            logits = torch.nn.functional.linear(hidden, out[block][:, seen], self.last.bias[block])
            if self.direct is not None:
                logits = logits + torch.nn.functional.linear(x, (self.direct * self._past)[block])
            codes[:, j] = torch.multinomial(logits.softmax(1), 1)[:, 0]
        return codes


def teach(network: Made, codes: torch.Tensor, steps: int, seed: int, rate: float = 1e-3) -> None:
    """Adam on batches of 256, the rate falling to nothing."""
    optimiser = torch.optim.Adam(network.parameters(), rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for chosen in _batches(len(codes), 256, steps, seed):
        optimiser.zero_grad()
        network.loss(network.inputs(codes[chosen]), codes[chosen]).backward()
        optimiser.step()
        schedule.step()


def _batches(n: int, size: int, steps: int, seed: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(n, (size,), generator=generator)


def teach_by_records(network: Made, codes: torch.Tensor, seed: int) -> None:
    """Without noise, until a tenth of the records is best explained: not private."""
    held, rest = codes[::10], codes[np.arange(len(codes)) % 10 != 0]
    best, state = math.inf, {}
    for epoch in range(RECORD_EPOCHS):
        teach(network, rest, max(1, len(rest) // 256), seed + epoch, 5e-4)
        with torch.no_grad():
            loss = fmean(float(network.loss(network.inputs(part), part)) for part in held.split(1000))
        if loss >= best:
            break
        best, state = loss, {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(state)


def teach_privately(network: Made, codes: torch.Tensor, epsilon: float, seed: int) -> float:
    """DP-SGD by Adam from where the network is, Poisson samples; the noise multiplier."""
    n = len(codes)
    rate, steps = PRIVATE_BATCH / n, round(PRIVATE_EPOCHS * n / PRIVATE_BATCH)
    sigma = _multiplier(rate, steps, epsilon)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(network.parameters(), 5e-4)
    for _ in range(steps):
        chosen = torch.nonzero(torch.rand(n, generator=generator) < rate)[:, 0]
        for parameter, total in network.clipped(codes[chosen], CLIP_NORM):
            noise = sigma * CLIP_NORM * torch.randn(parameter.shape, generator=generator)
            parameter.grad = (total + noise) / PRIVATE_BATCH
        optimiser.step()
    return sigma


def _multiplier(rate: float, steps: int, epsilon: float) -> float:
    low, high = 0.3, 300.0
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        stage = Stage(name="descent", noise_multiplier=middle, sampling_probability=rate, count=steps)
        low, high = (middle, high) if account(Plan([stage]), DELTA).epsilon > epsilon else (low, middle)
    return high


def part_of(epsilon: float, share: float) -> float:
    """Return ε of a Gaussian with this share of the squared signal of one at ε."""
    sigma = float(gaussian_mechanism.get_sigma_gaussian(epsilon, DELTA))
    return float(gaussian_mechanism.get_epsilon_gaussian(sigma / math.sqrt(share), DELTA))


def run(folder: Path, name: str, arm: str, seed: int, *, share: float, test: bool) -> dict[str, float]:
    """Fit, teach, sample and score."""
    torch.manual_seed(seed)
    data = data_of(folder, name, test=test)
    samples = data.release(part_of(1.0, 1 - share) if arm == "private" else 1.0)
    if arm == "default":
        return data.score(samples)
    coding = Coding(data, samples)
    codes, records = (torch.tensor(coding.codes(frame)) for frame in (samples, data.train))
    network = Made(coding.sizes)
    if arm != "records":
        teach(network, codes, START_STEPS, seed)
    extra = {}
    if arm in ("records", "both"):
        teach_by_records(network, records, seed)
    elif arm == "private":
        extra = {"noise": round(teach_privately(network, records, part_of(1.0, share), seed), 3)}
    of_labels = records if arm in ("records", "both") else codes
    chosen = torch.randint(len(of_labels), (len(data.train),))
    made = network.draw(of_labels[chosen, 0])
    return data.score(coding.values(made.numpy(), np.random.default_rng(seed))) | extra


def main() -> None:
    """Run what is missing, and print."""
    arguments = parser(__doc__)
    arguments.add_argument("--only", nargs="+", default=[*TABLES, *IMAGES], choices=[*TABLES, *IMAGES])
    arguments.add_argument("--arms", nargs="+", default=ARMS, choices=ARMS)
    arguments.add_argument("--share", type=float, default=0.5, help="of the budget that is the descent's")
    arguments.add_argument("--test", action="store_true", help="read test rows")
    options = arguments.parse_args()
    results = Results(options.out / f"autoregressive_{'test' if options.test else 'validation'}.jsonl")
    found: dict[str, list[dict[str, float]]] = {}
    for name in options.only:
        for arm in options.arms:
            key = f"{name} | {arm}" + (f", share {options.share:g}" if arm == "private" else "")
            for seed in range(options.runs):
                cell = partial(run, read(options), name, arm, seed, share=options.share, test=options.test)
                found.setdefault(key, []).append(results.get(f"{key} | {seed}", cell))
                print(key, found[key][-1], flush=True)
    results.note("autoregressive", {"private": False, "found": found})


if __name__ == "__main__":
    main()
