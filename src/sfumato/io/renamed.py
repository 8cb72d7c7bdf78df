"""A table some of whose columns go by other names: of tables that have `date`, as `visits.date` and `drugs.date`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from sfumato.columns.kind import ColumnKind
from sfumato.io.chunks import Chunk, Note, Source
from sfumato.io.csv_form import CsvForm


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RenamedSource(Source):
    """A table under other names of columns, cell by cell what it is.

    Attributes:
        table: with its own names.
        own: of each column, its name there.
    """

    table: Source
    own: Mapping[str, str]

    @classmethod
    def of(cls, table: Source, names: Mapping[str, str]) -> Source:
        """Return a table with new names for some columns, by their old ones; itself without any."""
        if not names:
            return table
        own = {names.get(name, name): name for name in table.names}
        fields = table.outline(
            storage={name: table.storage[old] for name, old in own.items()},
            dtypes={name: table.dtypes[old] for name, old in own.items() if old in table.dtypes},
            keys={name: table.keys[old] for name, old in own.items() if old in table.keys},
        )
        return cls(
            **fields, inferred=frozenset(n for n, old in own.items() if old in table.inferred), table=table, own=own
        )

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the table with the storage types that these kinds declare."""
        return self._of(self.table.under({self.own.get(name, name): kind for name, kind in columns.items()}))

    def read_as(self, form: CsvForm) -> Source:
        """Return the table of CSV text in a declared form."""
        return self._of(self.table.read_as(form))

    def with_dictionaries(self) -> Source:
        """Return the table whose text may come dictionary-encoded."""
        return self._of(self.table.with_dictionaries())

    def pieces(self) -> Sequence[Source]:
        """Return the pieces of the table."""
        return [self._of(piece) for piece in self.table.pieces()]

    @property
    def in_files(self) -> bool:
        """Whether other processes can read it."""
        return self.table.in_files

    def size(self) -> int:
        """Bytes of the table."""
        return self.table.size()

    def computing(self) -> Iterator[str]:
        """Yield the table's label, if a program of the holder's computes it."""
        return self.table.computing()

    def keep(self) -> None:
        """Run what can be read only once, or may fail."""
        self.table.keep()

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the records that are not read, or not whole."""
        return self.table.notes(what)

    def _of(self, table: Source) -> Source:
        return RenamedSource.of(table, {old: name for name, old in self.own.items() if name != old})

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for chunk in self.table.chunks([self.own[name] for name in columns]):
            yield replace(chunk, columns={name: chunk.columns[self.own[name]] for name in columns})
