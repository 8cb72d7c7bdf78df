"""Releases of disjoint people under one schema as one release of them all ([proof](docs/proofs/combine.md)).

It holds the parts whole. Its law is their mixture by public numbers of rows: samples take each row from one part, and
what is linear in the rows is answered by the parts' answers: means by Σ N_k m_k / Σ N_k, of parts with N_k rows that
count. With public N_k only m_k have errors, which are independent. Where N_k is an estimate itself, its error and that
of m_k, of one release, are taken to add up. What was not measured is an allowance, and may have the same sign in all
parts: it adds up over parts too.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.columns.kinds import ItemSet
from sfumato.errors import ConfigError, ReleaseError, require_flag, require_integer, require_name, require_path
from sfumato.inference.estimate import Estimate, Estimates
from sfumato.inference.intervals import most_variance, of_variance, possible_range, within_bounds
from sfumato.io.sinks import write_table
from sfumato.io.sources import to_container
from sfumato.maths.streams import public_stream, seed_of
from sfumato.privacy.combined_certificate import CombinedCertificate
from sfumato.release.blocks import merged, part_sequence
from sfumato.release.files import MOST_PARTS, file_hash, part_bytes, read_parts, write_parts
from sfumato.release.model import read_opened
from sfumato.release_front import Release
from sfumato.schema.schema import Schema
from sfumato.schema.sources import DISCOVERED

QUESTIONS = ("mean", "share", "missing", "count", "variance")
"""What a combined release is asked: the functions that follow from the parts' answers."""
_OWN = ("rows", "source", "accept", "questions")  # of a schema, which parts have each for themselves
_INDEPENDENT = ("noise", "sampling")

Slopes = Sequence[tuple[float, Estimate]]
"""Derivatives of a function by the answers of one part."""


