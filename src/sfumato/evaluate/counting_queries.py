"""Counting queries on sets of items: how many records hold all, any, or how many of some items.

Reads real records without noise: the figures are NOT private.

Nearly every long query of the kind `all` is empty, so that answering 0 has small errors; `sum` is a function of the
items' frequencies alone. Every error therefore stands beside those of answering 0 and of independent items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np
from scipy import sparse

from sfumato.errors import ConfigError, DataError, require_integer
from sfumato.io.sources import open_source
from sfumato.maths.streams import public_stream
from sfumato.models.sets import SetEncoder
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema, SchemaLike, read_schema

Kind: TypeAlias = Literal["all", "any", "sum"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SANITY = 0.001
"""Answers below this part of the records count as that, in the divisor of an error."""

_ROWS_AT_ONCE = 4096
_SIZES = {"pairs": 2, "triples": 3}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Sets of items to ask for.

    Attributes:
        items: 0 or 1 for each query and item, sparse, shape (q, m).
        n_items: m.
        groups: which group each query is in, shape (q,).
    """

    items: sparse.csr_array
    n_items: int
    groups: np.ndarray

    @classmethod
    def of(cls, sets: Iterable[Iterable[int]], n_items: int, groups: np.ndarray | None = None) -> Queries:
        """Return the queries of some sets of item codes."""
        listed = [np.unique(np.asarray(list(items), dtype=np.int64)) for items in sets]
        offsets = np.cumsum([0, *map(len, listed)])
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *listed])
        ones = np.ones(codes.size, dtype=np.int32)
        matrix = sparse.csr_array((ones, codes, offsets), shape=(len(listed), n_items))
        return cls(matrix, n_items, np.zeros(len(listed), dtype=np.int64) if groups is None else groups)

    @property
    def lengths(self) -> np.ndarray:
        """Number of items of each query, shape (q,)."""
        return np.diff(self.items.indptr)


