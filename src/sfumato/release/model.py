"""A release: the fitted model without any record, its certificate, and what it was made for.

A release is plain data: a JSON-ready manifest and named arrays. It samples in blocks of fixed size, each from its own
random stream, so the same seed gives the same rows however many are asked for at a time.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa

from sfumato.errors import (
    ConfigError,
    ReleaseError,
    SfumatoError,
    named_arguments,
    require_flag,
    require_integer,
    require_path,
)
from sfumato.io.sinks import write_table
from sfumato.io.sources import open_source, to_container
from sfumato.io.table_folders import write_tables
from sfumato.lenses.chain import plain_schema, shaped
from sfumato.lenses.lens import DataSet, UnitSampler
from sfumato.maths.streams import public_stream, seed_of
from sfumato.maths.threads import few_threads
from sfumato.privacy import words
from sfumato.privacy.certificate_form import Bound, Protected
from sfumato.records.long_tables import written_types
from sfumato.release.blocks import (
    Blocks,
    DatabaseBlocks,
    Decoder,
    LinkedBlocks,
    block_rows,
    columns_of_tables,
    joined_tables,
    pairs,
    rows_with_units,
)
from sfumato.release.conditions import Conditions
from sfumato.release.database_sampler import DatabaseTables
from sfumato.release.files import archive_bytes, packed_arrays, read_files, write_files
from sfumato.release.manifest import (
    ReleaseContent,
    bound,
    check_binding,
    check_measurements,
    hashes,
    read,
    what_was_checked,
    written,
)
from sfumato.release.samplers import Sampler, build_sampler
from sfumato.release.unique_rows import UniqueRows, columns_to_compare, repeated_rows, repeated_units
from sfumato.schema.schema_facts import weighting_of
from sfumato.schema.sources import read_off

_MOST_ROW_BYTES = 1 << 24  # of cells, which labels may make long
_MOST_ROWS = 2**62
_LONGEST_PROBLEM = 2_000

_Value = TypeVar("_Value", bound="ReleaseValue")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class ReleaseValue(ReleaseContent):
    """A generative model made of noisy measurements, with the certificate of what it cost.

    It is a value, from which samples come; `sfumato.Release` has questions, a page and scores as well.

    Attributes:
        schema: the public schema it was fitted under.
        certificate: what it cost.
        sampler: name and public settings of its sampler.
        parameters: the sampler's arrays; functions of the measurements.
        measurements: the noisy statistics that answers rest on; of single values and endings, the arrays hold what
            follows from them.
        form: the form in which samples come back.
        part_of: of the part of a database that is of one table, the whole release and the table's name; else None.
    """

    part_of: tuple[ReleaseValue, str] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sampler['name']}, {', '.join(self.schema.released)}; {self.certificate!r})"

    @cached_property
    def _sampler(self) -> Sampler | DataSet:
        inner = build_sampler(plain_schema(self.schema), self.sampler, self.parameters)
        return inner if isinstance(inner, DataSet) else shaped(self.schema, inner)

    @property
    def is_data_set(self) -> bool:
        """Whether it is a data set, given back whole or in part, and not a model to draw from."""
        return isinstance(self._sampler, DataSet)

    def check(self) -> None:
        """Build the sampler and try the form, so that a damaged release fails here and not while sampling.

        Raises:
            ReleaseError: sampler, arrays and schema do not fit each other.
            SchemaError: a column's values cannot be stored in its type.
        """
        if self._decoder.row_bytes > _MOST_ROW_BYTES:
            raise ReleaseError(
                f"Expected rows of at most {_MOST_ROW_BYTES} bytes, got longer ones: its labels are too long."
            )
        if read_off(self.schema) and not self.certificate.read_off:
            raise ReleaseError("Expected a certificate that names what was read off the records, got none.")
        if self.certificate.unit != Protected(**self.schema.protects):
            raise ReleaseError("Expected a certificate of the unit that the schema names, got one of another unit.")
        if self.certificate.weight != weighting_of(self.schema):
            raise ReleaseError("Expected a certificate of the weights that the schema names, got one of others.")
        verdicts = () if self.certificate.search is None else self.certificate.search.verdicts
        criteria = [criterion.words for criterion in self.schema.accept]
        if [verdict.criterion for verdict in verdicts if verdict.passed] != criteria or len(verdicts) != len(criteria):
            raise ReleaseError(
                "Expected a certificate with a passed verdict on each criterion of the schema, got others."
            )
        for name in self.schema.released:
            if name not in self.schema.images:  # whose storage types do not say all of their cells
                self.schema.columns[name].check_storage(name, self.form.storage[name])
        if isinstance(self._sampler, DataSet):
            self._contained(next(self._sampler.batches(1, 0, 1)))
            return
        trials = self._trials(self._sampler)
        if self._has_library() and not all(self._comes_back(trial) for trial in trials):
            raise ReleaseError("Expected a container and dtypes that fit the storage types in the release.")

    def _trials(self, sampler: Sampler) -> list[pa.Table]:
        """Return the rows of two records, as samples have them, a table each."""
        if isinstance(sampler, UnitSampler):
            owners, rows, _ = sampler.units(2, public_stream(0))
            return [LinkedBlocks(self._decoder, 2, 0, Conditions(sampler, {}, None)).numbered(owners, rows)]
        if isinstance(sampler, DatabaseTables):
            blocks = DatabaseBlocks(self._decoder, 2, 0, Conditions(sampler, {}, None))
            return list(blocks.written(sampler.tables(2, public_stream(0)), 0, 2).values())
        return [self._decoder.table(sampler.rows(2, public_stream(0)))]

    @property
    def target(self) -> str | None:
        """The column whose classes are modelled apart, but for areas, which nobody wants to predict; None without."""
        target = self.sampler.get("target")
        return None if target in self.schema.areas else target

    @cached_property
    def _loaded(self) -> bool:
        return False

    @property
    def checked(self) -> words.Checked:
        """What was checked when it was loaded, beside the events: `certificate` and `report` say it."""
        return what_was_checked(self.measurements, self.certificate, loaded=self._loaded)

    def _comes_back(self, trial: pa.Table) -> bool:
        """Whether the form holds a table, and the storage types can be read off it.

        Dtypes of other storage may hold the trial, but not every row.
        """
        try:
            self._contained(trial)
            back = open_source(self._contained(trial.slice(0, 0))).storage
        except Exception:  # noqa: BLE001 - pandas and numpy read a stranger's dtypes
            return False
        types = written_types(self.schema, self.form.storage)
        return all(
            back[name] == types[name] for name in trial.column_names if name in types and name not in self.schema.images
        )

    def _has_library(self) -> bool:
        return self.form.container != "polars" or importlib.util.find_spec("polars") is not None

    def _contained(self, table: pa.Table, columns: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401
        """Return a table as what was fitted, whose columns may go by other names than the schema's."""
        form = self.form
        if not self._has_library():
            raise ConfigError("Expected polars to be installed. Install sfumato[polars], or write the rows to a file.")
        dtypes = {} if isinstance(self._sampler, DataSet) else form.dtypes  # those of records
        if columns is not None:
            dtypes = {name: dtypes[named] for name, named in columns.items() if named in dtypes}
        return to_container(table, container=form.container, dtypes=dtypes, keys=form.keys)

    @few_threads
    def sample(
        self, n: int | None = None, *, seed: int | None = None, given: Mapping[str, object] | None = None,
        class_counts: Mapping[Any, int] | None = None, unique_rows: UniqueRows = "keep",
        unique_columns: Sequence[str] | None = None,
    ) -> Any:  # fmt: skip  # noqa: ANN401
        """Draw synthetic records; of a release that is a data set of mixtures, give back n of them, or all.

        Privacy: none (a function of the release).

        Args:
            n: how many, at least 0; by default the public number of rows, or all mixtures. Of linked rows: units, each
                with its rows, numbered from 1 in the unit's column.
            seed: the same seed gives the same rows; the first rows do not depend on n. Random if not given.
            given: values that all rows have, per column: a label, a number, a date, or None for missing. The other
                columns are drawn from the model's law given these: exactly, or for tables by importance resampling from
                at least 16,384 candidates. Of images: the label. Of linked rows: constants. Of sets
                beside other columns: items, such as `{"E11": True, "I10": False}`.
            class_counts: how many rows each class of the target has, in place of n; of linked rows, how many units.
            unique_rows: "drop" leaves out the rows of a table that occur once in the sample, and draws more in their
                place; then the first rows depend on n. Of linked rows: units with a row that no other unit has, whole.
                For eyes: the guarantee is the same with and without.
            unique_columns: the columns on which rows have to repeat; by default all.

        Returns:
            A frame (or arrays) of the kind that was fitted, same columns, order and types. Of several tables: a dict of
            frames by their names.

        Raises:
            ConfigError: an argument is outside its domain, the release has no rows with the given values, or polars
                is needed and not installed.

        Warns:
            SampleWarning: without unique rows, fewer than n came.

        Example:
            >>> import pandas as pd
            >>> from sfumato import MaxEntropy, Schema
            >>> from sfumato.columns import Boolean, Integer
            >>> frame = pd.DataFrame({"age": [30, 40, 50, 60] * 250, "member": [True, False] * 500})
            >>> schema = Schema(columns={"age": Integer(lower=0, upper=120), "member": Boolean()}, rows=1_000)
            >>> release = MaxEntropy(epsilon=1.0).fit(frame, schema=schema)
            >>> release.sample(3, seed=0).dtypes.equals(frame.dtypes)
            True
            >>> release.sample(5, given={"age": 40})["age"].tolist()
            [40, 40, 40, 40, 40]
            >>> bool(release.sample(50, unique_rows="drop").duplicated(keep=False).all())
            True
        """
        options: Any = {"unique_rows": unique_rows, "unique_columns": unique_columns}
        options |= {"seed": seed, "given": given, "class_counts": class_counts}
        if self.schema.database is not None:
            tables = joined_tables(self.table_batches(n, **options))
            columns = columns_of_tables(self.schema)
            return {name: self._contained(table, columns[name]) for name, table in tables.items()}
        return self._contained(pa.concat_tables(self.batches(n, **options)))

    @named_arguments
    def batches(
        self, n: int | None = None, *, seed: int | None = None, given: Mapping[str, object] | None = None,
        class_counts: Mapping[Any, int] | None = None, workers: int = 1, unique_rows: UniqueRows = "keep",
        unique_columns: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:  # fmt: skip
        """Draw synthetic records a block at a time, in constant memory; arguments as `sample`, and `workers`.

        So many processes draw blocks; the rows and their order are those of one. A script that asks for several has to
        begin under `if __name__ == "__main__":`. Without unique rows all are drawn twice, and 8 bytes of each that is
        drawn are held, with room to sort them.

        Returns:
            An iterator of at least one table, each of at most 16,384 rows. Of a table joined to that of
            units: the rows with the columns of their unit, without units that have none; `table_batches` yields both.
        """
        workers = require_integer(at_least=1, workers=workers)
        if isinstance(self._sampler, DataSet):
            if given or class_counts or unique_rows != "keep" or unique_columns:
                raise ConfigError(
                    "Expected no given values, no class_counts and no unique_rows for a release of mixtures, got some. "
                    "It is a data set, not a model: select its rows yourself."
                )
            n = require_integer(at_least=0, n=self._sampler.n_rows if n is None else n)
            return self._sampler.batches(n, seed_of(seed), block_rows(self._sampler.width))
        if self.schema.tree is not None:
            raise ConfigError("Expected a release of tables that go together as rows, got others. Use table_batches.")
        tables = self._tables(n, seed, given, class_counts, workers, (unique_rows, unique_columns))
        return tables if self.schema.database is None else rows_with_units(tables)

    def _tables(
        self, n: int | None, seed: int | None, given: Mapping[str, object] | None,
        class_counts: Mapping[Any, int] | None, workers: int, unique: tuple[UniqueRows, Sequence[str] | None],
    ) -> Iterator[Any]:  # fmt: skip
        """Return blocks of rows, of several tables those of all, after all checks."""
        sampler: Any = self._sampler
        compared = columns_to_compare(self.schema, *unique, class_counts=class_counts)
        conditions = Conditions.of(self.schema, self.form.storage, sampler, given, class_counts)
        n = conditions.n_rows(n)
        n = require_integer(at_least=0, n=self.certificate.n_public if n is None else n)
        if n > _MOST_ROWS:
            raise ConfigError(f"Expected at most {_MOST_ROWS} rows, got a larger n.")
        kind = LinkedBlocks if self.schema.linked else Blocks
        kind = DatabaseBlocks if self.schema.tree is not None else kind
        blocks = kind(self._decoder, n, seed_of(seed), conditions)
        if compared is None:
            return blocks.tables_between(0, max(1, -(-n // blocks.size)), workers)
        if isinstance(blocks, LinkedBlocks):
            return repeated_units(blocks, compared, workers)
        return repeated_rows(blocks, compared, workers)

    def table_batches(
        self, n: int | None = None, *, seed: int | None = None, given: Mapping[str, object] | None = None,
        class_counts: Mapping[Any, int] | None = None, workers: int = 1, unique_rows: UniqueRows = "keep",
        unique_columns: Sequence[str] | None = None,
    ) -> Iterator[dict[str, pa.Table]]:  # fmt: skip
        """Draw n units with their rows, a block at a time, in constant memory; arguments as `sample`, and `workers`.

        Privacy: none (a function of the release).

        Returns:
            An iterator of at least one mapping of names to tables, of units first. A unit's rows may go on in the next
            one, where a single table is below that of units.

        Raises:
            ConfigError: the release is of one table, or an argument is outside its domain.

        Example:
            >>> for part in release.table_batches(1_000):  # doctest: +SKIP
            ...     print(part["persons"].num_rows, part["visits"].num_rows)
        """
        if self.schema.database is None:
            raise ConfigError("Expected a release of several tables, got one of a single table. Use batches.")
        workers = require_integer(at_least=1, workers=workers)
        tables = self._tables(n, seed, given, class_counts, workers, (unique_rows, unique_columns))
        return pairs(tables, self.schema) if self.schema.tree is None else tables

    @cached_property
    def _decoder(self) -> Decoder:
        """From the codes that its sampler draws to cells."""
        return Decoder(self.schema, self.form.storage)

    @named_arguments
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release; it is there whole or not at all.

        Args:
            path: a directory to make, or a file name that ends in `.sfm`.
            overwrite: whether an existing release may be replaced.

        Raises:
            ConfigError: it is one table of a database.
            OutputError: the path exists and may not be replaced, or cannot be written.
        """
        place = require_path(path=path)
        require_flag(overwrite=overwrite)
        self._require_whole()
        write_files(place, *self._manifest(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Return the bytes of the `.sfm` file that `save` writes."""
        self._require_whole()
        return archive_bytes(*self._manifest())

    def _require_whole(self) -> None:
        if self.part_of is not None:
            raise ConfigError(f"Expected a whole release to save, got its table {self.part_of[1]!r}. Save the whole.")

    @property
    def hashes(self) -> Bound:
        """Hashes of its arrays and of what its manifest says: those that its certificate has once it is saved."""
        return hashes(*self._manifest())

    def _manifest(self) -> tuple[dict[str, Any], bytes]:
        """Return what the manifest says, and the arrays, as they are saved."""
        manifest, arrays = written(self)
        packed = packed_arrays(arrays)
        return bound(manifest, packed), packed

    @named_arguments
    def write_sample(
        self,
        path: str | os.PathLike[str],
        n: int | None = None,
        *,
        seed: int | None = None,
        given: Mapping[str, object] | None = None,
        class_counts: Mapping[Any, int] | None = None,
        overwrite: bool = False,
        spreadsheet_safe: bool = False,
        workers: int = 1,
        unique_rows: UniqueRows = "keep",
        unique_columns: Sequence[str] | None = None,
    ) -> None:
        """Draw synthetic records to a file, or images to a folder, in constant memory; arguments as `batches`.

        A path ends in `.csv`, `.tsv`, `.parquet`, `.npz` or, for sets, `.dat`; without a suffix it becomes a folder of
        PNG images, `path/LABEL/000001.png`; of several tables, one of `.csv` files with their names. With
        `spreadsheet_safe` an apostrophe comes before text in a `.csv` that a spreadsheet would compute as a
        formula, such as `=1+1`.

        Raises:
            ConfigError: an argument is outside its domain, or a column does not fit the format.
            OutputError: the output exists and `overwrite` is False, or it cannot be written.
        """
        path = require_path(path=path)
        require_flag(overwrite=overwrite)
        require_flag(spreadsheet_safe=spreadsheet_safe)
        options: Any = {"unique_rows": unique_rows, "unique_columns": unique_columns, "workers": workers}
        options |= {"seed": seed, "given": given, "class_counts": class_counts}
        written: Any = {"overwrite": overwrite, "spreadsheet": spreadsheet_safe, "csv": self.schema.csv_output}
        if self.schema.database is not None:
            write_tables(self.table_batches(n, **options), path, **written)
            return
        write_table(self.batches(n, **options), path, keys=self.form.keys, **written)


def kept(release: ReleaseValue, key: str, make: Callable[[ReleaseValue], _Made]) -> _Made:
    """Return what is made of a release once, and kept in it: it ends with the release."""
    if key not in release.__dict__:
        release.__dict__[key] = make(release)
    return release.__dict__[key]


def read_release(path: str | os.PathLike[str], kind: type[_Value]) -> _Value:
    """Read a release, from anyone.

    Args:
        path: a directory or a `.sfm` file that `save` wrote.
        kind: the class of what comes back.

    Returns:
        The release, checked: sampling from it will not fail.

    Raises:
        ReleaseError: not a release, damaged, hostile, or of a format that this version does not know.
    """
    if not isinstance(path, str | os.PathLike):
        raise ReleaseError(f"Expected the path of a release, got {type(path).__name__}.")
    path = Path(path)
    return read_opened(path, kind, str(path))


def read_opened(path: Path | BinaryIO, kind: type[_Value], label: str) -> _Value:
    """Read a release as `read_release` does, of a path or of the opened bytes of a `.sfm` file, called by a label."""
    try:
        manifest, arrays = read_files(path)
        release = kind(**vars(read(manifest, arrays)))
        check_binding(manifest, release.certificate)
        release.check()
        check_measurements(release.measurements, release.certificate, manifest.get("not_kept"))
        release.__dict__["_loaded"] = True  # of this very object: a changed copy has not been checked
    except SfumatoError as error:
        problem = str(error)[:_LONGEST_PROBLEM]  # it may quote the file
    except OSError as error:
        problem = f"{error.strerror or type(error).__name__}."
    except Exception as error:  # noqa: BLE001 - whatever a hostile file provokes is one clear error
        problem = f"It is malformed ({type(error).__name__})."
    else:
        return release
    raise ReleaseError(f"Cannot read the release {label}: {problem}")
