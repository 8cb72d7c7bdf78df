"""Commands about how good and how private a release is: report; evaluate table, finding, method."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

import sfumato
from sfumato._lazy import later
from sfumato.cli.data_commands import JsonOption, OverwriteOption
from sfumato.cli.ending import last_output
from sfumato.cli.inputs import STANDARD_INPUT, DataArgument, InputFormatOption, open_data, open_tables, refuse_data
from sfumato.cli.option_groups import ChosenMethod, grouped
from sfumato.cli.options import (
    DeltaOption,
    EpsilonOption,
    LedgerOption,
    ReleaseArgument,
    RowsAreRecordsOption,
    RowsOption,
    SchemaOption,
    SeedOption,
    TargetOption,
    command_group,
)
from sfumato.cli.output import notes, number, print_database_scores, print_json, print_scores, print_table, say
from sfumato.cli.progress import working
from sfumato.errors import ConfigError, PrivacyError, require_integer
from sfumato.extras import require_extra
from sfumato.io.atomic import refuse_existing

if TYPE_CHECKING:
    from sfumato.columns import kinds
    from sfumato.desk import drafting
    from sfumato.evaluate import coded_tables, database_scores
    from sfumato.evaluate import parity as parities
    from sfumato.inference import agreement
    from sfumato.io.chunks import Source
    from sfumato.release import files
    from sfumato.schema import set_columns, sources
else:
    coded_tables = later("sfumato.evaluate.coded_tables")
    database_scores, parities = later("sfumato.evaluate.database_scores"), later("sfumato.evaluate.parity")
    agreement, kinds = later("sfumato.inference.agreement"), later("sfumato.columns.kinds")
    drafting, files = later("sfumato.desk.drafting"), later("sfumato.release.files")
    set_columns, sources = later("sfumato.schema.set_columns"), later("sfumato.schema.sources")


class VerifiedFamily(StrEnum):
    """Regressions whose findings can be verified."""

    ols = "ols"
    logit = "logit"
    poisson = "poisson"


evaluate_app = command_group()

_TRAIN_ROWS = 10_000  # TRAIN_ROWS of sfumato.evaluate.utility, which is not imported for a --help
TestOption = Annotated[
    str | None,
    typer.Option(metavar="REAL_TEST", help="Real rows that were held out before the fit, to score classifiers on."),
]
TrainRowsOption = Annotated[
    int, typer.Option(metavar="N", help="The most rows that classifiers learn from, drawn at random; 0: all.")
]


def _most(train_rows: int) -> int | None:
    require_integer(at_least=0, train_rows=train_rows)
    return train_rows or None


@evaluate_app.command("table")
def table_command(
    real: Annotated[
        str,
        typer.Argument(
            metavar="REAL",
            help="The real rows that the release was fitted to; of several tables, a folder or a database.",
        ),
    ],
    synthetic: Annotated[
        str, typer.Argument(metavar="SYNTHETIC", help="Synthetic rows, or a release to draw as many rows from.")
    ],
    test: TestOption = None,
    target: Annotated[str | None, typer.Option(metavar="COL", help="The column that classifiers predict.")] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="SCHEMA", help="The schema, for bounds and categories. Default: the release's, or read off REAL."
        ),
    ] = None,
    train_rows: TrainRowsOption = _TRAIN_ROWS,
    runs: Annotated[
        int, typer.Option(metavar="N", help="Score N times with other seeds, and give means with intervals.")
    ] = 1,
    inference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FORMULA",
            help="Also compare the coefficients of a regression such as 'y ~ x' with those on REAL. May be repeated.",
        ),
    ] = None,
    input_format: InputFormatOption = None,
    json_output: JsonOption = False,
) -> None:
    """Score synthetic rows against real ones. Reads real records: the scores are NOT private."""
    require_extra("evaluate", "score synthetic rows")
    if inference:
        require_extra("regression", "read formulas")
    require_integer(at_least=1, runs=runs)
    most = _most(train_rows)
    release = _release_of_rows(Path(synthetic))
    known = _known(schema, release)
    texts = {"REAL": real, "SYNTHETIC": None if release else synthetic, "REAL_TEST": test}
    records = _open_tables(input_format, known, **texts)
    if known is not None and known.tree is not None and (runs > 1 or inference):
        raise ConfigError("Expected no --runs and no --inference for the tables of a database. Leave the option out.")
    opened = () if known is None else tuple(known.open)
    known = _read_off(records["REAL"], records["SYNTHETIC"], target) if known is None else _close_schema(known, records)
    n_rows = None if release is None else _count_rows(records["REAL"], known)

    def score(seed: int) -> dict[str, Any]:
        rows = records["SYNTHETIC"] if release is None else release.sample(n_rows, seed=seed)
        test_rows = records.get("REAL_TEST")
        return sfumato.evaluate.evaluate(
            records["REAL"], rows, schema=known, test=test_rows, target=target, train_rows=most, seed=seed
        )

    compared = [_parity(text, records["REAL"], release or records["SYNTHETIC"], known) for text in inference or ()]
    scores = score(0) if runs == 1 else sfumato.evaluate.over_runs(score, runs=runs)
    if compared:
        scores = {**scores, "inference": compared}
    if _told(scores, release, json_output=json_output):
        return
    if known.tree is not None:
        print_database_scores(scores)
        return
    if target is not None and test is None:
        say("No --test: the classifiers are scored on REAL itself, which flatters those trained on it.")
    estimated = [name for name, source in known.sources.items() if source == sources.DISCOVERED]
    print_scores(scores, read_off=opened, estimated=estimated)
    for comparison in compared:
        _print_parity(comparison)


def _told(answers: dict[str, Any], release: sfumato.Release | None, *, json_output: bool) -> bool:
    """Print answers and what the release says of its samples, as JSON; or, False, the latter alone, for a text."""
    if json_output:
        print_json(answers if release is None else {**answers, "disagreements": agreement.listed(release)})
    elif release is not None and (differs := agreement.in_words(release)):
        say(differs)
    return json_output


def _known(path: Path | None, release: sfumato.Release | None) -> sfumato.Schema | None:
    """Return the schema that is named, or the release's, which has the estimated facts of open columns."""
    named = None if path is None else sfumato.OpenSchema.load(path)
    if release is None or (named is not None and not named.open):
        return named
    return release.schema


