"""Commands about releases: plan, fit, sample, certificate, methods, demo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import last_output
from sfumato.cli.inputs import InputFormatOption, TablesArgument, open_tables, refuse_data
from sfumato.cli.option_groups import ChosenMethod, PublicFacts, grouped
from sfumato.cli.options import (
    AcceptDraftOption,
    CheckpointOption,
    EngineOption,
    EpsilonOption,
    FitWorkersOption,
    LedgerOption,
    NamesArePublicOption,
    NumberOption,
    ReleaseArgument,
    ReleaseOutOption,
    RiskOption,
    RowsSeedOption,
    SampleTypes,
    SchemaOption,
    SeedOption,
    TypesOption,
    class_counts,
    column_kinds,
    given_values,
    parse_risk,
)
from sfumato.cli.output import (
    notes,
    print_columns,
    print_cost,
    print_json,
    print_scores,
    print_table,
    say,
    tell_written,
)
from sfumato.cli.outputs import (
    FormatOption,
    OutOption,
    SampleFormat,
    UniqueOnOption,
    UniqueRowsChoice,
    UniqueRowsOption,
    sample_writer,
    tables_folder,
    tell_dropped,
    tell_sampled,
    tell_tables,
)
from sfumato.cli.progress import stages, tell_duration
from sfumato.cli.saving import save_release
from sfumato.cli.settings import describe_settings, plain_text, presets_of
from sfumato.errors import ConfigError
from sfumato.io.atomic import refuse_existing

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato import demo
    from sfumato.data_ledger import journal
    from sfumato.engines import choice
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.io import table_folders
    from sfumato.io.chunks import Source
    from sfumato.methods import registry
    from sfumato.privacy import certificate as certificates
    from sfumato.privacy import words
    from sfumato.privacy.budget import BuyCount
    from sfumato.records import private
    from sfumato.release import files
    from sfumato.release_front import Release
    from sfumato.schema import sources
    from sfumato.schema.schema import Schema
else:
    demo, choice, journal = later("sfumato.demo"), later("sfumato.engines.choice"), later("sfumato.data_ledger.journal")
    table_folders, registry = later("sfumato.io.table_folders"), later("sfumato.methods.registry")
    certificates, words = later("sfumato.privacy.certificate"), later("sfumato.privacy.words")
    private, files, sources = (
        later("sfumato.records.private"),
        later("sfumato.release.files"),
        later("sfumato.schema.sources"),
    )


def _refuse_both(schema: Path | None, kinds: str | None, workers: int | None, engine: str | None) -> None:
    if schema is not None and kinds is not None:
        raise ConfigError("Expected either --schema or --kinds, got both. Write `discover: true` into the schema.")
    if workers is not None and engine is not None:
        raise ConfigError("Expected either --workers or --engine, got both.")


@grouped
def plan_command(
    schema: SchemaOption,
    epsilon: EpsilonOption = None,
    risk: RiskOption = None,
    target_error: Annotated[
        float | None,
        typer.Option("--target-error", metavar="X", help="Instead: the standard error of a 1-way share to reach."),
    ] = None,
    *,
    chosen: ChosenMethod,
    facts: PublicFacts,
    json_output: JsonOption = False,
) -> None:
    """Show what a fit would spend on what, and what its noise would mean. Reads no record."""
    method, target = chosen.method, facts.target
    spends = method not in registry.METHODS or registry.METHODS[method].private
    asked = [epsilon, target_error, risk]
    if spends and asked.count(None) != 2:
        got = "none" if asked.count(None) == 3 else "several"
        raise ConfigError(f"Expected one of --epsilon, --target-error and --risk, got {got}.")
    if not spends and (target_error is not None or risk is not None):
        raise ConfigError(f"Expected no --target-error or --risk for the method {method}, which has no noise.")
    allowed = parse_risk(risk)
    synthesizer = chosen.at(1.0 if spends and epsilon is None else epsilon)
    known, n_public = sfumato.OpenSchema.load(schema), facts.n_public
    if target_error is not None:
        if known.open:
            raise ConfigError("Expected a schema that leaves nothing open with --target-error. Name an --epsilon.")
        if isinstance(n_public, sfumato.BuyCount):
            raise ConfigError("Expected a declared number of rows with --target-error, got --buy-rows.")
        epsilon = synthesizer.epsilon_for(known, target_error=target_error, target=target, n_public=n_public)
        synthesizer = replace(synthesizer, epsilon=epsilon)
    synthesizer = facts.at_risk(synthesizer, allowed, known, n_public)
    plan = synthesizer.description(known, target=target, n_public=n_public)
    if json_output:
        print_json(plan.to_dict())
    else:
        print_cost(plan)
        tell_duration(synthesizer, known, target, n_public)


@dataclass(frozen=True, kw_only=True)
class FitRun:
    """How a fit runs, and what it keeps."""

    seed: SeedOption = None
    checkpoint: CheckpointOption = None
    ledger: LedgerOption = None
    types: TypesOption = SampleTypes.kinds
    input_format: InputFormatOption = None
    overwrite: OverwriteOption = False
    accept_draft: AcceptDraftOption = False
    names_are_public: NamesArePublicOption = False
    workers: FitWorkersOption = None
    engine: EngineOption = None

    def options(self) -> dict[str, Any]:
        """Those that `fit` takes as they are."""
        taken = ("seed", "checkpoint", "ledger", "accept_draft", "workers")
        return {name: getattr(self, name) for name in taken} | {"as_source": self.types is SampleTypes.as_source}


@grouped
def fit_command(
    data: TablesArgument,
    out: ReleaseOutOption,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", metavar="SCHEMA", help="What is publicly known of the data; without it, all costs budget."
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option("--kinds", metavar="COL=KIND,...", help="Without a schema: public kinds of columns of a table."),
    ] = None,
    epsilon: EpsilonOption = None,
    risk: RiskOption = None,
    *,
    chosen: ChosenMethod,
    facts: PublicFacts,
    run: FitRun,
) -> None:
    """Fit a release to private data."""
    allowed = parse_risk(risk, epsilon=epsilon)
    synthesizer = chosen.at(1.0 if allowed else epsilon)
    others = {"schema": schema, "settings": chosen.settings, "checkpoint": run.checkpoint, "ledger": run.ledger}
    refuse_data(out, {"data": data}, **others)
    refuse_existing(out, overwrite=run.overwrite, marker=files.FILES)
    n_public, target = facts.n_public, facts.target
    _refuse_both(schema, kinds, run.workers, run.engine)
    known = None if schema is None else sfumato.OpenSchema.load(schema)
    if known is not None:
        sources.accepted(known, accept_draft=run.accept_draft)
    source = open_tables(data, run.input_format, known)
    if known is None and not source.names:
        raise ConfigError(f"Expected --schema for {source.label}, whose lines name no columns for all. Declare them.")
    if known is None:
        known = sfumato.OpenSchema.of(
            source, column_kinds(kinds), target=target, names_are_public=run.names_are_public
        )  # fmt: skip
        n_public = sfumato.BuyCount() if n_public is None else n_public
    synthesizer = facts.at_risk(synthesizer, allowed, known, n_public)
    _tell_what_is_left_out(source, known)
    _tell_what_is_public(source, known, n_public)
    with choice.engine_at(run.engine) as cluster, stages(synthesizer, known, target, n_public) as progress:
        release = synthesizer.fit(
            source, schema=known, target=target, n_public=n_public, progress=progress, engine=cluster, **run.options()
        )  # fmt: skip
    save_release(
        release, out, overwrite=run.overwrite, ledger=run.ledger, checkpoint=run.checkpoint,
        resumable=_keeps(synthesizer, known),
    )  # fmt: skip
    if run.checkpoint is not None:
        journal.remove(run.checkpoint)
    print_cost(release.certificate)
    tell_written(release, out)


def _keeps(synthesizer: Synthesizer, schema: Schema) -> bool:
    """Whether a checkpoint could have been named."""
    return synthesizer.resumable and not schema.open


def _tell_what_is_left_out(source: Source, schema: Schema) -> None:
    """Name the schema's own columns only: another name may be a record's, where a header has a stray quote."""
    private.PrivateData(source, schema)
    left_out = [repr(name) for name in source.names if name in schema.columns and name not in schema.released]
    others = len([name for name in source.names if name not in schema.columns])
    if others:
        left_out.append(f"{others} column{'s' if others > 1 else ''} that the schema does not name")
    if left_out:
        notes.print(f"[yellow]Note:[/] not released: {escape(', '.join(left_out))}.", soft_wrap=True)


def _tell_what_is_public(source: Source, known: Schema, n_public: int | BuyCount | None) -> None:
    """Say what discovery does not buy."""
    if not known.open:
        return
    bought = [name for name, kind in known.open.items() if kind == "unknown"]
    count = len(known.open)
    facts = ["the names of all columns"]
    if len(bought) < count:
        facts.append(f"the kinds of {', '.join(repr(name) for name in known.open if name not in bought)}")
    rows = isinstance(n_public, sfumato.BuyCount)
    declared = n_public or known.rows
    facts += [] if rows or declared is None else [f"the number of rows, {declared}"]
    stated = [name for name in known.released if name not in known.open]
    facts += [f"bounds or labels of {', '.join(map(repr, stated))}, as the schema has them"] if stated else []
    if known.unit is not None:
        facts.append(f"that {known.unit.column!r} is the unit, with {known.unit.max_rows} rows at most")
    say(f"Taken as public: {'; '.join(facts)}.")
    kinds = f"the kinds of {len(bought)} columns, " if bought else ""
    estimated = f"{'the number of rows, ' if rows else ''}{kinds}the bounds or categories of {count} columns"
    say(f"To be estimated with part of the budget: {estimated}.")


@dataclass(frozen=True, kw_only=True)
class UniqueSamples:
    """Samples without rows that occur once in them."""

    unique_rows: UniqueRowsOption = UniqueRowsChoice.keep
    unique_on: UniqueOnOption = None


@grouped
def sample_command(
    release: ReleaseArgument,
    out: OutOption,
    n: NumberOption = None,
    seed: RowsSeedOption = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", metavar="COL=VALUE", help="A value that all rows have; may be repeated."),
    ] = None,
    class_count: Annotated[
        list[str] | None,
        typer.Option(
            "--class-count", metavar="LABEL=N", help="Rows (or linked units) of a class, in place of -n; repeated."
        ),
    ] = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option("--spreadsheet-safe", help="In a .csv: put ' before text that a spreadsheet takes for a formula."),
    ] = False,
    format_: FormatOption = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="Processes that draw; the rows are those of one.")
    ] = 1,
    *,
    unique: UniqueSamples,
    replicates: Annotated[
        int | None,
        typer.Option(
            "--replicates",
            metavar="M",
            help="M tables that differ as much as noise and sampling leave open, of -n rows each, one after the other, "
            "told apart by a first column `replicate`.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Draw synthetic rows from a release, any number, in constant memory."""
    if replicates is not None and (given or class_count or workers != 1):
        raise ConfigError("Expected no --given, --class-count or --workers beside --replicates, got one.")
    write, name = sample_writer(out, format_, release=release, overwrite=overwrite, spreadsheet=spreadsheet_safe)
    found = sfumato.load(release)
    options: Any = {"seed": seed, "given": given_values(given, found.schema), "class_counts": class_counts(class_count)}
    options |= {"workers": workers, "unique_rows": unique.unique_rows.value, "unique_columns": unique.unique_on or None}
    tables, csv = found.schema.two_tables, found.schema.csv_output
    if tables is not None and replicates is None:
        place = tables_folder(out, format_, release=release, overwrite=overwrite, spreadsheet=spreadsheet_safe)
        form, pairs = (format_ or SampleFormat.csv).value, found.table_batches(n, **options)
        with last_output(place):
            table_folders.write_tables(
                pairs, place, form=form, overwrite=overwrite, spreadsheet=spreadsheet_safe, csv=csv
            )
        tell_tables(place, [f"{name}.{form}" for name in tables.names])
        tell_dropped(say, unique.unique_rows)
        return
    if replicates is not None:
        n = found.certificate.n_public if n is None else n
        drawn = found.replicate_batches(replicates, n=n, seed=seed)
        write(_counted(drawn, n * replicates, found), found.form.keys, csv)
        tell_sampled(name, release)
        return
    write(_counted(found.batches(n, **options), n, found), found.form.keys, csv)
    tell_sampled(name, release)
    tell_dropped(say if name else notes.print, unique.unique_rows)


