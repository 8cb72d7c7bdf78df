"""Commands about releases: plan, fit, sample, certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.markup import escape
from rich.progress import Progress

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import save_release
from sfumato.cli.inputs import InputFormatOption, TablesArgument, open_tables, refuse_data
from sfumato.cli.option_groups import ChosenMethod, PublicFacts, grouped
from sfumato.cli.options import (
    AcceptDraftOption,
    EpsilonOption,
    LedgerOption,
    NamesArePublicOption,
    NumberOption,
    ReleaseArgument,
    ReleaseOutOption,
    RiskOption,
    RowsAreRecordsOption,
    RowsSeedOption,
    SampleTypes,
    SchemaOption,
    SeedOption,
    TypesOption,
    class_counts,
    column_kinds,
    given_values,
    parse_risk,
    parse_target_error,
    whole_number,
)
from sfumato.cli.output import notes, print_columns, print_cost, print_json, say, tell_written
from sfumato.cli.outputs import (
    SampleFormat,
    UniqueRowsChoice,
    sample_writer,
    tables_writer,
    tell_dropped,
    tell_sampled,
    tell_tables,
)
from sfumato.cli.progress import stages, tell_duration, working
from sfumato.cli.publish_commands import combined_at, show_if_combined
from sfumato.cli.settings import settings_file
from sfumato.errors import ConfigError
from sfumato.methods import registry

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data_ledger import journal
    from sfumato.engines import choice
    from sfumato.fitting.synthesizer import Synthesizer
    from sfumato.io.chunks import Source
    from sfumato.privacy import words
    from sfumato.privacy.budget import EstimateCount
    from sfumato.records import private
    from sfumato.release import files
    from sfumato.schema import sources
    from sfumato.schema.schema import Schema
else:
    choice, journal = later("sfumato.engines.choice"), later("sfumato.data_ledger.journal")
    words, private = later("sfumato.privacy.words"), later("sfumato.records.private")
    files, sources = later("sfumato.release.files"), later("sfumato.schema.sources")


@grouped
def plan_command(
    schema: SchemaOption,
    epsilon: EpsilonOption = None,
    risk: RiskOption = None,
    target_error: Annotated[
        str | None,
        typer.Option(
            metavar="[QUESTION =] X",
            help="In place of --epsilon: plan for this standard error of a share of rows; for the answer to a named "
            'question with this forecast: "ols: income ~ age = 1.2".',
        ),
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Share --epsilon among so many releases of the same people, such as one a year: plan one of them.",
        ),
    ] = None,
    *,
    chosen: ChosenMethod,
    facts: PublicFacts,
    json_output: JsonOption = False,
) -> None:
    """Show what a fit would spend the budget on, and how accurate it would be. Reads no record."""
    method, target = chosen.method, facts.target
    spends = method not in registry.METHODS or registry.METHODS[method].private
    budgets = [epsilon, target_error, risk]
    if spends and budgets.count(None) != 2:
        got = "none" if budgets.count(None) == 3 else "several"
        raise ConfigError(
            f"Expected one of --epsilon, --target-error and --risk, got {got}. Give one, such as --epsilon 1."
        )
    if not spends and (target_error is not None or risk is not None):
        raise ConfigError(f"Expected no --target-error or --risk for the method {method}, which has no noise.")
    allowed = parse_risk(risk)
    synthesizer = chosen.at(1.0 if spends and epsilon is None else epsilon)
    known, n_public = facts.described(sfumato.OpenSchema.load(schema)), facts.n_public
    if target_error is not None:
        if known.open:
            raise ConfigError("Expected a schema that leaves nothing open with --target-error. Name an --epsilon.")
        if isinstance(n_public, sfumato.EstimateCount):
            raise ConfigError("Expected a declared number of rows with --target-error, got an estimated one.")
        wanted, question = parse_target_error(target_error)
        epsilon = synthesizer.epsilon_for(
            known, target_error=wanted, question=question, target=target, n_public=n_public
        )
        synthesizer = replace(synthesizer, epsilon=epsilon)
    synthesizer = facts.at_risk(synthesizer, allowed, known, n_public)
    synthesizer = _one_of(releases, synthesizer, epsilon, known, facts)
    plan = synthesizer.description(known, target=target, n_public=n_public)
    if json_output:
        print_json(plan.to_dict())
        return
    if releases is not None:
        say(
            f"{releases} releases of the same people cost epsilon = {epsilon:g} at delta = {plan.delta:g} together, if "
            f"each is fitted with --epsilon {plan.epsilon:g} --delta {plan.delta:g}. Keep one --ledger for all. Here "
            "is one:"
        )
    print_cost(plan)
    tell_duration(synthesizer, known, target, n_public)


def _one_of(
    releases: int | None, synthesizer: Synthesizer, epsilon: float | None, known: Schema, facts: PublicFacts
) -> Synthesizer:
    """Return the method of one of so many releases that share ε."""
    if releases is None:
        return synthesizer
    if epsilon is None:
        raise ConfigError("Expected --epsilon, which all releases share, with --releases, got none. Give it.")
    return synthesizer.for_releases(releases, known, target=facts.target, n_public=facts.n_public)


@dataclass(frozen=True, kw_only=True)
class FitRun:
    """How a fit runs, and what it keeps."""

    PANEL: ClassVar[str] = "How it runs, and its account"

    seed: SeedOption = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For long fits: a file from which the same command goes on after a stop."),
    ] = None
    ledger: LedgerOption = None
    prior: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A release of the same schema, as of last year: the model follows it where noise hides the records.",
        ),
    ] = None
    types: TypesOption = SampleTypes.kinds
    input_format: InputFormatOption = None
    overwrite: OverwriteOption = False
    accept_draft: AcceptDraftOption = False
    rows_are_records: RowsAreRecordsOption = False
    names_are_public: NamesArePublicOption = False
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="The number of processes that read the records, or the address of a cluster that does: "
            "dask://HOST:PORT, spark://HOST:PORT or sc://HOST:PORT. The release is the same.",
        ),
    ] = None
    json_output: JsonOption = False

    @property
    def cluster(self) -> str | None:
        """The address of the cluster that reads the records, if one does."""
        return self.workers if self.workers is not None and "://" in self.workers else None

    def options(self) -> dict[str, Any]:
        """Those that `fit` takes as they are."""
        taken = ("seed", "checkpoint", "ledger", "prior", "accept_draft", "rows_are_records")
        own = (
            None if self.workers is None or self.cluster else whole_number(self.workers, "--workers", choice.ADDRESSES)
        )
        return {name: getattr(self, name) for name in taken} | {
            "workers": own, "as_source": self.types is SampleTypes.as_source
        }  # fmt: skip


@grouped
def fit_command(
    data: TablesArgument,
    out: ReleaseOutOption,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="SCHEMA",
            help="The schema: a file that says what is public about the data. Without it, bounds and categories "
            "are estimated with part of the budget.",
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="COL=KIND,...", help="Without a schema: kinds of columns that are public, such as age=integer."
        ),
    ] = None,
    epsilon: EpsilonOption = None,
    risk: RiskOption = None,
    *,
    chosen: ChosenMethod,
    facts: PublicFacts,
    run: FitRun,
) -> None:
    """Fit a model to private data, and write it as a release that can be published."""
    allowed = parse_risk(risk, epsilon=epsilon)
    synthesizer = chosen.at(1.0 if allowed else epsilon)
    others = {
        "schema": schema,
        "settings": settings_file(chosen.set_),
        "checkpoint": run.checkpoint,
        "ledger": run.ledger,
        "prior": run.prior,
    }
    refuse_data(out, {"data": data}, **others)
    files.refuse_place(out, overwrite=run.overwrite)
    n_public, target = facts.n_public, facts.target
    if schema is not None and kinds is not None:
        raise ConfigError("Expected either --schema or --kinds, got both. Write `discover: true` into the schema.")
    options = run.options()
    known = None if schema is None else sfumato.OpenSchema.load(schema)
    if known is not None:
        sources.accepted(known, accept_draft=run.accept_draft)
    source = open_tables(data, run.input_format, known)
    if known is None and not source.names:
        raise ConfigError(f"Expected --schema for {source.label}, whose lines name no columns for all. Declare them.")
    if known is None:
        named = column_kinds(kinds)
        known = sfumato.OpenSchema.of(source, named, target=target, names_are_public=run.names_are_public)
        n_public = sfumato.EstimateCount() if n_public is None else n_public
    known = facts.described(known)
    synthesizer = facts.at_risk(synthesizer, allowed, known, n_public)
    _tell_columns_left_out(source, known)
    _tell_public_facts(source, known, n_public, aside=run.json_output)
    with choice.engine_at(run.cluster) as cluster, stages(synthesizer, known, target, n_public) as progress:
        release = synthesizer.fit(
            source, schema=known, target=target, n_public=n_public, progress=progress, engine=cluster, **options
        )  # fmt: skip
    save_release(
        release, out, overwrite=run.overwrite, ledger=run.ledger, checkpoint=run.checkpoint,
        resumable=synthesizer.resumable and not known.open,  # a checkpoint could have been named
    )  # fmt: skip
    if run.checkpoint is not None:
        journal.remove(run.checkpoint)
    tell_written(release, out, json_output=run.json_output)


def _tell_columns_left_out(source: Source, schema: Schema) -> None:
    """Name the schema's own columns only: another name may be a record's, where a header has a stray quote."""
    private.PrivateData(source, schema)
    left_out = [repr(name) for name in source.names if name in schema.columns and name not in schema.released]
    if others := len(source.undeclared(schema.columns)):
        left_out.append(f"{others} column{'s' if others > 1 else ''} that the schema does not name")
    if left_out:
        notes.print(f"[yellow]Note:[/] not released: {escape(', '.join(left_out))}.", soft_wrap=True)


def _tell_public_facts(source: Source, known: Schema, n_public: int | EstimateCount | None, *, aside: bool) -> None:
    """Say which facts are taken as public, and which the fit estimates."""
    if not known.open:
        return
    unknown = [name for name, kind in known.open.items() if kind == "unknown"]
    count = len(known.open)
    facts = ["the names of all columns"]
    if len(unknown) < count:
        facts.append(f"the kinds of {', '.join(repr(name) for name in known.open if name not in unknown)}")
    rows = isinstance(n_public, sfumato.EstimateCount)
    declared = n_public or known.rows
    facts += [] if rows or declared is None else [f"the number of rows, {declared}"]
    stated = [name for name in known.released if name not in known.open]
    facts += [f"bounds or labels of {', '.join(map(repr, stated))}, as declared"] if stated else []
    if known.unit is not None:
        facts.append(f"that {known.unit.column!r} is the unit, with {known.unit.max_rows} rows at most")
    say(f"Taken as public: {'; '.join(facts)}.", aside=aside)
    kinds = f"the kinds of {len(unknown)} columns, " if unknown else ""
    estimated = f"{'the number of rows, ' if rows else ''}{kinds}the bounds or categories of {count} columns"
    say(f"To be estimated with part of the budget: {estimated}.", aside=aside)


@dataclass(frozen=True, kw_only=True)
class UniqueSamples:
    """Samples without rows that occur once in them."""

    PANEL: ClassVar[str] = "Rows that occur once"

    unique_rows: Annotated[
        UniqueRowsChoice, typer.Option(help="drop: leave out rows that occur once. It adds nothing to the guarantee.")
    ] = UniqueRowsChoice.keep
    unique_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL",
            help="With --unique-rows: a column on which rows are compared. Default: all columns. May be repeated.",
        ),
    ] = None


@grouped
def sample_command(
    release: ReleaseArgument,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A .csv, .tsv, .parquet or .npz file, or - (standard output). Without a suffix: a folder, of images "
            "or of several tables.",
        ),
    ],
    n: NumberOption = None,
    seed: RowsSeedOption = None,
    given: Annotated[
        list[str] | None, typer.Option(metavar="COL=VALUE", help="A value that all rows shall have. May be repeated.")
    ] = None,
    class_count: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=N", help="The number of rows (or linked units) of a class, in place of -n. May be repeated."
        ),
    ] = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option("--spreadsheet-safe", help="In a .csv: put ' before text that a spreadsheet takes for a formula."),
    ] = False,
    format_: Annotated[
        SampleFormat | None,
        typer.Option(
            "--format",
            help="The format of standard output or of several tables: csv (default) or parquet; of the first also "
            "json, an object a line. For a folder: parquet, in place of PNG images.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="The number of processes that draw. The rows are the same.")
    ] = 1,
    *,
    unique: UniqueSamples,
    replicates: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="Draw M tables of -n rows each, which differ by noise and sampling. A first column `replicate` "
            "numbers them.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Draw synthetic rows from a release, any number, in constant memory."""
    if replicates is not None and (given or class_count or workers != 1):
        raise ConfigError("Expected no --given, --class-count or --workers beside --replicates, got one.")
    place: Any = {"release": release, "overwrite": overwrite, "spreadsheet": spreadsheet_safe}
    write, name = sample_writer(out, format_, **place)
    refused = {"given": given, "class_count": class_count, "replicates": replicates is not None}
    refused |= {"unique_on": unique.unique_on, "unique_rows": unique.unique_rows is UniqueRowsChoice.drop}
    if (combined := combined_at(release, **refused)) is not None:
        batches = combined.batches(n, seed=seed, workers=workers)
        with working("Sampling…"):
            write(batches, combined.parts[0].form.keys, combined.schema.csv_output)
        tell_sampled(name, release, report=False)
        return
    model = sfumato.load(release)
    options: Any = {"seed": seed, "given": given_values(given, model.schema), "class_counts": class_counts(class_count)}
    options |= {"workers": workers, "unique_rows": unique.unique_rows.value, "unique_columns": unique.unique_on or None}
    tables, csv = model.schema.database, model.schema.csv_output
    if tables is not None and replicates is None:
        with working("Sampling…"):
            tables_writer(out, format_, **place)(model.table_batches(n, **options), csv)
        tell_tables(out, tables.names, format_)
        tell_dropped(say, unique.unique_rows)
        return
    if replicates is not None:
        n = model.certificate.n_public if n is None else n
        samples = model.replicate_batches(replicates, n=n, seed=seed)
        write(_with_progress(samples, n * replicates, model), model.form.keys, csv)
        tell_sampled(name, release)
        return
    write(_with_progress(model.batches(n, **options), n, model), model.form.keys, csv)
    tell_sampled(name, release)
    tell_dropped(say if name else notes.print, unique.unique_rows)


