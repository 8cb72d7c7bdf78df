"""Moments of sessions in UTC: a server or cluster has them in the zone of its session, no fact of the data."""

from __future__ import annotations

import pyarrow as pa


def utc_type(kind: pa.DataType) -> pa.DataType:
    """Return a type whose moments, if it has a zone, are in UTC.

    Example:
        >>> utc_type(pa.timestamp("us", "Asia/Tokyo"))
        TimestampType(timestamp[us, tz=UTC])
    """
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def utc_schema(schema: pa.Schema) -> pa.Schema:
    """Return names and types alone, moments in UTC."""
    return pa.schema([(field.name, utc_type(field.type)) for field in schema])


def in_utc(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same moments in UTC."""
    return batch.cast(utc_schema(batch.schema))