def _close_schema(known: sfumato.Schema, records: Mapping[str, Source]) -> sfumato.Schema:
    """Complete a schema with open columns by the real rows: scores are not private anyway."""
    if known.open:
        say("The schema leaves columns open, which a fit estimates: for these scores they are read off REAL.")
    return coded_tables.closed_schema(known, records["REAL"], records.get("SYNTHETIC"))


def _parity(formula: str, real: Source, synthetic: sfumato.Release | Source, schema: sfumato.Schema) -> dict[str, Any]:
    rows = synthetic if isinstance(synthetic, sfumato.Release) else coded_tables.read_codes(synthetic, schema)
    return parities.parity(formula, coded_tables.read_codes(real, schema), rows, schema)


def _print_parity(comparison: dict[str, Any]) -> None:
    header = ["term", "real", "±", f"of the {comparison['from']}", "±", "difference ÷ ±", "sign", "significance"]
    rows = [
        [
            term["term"],
            *(number(term[key]) for key in ("real", "real_error", "synthetic", "synthetic_error", "difference")),
            "same" if term["same_sign"] else "other",
            "same" if term["same_significance"] else "other",
        ]
        for term in comparison["terms"]
    ]
    print_table(f"{comparison['formula']}: {comparison['kind']}. NOT private", header, rows, whole=True)


def _open_tables(input_format: str | None, known: sfumato.Schema | None, **texts: str | None) -> dict[str, Source]:
    """Open the tables that the command line names, standard input once at most."""
    named = {name: text for name, text in texts.items() if text is not None}
    piped = [name for name, text in named.items() if text == STANDARD_INPUT]
    if len(piped) > 1:
        raise ConfigError(f"Expected - for one of {' and '.join(piped)}, got it for several.")
    if input_format is not None and not piped:
        raise ConfigError("Expected --input-format beside - alone: of a file, its suffix says the format.")
    if known is not None and known.database is not None:
        return {name: open_tables([text], input_format, known) for name, text in named.items()}
    return {name: open_data(text, input_format if name in piped else None, known) for name, text in named.items()}


def _release_of_rows(path: Path) -> sfumato.Release | None:
    """Return the release at a path; None where none is there."""
    if path.suffix != files.ARCHIVE_SUFFIX and not (path / files.MANIFEST).is_file():
        return None
    release = sfumato.load(path)
    sets = set_columns.sets_alone(release.schema)
    if sets or release.is_data_set:
        raise ConfigError(
            f"Expected SYNTHETIC to be a release of rows or images, got one of {'sets' if sets else 'mixtures'}. "
            f"Compare it by `sfumato report {path} --real REAL --out PAGE`."
        )
    return release


def _count_rows(source: Source, schema: sfumato.Schema) -> int:
    """Rows, or units of linked ones; exact, as the scores are: they are not private."""
    if schema.linked:
        return database_scores.count_units(source, schema)
    source = source.under(schema.columns)
    return sum(chunk.n_rows for chunk in source.chunks(source.names[:1]))


def _read_off(source: Source, synthetic: Source, target: str | None) -> sfumato.Schema:
    """Draft a schema of the columns that both tables have from the real rows: scores are not private anyway."""
    names = synthetic.measured().names
    drafted = drafting.draft_schema(source, exact=True, names_are_public=True).schema
    columns = {name: kind for name, kind in drafted.columns.items() if name in names}
    if target is not None and target not in columns:
        raise ConfigError(f"Expected --target to be a column of both tables, got {target!r}.")
    if target is not None and target not in drafted.of_kind(kinds.LevelKind):
        raise ConfigError(
            f"Expected --target to be a column of categories, got {target!r}, which looks like numbers or dates. If it "
            "is one, say so in a schema and pass --schema."
        )
    if not columns:
        raise ConfigError("Expected two tables that have a column in common, got none. Has each a header line?")
    return sfumato.Schema(columns=columns)


