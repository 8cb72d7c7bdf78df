"""polars LazyFrames: computed once, with casts that do not fail.

A lazy frame is a plan. Where it would stop at a cell, it is changed so that this cell alone is missing: casts and dates
are no longer strict. A plan that only scans CSV files is read by the paths of these. Where the types of a file follow
from its rows, or from those of several files, no change of the plan helps, and it is refused by its form, whatever the
files hold. What a plan may do besides (functions of Python, say) is not known: docs/sharp_edges.md.
"""

from __future__ import annotations

import io
import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import DataError
from sfumato.io.chunks import Source, attempt, check_names
from sfumato.io.csv_form import CsvForm
from sfumato.io.frames import arrow_columns
from sfumato.io.spool import Spool, SpooledSource
from sfumato.io.strict_json import mappings_in

if TYPE_CHECKING:
    import polars as pl

_LABEL = "the polars lazy frame"
_MAY_STOP = ("strict_cast", "strptime")
_TEXT = ("csv scan", "json scan")
_SEVERAL = re.compile(r"^\s*(?:Parquet|IPC) SCAN \[[^\]]*, ", re.MULTILINE)
_IN_MEMORY = "DF ["


def open_lazy(
    frame: pl.LazyFrame, *, chunk_rows: int, open_paths: Callable[[Sequence[str], CsvForm], Source]
) -> Source:
    """Take the columns of a lazy frame; it is computed in the first pass, in polars' own streaming engine.

    Args:
        frame: the plan.
        chunk_rows: the most rows of one chunk.
        open_paths: opens files by their paths: those of a plan that does nothing but to scan CSV files.

    Raises:
        DataError: its columns cannot be told, or have unusable names; or its types follow from cells.
    """
    import polars as pl

    message = f"Cannot tell the columns of {_LABEL}. Collect it, and pass the data frame."
    scanned = attempt(lambda: _scanned_csv(frame), message)
    if scanned is not None:
        return replace(open_paths(*scanned), container="polars")
    frame = attempt(lambda: _without_stops(frame), message)
    schema = attempt(frame.collect_schema, message)
    frame = frame.select(arrow_columns(schema, schema.names()))
    empty = attempt(lambda: pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema, message)
    check_names(empty.names, _LABEL)

    def write(path: Path) -> None:
        frame.sink_ipc(path)

    return SpooledSource(
        label=_LABEL,
        container="polars",
        storage=dict(zip(empty.names, empty.types, strict=True)),
        dtypes={name: str(dtype.base_type()) for name, dtype in schema.items()},
        chunk_rows=chunk_rows,
        spool=Spool(_LABEL, write),
    )


def _without_stops(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the plan in which no cell stops the others from being read.

    Raises:
        DataError: it cannot be changed so.
    """
    import polars as pl

    shown = frame.explain(optimized=False)
    if _SEVERAL.search(shown):
        raise DataError(
            f"Expected {_LABEL} of one file a scan, got several, whose types may differ. Pass their paths, such as "
            "'ds/*.parquet'."
        )
    if any(word in shown.lower() for word in _TEXT):
        raise DataError(
            f"Expected {_LABEL} of files whose types are declared, got one of text, in which one cell may decide them. "
            "Pass the path of the file and leave the rest to the schema, or collect it and pass the data frame."
        )
    if not any(word in shown for word in _MAY_STOP):
        return frame
    if _IN_MEMORY in shown:  # which its text would hold once more
        raise DataError(
            f"Expected {_LABEL} of files alone, or without strict casts, got a data frame beside them. Cast with "
            "strict=False, or collect it and pass the data frame."
        )
    plan = _plan(frame)
    for node in mappings_in(plan):
        for key, value in node.items():
            if value == "Strict" or (key == "strict" and value is True):
                node[key] = "NonStrict" if value == "Strict" else False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pl.LazyFrame.deserialize(io.StringIO(json.dumps(plan)), format="json")


def _plan(frame: pl.LazyFrame) -> Any:  # noqa: ANN401 - a value of JSON
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars may change the form: then reading it fails, and the frame is refused
        return json.loads(frame.serialize(format="json"))


def _scanned_csv(frame: pl.LazyFrame) -> tuple[list[str], CsvForm] | None:
    """Return the files of a plan that is nothing but a scan of CSV files with a header, and their form; else None."""
    if not frame.explain(optimized=False).startswith("Csv SCAN"):
        return None
    scan = next(node["Scan"] for node in mappings_in(_plan(frame)) if isinstance(node.get("Scan"), dict))
    arguments, options = scan["unified_scan_args"], scan["scan_type"]["Csv"]["options"]
    parse = options["parse_options"]
    usual = (
        options["has_header"]
        and not any(options[key] for key in ("skip_rows", "skip_lines", "skip_rows_after_header", "n_rows"))
        and not any(options[key] for key in ("columns", "projection", "column_names_overwrite", "row_index"))
        and not any(arguments[key] for key in ("projection", "column_mapping", "row_index", "pre_slice"))
        and arguments["include_file_paths"] is None
        and (parse["quote_char"], parse["eol_char"], parse["comment_prefix"]) == (ord('"'), ord("\n"), None)
    )
    paths = [path.get("inner") for path in scan["sources"].get("Paths", [])]
    if not usual or not paths or not all(isinstance(path, str) for path in paths):
        return None
    return paths, CsvForm(delimiter=chr(parse["separator"]))
