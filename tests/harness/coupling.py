"""Two fits of neighbours that release the same: what may differ between them, and what may not.

The first fit is written down: every exact statistic, its noise, and what was released. The second fit is of a
neighbour, with the same coins for the records both have, and every mechanism is made to release what it released in the
first. Then, whatever the method does with its releases,

- every exact statistic is within the sensitivity that its stage was charged for, at the noise that was used;
- the noise is the same, as clip norms are functions of what was released before;
- the two releases are the same to the last bit: whatever else reached the release would be a leak.

The sampled record of the second fit is in every sample: the worst case of a Poisson sample.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

import sfumato
import sfumato.estimators.base
import sfumato.fitting.arguments
from fixtures.methods import every_module
from sfumato.measurements.query_form import write_query
from sfumato.mechanisms import mixing, queries
from sfumato.mechanisms import unlisted_words as thresholds
from sfumato.mechanisms.mixing import MixtureBlock
from sfumato.mechanisms.noise import SeededNoise
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.plan import Stage

ROUNDING = 1e-9

every_module(sfumato)  # what is imported while mechanisms are watched would keep the watch


@dataclass(frozen=True)
class Released:
    """One release of a stage: the exact value in units of its noise, what was handed back, and the noise."""

    stage: Stage
    standardised: np.ndarray
    words: dict[str, dict[str, float]]
    handed: Any
    std: Any


@dataclass
class Tape:
    """What the first fit released; the second one plays it back."""

    releases: list[Released] = field(default_factory=list)
    played: list[Released] = field(default_factory=list)
    second: bool = False

    def take(self, stage: Stage, standardised: np.ndarray, handed: Any, std: Any, words: Any = None) -> Any:
        found = Released(stage, standardised.copy(), {name: dict(w) for name, w in (words or {}).items()}, handed, std)
        if not self.second:
            self.releases.append(found)
            return handed
        assert len(self.played) < len(self.releases), "one of two neighbours releases more often"
        before = self.releases[len(self.played)]
        assert std == before.std, f"{stage.name}: the noise depends on the records"
        self.played.append(found)
        return before.handed


class SharedCoins:
    """Randomness by the number of the draw: neighbours share it as far as they share records."""

    private, silent = False, False

    def __init__(self, more: int = 0) -> None:
        self.more, self._draws = more, 0

    def _next(self) -> SeededNoise:
        self._draws += 1
        return SeededNoise(self._draws)

    def __getattr__(self, name):
        """Noise of any kind is drawn anew: what it is added to is made alike afterwards."""
        return getattr(self._next(), name)

    def normals(self, shape):
        """Row by row, so that the rows of both are alike whoever else is there."""
        source, (rows, columns) = self._next(), shape
        drawn = [source.normals((1, columns)) for _ in range(rows)] if columns else []
        return np.concatenate([np.zeros((0, columns)), *drawn]) if columns else np.zeros(shape)

    def bernoulli(self, n, probability):
        coins = self._next().bernoulli(max(n - self.more, 0), probability)
        return np.concatenate([coins, np.ones(n - coins.size, dtype=bool)])

    def poisson_samples(self, n, probability, size):
        common = self._next().poisson_samples(n - self.more, probability, size)
        return sparse.csr_array(sparse.hstack([common, np.ones((size, self.more))])) if self.more else common

    def subsets(self, n, members, size):
        """Row by row: of fixed degree a row is a record."""
        source = self._next()
        return sparse.csr_array(sparse.vstack([source.subsets(n, members, 1) for _ in range(size)]))


class _Silent(SharedCoins):
    """The coins of another source, without noise."""

    silent = True

    def __init__(self, coins: SharedCoins) -> None:
        super().__init__(coins.more)


def _watched_sum(original: Callable[..., Noisy], tape: Tape) -> Callable[..., Noisy]:
    def run(exact, *, stage, ledger, noise):
        planned = ledger.plan[stage]
        noisy = original(exact, stage=stage, ledger=ledger, noise=noise)
        return tape.take(planned, exact.open_in_mechanism().ravel() / noisy.noise_std, noisy, noisy.noise_std)

    return run


def _watched_words(original: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    def run(exact, *, stage, ledger, noise):
        planned = ledger.plan[stage]
        found = original(exact, stage=stage, ledger=ledger, noise=noise)
        tally = exact.whole_in_mechanism()
        std = found.listed.noise_std
        counts = {name: {word: n / std for word, n in words.items()} for name, words in tally.words.items()}
        return tape.take(planned, tally.listed.ravel() / std, found, std, counts)

    return run


def _watched_mixtures(original: Callable[..., Iterator[MixtureBlock]], tape: Tape) -> Callable[..., Any]:
    def run(records, settings, *, stage, ledger, noise):
        planned = ledger.plan[stage]
        stds = settings.noise_stds(planned, records.feature_norm, records.label_norm)
        blocks = list(original(records, settings, stage=stage, ledger=ledger, noise=_Silent(noise)))
        whole = [(b.features / (stds[0] or 1.0), b.labels / (stds[1] or 1.0)) for b in blocks]
        # each mixture is a release of its own, but of fixed degree, which is one
        rows = np.concatenate([np.hstack(pair) for pair in whole])
        parts = [rows] if planned.inclusion is None else list(rows)
        handed = [tape.take(planned, part.ravel(), blocks if i == 0 else None, stds) for i, part in enumerate(parts)]
        yield from handed[0]

    return run


WATCHED = {
    (queries, "noisy_sum"): _watched_sum,
    (queries, "noisy_second_moment"): _watched_sum,
    (thresholds, "noisy_words"): _watched_words,
    (mixing, "noisy_mixtures"): _watched_mixtures,
}


def coupled(
    monkeypatch, fit: Callable[[Any], Any], one: Any, other: Any, *, more: int, tape: Tape | None = None
) -> tuple[Any, Any, Tape]:
    """Fit two neighbours that release the same; return what each fit returned, and the tape.

    Args:
        fit: of data, with a seed, returning what leaves the fit.
        one: records.
        other: the same with `more` records at the end, or with one of them replaced (`more=0`).
        tape: what writes down and plays back; a new one by default.
    """
    tape = Tape() if tape is None else tape
    results = []
    for second, data in enumerate((one, other)):
        tape.second = bool(second)
        with monkeypatch.context() as patch:
            for (home, name), watch in WATCHED.items():
                original = getattr(home, name)
                watching = watch(original, tape)
                for module in list(sys.modules.values()):  # plugins too
                    if vars(module).get(name) is original:
                        patch.setattr(module, name, watching)
            patch.setattr(
                sfumato.estimators.base, "_FITS", itertools.count(1)
            )  # certificates say which fit they are of
            patch.setattr(sfumato.fitting.arguments, "SeededNoise", lambda _, s=second: SharedCoins(more if s else 0))
            results.append(fit(data))
    assert len(tape.played) == len(tape.releases), "one of two neighbours releases less often"
    return results[0], results[1], tape


def check_sensitivities(tape: Tape, *, replaced: bool) -> float:
    """Every exact statistic of the neighbours is as near as its stage was charged for; return the largest ratio."""
    largest = 0.0
    for before, after in zip(tape.releases, tape.played, strict=True):
        stage = before.stage
        assert stage == after.stage
        assert before.standardised.shape == after.standardised.shape, f"{stage.name}: shapes depend on the records"
        allowed = (stage.replace_distance if replaced else 1.0) / stage.noise_multiplier
        squares = float(np.sum((before.standardised - after.standardised) ** 2))
        squares += sum(
            (before.words[name].get(word, 0.0) - after.words[name].get(word, 0.0)) ** 2
            for name in before.words
            for word in before.words[name].keys() | after.words[name].keys()
        )
        ratio = squares**0.5 / allowed
        assert ratio <= 1 + ROUNDING, f"{stage.name}: neighbours are {ratio:.3g} times as far apart as is charged"
        largest = max(largest, ratio)
    return largest


def check_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What left two fits that released the same is the same."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other[name], err_msg=f"{name} depends on more than what was released")
        else:
            assert value == other[name], f"{name} depends on more than what was released"


def leaves(release: Any) -> dict[str, Any]:
    """All that a release holds, by name."""
    found = {f"parameter {name}": array for name, array in release.parameters.items()}
    found |= {f"measurement {i}": m.value for i, m in enumerate(release.measurements)}
    found |= {f"noise {i}": m.noise_std for i, m in enumerate(release.measurements)}
    asked = [None if m.query is None else write_query(m.query, found) for m in release.measurements]
    return found | {
        "queries": asked,
        "certificate": release.certificate.content, "sampler": release.sampler, "form": release.form,
        "schema": release.schema,
    }  # fmt: skip


def attack(monkeypatch, fit: Callable[[Any], Any], one: Any, other: Any, *, replaced: bool = False) -> float:
    """Fit two neighbours, `other` with a record more or with one replaced; return how near a sensitivity is at most."""
    first, second, tape = coupled(monkeypatch, fit, one, other, more=0 if replaced else 1)
    check_same(first, second)
    return check_sensitivities(tape, replaced=replaced)