def report_command(
    release: ReleaseArgument,
    out: Annotated[Path, typer.Option(metavar="PAGE", help="The page to write, .html.")],
    real: Annotated[
        str | None,
        typer.Option(
            metavar="REAL",
            help="The real rows, to compare with; of two tables, a folder or a database. The page is then NOT private.",
        ),
    ] = None,
    test: TestOption = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The column that classifiers predict. Default: the release's target."),
    ] = None,
    train_rows: TrainRowsOption = _TRAIN_ROWS,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of samples and classifiers.")] = 0,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The signer's public key: the signature is checked and shown on the page."),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Write a page about a release. With --real it compares with real records and is NOT private."""
    for option, value in (("--test", test), ("--target", target)):
        if value is not None and real is None:
            raise ConfigError(f"Expected --real beside {option}, got none. Pass the real rows that were released.")
    if out.suffix.lower() not in {".html", ".htm"}:
        raise ConfigError(f"Expected --out to name a page that ends in .html, got {str(out)!r}.")
    refuse_data(out, {"real": real, "test": test}, release=release, public_key=public_key)
    refuse_existing(out, overwrite=overwrite)
    most = _most(train_rows)
    known = None if real is None else sfumato.load(release).schema
    records = _open_tables(None, known, REAL=real, REAL_TEST=test)
    with last_output(out), working("Making the page…"):
        sfumato.report.write_report(
            release, out, real=records.get("REAL"), test=records.get("REAL_TEST"), target=target, train_rows=most,
            seed=seed, overwrite=overwrite, public_key=public_key,
        )  # fmt: skip
    if real is None:
        say(f"Wrote {out}, from the release alone: it tells nothing that the release does not tell.")
    else:
        say(f"Wrote {out}, from real records: it is NOT private. Do not publish it.")


@evaluate_app.command("finding")
def finding_command(
    data: DataArgument,
    release: ReleaseArgument,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="A regression that the release answers.")],
    term: Annotated[str, typer.Argument(metavar="TERM", help="The coefficient, as the release names it.")],
    epsilon: Annotated[
        float, typer.Option(metavar="E", help="The privacy budget of this answer, beside the release's.")
    ],
    *,
    family: Annotated[VerifiedFamily, typer.Option(help="The kind of regression.")] = VerifiedFamily.ols,
    delta: DeltaOption = None,
    ledger: LedgerOption = None,
    input_format: InputFormatOption = None,
    seed: SeedOption = None,
    rows_are_records: RowsAreRecordsOption = False,
    json_output: JsonOption = False,
) -> None:
    """Ask the records, with noise and for a charge, whether they show a finding of a release."""
    known = sfumato.load(release)
    source = open_data(data, input_format, known.schema)
    answer = sfumato.verify_finding(
        known, source, formula, term, epsilon=epsilon, family=family.value, delta=delta, ledger=ledger, seed=seed,
        rows_are_records=rows_are_records,
    )  # fmt: skip
    if not _told(answer.to_dict(), known, json_output=json_output):
        say(answer.summary())


@evaluate_app.command("method")
@grouped
def method_command(
    schema: SchemaOption,
    epsilon: EpsilonOption = None,
    *,
    chosen: ChosenMethod,
    rows: RowsOption = None,
    target: TargetOption = None,
    fits: Annotated[
        int, typer.Option(metavar="N", help="The number of fits on made-up records. More give sharper bounds.")
    ] = 1_000,
    confidence: Annotated[float, typer.Option(metavar="P", help="The confidence of the lower bounds.")] = 0.999,
    json_output: JsonOption = False,
) -> None:
    """Attack a release method, and bound its epsilon from below. Reads no record."""
    synthesizer = chosen.at(epsilon)
    known = sfumato.Schema.load(schema)
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("Shadow fits", total=fits)
        outcome = sfumato.audit.audit(
            synthesizer, known, target=target, n_public=rows, fits=fits, confidence=confidence,
            progress=lambda done: progress.update(task, completed=done),
        )  # fmt: skip
    if json_output:
        print_json(outcome)
    else:
        title = f"epsilon at delta = {outcome['delta']:.3g}; lower bounds at confidence {confidence:g}, {fits} fits"
        lines = [
            ("certified, at most", number(outcome["epsilon_certified"])),
            ("found by attack, at least", number(outcome["epsilon_lower"])),
            ("the same, by the trade-off of its events", number(outcome["epsilon_lower_gaussian"])),
        ]
        print_table(title, ["", "epsilon"], lines)
        if outcome["holds"]:
            say("No attack broke the certificate. That refutes nothing, and proves nothing: the proofs do.")
    if not outcome["holds"]:
        raise PrivacyError(
            "The attack got more out of the method than its certificate allows. Do not use it; report it."
        )