def _counted(batches: Iterator[pa.Table], n: int | None, release: Release) -> Iterator[pa.Table]:
    """Pass batches of samples on, showing how many rows are done: their number is the caller's."""
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("Sampling", total=n if n is not None else release.certificate.n_public)
        for batch in batches:
            yield batch
            progress.advance(task, batch.num_rows)


def certificate_command(release: ReleaseArgument, json_output: JsonOption = False) -> None:
    """Show what a release cost, and check it: epsilon is computed again from the listed events."""
    found = sfumato.load(release)
    certificate = found.certificate
    if certificate.epsilon is not None:
        certificate.verify()
    if json_output:
        print_json(certificate.to_dict())
        return
    say(f"Method: {words.whole(certificate.method)}.")
    if not certificate.private:
        say(f"NOT PRIVATE. {words.meaning(certificate)[0]}")
    print_cost(certificate)
    print_columns(found)
    if certificate.epsilon is not None:
        say(words.recomputed(certificate, certificate.recompute()))
    for line in [*words.checked(found.checked), *words.verdicts(certificate)]:
        say(line)
    say("It rests on these assumptions:")
    for assumption in certificate.assumptions:
        say(f"  - {words.whole(assumption)}")
    say(words.origins(certificate))
    if certificate.read_off:
        say(f"Some {words.NOT_COVERED}.")


