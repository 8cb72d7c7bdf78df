"""Shadow fits: a method run on planted records with or without one more, and what the strongest attacker makes of it.

The attacker knows the method, its settings, the planted record, and every noisy statistic that left the fit. What the
record adds to a release may depend on earlier ones, so a fit is played again with its own results (`tape.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sfumato.audit.tape import Enough, NoiseDraw, Tape, log_ratios
from sfumato.errors import ConfigError
from sfumato.fitting.account import Account
from sfumato.fitting.driver import Fit
from sfumato.fitting.purposes import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.lenses.chain import plain_schema
from sfumato.mechanisms.noise import NoiseSource, SeededNoise
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records.engine import Rows
from sfumato.schema.schema import Schema

_MOST_ROWS = 1_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Coded records as a fit reads them. No record of anybody."""

    schema: Schema
    rows: Rows
    max_rows_per_unit: int = 1
    counts_entries: bool = True

    def coded(self) -> Iterator[Rows]:
        """Yield the rows as one chunk."""
        yield self.rows


@final
@dataclass(frozen=True, slots=True)
class Shadow:
    """A method under a plan, on planted records of a schema.

    Attributes:
        synthesizer: the method.
        plan: its calibrated plan.
        facts: as of a fit.
        draws: how many draws of noise a fit takes; None if that is not known yet.
    """

    synthesizer: Synthesizer
    plan: Plan
    facts: Facts
    draws: int | None = None

    @property
    def rates(self) -> dict[str, float]:
        """The sampling probabilities of stages that sample."""
        stages = self.plan.stages
        return {s.name: s.sampling_probability for s in stages if s.sampling_probability is not None}

    def counted(self, rows: Rows) -> Shadow:
        """Return the same, with the number of draws of a fit that ran to its end."""
        return replace(self, draws=len(self._play(rows, Tape(SeededNoise(0)))))

    def measure(self, rows: Rows, noise: NoiseSource) -> list[NoiseDraw]:
        """Run the method with a noise, and return what left it, draw by draw."""
        return self._play(rows, Tape(noise, most=self.draws))

    def replay(self, rows: Rows, released: list[NoiseDraw]) -> list[NoiseDraw]:
        """Run the method again with these results, and every record in every sample."""
        return self._play(rows, Tape(None, released, most=len(released)))

    def _play(self, rows: Rows, tape: Tape) -> list[NoiseDraw]:
        records = Planted(self.facts.schema, rows)
        # the plan was calibrated to the budget once
        ledger = Ledger(self.plan, None, lambda stage: tape.charged(stage, ledger.charged[-1][1]))
        with suppress(Enough):
            self.synthesizer.run(Fit(records, Account(ledger, tape), self.facts))
        ledger.close()
        self._check(tape)
        return tape.draws

    def _check(self, tape: Tape) -> None:
        """Refuse a fit that released something without noise from the tape: the attacker would not see it."""
        events = {(draw.stage, draw.first + i) for draw in tape.draws for i in range(draw.count)}
        for stage in self.plan.stages:
            # of all records, several events that are charged at once may be one draw
            together = stage.sampling_probability is None
            begun = [i for name, i in tape.charges if name == stage.name]
            if any((stage.name, i) not in events for i in (begun or [0] if together else range(stage.count))):
                raise ConfigError(
                    f"Expected noise in every release of stage {stage.name!r} to audit, got none in some."
                )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Attacker:
    """Tells two neighbouring tables of planted records apart by what a fit released.

    He sees every noisy statistic, gradients included, and knows the method, its settings and the planted records. He
    uses neither the noise nor who was in a sample. Where all records are read, the canary is one more among others.
    Where records are sampled, the other table is empty, so that given earlier releases the law of a release is exactly
    (1 − q) N(0, σ²) + q N(c, σ²) with the canary and N(0, σ²) without it: c is played again, the canary being in every
    sample. It follows from earlier releases, because with the same releases a fit has the same state. Random numbers
    of one record's contribution are public here, one set per step: the account holds given these numbers, which do not
    depend on the records. So all that he uses costs at most what the account says, and any bound of his is valid.

    Attributes:
        shadow: the method.
        present: the table with the canary.
        absent: the same without it.
    """

    shadow: Shadow
    present: Rows
    absent: Rows

    @classmethod
    def of(cls, shadow: Shadow, canary: Rows, other: Rows) -> Attacker:
        """The attacker of a canary among as many rows like `other` as are public, at most 1,000, or among none."""
        n = 0 if shadow.rates else min(shadow.facts.rows, _MOST_ROWS)
        absent = {name: np.repeat(column, n, axis=0) for name, column in other.items()}
        present = {name: np.concatenate([absent[name], column]) for name, column in canary.items()}
        return cls(shadow, present, absent)

    def scores(self, released: list[NoiseDraw], *, planted: bool) -> np.ndarray:
        """Log-likelihood ratios of what was released, with the canary over without it: `log_ratios`.

        Args:
            released: what left a fit.
            planted: whether the canary was in its table. This spares a replay and tells the attacker nothing, since
                exact statistics follow from the table and earlier releases: where all records are read, playing the
                table that was fitted again gives those on its tape.
        """
        if self.shadow.rates:
            again = self.shadow.replay(self.present, released)
            return log_ratios(released, again, None, self.shadow.rates)
        other = self.shadow.replay(self.absent if planted else self.present, released)
        present, absent = (released, other) if planted else (other, released)
        return log_ratios(released, present, absent, {})


def corners(schema: Schema) -> list[Rows]:
    """Records at two opposite corners of the domain: every column at its first value, or at its last.

    Columns are those that are measured: of weighted rows the weight is one, of rules those that they leave free.
    """
    schema = plain_schema(schema)
    picks = [[0.0] * len(schema.released), [1.0] * len(schema.released)]
    return [
        {name: _corner(schema, name, side) for name, side in zip(schema.released, corner, strict=True)}
        for corner in picks
    ]


def _corner(schema: Schema, name: str, side: float) -> np.ndarray:
    """Return one cell at a side of a column's domain; a refusal names the column."""
    try:
        return schema.columns[name].corner(side)
    except ConfigError as error:
        problem = str(error)
    raise ConfigError(f"Column {name!r}: {problem}")