def random_queries(
    n_items: int, longest: int, rng: np.random.Generator, *, n_groups: int = 5, per_group: int = 200
) -> Queries:
    """Draw queries in groups of growing length: in group i, uniform on 1 to ⌊i·longest/groups⌋ different items.

    Args:
        n_items: m.
        longest: of the last group's queries; at most m of them are drawn.
        rng: public randomness.
        n_groups: how many groups.
        per_group: queries of each.

    Reference: Acs, Melis, Castelluccia and De Cristofaro 2018, §6.
    """
    groups = np.repeat(np.arange(n_groups), per_group)
    most = np.clip((groups + 1) * require_integer(at_least=1, longest=longest) // n_groups, 1, n_items)
    lengths = rng.integers(1, most + 1)
    return Queries.of((rng.choice(n_items, size, replace=False) for size in lengths), n_items, groups)


def answers(matrix: sparse.csr_array, queries: Queries, kind: Kind) -> np.ndarray:
    """Return how many records answer each query, shape (q,), float64.

    Args:
        matrix: 0 or 1 for each record and item, shape (n, m).
        queries: q of them.
        kind: `all`: records that hold every item. `any`: at least one. `sum`: the items' counts added up.

    Raises:
        ConfigError: the kind is none of these.
    """
    _require_kind(kind)
    transposed = queries.items.T.tocsr()
    total = np.zeros(queries.lengths.size)
    for start in range(0, _height(matrix), _ROWS_AT_ONCE):
        hits = (matrix[start : start + _ROWS_AT_ONCE].astype(np.int32) @ transposed).toarray()
        matches = {"all": lambda h: h == queries.lengths, "any": lambda h: h > 0, "sum": lambda h: h}[kind](hits)
        total += matches.sum(axis=0)
    return total


def independent_answers(shares: np.ndarray, queries: Queries, kind: Kind) -> np.ndarray:
    """Return the expected share of records that answer each query if items were independent, shape (q,).

        all: Πp    any: 1 − Π(1 − p)    sum: Σp

    Args:
        shares: p, the share of the records that hold each item, in [0, 1], shape (m,).
        queries: q of them.
        kind: as of `answers`.

    Raises:
        ConfigError: the kind is none of these, or a share is no share.
    """
    _require_kind(kind)
    shares = np.asarray(shares, dtype=np.float64)
    if shares.shape != (queries.n_items,) or not ((shares >= 0) & (shares <= 1)).all():
        raise ConfigError("Expected one share between 0 and 1 for each item.")
    if kind == "sum":
        return queries.items @ shares
    with np.errstate(divide="ignore"):
        logarithms = np.log(shares if kind == "all" else 1 - shares)
    # 0 · −∞ is not a number: an infinity is counted instead of added
    certain = queries.items @ np.isneginf(logarithms).astype(np.float64) > 0
    product = np.where(certain, 0.0, np.exp(queries.items @ np.where(np.isneginf(logarithms), 0.0, logarithms)))
    return product if kind == "all" else 1 - product


def relative_errors(estimates: np.ndarray, truth: np.ndarray, n: int) -> np.ndarray:
    """Return |estimate − truth| ÷ max(truth, 0.001·n) of each query."""
    return np.abs(estimates - truth) / np.maximum(truth, SANITY * n)


def combination_counts(matrix: sparse.csr_array, items: np.ndarray, size: int) -> np.ndarray:
    """Return how many records hold both, or all three, of every pair or triple of some items.

    Args:
        matrix: shape (n, m).
        items: their codes, shape (c,).
        size: 2 or 3.

    Returns:
        In the order of `itertools.combinations`, float64.
    """
    columns = sparse.csr_array(matrix[:, items].astype(np.float64))
    if size == 2:
        return _pair_counts(columns)
    holders = sparse.csc_array(columns)
    parts = (_pair_counts(columns[holders[:, [i]].indices][:, i + 1 :]) for i in range(items.size - 2))
    return np.concatenate([np.zeros(0), *parts])


def counting_query_errors(
    real: object,
    synthetic: object,
    *,
    schema: SchemaLike,
    shares: np.ndarray | None = None,
    longest: int | None = None,
    n_groups: int = 5,
    per_group: int = 200,
    n_frequent: int = 100,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare the answers of synthetic sets to counting queries with those of the real ones.

    Privacy: none. It reads the real records without noise; no figure is private, and the result says so.

    Args:
        real: the real sets, anything `open_source` reads.
        synthetic: synthetic sets, any number; their answers are scaled to as many as the real ones.
        schema: a `Schema` that releases one column, of sets, or the path of one.
        shares: of the records that hold each item, for the independent items, shape (m,); by default those of the
            synthetic sets, so that what differs is what items go together.
        longest: of the last group's queries; by default the schema's `max_length`.
        n_groups: groups of random queries.
        per_group: random queries of each.
        n_frequent: all pairs and triples of so many of the most frequent real items are asked for too.
        seed: of the random queries.

    Returns:
        `private`: false. `rows`. `random`: per kind, `synthetic`, `zero` and `independent`: mean relative errors, one
        for each group. `frequent`: for `pairs` and `triples`, the same of the kind `all`. JSON-ready.

    Raises:
        ConfigError: the schema releases something else, or an argument is outside its domain.
        DataError: the sets cannot be read, or there are none.
    """
    schema = read_schema(schema)
    encoder = SetEncoder.of(schema)
    matrices = {name: read_sets(data, schema, encoder) for name, data in (("real", real), ("synthetic", synthetic))}
    n, n_synthetic = map(_height, matrices.values())
    counts = np.asarray(matrices["real"].sum(axis=0)).ravel()
    if shares is None:
        shares = np.asarray(matrices["synthetic"].sum(axis=0)).ravel() / n_synthetic
    queries = random_queries(
        encoder.dimension,
        encoder.kind.max_length if longest is None else longest,
        public_stream(seed),
        n_groups=require_integer(at_least=1, n_groups=n_groups),
        per_group=require_integer(at_least=1, per_group=per_group),
    )
    given = np.asarray(shares, dtype=np.float64)
    random = {kind: _random_errors(matrices, queries, kind, given) for kind in KINDS}
    most = np.sort(np.argsort(-counts, kind="stable")[: require_integer(at_least=3, n_frequent=n_frequent)])
    frequent = {name: _frequent_errors(matrices, most, size, given) for name, size in _SIZES.items()}
    rows = {"real": n, "synthetic": n_synthetic}
    return {"private": False, "rows": rows, "random": random, "frequent": frequent}


def read_sets(data: object, schema: Schema, encoder: SetEncoder) -> sparse.csr_array:
    """Return sets as 0 or 1 for each record and item, shape (n, m).

    Raises:
        DataError: they cannot be read, or there are none.
    """
    source = open_source(data, csv=schema.reader.csv)
    parts = [encoder.encode_sparse(rows) for rows in PrivateData(source, schema).coded()]
    if not sum(_height(part) for part in parts):
        raise DataError(f"Expected sets to evaluate in {source.label}, got none.")
    return sparse.csr_array(sparse.vstack(parts))


def _height(matrix: sparse.csr_array) -> int:
    return matrix.indptr.size - 1


def _random_errors(
    matrices: dict[str, sparse.csr_array], queries: Queries, kind: Kind, shares: np.ndarray
) -> dict[str, list[float]]:
    def means(errors: np.ndarray) -> list[float]:
        return [float(errors[queries.groups == group].mean()) for group in np.unique(queries.groups)]

    independent = independent_answers(shares, queries, kind)
    return _mean_errors(matrices, partial(answers, queries=queries, kind=kind), independent, means)


def _frequent_errors(
    matrices: dict[str, sparse.csr_array], items: np.ndarray, size: int, shares: np.ndarray
) -> dict[str, float]:
    independent = shares[np.array(list(combinations(items, size)))].prod(axis=1)
    count = partial(combination_counts, items=items, size=size)
    return _mean_errors(matrices, count, independent, lambda errors: float(errors.mean()))


def _mean_errors(
    matrices: dict[str, sparse.csr_array],
    count: Callable[[sparse.csr_array], np.ndarray],
    independent: np.ndarray,
    mean: Callable[[np.ndarray], Any],
) -> dict[str, Any]:
    """Return the errors of estimated shares of the records, and of answering 0."""
    truth, n = count(matrices["real"]), _height(matrices["real"])
    synthetic = count(matrices["synthetic"]) / _height(matrices["synthetic"])
    estimates = {"synthetic": n * synthetic, "zero": np.zeros_like(truth), "independent": n * independent}
    return {name: mean(relative_errors(estimate, truth, n)) for name, estimate in estimates.items()}


def _pair_counts(columns: sparse.csr_array) -> np.ndarray:
    both = (columns.T @ columns).toarray()
    return both[np.triu_indices(len(both), 1)]


def _require_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ConfigError(f"Expected kind to be one of {', '.join(KINDS)}, got {kind=}.")