def methods_command(
    method: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show the settings of this one.", show_default=False)
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List the methods that `fit` knows, or what can be set of one."""
    if method is not None:
        _show_settings(method, json_output)
    elif json_output:
        print_json([{"method": name, "about": found.about} for name, found in registry.METHODS.items()])
    else:
        print_table(
            "Methods", ["method", "what it is"], ((name, found.about) for name, found in registry.METHODS.items())
        )


def _show_settings(method: str, json_output: bool) -> None:
    about, found = registry.find_method(method).about, describe_settings(method)
    presets = [
        {"preset": name, "differs": preset.differs or f"Refused: {preset.refused}"}
        for name, preset in presets_of(method).items()
    ]
    if json_output:
        print_json({"method": method, "about": about, "settings": found, "presets": presets})
        return
    say(f"{method}: {about}")
    for entry in presets:
        say(f"--preset {entry['preset']}: {entry['differs']}")
    if not found:
        say("It has no settings.")
        return
    rows = (
        (
            entry["name"],
            entry["type"],
            "to be given" if entry["required"] else plain_text(entry["default"]),
            entry["about"] if entry["with"] is None else f"With {entry['with']}: {entry['about']}",
        )
        for entry in found
    )
    print_table(
        "Settings, for --set KEY=VALUE or a file", ["setting", "type", "default", "what it is"], rows, whole=True
    )


def demo_command(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the release and the rows.")] = Path(
        "demo"
    ),
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="Privacy loss to spend.")] = 1.0,
    open_: Annotated[bool, typer.Option("--open", help="Open the page about the release in a browser.")] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Release a real table end to end, and score it: the RAND Health Insurance Experiment."""

    def show(title: str, content: Any) -> None:  # noqa: ANN401
        say()
        notes.rule(title) if notes.is_terminal else say(f"== {title}")
        if isinstance(content, str):
            say(content)
        elif isinstance(content, demo.Lines):
            print_table("", *content)
        elif isinstance(content, certificates.Description):
            print_cost(content)
        else:
            print_scores(content)

    page = demo.run_demo(out, epsilon=epsilon, overwrite=overwrite, show=show)
    say(f"Look at it: {page.resolve().as_uri()}")
    if open_:
        typer.launch(str(page.resolve()))