def _with_progress(batches: Iterator[pa.Table], n: int | None, release: sfumato.Release) -> Iterator[pa.Table]:
    """Pass batches of samples on, showing how many rows are done: their number is the caller's."""
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("Sampling", total=n if n is not None else release.certificate.n_public)
        for batch in batches:
            yield batch
            progress.advance(task, batch.num_rows)


def certificate_command(
    release: ReleaseArgument,
    public_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The signer's Ed25519 public key: the signature is checked.")
    ] = None,
    signature: Annotated[Path | None, typer.Option(metavar="FILE", help="The signature; default: RELEASE.sig.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Show what a release cost, and check it, and its signature: epsilon is computed again from the listed events."""
    if signature is not None and public_key is None:
        raise ConfigError("Expected --public-key beside --signature, got none. Pass the signer's public key.")
    show_if_combined(combined_at(release, public_key=public_key), json_output=json_output)
    key = None if public_key is None else sfumato.verify_release(release, public_key, signature)
    model = sfumato.load(release)
    certificate = model.certificate
    if certificate.epsilon is not None:
        certificate.verify()
    if json_output:
        print_json({**certificate.to_dict(), **({} if key is None else {"signed_by": key})})
        return
    if key is not None:
        say(f"The signature holds: {release} is as it was signed with the key {key}.")
    say(f"Method: {words.whole(certificate.method)}.")
    if not certificate.private:
        say(f"NOT PRIVATE. {words.meaning(certificate)[0]}")
    print_cost(certificate)
    print_columns(model)
    if certificate.epsilon is not None:
        say(words.recomputed(certificate, certificate.recompute()))
    for line in [*words.checked(model.checked), *words.verdicts(certificate)]:
        say(line)
    say("It rests on these assumptions:")
    for assumption in certificate.assumptions:
        say(f"  - {words.whole(assumption)}")
    say(words.origins(certificate))
    if certificate.read_off:
        say(f"Some {words.NOT_COVERED}.")