@dataclass(frozen=True)
class CombinedRelease:
    """Several releases of disjoint people as one: `combine_releases` makes it.

    Attributes:
        parts: the releases, in order.
        files: the `.sfm` file of each, as its holder wrote it.

    Example:
        >>> union = sfumato.combine_releases(["north.sfm", "south.sfm"], disjoint=True)  # doctest: +SKIP
        >>> union.mean("age").interval(), union.certificate.epsilon  # doctest: +SKIP
        ((38.4, 38.8), 1.0)
    """

    parts: tuple[Release, ...]
    files: tuple[bytes, ...]

    def __post_init__(self) -> None:
        _require_alike(self.parts)
        assert self.certificate  # of one relation

    @cached_property
    def certificate(self) -> CombinedCertificate:
        """What it costs a person, who is in one part alone: each part by its file's hash, its rows, ε and δ."""
        return CombinedCertificate.of([part.certificate for part in self.parts], list(map(file_hash, self.files)))

    @property
    def schema(self) -> Schema:
        """The schema of all parts, with the rows of the union."""
        return replace(self.parts[0].schema, rows=self.certificate.n_public, accept=(), questions=())

    def __repr__(self) -> str:
        return f"CombinedRelease({len(self.parts)} parts, {', '.join(self.schema.released)}; {self.certificate!r})"

    def _repr_html_(self) -> str:
        return self.certificate._repr_html_()

    @property
    def _rows(self) -> list[int]:
        return [part.n for part in self.certificate.parts]

    def batches(self, n: int | None = None, *, seed: int | None = None, workers: int = 1) -> Iterator[pa.Table]:
        """Draw synthetic rows a block at a time, in constant memory; arguments as `sample`, and `workers`.

        Privacy: none (a function of the release).
        """
        n = require_integer(at_least=0, n=self.certificate.n_public if n is None else n)
        require_integer(at_least=1, workers=workers)
        seed = seed_of(seed)
        counts = np.zeros(len(self.parts), dtype=np.int64)
        for order in part_sequence(self._rows, n):
            counts += np.bincount(order, minlength=counts.size)
        samples = [
            part.batches(int(own), seed=int(public_stream(seed, place).integers(2**63)), workers=workers)
            for place, (part, own) in enumerate(zip(self.parts, counts, strict=True))
        ]
        return merged(self._rows, n, samples)

    def sample(self, n: int | None = None, *, seed: int | None = None) -> Any:  # noqa: ANN401
        """Draw synthetic records: of the parts in turn, by their public shares, which any first rows have.

        Privacy: none (a function of the release).

        Args:
            n: how many, at least 0; by default the public number of rows of all parts.
            seed: the same seed gives the same rows; the first rows do not depend on n. Random if not given.

        Returns:
            A frame (or arrays) of the kind that the first part was fitted to.

        Raises:
            ConfigError: an argument is outside its domain.
        """
        form = self.parts[0].form
        table = pa.concat_tables(self.batches(n, seed=seed))
        return to_container(table, container=form.container, dtypes=form.dtypes, keys=form.keys)

    def write_sample(
        self,
        path: str | os.PathLike[str],
        n: int | None = None,
        *,
        seed: int | None = None,
        overwrite: bool = False,
        workers: int = 1,
    ) -> None:
        """Draw synthetic rows to a file, in constant memory; arguments as `batches`, formats as `Release.write_sample`.

        Raises:
            ConfigError: an argument is outside its domain.
            OutputError: the file exists and `overwrite` is False, or it cannot be written.
        """
        place = require_path(path=path)
        require_flag(overwrite=overwrite)
        batches = self.batches(n, seed=seed, workers=workers)
        write_table(batches, place, keys=self.parts[0].form.keys, overwrite=overwrite, csv=self.schema.csv_output)

    def mean(self, column: str, *, by: str | None = None, target: str = "population") -> Estimate | Estimates:
        """Return the mean of a column of numbers; arguments, errors and privacy as `Release.mean`.

        The populations of the parts are those that their rows are drawn of, in the proportion of their numbers of rows.
        """
        if by is not None:
            if self._nullable(column):
                raise ConfigError(
                    f"Expected a column without missing cells beside by= of a combined release, got {column!r}. Ask "
                    "each part."
                )
            bounded = partial(self._mean, column)
            return self._by(lambda part: part.mean(column, by=by, target=target), by, target, bounded)
        means = self._each(lambda part: part.mean(column, target=target))
        return self._mean(column, weighted_mean(means, self._present(column, target)))

    def share(
        self, condition: Mapping[str, object], *, by: str | None = None, target: str = "population"
    ) -> Estimate | Estimates:
        """Return the share of rows with these labels or in spans; arguments, errors and privacy as `Release.share`."""
        if by is not None:
            return self._by(lambda part: part.share(condition, by=by, target=target), by, target, _as_share)
        return _as_share(weighted_mean(self._each(lambda part: part.share(condition, target=target)), self._rows))

    def missing(self, column: str, *, target: str = "population") -> Estimate:
        """Return the share of missing cells of a column; arguments, errors and privacy as `Release.missing`."""
        return _as_share(weighted_mean(self._each(lambda part: part.missing(column, target=target)), self._rows))

    def count(self, condition: Mapping[str, object] | None = None, *, target: str = "table") -> Estimate:
        """Return the number of rows with these labels or in spans; arguments and privacy as `Release.count`."""
        counts = self._each(lambda part: part.count(condition, target=target))
        total = function_of_parts(sum(map(number, counts)), [[(1.0, count)] for count in counts])
        return within_bounds(total, 0.0, np.inf)

    def variance(self, column: str, *, target: str = "population") -> Estimate:
        """Return the variance of a column of numbers without missing cells; arguments as `Release.variance`."""
        variances = self._each(lambda part: part.variance(column, target=target))
        if self._nullable(column):
            raise ConfigError(
                f"Expected a column without missing cells for the variance of a combined release, got {column!r}. Ask "
                "each part."
            )
        means = self._each(lambda part: part.mean(column, target=target))
        estimate = pooled_variance(variances, means, self._rows)
        estimate = replace(estimate, ends=of_variance(number(estimate), estimate.parts))  # type: ignore[arg-type]
        return within_bounds(estimate, 0.0, most_variance(*self._range(column)))

    def _mean(self, column: str, mean: Estimate) -> Estimate:
        return within_bounds(mean, *self._range(column))

    def _range(self, column: str) -> tuple[float, float]:
        plan = self.schema.rule_plan
        declared = self.schema.sources.get(column) != DISCOVERED and (plan is None or column not in plan.follows)
        return possible_range(self.schema.columns[column], declared=declared)

    def _each(self, ask: Callable[[Release], Any]) -> list[Any]:
        return [ask(part) for part in self.parts]

    def _nullable(self, column: object) -> bool:
        require_name(column=column)
        kind = self.schema.columns.get(str(column))
        return bool(getattr(getattr(kind, "wordless", kind), "nullable", False))

    def _present(self, column: str, target: str) -> list[float | Estimate]:
        """Return how many rows of each part have a value."""
        if not self._nullable(column):
            return list(self._rows)
        if column in (words := self.schema.word_columns):  # what is neither a number nor a word is missing
            values = {column: (words[column].kind.lower, None)}
            shares = self._each(lambda part: part.share(values, target=target))
            return [times(share, n) for share, n in zip(shares, self._rows, strict=True)]
        absent = self._each(lambda part: part.missing(column, target=target))
        return [
            replace(times(share, n), value=n * (1 - number(share))) for share, n in zip(absent, self._rows, strict=True)
        ]

    def _by(
        self, ask: Callable[[Release], Any], by: str, target: str, finish: Callable[[Estimate], Estimate]
    ) -> Estimates:
        """Return means over the groups of a column, by the parts' means and their numbers of rows in each group."""
        if not isinstance(by, str):
            raise ConfigError("Expected by= to be one column of a combined release, got something else.")
        answers: list[Estimates] = self._each(ask)
        left_out = {group: why for own in answers for group, why in own.left_out.items()}
        estimates = {}
        for group in (group for group in answers[0] if all(group in own for own in answers)):
            shares = self._each(lambda part, label=group: part.share({by: label}, target=target))
            sizes = [times(share, n) for share, n in zip(shares, self._rows, strict=True)]
            estimates[group] = finish(weighted_mean([own[group] for own in answers], sizes))
        return Estimates(estimates, (by,), left_out)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the parts' files, whole and unchanged, into one `.sfm` file; it is there whole or not at all.

        Raises:
            OutputError: the path does not end in `.sfm`, exists and may not be replaced, or cannot be written.
        """
        place = require_path(path=path)
        require_flag(overwrite=overwrite)
        write_parts(place, self.files, self.certificate.parts, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CombinedRelease:
        """Read a combined release, from anyone.

        Raises:
            ReleaseError: it is none, damaged, or a part is not the one that was combined, or would not load alone.
        """
        place = require_path(path=path)
        try:
            files, costs = read_parts(place)
            parts = [read_opened(io.BytesIO(file), Release, f"{i}.sfm of {place}") for i, file in enumerate(files, 1)]
            combined = cls(tuple(parts), tuple(files))
        except (ReleaseError, ConfigError) as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a hostile file provokes is one clear error
            problem = f"It is malformed ({type(error).__name__})."
        else:
            if combined.certificate.parts == costs:
                return combined
            problem = "It states other rows or costs of its parts than they do."
        raise ReleaseError(f"Cannot read the combined release {place}: {problem}")


def combine_releases(
    releases: Sequence[Release | str | os.PathLike[str]], *, disjoint: bool = False
) -> CombinedRelease:
    """Put releases of disjoint people under one schema together, as one release of them all.

    Privacy: none of its own: a person is in one part, and has that part's ε and δ. Its certificate states the largest.

    Args:
        releases: at least 2, as they are or their paths: of tables of single rows, with declared numbers of rows, under
            one schema but for these.
        disjoint: your word that no person is in two of them: it has to be given, and the certificate says so.

    Raises:
        ConfigError: the word is missing, one release is there twice, or they differ in a column, in the target or in
            the neighbouring relation, or are of another shape.
        ReleaseError: a path is not that of a release, or the events of a part cost more than it states.

    Example:
        >>> union = sfumato.combine_releases([north, south], disjoint=True)  # doctest: +SKIP
        >>> union.save("all.sfm")  # doctest: +SKIP
    """
    require_flag(disjoint=disjoint)
    if not disjoint:
        raise ConfigError(
            "Expected disjoint=True (--disjoint), your word that no person is in two of the releases, got none."
        )
    if isinstance(releases, str) or not isinstance(releases, Sequence) or not 2 <= len(releases) <= MOST_PARTS:
        raise ConfigError(f"Expected a list of 2 to {MOST_PARTS} releases to combine, got something else.")
    parts, files = [], []
    for place, given in enumerate(releases, 1):
        if not isinstance(given, Release | str | os.PathLike):
            raise ConfigError(f"Expected releases or their paths to combine, got a {type(given).__name__} as {place}.")
        files.append(given.to_bytes() if isinstance(given, Release) else part_bytes(require_path(releases=given)))
        parts.append(given if isinstance(given, Release) else read_opened(io.BytesIO(files[-1]), Release, str(given)))
    combined = CombinedRelease(tuple(parts), tuple(files))
    combined.certificate.verify()
    return combined


def _as_share(estimate: Estimate) -> Estimate:
    return within_bounds(estimate, 0.0, 1.0)


def _require_alike(parts: Sequence[Release]) -> None:
    """Refuse parts that are no parts of one table.

    Raises:
        ConfigError: a release is there twice, of another shape, or differs from the first.
    """
    arrays: dict[str, int] = {}
    first = parts[0]
    for place, part in enumerate(parts, 1):
        _require_rows(part, place)
        same = arrays.setdefault(part.hashes.arrays, place)
        if same != place:
            raise ConfigError(
                f"Expected releases of disjoint people, got parts {same} and {place}, which are the same."
            )
        if problem := _difference(first, part):
            raise ConfigError(
                f"Expected releases under one schema, got part {place}, which differs from part 1 in {problem}."
            )


def _require_rows(part: Release, place: int) -> None:
    schema = part.schema
    shapes = {
        "linked rows": schema.linked, "several tables": schema.database, "images": schema.images,
        "sets": schema.of_kind(ItemSet),
        "weighted rows": schema.weight, "mixtures": part.is_data_set,
    }  # fmt: skip
    for shape, has in shapes.items():
        if has:
            raise ConfigError(f"Expected releases of tables of single rows to combine, got part {place}, of {shape}.")


def _difference(first: Release, part: Release) -> str | None:
    """Return what a part has otherwise than the first, in words, or None."""
    one, other = first.schema.to_dict(), part.schema.to_dict()
    if list(one["columns"]) != list(other["columns"]):
        strange = sorted(set(one["columns"]) ^ set(other["columns"]))
        return f"the column {strange[0]!r}" if strange else "the order of its columns"
    for name, facts in one["columns"].items():
        of_part = {key: value for key, value in other["columns"][name].items() if key != "source"}
        if {key: value for key, value in facts.items() if key != "source"} != of_part:
            return f"the column {name!r}"
        if first.form.storage.get(name) != part.form.storage.get(name):
            return f"the type of the column {name!r}"
    for entry in sorted({*one, *other} - {"columns", *_OWN}):
        if one.get(entry) != other.get(entry):
            return f"{entry!r}"
    return None if first.sampler.get("target") == part.sampler.get("target") else "the target"


def function_of_parts(value: float, slopes: Sequence[Slopes]) -> Estimate:
    """Return the estimate of a function of parts' answers, by its derivatives, a list per part."""
    first = slopes[0][0][1]
    causes: dict[str, list[float]] = {}
    for own in slopes:
        sizes: dict[str, float] = {}
        for slope, estimate in own:
            for cause, size in (estimate.parts or {"noise": estimate.std_error}).items():
                sizes[cause] = sizes.get(cause, 0.0) + abs(slope) * float(size)  # type: ignore[arg-type]
        for cause, size in sizes.items():
            causes.setdefault(cause, []).append(size)
    parts = {cause: math.hypot(*own) if cause in _INDEPENDENT else sum(own) for cause, own in causes.items()}
    rests = (
        f"Of {len(slopes)} combined releases, by their numbers of rows. {first.rests_on.partition(' Its variance')[0]}"
    )
    return Estimate(value, math.hypot(*parts.values()), first.target, rests, parts)


