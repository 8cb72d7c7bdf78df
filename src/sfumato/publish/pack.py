"""`pack`: the folder to publish of a release, written whole or not at all; and one export alone."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from sfumato.columns.kinds import ItemSet
from sfumato.errors import (
    ConfigError,
    OutputError,
    require_choice,
    require_flag,
    require_instance,
    require_integer,
    require_path,
)
from sfumato.io.atomic import atomic_path, reason_of, refuse_existing, refuse_inputs
from sfumato.io.sinks import write_table
from sfumato.io.table_folders import MARKER, TableFormat, write_tables
from sfumato.maths.streams import fresh_seed
from sfumato.maths.threads import few_threads
from sfumato.publish.croissant import croissant
from sfumato.publish.data_card import data_card, hugging_face_card
from sfumato.publish.noisy_tables import NoisyTables, categories_table, columns_table, noisy_tables
from sfumato.publish.publication import Publication, registry_record
from sfumato.release.files import FILES, read_bytes, write_archive
from sfumato.release.signature import read_signature, signature_path
from sfumato.release_front import Release, load
from sfumato.report.page import render
from sfumato.report.uses import UseVerdict, uses_of
from sfumato.report.write import page_content, signer
from sfumato.schema.documents import json_text, yaml_text

FORMATS = ("csv", "parquet")
RELEASE, SUMS, ROWS = "release.sfm", "SHA256SUMS", "rows"
_BLOCK = 1 << 20


@dataclass(slots=True)
class _Folder:
    """A folder that is being filled, and what its files are."""

    place: Path
    files: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, what: str, content: str) -> None:
        (self.place / name).write_text(content, encoding="utf-8", newline="\n")
        self.files[name] = what

    def table(self, name: str, what: str, table: pa.Table) -> None:
        # spreadsheets open these; the exact names and labels are in schema.yaml
        write_table([table], self.place / name, spreadsheet=True)
        self.files[name] = what

    def sum_of(self, name: str) -> str:
        digest = hashlib.sha256()
        with (self.place / name).open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()


@few_threads
def pack(
    release: Release | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    n: int | None = None,
    seed: int | None = None,
    formats: Sequence[str] = ("csv",),
    spreadsheet_safe: bool = False,
    publication: Mapping[str, str] | None = None,
    public_key: str | os.PathLike[str] | None = None,
) -> None:
    """Write the folder to publish: release, rows, noisy tables, codebook, cards, report, signature, check sums.

    Privacy: none (a function of the release; no record is read).

    Args:
        release: a release, or the path of one; a signature beside the path comes along.
        out: the folder to make; nothing is replaced.
        n: how many rows, of linked rows units; by default the public number.
        seed: of the rows; random if not given.
        formats: of the rows of a table, "csv", "parquet" or both; images and mixtures are `.npz`, sets in
            one cell Parquet. Several tables are files of a folder `rows`; as Parquet beside CSV, of `rows_parquet`.
        spreadsheet_safe: whether text in rows.csv that a spreadsheet would compute gets an apostrophe.
        publication: what the publisher says: title, publisher, publisher_type, description, license, url, date.
        public_key: PEM of the key that the release, a path, is signed with; it is checked.

    Raises:
        ConfigError: an argument is outside its domain, or the release is not private.
        OutputError: the folder exists, or cannot be written.
        ReleaseError: the release cannot be read, its certificate does not hold, or the signature is not of this key.

    Example:
        >>> sfumato.pack("people.sfm", "people", publication={"title": "People 2024"})  # doctest: +SKIP
    """
    place, about = require_path(out=out), _publication(publication)
    path = None if isinstance(release, Release) else require_path(release=release)
    public_key = None if public_key is None else require_path(public_key=public_key)
    require_flag(spreadsheet_safe=spreadsheet_safe)
    require_instance((list, tuple), "a list of formats", formats=formats)
    refuse_inputs(place, release=path, public_key=public_key)
    refuse_existing(place, overwrite=False)
    if not formats or any(form not in FORMATS or formats.count(form) > 1 for form in formats):
        raise ConfigError(f"Expected formats of {', '.join(FORMATS)}, each once, got {list(formats)!r}.")
    n = None if n is None else require_integer(at_least=0, n=n)
    signed = signer(release, public_key)
    value = _private(release)
    with atomic_path(place, overwrite=False) as partial:
        folder = _Folder(partial)

        def fill() -> None:
            partial.mkdir()
            _release(folder, value, path)
            rows = _rows(folder, value, n, seed, formats, spreadsheet_safe)
            tables = noisy_tables(value)  # before the page, which holds more from then on
            page = page_content(value, real=None, test=None, target=None, train_rows=None, seed=0, signed=signed)
            _describe(folder, value, about, rows, page["uses"] or [], tables)
            (partial / "report.html").write_text(render(page), encoding="utf-8", errors="replace")
            _sums(folder)

        failure = reason_of(fill)
        if failure:
            raise OutputError(f"Cannot write {place}: {failure}.")


def export(
    release: Release | str | os.PathLike[str], form: str, *, publication: Mapping[str, str] | None = None
) -> str:
    """Return one description of a release as text: what `sfumato publish export` writes.

    Privacy: none (a function of the release).

    Args:
        release: a release, or the path of one.
        form: "croissant" (JSON-LD), "huggingface" (Markdown under YAML), "registry" (YAML, of the registry of DP
            deployments), "datacard" (Markdown), "schema" (YAML) or "certificate" (JSON).
        publication: as `pack`.

    Raises:
        ConfigError: an argument is outside its domain, or the release is not private.
        ReleaseError: the release cannot be read, or its certificate does not hold.

    Example:
        >>> print(sfumato.export("people.sfm", "registry"))  # doctest: +SKIP
    """
    about = _publication(publication)
    forms: Mapping[str, Callable[[Release], str]] = {
        "croissant": lambda release: json_text(croissant(release, about, {})),
        "huggingface": lambda r: hugging_face_card(r, about, {}, r.certificate.n_public, uses_of(r)),
        "registry": lambda release: yaml_text(registry_record(release, about)),
        "datacard": lambda release: data_card(release, about, {}, uses_of(release)),
        "schema": lambda release: yaml_text(release.schema.to_dict()),
        "certificate": lambda release: json_text(release.certificate.to_dict()),
    }
    require_choice(tuple(forms), form=form)
    return forms[form](_private(release))


def _private(release: Release | str | os.PathLike[str]) -> Release:
    """Return a release of which the certificate holds; what guarantees nothing is not described as if it did."""
    value = release if isinstance(release, Release) else load(release)
    if not value.certificate.private:
        raise ConfigError(
            "Expected a release with secret noise to publish, got one that is not private: it has no noise, or noise "
            "from a seed. Fit again without a seed."
        )
    value.certificate.verify()
    return value


def _publication(entries: Mapping[str, str] | None) -> Publication:
    known = set(Publication.__dataclass_fields__)
    if entries is not None and (not isinstance(entries, Mapping) or set(entries) - known):
        raise ConfigError(f"Expected publication to have entries of {', '.join(sorted(known))}, got others.")
    return Publication(**(entries or {}))


def _release(folder: _Folder, release: Release, path: Path | None) -> None:
    if path is None:
        release.save(folder.place / RELEASE)
    else:  # the bytes that a signature is of
        write_archive(dict(zip(FILES, read_bytes(path), strict=True)), folder.place / RELEASE)
    folder.files[RELEASE] = "the release: sfumato.load reads it, and samples any number of rows"
    if path is not None and signature_path(path).is_file():
        name = f"{RELEASE}.sig"
        read_signature(signature_path(path))  # that it is one
        shutil.copyfile(signature_path(path), folder.place / name)
        folder.files[name] = "its signature: `sfumato certificate` checks it with the publisher's public key"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The files of synthetic rows: their check sums, and the number of rows of the longest table."""

    sums: Mapping[str, str]
    most: int


