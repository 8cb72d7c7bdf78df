"""Croissant 1.0 with its responsible-AI vocabulary 1.0: JSON-LD that catalogues of data sets read (MLCommons)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.privacy import words
from sfumato.publish.data_card import citation, limits
from sfumato.publish.publication import Publication
from sfumato.release.blocks import columns_of_tables
from sfumato.release_front import Release

CROISSANT, RAI = "http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"
_FORMATS = {".csv": "text/csv", ".parquet": "application/x-parquet", ".npz": "application/zip"}
_CONTEXT: Mapping[str, Any] = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/", "citeAs": "cr:citeAs", "column": "cr:column", "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"}, "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty", "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract", "field": "cr:field", "fileProperty": "cr:fileProperty", "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
    "replace": "cr:replace", "samplingRate": "cr:samplingRate", "separator": "cr:separator", "source": "cr:source",
    "subField": "cr:subField", "transform": "cr:transform",
}  # fmt: skip


def croissant(release: Release, publication: Publication, sums: Mapping[str, str]) -> dict[str, Any]:
    """Return the description as plain values, for JSON.

    Args:
        release: what is published.
        publication: who publishes it.
        sums: files of rows → their SHA-256; the first, of several tables one of each, are described column by column.
    """
    certificate = release.certificate
    description: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "name": publication.slug,
        "alternateName": publication.title,
        "description": publication.description or f"{publication.title}: differentially private synthetic data.",
        "conformsTo": [CROISSANT, RAI],
        "license": publication.license,
        "url": publication.url or "https://example.org/",
        "version": "1.0.0",
        "datePublished": publication.date,
        "creator": {"@type": "sc:Organization", "name": publication.publisher},
        "citeAs": citation(publication),
        "isLiveDataset": False,
        "distribution": [_file(name, sha) for name, sha in sums.items()],
        "recordSet": _record_sets(release, list(sums)),
        "rai:dataCollection": "Sampled from a model that was fitted to records under differential privacy. "
        f"{' '.join([*words.not_covered(certificate), words.guarantee(certificate)])}",
        "rai:dataCollectionType": ["Others"],
        "rai:dataLimitations": limits(release),
        "rai:personalSensitiveInformation": [
            f"Rows are made from noisy measurements of the records. {words.who(certificate)}",
            *words.meaning(certificate),
        ],
        "rai:dataUseCases": ["Tables and exploration", "Testing of software", "Training of classifiers"],
        "rai:dataBiases": [
            "Noise falls on small groups the most: their sizes and their relations are the least exact."
        ],
        "rai:dataReleaseMaintenancePlan": "The release is fixed. Another of the same records adds to its cost.",
    }
    if not description["recordSet"]:
        del description["recordSet"]
    return description


def _file(name: str, sha: str) -> dict[str, Any]:
    suffix = name[name.rindex(".") :]
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name,
        "encodingFormat": _FORMATS[suffix], "sha256": sha,
    }  # fmt: skip


def _record_sets(release: Release, files: list[str]) -> list[dict[str, Any]]:
    """Return a record set for each table; arrays have none."""
    if release.schema.database is None:
        columns = {name: name for name in release.schema.written}
        return [_records(release, "rows", columns, name) for name in files[:1] if not name.endswith(".npz")]
    columns_of = columns_of_tables(release.schema)
    sets = [_records(release, *table, file) for table, file in zip(columns_of.items(), files, strict=False)]
    database, keys = release.schema.database, {one["name"]: {"@id": one["field"][0]["@id"]} for one in sets}
    for one, branch in zip(sets, (None, *database.branches), strict=False):  # a key is the first field of its table
        if branch is None or branch.key is not None:
            one["key"] = keys[one["name"]]
        if branch is not None:
            above = {branch.by: branch.of} | ({} if branch.unit is None else {branch.unit: database.units})
            for name, table in above.items():
                one["field"][branch.identifiers.index(name)]["references"] = {"field": keys[table]}
    return sets


def _records(release: Release, table: str, columns: Mapping[str, str], file: str) -> dict[str, Any]:
    """Return the record set of one table: its columns by their written names."""
    description = "Synthetic rows." if release.schema.database is None else f"Synthetic rows of {words.whole(table)}."
    fields = [_field(release, f"{table}/column-{i}", *names, file) for i, names in enumerate(columns.items(), 1)]
    return {"@type": "cr:RecordSet", "@id": table, "name": table, "description": description, "field": fields}


def _field(release: Release, place: str, written: str, name: str, file: str) -> dict[str, Any]:
    kind = release.schema.columns[name].name if name in release.schema.columns else "column"
    storage = release.form.storage[name]
    lists = types.is_list(storage) or types.is_large_list(storage)
    return {
        "@type": "cr:Field", "@id": place, "name": place,
        "description": f"{words.whole(written)} ({kind})",
        "dataType": _data_type(storage.value_type if lists else storage),
        **({"repeated": True} if lists else {}),
        "source": {"fileObject": {"@id": file}, "extract": {"column": written}},
    }  # fmt: skip


def _data_type(storage: pa.DataType) -> str:
    if types.is_boolean(storage):
        return "sc:Boolean"
    if types.is_integer(storage):
        return "sc:Integer"
    if types.is_floating(storage) or types.is_decimal(storage):
        return "sc:Float"
    if types.is_date(storage) or types.is_timestamp(storage):
        return "sc:Date" if types.is_date(storage) else "sc:DateTime"
    return "sc:Text"