def weighted_mean(values: Sequence[Estimate], sizes: Sequence[float | Estimate]) -> Estimate:
    """Return the mean of the union, of means of parts with these numbers of rows.

    Raises:
        ConfigError: the answers are moments.
    """
    means, weights = [number(value) for value in values], [number(size) for size in sizes]
    total = sum(weights)
    mean = sum(m * w for m, w in zip(means, weights, strict=True)) / total
    slopes: list[Slopes] = []
    for value, size, m, w in zip(values, sizes, means, weights, strict=True):
        own = [(w / total, value)]
        slopes.append([*own, ((m - mean) / total, size)] if isinstance(size, Estimate) else own)
    return function_of_parts(mean, slopes)


def pooled_variance(variances: Sequence[Estimate], means: Sequence[Estimate], rows: Sequence[int]) -> Estimate:
    """Return the variance of the union: within parts, and between their means.

    Raises:
        ConfigError: the answers are moments.
    """
    total = sum(rows)
    mean = number(weighted_mean(means, rows))
    value, slopes = 0.0, []
    for variance, own, n in zip(variances, means, rows, strict=True):
        away, share = number(own) - mean, n / total
        value += share * (number(variance) + away**2)
        slopes.append([(share, variance), (2 * share * away, own)])
    return function_of_parts(value, slopes)


def times(estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate of a multiple."""
    return function_of_parts(number(estimate) * factor, [[(factor, estimate)]])


def number(value: float | Estimate) -> float:
    """Return the value of an estimate of a number, as sums take it.

    Raises:
        ConfigError: it is a moment.
    """
    plain = value.unbounded if isinstance(value, Estimate) else value
    if not isinstance(plain, int | float):
        raise ConfigError("Expected a column of numbers to ask combined releases of, got one of dates. Ask each part.")
    return float(plain)