def _rows(
    folder: _Folder, release: Release, n: int | None, seed: int | None, formats: Sequence[str], safe: bool
) -> _Rows:
    """Draw the rows once for each format, the same."""
    suffixes = _suffixes(release, formats)
    seed = fresh_seed() if seed is None else seed
    if release.schema.database is not None:
        return _tables(folder, release, n, seed, suffixes, safe)
    sums = {}
    for suffix in suffixes:
        name = f"rows.{suffix}"
        release.write_sample(folder.place / name, n, seed=seed, spreadsheet_safe=safe and suffix == "csv")
        folder.files[name] = "synthetic rows"
        sums[name] = folder.sum_of(name)
    most = release.certificate.n_public if n is None else n
    return _Rows(sums, sum(t.num_rows for t in release.batches(n, seed=seed)) if release.schema.linked else most)


def _tables(folder: _Folder, release: Release, n: int | None, seed: int, suffixes: Sequence[str], safe: bool) -> _Rows:
    """Write all tables, as files of a folder of their own: no name of a table meets one of ours."""
    sums, numbers = {}, {}
    for place, suffix in enumerate(suffixes):
        within = ROWS if place == 0 else f"{ROWS}_{suffix}"
        form: TableFormat = "csv" if suffix == "csv" else "parquet"
        options = {"spreadsheet": safe, "csv": release.schema.csv_output} if suffix == "csv" else {}
        numbers = dict.fromkeys(release.schema.table_columns, 0)
        parts = _count_rows(release.table_batches(n, seed=seed), numbers)
        write_tables(parts, folder.place / within, form=form, **options)
        (folder.place / within / MARKER).unlink()
        for table in numbers:
            name = f"{within}/{table}.{suffix}"
            folder.files[name] = f"synthetic rows of {table!r}"
            sums[name] = folder.sum_of(name)
    return _Rows(sums, max(numbers.values()))


