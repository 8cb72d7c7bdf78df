"""Marginals that somebody else measured, as measurements: tables of counts over declared columns, with known noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real

import numpy as np
import numpy.typing as npt

from sfumato.columns.kinds import NumericKind, TabularKind
from sfumato.errors import ConfigError, SchemaError, require_instance
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import LARGEST, MarginalQuery, Measurement, are_too_large
from sfumato.schema.schema import Schema, SchemaLike, read_schema

_MOST_VALUES = 4096  # of a number each of which is a cell, where no edges are given


def marginal(
    schema: SchemaLike,
    columns: str | Sequence[str],
    counts: npt.ArrayLike,
    *,
    noise_std: float,
    edges: Mapping[str, Sequence[object]] | None = None,
) -> Measurement:
    """A table of counts over some columns that somebody measured, as a measurement.

    Privacy: none (a function of its arguments). Sfumato vouches neither for the counts nor for their noise.

    Args:
        schema: public description of the table.
        columns: a column or several, the axes of `counts` in this order.
        counts: noisy numbers of rows, shape (cells of the first column, …). Labels have a cell each in the schema's
            order, then `other` where the schema has it, then missing where it may be; numbers and dates have the cells
            of `edges`, then missing where they may be.
        noise_std: standard deviation of the independent Gaussian noise of each count, in rows; 0 of exact counts.
        edges: of numbers and dates, where their cells begin, and the upper bound: the first is the lower bound. A cell
            holds where it begins and not where it ends, but the last holds both. By default each value is a cell.

    Raises:
        ConfigError: an argument is outside its domain; the message names the column.
        SchemaError: the schema cannot be read.

    Example:
        >>> schema = {"columns": {"sex": {"kind": "categorical", "categories": ["f", "m"]}}}
        >>> marginal(schema, "sex", [512.3, 480.9], noise_std=4.0).value.tolist()
        [512.3, 480.9, 0.0]
    """
    read = read_schema(schema)
    require_instance(Iterable, "the name of a column, or several", columns=columns)
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ConfigError(f"Expected columns to name one column or several different ones, got {list(names)}.")
    edges = {} if edges is None else edges
    require_instance(Mapping, "a mapping of columns to where their cells begin", edges=edges)
    if stray := next((name for name in edges if name not in names), None):
        raise ConfigError(f"Expected edges of columns of this marginal, got some of {stray!r}.")
    axes = tuple(_axis(read, name, edges.get(name)) for name in names)
    try:
        value = np.array(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"Expected counts to be an array of numbers, got {type(counts).__name__}.") from None
    hidden = [int(read.of_kind(TabularKind)[axis.column].hides_blank) for axis in axes]
    shape = tuple(axis.size - more for axis, more in zip(axes, hidden, strict=True))
    if value.shape != shape:
        cells = ", ".join(f"{size} of {axis.column!r}" for axis, size in zip(axes, shape, strict=True))
        raise ConfigError(f"Expected counts of shape {shape}, the cells {cells}, got shape {value.shape}.")
    value = np.pad(value, [(0, more) for more in hidden])  # nothing that is no label was counted
    measurement = Measurement(
        f"counts of {' × '.join(map(repr, names))}", value.reshape(-1), noise_std, query=MarginalQuery((axes,))
    )
    require_finite(measurement)
    return replace(measurement, noise_std=float(noise_std))


def require_finite(measurement: Measurement) -> None:
    """Refuse counts or a deviation of noise that are no finite numbers or too large, or a deviation below 0.

    Raises:
        ConfigError: they are such.
    """
    std, value = measurement.noise_std, measurement.value
    if not isinstance(std, Real) or isinstance(std, bool) or not 0 <= std <= LARGEST:
        raise ConfigError(
            f"Expected noise_std of {measurement.name} to be a number from 0 to {LARGEST:g}, got noise_std={std!r}."
        )
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or are_too_large(value):
        raise ConfigError(f"Expected {measurement.name} to be an array of finite numbers, got another value.")


def _axis(schema: Schema, name: str, edges: Sequence[object] | None) -> Cells:
    kind = schema.columns.get(name)
    if not isinstance(kind, TabularKind) or name not in schema.released:
        others = ", ".join(map(repr, schema.of_kind(TabularKind)))
        raise ConfigError(f"Expected columns of labels, numbers or dates of the schema, got {name!r}. Known: {others}.")
    if not isinstance(kind, NumericKind):
        if edges is not None:
            raise ConfigError(f"Expected edges of numbers or dates, got some of {name!r}, which has labels.")
        return Cells(name, kind.n_levels)
    steps = kind.steps
    if edges is not None and (isinstance(edges, str) or not isinstance(edges, Iterable)):
        raise ConfigError(f"Expected edges of {name!r} to be a list of values, got a {type(edges).__name__}.")
    if edges is None:
        if steps.last >= _MOST_VALUES:
            raise ConfigError(f"Expected edges of {name!r}, which has too many values to count each. Add edges.")
        first = np.arange(steps.last + 2)
    else:
        inner = [_step(kind, name, value) for value in edges]
        if len(inner) < 2 or inner[0] != 0 or inner[-1] != steps.last or any(np.diff(inner) <= 0):
            low, high = kind.decode(np.array([0.0, 1.0]), kind.sample_type).to_pylist()
            raise ConfigError(
                f"Expected edges of {name!r} that rise from its lower bound {low} to its upper bound {high}, got "
                f"{list(edges)!r}."
            )
        first = np.array([*inner[:-1], steps.last + 1])
    return Cells(name, first.size - 1 + kind.nullable, first.astype(np.int64), steps)


def _step(kind: NumericKind, name: str, value: object) -> int:
    try:
        code = kind.given(name, value, kind.sample_type).code
    except (ConfigError, SchemaError) as error:
        raise ConfigError(f"Expected edges of {name!r} that it may have as values. {error}") from None
    if math.isnan(code):
        raise ConfigError(f"Expected edges of {name!r} that are values, got missing.")
    return int(kind.steps.at(np.array(code)))
