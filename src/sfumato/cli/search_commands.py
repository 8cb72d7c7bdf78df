"""The command that searches for settings: model tune."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import save_release
from sfumato.cli.inputs import DataArgument, InputFormatOption, open_tables, refuse_data
from sfumato.cli.option_groups import grouped
from sfumato.cli.options import (
    DEFAULT_METHOD,
    AcceptDraftOption,
    AreasOption,
    DeltaOption,
    LedgerOption,
    MethodOption,
    QuestionsOption,
    ReleaseOutOption,
    RowsAreRecordsOption,
    RowsOption,
    SampleTypes,
    SchemaOption,
    SeedOption,
    SetOption,
    TargetOption,
    TypesOption,
)
from sfumato.cli.output import tell_written
from sfumato.cli.progress import working
from sfumato.cli.settings import add, flat_settings, flatten, make_method, setting_name, settings_file
from sfumato.errors import ConfigError, did_you_mean
from sfumato.methods import registry
from sfumato.schema import documents

if TYPE_CHECKING:
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.privacy import words
    from sfumato.release import files
    from sfumato.schema import schema as schemas
    from sfumato.schema import sources
else:
    words, files = later("sfumato.privacy.words"), later("sfumato.release.files")
    schemas, sources = later("sfumato.schema.schema"), later("sfumato.schema.sources")

_MOST_CANDIDATES = 10_000


@dataclass(frozen=True, kw_only=True)
class Trials:
    """The settings to try."""

    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2,...",
            help="A setting and the values to try. May be repeated: all combinations are tried.",
        ),
    ] = None
    candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="In place of --grid: a YAML or JSON file with a list of settings to try."),
    ] = None
    method: MethodOption = DEFAULT_METHOD
    set_: SetOption = None


@dataclass(frozen=True, kw_only=True)
class Law:
    """The law of the number of fits."""

    repetitions: Annotated[
        float, typer.Option(metavar="N", help="The mean of the number of fits, which is random.")
    ] = 10.0
    shape: Annotated[
        float,
        typer.Option(metavar="S", help="The shape of the distribution of that number: 1 is geometric, 0 logarithmic."),
    ] = 1.0


@dataclass(frozen=True, kw_only=True)
class SearchRun:
    """Areas and questions of a search, and how it runs."""

    PANEL: ClassVar[str] = "How it runs, and its account"

    areas: AreasOption = None
    questions: QuestionsOption = None
    seed: SeedOption = None
    ledger: LedgerOption = None
    types: TypesOption = SampleTypes.kinds
    input_format: InputFormatOption = None
    overwrite: OverwriteOption = False
    accept_draft: AcceptDraftOption = False
    rows_are_records: RowsAreRecordsOption = False
    json_output: JsonOption = False


@grouped
def tune_command(
    data: DataArgument,
    schema: SchemaOption,
    out: ReleaseOutOption,
    epsilon: Annotated[
        float, typer.Option(metavar="E", help="The privacy budget epsilon of the whole search, above 0.")
    ],
    *,
    trials: Trials,
    law: Law,
    delta: DeltaOption = None,
    rows: RowsOption = None,
    target: TargetOption = None,
    run: SearchRun,
    accept: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A YAML or JSON file of criteria that the release has to meet. Default: the schema's."
        ),
    ] = None,
    accept_share: Annotated[
        float, typer.Option(metavar="S", help="The share of a fit's squared budget that judging it costs.")
    ] = 0.1,
) -> None:
    """Fit the best of several settings: a search whose whole cost is epsilon."""
    grid, candidates = trials.grid, trials.candidates
    if grid is not None and candidates is not None:
        raise ConfigError("Expected either --grid or --candidates, got both.")
    known = sfumato.OpenSchema.load(schema)
    if grid is None and candidates is None and accept is None and not known.accept:
        raise ConfigError("Expected either --grid or --candidates, got neither, and no criteria to accept one fit by.")
    same = flat_settings(trials.set_)
    # without any of the two, one candidate that is judged
    listed = (_grid(grid) if grid else [{}]) if candidates is None else _read_candidates(candidates)
    methods = [_candidate(trials.method, _with_own(same, own), epsilon, delta) for own in listed]
    others = {
        "schema": schema,
        "settings": settings_file(trials.set_),
        "candidates": candidates,
        "ledger": run.ledger,
        "accept": accept,
    }
    refuse_data(out, {"data": data}, **others)
    files.refuse_place(out, overwrite=run.overwrite)
    criteria = None if accept is None else documents.read_document(accept)
    sources.accepted(known, accept_draft=run.accept_draft)
    schemas.require_closed(known)
    source = open_tables([data], run.input_format, known)
    # nothing of the progress is shown: it would tell how often, and what, was fitted
    with working("Searching…"):
        release = sfumato.tune(
            source, known, method=methods, target=target, areas=run.areas, questions=run.questions,
            n_public=rows,
            mean_repetitions=law.repetitions,
            shape=law.shape, seed=run.seed, ledger=run.ledger, as_source=run.types is SampleTypes.as_source,
            accept_draft=run.accept_draft, rows_are_records=run.rows_are_records, accept=criteria,
            accept_share=accept_share,
        )  # fmt: skip
    save_release(release, out, overwrite=run.overwrite, ledger=run.ledger)
    tell_written(release, out, json_output=run.json_output)


def _grid(entries: list[str]) -> list[dict[str, Any]]:
    """Return every combination of the values of all keys."""
    values: dict[str, list[Any]] = {}
    for entry in entries:
        key, equals, text = entry.partition("=")
        name = setting_name(key)
        if not equals or not name or not text.strip():
            raise ConfigError(f"Expected --grid KEY=V1,V2,..., got {entry!r}.")
        if name in values:
            raise ConfigError(f"Expected each key of --grid once, got {name!r} twice. List all of its values together.")
        values[name] = [part.strip() for part in text.split(",")]
    if math.prod(map(len, values.values())) > _MOST_CANDIDATES:
        raise ConfigError(f"Expected at most {_MOST_CANDIDATES} combinations in --grid, got more.")
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


def _read_candidates(path: Path) -> list[dict[str, Any]]:
    """Return the settings that a file lists."""
    content = documents.read_document(path)
    if not isinstance(content, list) or not content or not all(isinstance(entry, dict) for entry in content):
        raise ConfigError(
            f"Expected {path} to hold a list of mappings, one of settings per candidate, got another form."
        )
    if len(content) > _MOST_CANDIDATES:
        raise ConfigError(f"Expected at most {_MOST_CANDIDATES} candidates in {path}, got more.")
    return [flatten(entry) for entry in content]


def _with_own(same: Mapping[str, Any], tried: Mapping[str, Any]) -> dict[str, Any]:
    """Return a candidate's settings: those of all, and its own."""
    settings = dict(same)
    for name, value in tried.items():
        add(settings, name, value)
    return settings


def _candidate(method: str, settings: Mapping[str, Any], epsilon: float, delta: float | None) -> Synthesizer:
    """Return the method with these settings."""
    if method not in registry.METHODS or not registry.METHODS[method].private:
        private = [name for name, entry in registry.METHODS.items() if entry.private]
        raise ConfigError(
            f"Expected --method to be one of {', '.join(private)}, got {method!r}.{did_you_mean(method, private)}"
        )
    return make_method(method, epsilon, delta, settings)