def _count_rows(parts: Iterable[dict[str, pa.Table]], numbers: dict[str, int]) -> Iterator[dict[str, pa.Table]]:
    """Yield tables, and add up how many rows they have."""
    for part in parts:
        for name, table in part.items():
            numbers[name] += table.num_rows
        yield part


def _suffixes(release: Release, formats: Sequence[str]) -> Sequence[str]:
    """Return the formats of rows: images and mixtures are arrays; sets in one cell are lists, which no CSV holds."""
    if release.schema.images or release.is_data_set:
        if tuple(formats) != ("csv",):
            raise ConfigError("Expected no formats for images and mixtures, which are written as .npz. Leave them out.")
        return ("npz",)
    in_cells = any(kind.id is None for kind in release.schema.of_kind(ItemSet).values())
    return ("parquet",) if in_cells else formats


def _describe(
    folder: _Folder, release: Release, about: Publication, rows: _Rows, uses: Sequence[UseVerdict], tables: NoisyTables
) -> None:
    what = "what was public before: columns, bounds, categories, rules"
    folder.text("schema.yaml", what, yaml_text(release.schema.to_dict()))
    folder.text("certificate.json", "what it cost, for machines", json_text(release.certificate.to_dict()))
    what = "a row per column: kind, bounds, rules, where its facts come from"
    folder.table("codebook.csv", what, columns_table(release))
    folder.table("categories.csv", "a row per category of each column of labels", categories_table(release.schema))
    if tables.counts is not None:
        what = "noisy counts of each column's labels or cells, with standard errors and 95 % intervals"
        folder.table("counts.csv", what, tables.counts)
    if tables.pairs is not None:
        folder.table("pairs.csv", "noisy counts of pairs of labels, the same", tables.pairs)
    folder.text(
        "croissant.json", "Croissant 1.0 with its responsible-AI part", json_text(croissant(release, about, rows.sums))
    )
    folder.text(
        "registry.yaml", "a draft for the registry of DP deployments", yaml_text(registry_record(release, about))
    )
    files = {
        **folder.files,
        "report.html": "one page for people who decide",
        SUMS: "SHA-256 of all files: `sha256sum -c SHA256SUMS`",
    }
    folder.text("README.md", "this card", hugging_face_card(release, about, files, rows.most, uses, tables.left_out))


def _sums(folder: _Folder) -> None:
    items = (item for item in folder.place.rglob("*") if item.is_file())
    names = sorted(item.relative_to(folder.place).as_posix() for item in items)
    lines = [f"{folder.sum_of(name)}  {name}\n" for name in names]
    (folder.place / SUMS).write_text("".join(lines), encoding="utf-8", newline="\n")
