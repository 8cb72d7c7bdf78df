"""Samples of a release of two tables: units, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from sfumato.errors import ConfigError, require_integer
from sfumato.maths.streams import seed_of
from sfumato.release.conditions import Conditions
from sfumato.release.linked_blocks import LinkedBlocks
from sfumato.release.table_pairs import pairs

if TYPE_CHECKING:
    from sfumato.release.model import Release


class TwoTables:
    """What `Release` draws where the schema has two tables."""

    def table_batches(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        given: Mapping[str, object] | None = None,
        workers: int = 1,
    ) -> Iterator[dict[str, pa.Table]]:
        """Draw n units with their rows, a block at a time, in constant memory.

        Privacy: none (a function of the release).

        Args:
            n: how many units, at least 0; by default their public number. They are numbered from 1 in the key.
            seed: the same seed gives the same tables; the first units do not depend on n. Random if not given.
            given: values that all units have, per column of theirs.
            workers: processes that draw; the tables are those of one.

        Returns:
            An iterator of at least one mapping of both names to tables, of units first. A unit's rows may go on in the
            next one.

        Raises:
            ConfigError: the release is of one table, or an argument is outside its domain.

        Example:
            >>> for part in release.table_batches(1_000):  # doctest: +SKIP
            ...     print(part["persons"].num_rows, part["visits"].num_rows)
        """
        release = cast("Release", self)
        if release.schema.two_tables is None:
            raise ConfigError("Expected a release of two tables, got one of a single table. Use batches.")
        workers = require_integer(at_least=1, workers=workers)
        sampler: Any = release._sampler
        conditions = Conditions.of(release.schema, release.form.storage, sampler, given, None)
        n = require_integer(at_least=0, n=release.certificate.n_public if n is None else n)
        blocks = LinkedBlocks(release, n, seed_of(seed), conditions)
        return pairs(blocks.tables_between(0, max(1, -(-n // blocks.size)), workers), release.schema)


def require_whole(
    class_counts: Mapping[Any, int] | None, unique_rows: str, unique_columns: Sequence[str] | None
) -> None:
    """Refuse what samples of two tables cannot have.

    Raises:
        ConfigError: names it.
    """
    if class_counts is not None:
        raise ConfigError("Expected class_counts for a release with a target, got a release of two tables.")
    if unique_rows != "keep" or unique_columns:
        raise ConfigError("Expected two tables as they are drawn, got unique_rows. Leave it out.")
