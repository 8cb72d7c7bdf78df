"""What a caller asks of a sample: values that are given, and how many rows each class has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.columns.booleans import Boolean
from sfumato.columns.kind import GivenValue
from sfumato.errors import ConfigError, did_you_mean, require_integer
from sfumato.lenses.lens import given_values
from sfumato.maths.streams import public_stream
from sfumato.release.samplers import Sampler
from sfumato.schema.schema import Schema

_MOST_COUNTED_ROWS = 10**9 - 1  # numpy draws shares of no more without replacement
_CLASS_STREAM = 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """A sampler of the conditional law, and what to put over its rows.

    Attributes:
        sampler: of the conditional law.
        values: the given values in their storage types, shape (1,) each.
        class_counts: rows per class, shape (k,); None to draw them.
    """

    sampler: Sampler
    values: Mapping[str, pa.Array]
    class_counts: np.ndarray | None

    @classmethod
    def of(
        cls,
        schema: Schema,
        storage: Mapping[str, pa.DataType],
        sampler: Sampler,
        given: Mapping[str, object] | None,
        class_counts: Mapping[object, int] | None,
    ) -> Conditions:
        """Read what a caller asks for.

        Raises:
            ConfigError: a column or a value is not the schema's, or the release cannot have such rows.
        """
        for argument, condition in (("given", given), ("class_counts", class_counts)):
            if condition is not None and not isinstance(condition, Mapping):
                raise ConfigError(f"Expected {argument} to be a mapping, got {type(condition).__name__}.")
        given, sets = dict(given or {}), schema.set_columns
        items = {name: column.taken_from(given) for name, column in sets.items()}
        values = {name: _read(schema, storage, name, value) for name, value in given.items()}
        if values or any(items.values()):
            chosen = [(sets[name].items[item], truth) for name, own in items.items() for item, truth in own.items()]
            truths = {name: Boolean().given(name, bool(truth), pa.bool_()) for name, truth in chosen}
            sampler = given_values(sampler, values | truths)
        counts = None
        if class_counts is not None:
            if sampler.class_column is None:
                raise ConfigError("Expected class_counts for a release with a target, got a release without one.")
            if sampler.class_column in values:
                raise ConfigError(
                    f"Expected either class_counts or a given {sampler.class_column!r}, got both. Leave one out."
                )
            counts = _counts(schema, storage, sampler, class_counts)
        return cls(sampler, {name: value.stored for name, value in values.items()}, counts)

    def n_rows(self, n: int | None) -> int | None:
        """Return how many rows class counts make, or n without them.

        Raises:
            ConfigError: n says something else.
        """
        if self.class_counts is None:
            return n
        total = int(self.class_counts.sum())
        if n is not None and n != total:
            raise ConfigError(f"Expected n to be the sum of class_counts, {total}, got {n=}. Leave n out.")
        return total

    def classes(self, size: int, seed: int) -> Iterator[np.ndarray | None]:
        """Yield the classes of each block of rows, in random order; None where they are to be drawn.

        Blocks share out the counts without replacement, so no list of all rows is kept.
        """
        if self.class_counts is None:
            while True:
                yield None
        left, block = self.class_counts.copy(), 0
        while True:
            rng = public_stream(seed, block, _CLASS_STREAM)
            taken = rng.multivariate_hypergeometric(left, min(size, int(left.sum())), method="marginals")
            yield rng.permutation(np.repeat(np.arange(left.size), taken))
            left -= taken
            block += 1


def _read(schema: Schema, storage: Mapping[str, pa.DataType], name: str, value: object) -> GivenValue:
    if name not in schema.released:
        raise ConfigError(
            f"Expected given columns to be of the release, got {name!r}. "
            f"It has {', '.join(map(repr, schema.released))}.{did_you_mean(name, schema.released)}"
        )
    return schema.columns[name].given(name, value, storage[name])


def _counts(
    schema: Schema, storage: Mapping[str, pa.DataType], sampler: Sampler, class_counts: Mapping[object, int]
) -> np.ndarray:
    counts = np.zeros(sampler.possible.size, dtype=np.int64)
    for label, count in class_counts.items():
        code = int(_read(schema, storage, str(sampler.class_column), label).code)
        counts[code] += require_integer(at_least=0, hint="", **{f"class_counts[{label!r}]": count})
        if counts[code] and not sampler.possible[code]:
            raise ConfigError(
                f"Expected classes that the given values can go with, got class_counts[{label!r}]={count}. "
                "In this release that has probability 0."
            )
        if counts.sum() > _MOST_COUNTED_ROWS:
            raise ConfigError(f"Expected class_counts of at most {_MOST_COUNTED_ROWS} rows together.")
    return counts
