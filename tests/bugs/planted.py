"""Bugs that would break the guarantee, each planted into a copy of the package by a change of its text.

Every one has to be found by the tests it names. A text that is no longer there is an error: then the code has changed,
and the bug has to be planted anew.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlantedBug:
    """A change of one file: `text` becomes `wrong`, everywhere; the tests of `found_by` have to fail."""

    name: str
    file: str
    text: str
    wrong: str
    found_by: str


QUERIES = "mechanisms/queries.py"
DRAW = "value = noise.gaussian(exact.open_in_mechanism().shape, noise_std)\n"
LAW = "tests/mechanisms/test_queries.py -k law"
RECIPES = "tests/attacks/test_recipes.py"

BUGS = [
    PlantedBug("noise × 2/3", QUERIES, DRAW, DRAW.replace("noise_std)", "noise_std * 2 / 3)"), LAW),
    PlantedBug("noise × 3/2", QUERIES, DRAW, DRAW.replace("noise_std)", "noise_std * 3 / 2)"), LAW),
    PlantedBug(
        "symmetric noise of one triangle, halved",
        QUERIES,
        "tile *= 0.5",
        "tile *= 0.25",
        LAW,
    ),
    PlantedBug(
        "no clipping of gradients",
        "learners/clipped.py",
        "factors = (clip_norms * SAFETY / norms.clamp_min(1e-300)).clamp_max(SAFETY)",
        "factors = torch.ones_like(norms)",
        "tests/learners/test_sgd.py -k Sensitivity",
    ),
    PlantedBug(
        "no clipping of a table's vectors",
        "learners/moments.py",
        "vectors *= clip_factors(norms, self.clip_norm)[:, None]",
        "vectors *= 1.0 + 0.0 * clip_factors(norms, self.clip_norm)[:, None]",
        "tests/mechanisms/test_queries.py -k second",
    ),
    PlantedBug(
        "no clipping of mixed records",
        "mechanisms/mixing.py",
        "np.maximum(clip_rows(features, feature_norm), 0.0)",
        "np.maximum(features, 0.0)",
        "tests/mechanisms/test_mixing.py -k contributions",
    ),
    PlantedBug(
        "no clipping of profiles",
        "learners/profiles.py",
        "np.maximum(clip_rows(part, self.clip_norm), 0.0)",
        "np.maximum(part, 0.0)",
        "tests/mechanisms/test_queries.py -k profiles",
    ),
    PlantedBug(
        "adaptive clipping: the sum not in units of the clip norms",
        "learners/sgd.py",
        "return clip_factors(norms, clip_norms) / clip_norms",
        "return clip_factors(norms, clip_norms)",
        "tests/learners/test_components.py -k neighbours",
    ),
    PlantedBug(
        "wrong q: batches larger than charged",
        "mechanisms/sampling.py",
        "noise.bernoulli(n, sampling_probability(stage, ledger))",
        "noise.bernoulli(n, min(1.0, 1.5 * sampling_probability(stage, ledger)))",
        "tests/learners/test_batches.py",
    ),
    PlantedBug(
        "Poisson samples charged, fixed batches drawn",
        "mechanisms/sampling.py",
        "np.flatnonzero(noise.bernoulli(n, sampling_probability(stage, ledger)))",
        "np.sort(noise.subsets(n, round(n * sampling_probability(stage, ledger)), 1).indices)",
        "tests/learners/test_batches.py",
    ),
    PlantedBug(
        "Poisson samples charged, records shuffled and dealt out",
        "learners/batches.py",
        "chosen = poisson_members(len(vectors), stage=stage, ledger=ledger, noise=noise)",
        "size = max(1, round(len(vectors) * sampling_probability(stage, ledger)))\n"
        "                chosen = (len(members) + next(_DEALT) * size + np.arange(size)) % max(len(vectors), 1)",
        "tests/learners/test_batches.py",
    ),
    PlantedBug(
        "mixtures of more records than charged",
        "mechanisms/mixing.py",
        "yield noise.poisson_samples(n, stage.sampling_probability, block)",
        "yield noise.poisson_samples(n, min(1.0, 2 * stage.sampling_probability), block)",
        "tests/attacks/test_distinguishers.py -k poisson_mixtures",
    ),
    PlantedBug(
        "mixtures divided by how many are in them",
        "mechanisms/mixing.py",
        "sums /= settings.degree",
        "sums /= np.maximum(np.diff(members.indptr), 1)[:, None]",
        "tests/mechanisms/test_mixing.py -k divisor",
    ),
    PlantedBug(
        "an empty batch gets no noise",
        "learners/sgd.py",
        "        total, counts = _guarded_sum(gradients, batch, state.clip, settings.device, noise)\n",
        "        if not len(batch):\n            ledger.replay(stage, 1)\n            continue\n"
        "        total, counts = _guarded_sum(gradients, batch, state.clip, settings.device, noise)\n",
        "tests/learners/test_sgd.py",
    ),
    PlantedBug(
        "the divisor is the size of the batch",
        "learners/sgd.py",
        "state.step(gradient, divisor,",
        "state.step(gradient, max(len(batch), 1),",
        f"{RECIPES} -k dp-vae",
    ),
    PlantedBug(
        "an un-noised count",
        "synthesizers/base.py",
        "    return max(1, round(float(count.value)))",
        "    return max(1, int(reduce(RowCount(), records).open_in_mechanism()))",
        f"{RECIPES} -k bought",
    ),
    PlantedBug(
        "the label ratio leaked",
        "synthesizers/gaussian.py",
        "            parameters=model.to_arrays(),\n            measurements=((ClassCellCounts.name, counts)",
        "            parameters={**model.to_arrays()} | _leaked(reduce(ClassCellCounts(layout), fit.data))"
        ",\n"
        "            measurements=((ClassCellCounts.name, counts)",
        f"{RECIPES} -k gaussian",
    ),
    PlantedBug(
        "a clip norm read off the records",
        "synthesizers/gaussian.py",
        "        norm = max(expected_norm(columns), _LEAST_NORM)\n",
        "        norm = max(expected_norm(columns), _LEAST_NORM)\n"
        "        norm += 1e-6 * float(reduce(ClassCellCounts(layout), fit.data).open_in_mechanism().sum())\n",
        f"{RECIPES} -k gaussian",
    ),
    PlantedBug(
        "seed reused: every process draws the same noise",
        "mechanisms/noise.py",
        "super().__init__(os.urandom(32))",
        "super().__init__(bytes(32))",
        "tests/mechanisms/test_noise.py -k differ",
    ),
    PlantedBug(
        "seed reused: a forked process draws its parent's noise",
        "mechanisms/noise.py",
        "if self._fork != _forks:",
        "if False:",
        "tests/mechanisms/test_noise.py -k fork",
    ),
    PlantedBug(
        "the same noise for two statistics",
        QUERIES,
        "        draws = noise.gaussian(value.shape[-2:], noise_std)\n",
        "        draws = noise.gaussian(value.shape[-2:], noise_std) if not any(index) else draws.copy()\n",
        "tests/mechanisms/test_queries.py -k independent",
    ),
    PlantedBug(
        "charge after noise",
        QUERIES,
        "    noise_std = charge_stage(exact, stage, ledger, noise)\n    " + DRAW,
        "    noise_std = 0.0 if noise.silent else ledger.plan[stage].noise_multiplier * exact.norm_bound\n    "
        + DRAW
        + "    charge_stage(exact, stage, ledger, noise)\n",
        "tests/mechanisms/test_queries.py -k charge",
    ),
    PlantedBug(
        "charge missing",
        QUERIES,
        "    ledger.charge(stage, noise_multiplier=multiplier, replace_distance=exact.replace_distance)\n",
        "",
        "tests/mechanisms/test_queries.py -k charge",
    ),
    PlantedBug(
        "one charge for many steps",
        "privacy/ledger.py",
        "if count < 1 or before + count > stage.count:",
        "if count < 1:",
        "tests/privacy/test_subsets.py -k charged",
    ),
    PlantedBug(
        "adjacency mixed up: replace-one charged as add/remove",
        "privacy/plan.py",
        "single = dp_event.GaussianDpEvent(2 * multiplier / self.replace_distance)",
        "single = dp_event.GaussianDpEvent(multiplier)",
        "tests/privacy/test_golden.py -k kmeans",
    ),
    PlantedBug(
        "adjacency mixed up: subsets charged as Poisson samples",
        "privacy/plan.py",
        "event=dp_event.GaussianDpEvent(multiplier / self.replace_distance),",
        "event=dp_event.GaussianDpEvent(multiplier),",
        "tests/privacy/test_subsets.py -k composed or calibrated",
    ),
    PlantedBug(
        "distance between clusters forgotten",
        "learners/profiles.py",
        "        return _SQRT2\n",
        "        return 1.0\n",
        "tests/mechanisms/test_queries.py -k profiles",
    ),
    PlantedBug(
        "noise of unlisted words × 2/3",
        "mechanisms/thresholds.py",
        "values = noise.gaussian(len(counts), noise_std)",
        "values = noise.gaussian(len(counts), noise_std * 2 / 3)",
        "tests/mechanisms/test_thresholds.py",
    ),
    PlantedBug(
        "threshold halved",
        "mechanisms/thresholds.py",
        "if v >= threshold]",
        "if v >= threshold * 0.5]",
        "tests/mechanisms/test_thresholds.py",
    ),
    PlantedBug(
        "additive delta not composed",
        "privacy/accounting.py",
        "return float(accountant.get_epsilon(delta - extra_delta)) - math.log1p(-extra_delta)",
        "return float(accountant.get_epsilon(delta))",
        "tests/mechanisms/test_thresholds.py",
    ),
    PlantedBug(
        "the ledger pays more than it has",
        "synthesizers/data_ledger.py",
        "if spent > state.budget.epsilon * (1 + _SLACK):",
        "if spent > 10 * state.budget.epsilon:",
        "tests/synthesizers/test_data_ledger.py -k pays",
    ),
    PlantedBug(
        "the ledger charges after the fit",
        "synthesizers/base.py",
        "        with settled(self._charge(ledger, plan, schema, journal, private=noise.private)):\n",
        "        with contextlib.nullcontext():\n",
        "tests/synthesizers/test_data_ledger.py -k before",
    ),
]

# names that a wrong text uses
HELPERS = {
    "the label ratio leaked": "\n\ndef _leaked(exact):\n    counts = exact.open_in_mechanism().sum(axis=1)\n"
    "    return {'class_shares': np.maximum(counts, 1) / np.maximum(counts, 1).sum()}\n",
    "Poisson samples charged, records shuffled and dealt out": "\n\nimport itertools\n_DEALT = itertools.count()\n",
    "the ledger charges after the fit": "\n\nimport contextlib\n",
}
