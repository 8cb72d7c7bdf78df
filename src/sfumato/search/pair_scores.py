"""The scores that every fit of a search gets: pairs of cells of rows; of linked rows, of units and of their steps.

    rows           score           pairs of columns of a row
    linked rows    score: units    pairs of columns of a unit: constants, number of rows, first row
                   score: steps    pairs of columns of a step: a row, the one before, constants, numbers; each unit's
                                   steps share one bound, whatever their number

Each is one Gaussian release, made once. Which there are, and their sizes, follow from the schema alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.fitting.purposes import Facts
from sfumato.lenses.chain import PlainRows, plain_records, plain_schema, shaped
from sfumato.lenses.lens import Sampler, Units, UnitSampler
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.records.engine import Records, Rows
from sfumato.records.linked import LinkedData
from sfumato.records.sequences import Sequences, step_records, unit_records
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema
from sfumato.search.pair_counts import CoarsePairCounts, StepPairCounts, pair_counts, pair_layout, squared_distance

SCORE_STAGE = "score"
_SAMPLES, _SAMPLES_SEED, _BLOCK = 20_000, 0, 4096


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one kind of records.

    Attributes:
        stage: of their release.
        name: of the measurement.
        statistic: of the records.
        of_samples: the same of samples, which have no weights.
    """

    stage: str
    name: str
    statistic: CoarsePairCounts
    of_samples: CoarsePairCounts

    @property
    def counts(self) -> str:
        """The records in a word."""
        return {SCORE_STAGE: "rows"}.get(self.stage, self.stage.removeprefix(f"{SCORE_STAGE}: "))

    def records(self, data: Records) -> Records:
        """Return the records that it counts."""
        return data.steps if isinstance(data, LinkedData) and isinstance(self.statistic, StepPairCounts) else data

    def counted(self, chunks: Iterable[Rows]) -> np.ndarray:
        """Return exact counts of samples."""
        total = self.of_samples.zero()
        for rows in chunks:
            self.of_samples.add(total, rows)
        return total

    def distance(self, noisy: Noisy, counts: np.ndarray) -> float:
        """Return the squared distance of samples from the records, without bias."""
        return squared_distance(noisy, counts, self.statistic.layout)


def scores_of(facts: Facts) -> tuple[Score, ...]:
    """Return the scores of a search for tables of a schema."""
    described = facts.described
    weight = "" if described.weight is None else described.weight.column
    if not described.linked:
        layout = pair_layout(facts.schema, facts.target, weight or None)
        return (Score(SCORE_STAGE, CoarsePairCounts.name, pair_counts(described, layout), CoarsePairCounts(layout)),)
    tables = _tables(described)
    units = pair_layout(tables.units, None, weight or None)
    counts = pair_counts(described, units), CoarsePairCounts(units)
    scores = [Score(f"{SCORE_STAGE}: units", f"units: {CoarsePairCounts.name}", *counts)]
    if tables.steps is not None:
        steps = pair_layout(plain_schema(tables.steps), None)
        counts = (StepPairCounts(steps, column=weight), StepPairCounts(steps))
        scores.append(Score(f"{SCORE_STAGE}: steps", f"steps: {CoarsePairCounts.name}", *counts))
    return tuple(scores)


def score_stages(facts: Facts, share: float) -> list[Stage]:
    """Return the stages of the scores: equal parts of this share of a fit's squared budget with its score."""
    scores = scores_of(facts)
    return [
        Stage(
            name=score.stage,
            noise_multiplier=multiplier_for_share(share / len(scores)),
            replace_distance=float(np.sqrt(2)),
            measures=f"how many {score.counts} lie in each pair of coarse cells of two columns, to score fits against",
        )
        for score in scores
    ]


def mean_distance(scores: Sequence[Score], released: Sequence[Noisy], sampled: Sequence[np.ndarray]) -> float:
    """Return the mean over scores of the squared distances. Free: of releases and of samples."""
    parts = zip(scores, released, sampled, strict=True)
    with np.errstate(all="ignore"):  # a warning of numpy's would show something of a fit that does not leave
        return float(np.mean([score.distance(noisy, counts) for score, noisy, counts in parts]))


def sampled_counts(scores: Sequence[Score], schema: Schema, sampler: Sampler) -> list[np.ndarray]:
    """Return counts of samples of one fit, of each score: of its own release, at no cost.

    Args:
        scores: of the search.
        schema: as it was declared.
        sampler: of plain rows, or of units of such.
    """
    blocks = range(-(-_SAMPLES // _BLOCK))
    if not isinstance(sampler, UnitSampler):
        rows = PlainRows(schema, sampler)
        return [scores[0].counted(dict(rows.rows(_BLOCK, public_stream(_SAMPLES_SEED, block))) for block in blocks)]
    tables, total = _tables(schema), [score.of_samples.zero() for score in scores]
    for block in blocks:
        units = _plain_units(schema, sampler, public_stream(_SAMPLES_SEED, block))
        sequences = Sequences.of(units, tables.constants)
        for place, (score, records) in enumerate(zip(scores, (unit_records, step_records), strict=False)):
            total[place] += score.counted(records(tables, sequences))
    return total


def _plain_units(schema: Schema, sampler: UnitSampler, rng: np.random.Generator) -> Units:
    """Return units with their rows as plain records, each of weight 1."""
    units = shaped(schema, sampler)
    assert isinstance(units, UnitSampler)
    owners, rows, without = units.units(_BLOCK, rng)
    weights = {} if schema.weight is None else {schema.weight.column: np.ones(owners.size)}
    return Units(owners, plain_records(schema, {**rows, **weights}), without)


def _tables(schema: Schema) -> LinkedTables:
    return linked_tables(plain_schema(schema), schema.weight)
