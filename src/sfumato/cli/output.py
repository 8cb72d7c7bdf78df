"""How results are printed: results to standard output, everything else to standard error.

All text leaves through here, and most of it is somebody's: names of columns, of files, what a release says. What a
terminal would take for a command, or for a change of direction, is shown as an escape, whoever wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sfumato._lazy import later
from sfumato.cards.html import harmless

if TYPE_CHECKING:
    from sfumato.privacy import words
    from sfumato.privacy.certificate import Description
    from sfumato.release_front import Release
    from sfumato.report import column_lines
else:
    words, column_lines = later("sfumato.privacy.words"), later("sfumato.report.column_lines")

# of a file that holds samples in the form in which the records came
_SUFFIXES = {"csv": "csv", "npz": "npz", "folder": "npz", "fimi": "dat"}


class _Literal(Console):
    """A console of which no text can steer the terminal: it has the colours that this program chose."""

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - those of rich
        return super().render_str(visible(text), **options)


results = _Literal(highlight=False, emoji=False)
notes = _Literal(stderr=True, highlight=False, emoji=False)


def visible(text: str) -> str:
    """Return text with what is no character to see as escapes, but for line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or harmless(c) else ascii(c)[1:-1] for c in text)


def print_json(value: object) -> None:
    """Print a value as JSON to standard output; what is no character to see is escaped, which any reader takes back."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    if not text.isprintable():
        text = "".join(c if c == "\n" or harmless(c) else json.dumps(c)[1:-1] for c in text)
    print(text)  # noqa: T201


def print_table(title: str, header: Iterable[str], rows: Iterable[Iterable[object]], *, whole: bool = False) -> None:
    """Print a table to standard output; with `whole`, names in its first column are not broken into lines."""
    table = Table(title=escape(title), title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, overflow="fold", no_wrap=whole and place == 0)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    results.print(table)


def say(text: str = "", *, aside: bool = False) -> None:
    """Print a paragraph to standard output, or aside, to standard error; `text` is literal."""
    (notes if aside else results).print(escape(text), soft_wrap=True)


def number(value: float | None, digits: int = 4) -> str:
    """Return a figure for a table."""
    return "–" if value is None else f"{value:.{digits}g}"


def tell_written(release: Release, out: Path, *, json_output: bool) -> None:
    """Say what a release cost, where it is and what comes next; and, of one that is not private, that it is not."""
    if json_output:
        print_json({"written": str(out), **release.certificate.to_dict()})
        return
    print_cost(release.certificate)
    for line in words.chosen(release.certificate):
        say(line)
    if not release.certificate.private:
        say(f"This release is NOT private. {words.meaning(release.certificate)[0]}")
    print_columns(release)
    number_of_rows = "" if release.is_data_set else " -n 1000"
    suffix = "" if release.schema.database else f".{_SUFFIXES.get(release.form.container, 'parquet')}"
    say(f"Wrote {out}. Next: sfumato sample {out}{number_of_rows} --out synthetic{suffix}")
    if release.certificate.read_off:
        say(f"Some {words.NOT_COVERED}.")


_MOST_COLUMNS = 60


def print_columns(release: Release) -> None:
    """Print a line per column: what was known or estimated, what is kept, what is lost and what would keep it."""
    lines = column_lines.column_lines(release)
    shown, more = lines, len(lines) - _MOST_COLUMNS
    if more > 0:
        shown = [*column_lines.worst(lines), *(line for line in lines if not line.lost)][:_MOST_COLUMNS]
    rows = [(line.name, line.known, line.kept, line.loss) for line in shown]
    print_table("Columns", ["column", "known", "kept", "lost"], rows)
    if more > 0:
        say(f"... and {more} more columns, of which no more is lost.")
    for cure, names in column_lines.cures(lines).items():
        say(f"Declare this to keep {', '.join(map(repr, names))}: {cure}.")


def print_cost(description: Description) -> None:
    """Print what a plan or a release costs: the guarantee, then the stages."""
    say(words.guarantee(description))
    if description.preset is not None:
        say(f"Preset {words.whole(description.preset)}")
    if description.epsilon is None:
        return
    for line in words.risks(description):
        say(line)
    say(words.entering(description))
    header = ["stage", "event", "noise multiplier", "share", "epsilon alone"]
    lines = (
        (s.name, s.brief, s.noise_multiplier, f"{s.share:.0%}", s.epsilon_alone) for s in words.stages(description)
    )
    print_table("What is spent on what", header, lines)
    repeated = words.repetitions(description)
    for line in [*([] if repeated is None else [repeated]), *words.forecasts(description)]:
        say(line)


_SCORES = (("auroc", "AUROC"), ("auprc", "AUPRC"), ("accuracy", "accuracy"))
_DISTANCES = (
    ("tvd_1way", "total variation, 1 column, mean", "0"),
    ("tvd_2way", "total variation, 2 columns, mean", "0"),
    ("tvd_3way", "total variation, 3 columns, mean", "0"),
    ("k_marginal", "NIST k-marginal score, k = 2", "1000"),
    ("classes", "total variation of the classes", "0"),
    ("mean_image", "difference of the mean images", "0"),
)


def print_scores(scores: Mapping[str, Any], *, read_off: Collection[str] = (), estimated: Collection[str] = ()) -> None:
    """Print the scores of `evaluate`, of one run or of several, beside those of the real data.

    Args:
        scores: as `evaluate` returns them.
        read_off: columns that no schema declares: their facts are those of the real rows.
        estimated: columns of which a fit estimated bounds or labels.
    """
    rows: list[list[str]] = []
    utility, fidelity, near = scores.get("utility"), scores["fidelity"], scores.get("neighbours")
    if utility is not None:
        rows += _utility_rows(utility)
    rows += [[label, _score(fidelity[key]), best] for key, label, best in _DISTANCES if key in fidelity]
    for key, label in (("pearson", "correlation"), ("cramers_v", "Cramér's V")):
        differences = fidelity.get("correlations", {}).get(key)
        if differences is not None:
            rows.append([f"difference of {label}, mean", _score(differences["mean"]), "0"])
    rules = fidelity.get("rules")
    if rules is not None:
        rows.append(["rows that break a rule", *(_score(rules["broken"][name]) for name in ("synthetic", "real"))])
    if "linked" in scores:
        rows += _linked_rows(scores["linked"])
    likely = fidelity.get("log_likelihood")
    if likely is not None and likely["synthetic"] is not None:
        rows.append(["log-likelihood of real rows' numbers", _score(likely["synthetic"]), _score(likely["real"])])
    if near is not None and near["coverage"] is not None:
        rows.append(["coverage of real rows *", _score(near["coverage"]), "1"])
        distances = near["median_distance"], near["real_median_distance"]
        rows.append(["median distance to a real row *", *map(_score, distances)])
    print_table("Scores (made from real records: NOT private)", ["", "synthetic", "real"], rows)
    _print_outside(scores.get("outside", {}), read_off, estimated)
    _print_not_compared(scores.get("not_compared", {}))
    if near is not None and near["coverage"] is not None:
        say(f"* {near['caveat']}")
    _print_sample((utility or {}).get("sample"))
    if "runs" in scores:
        say(f"{scores['runs']} runs; in brackets the {scores['confidence']:.0%} interval of the mean over seeds. It")
        say("says nothing of the noise of the release, of which there is one.")


def print_database_scores(scores: Mapping[str, Any]) -> None:
    """Print the scores of a database as `evaluate` returns them, table by table."""
    for name, figures in scores["tables"].items():
        title = f"{name}: scores, of the rows above as units (made from real records: NOT private)"
        print_table(title, ["", "synthetic", "real"], _linked_rows(figures))
    title = "Between tables: how far two-way tables by person are off (made from real records: NOT private)"
    lines = [[pair, *(_score(own[label]) for label in BETWEEN)] for pair, own in scores["between"].items()]
    print_table(title, ["", *BETWEEN.values()], lines)
    say("`dealt` are the samples with rows given to other persons. Samples that are no nearer keep nothing between the")
    say("two tables: more persons, a larger epsilon, or a question named before the fit would.")


def _linked_rows(scores: Mapping[str, Any]) -> list[list[str]]:
    """Return lines on how rows of one unit depend on each other."""

    def line(text: str, pair: Mapping[str, float] | None) -> list[list[str]]:
        return [] if pair is None else [[text, *(_score(pair[name]) for name in ("synthetic", "real"))]]

    rows = line("rows a unit, mean", scores["rows_a_unit"])
    rows.append(["rows a unit, total variation", _score(scores["rows_a_unit"]["tvd"]), "0"])
    rows += [
        [f"units with their first row, {k} columns, mean", _score(scores["first_rows"][key]), "0"]
        for k, key in ((1, "tvd_1way"), (2, "tvd_2way"))
        if key in scores["first_rows"]
    ]
    rows += line("distance from the row before, mean", scores["gap"])
    for name, figures in scores["numbers"].items():
        rows += line(f"{name}: correlation with the row before", figures["before"])
        rows += line(f"{name}: part of the variance between units", figures["between"])
    rows += [[f"{name}: row before and row, total variation", _score(v), "0"] for name, v in scores["labels"].items()]
    return rows + line("units whose constants vary", scores["constants_vary"])


_MOST_OUTSIDE = 20
BETWEEN = {"synthetic": "synthetic", "dealt": "dealt", "tenth": "a tenth of the real persons"}


_COUNT_AS = (
    "Numbers beyond the bounds count as the bounds; unknown labels and unexpectedly missing cells as a value of their "
    "own in total variation, elsewhere as what a fit makes of them."
)
_DECLARED = f"Shares of cells. Do the files and the schema belong together? {_COUNT_AS}"
_ESTIMATED = (
    "Shares of cells. The fit estimated bounds and labels of these columns: declare them to keep such cells. "
    f"{_COUNT_AS}"
)
_READ_OFF = (
    "Shares of cells. The schema leaves these columns to the fit, so they were compared by the real rows' own labels "
    "and bounds: what the fit made of rare labels, such as 'other', and numbers beyond the real ones stand here."
)


def _print_outside(
    outside: Mapping[str, Mapping[str, float]], read_off: Collection[str], estimated: Collection[str]
) -> None:
    """Say which columns have cells that the schema has no place for: like the scores, it is NOT private."""
    names = sorted(
        {name for shares in outside.values() for name in shares},
        key=lambda name: (-max(shares.get(name, 0.0) for shares in outside.values()), name),
    )
    declared = [name for name in names if name not in {*read_off, *estimated}]
    parts = (
        ("Not in the schema", declared, _DECLARED),
        ("Beyond what the fit estimated", [name for name in names if name in estimated], _ESTIMATED),
        ("Not among the real values", [name for name in names if name in read_off], _READ_OFF),
    )
    for title, some, explanation in parts:
        if some:
            shown = some[:_MOST_OUTSIDE]
            rows = [[name, *(f"{shares.get(name, 0.0):.2%}" for shares in outside.values())] for name in shown]
            print_table(title, ["column", *outside], rows)
            if len(some) > _MOST_OUTSIDE:
                say(f"... and of {len(some) - _MOST_OUTSIDE} more columns.")
            say(explanation)


def _print_not_compared(columns: Mapping[str, list[str]]) -> None:
    """Say which columns no score has read."""
    for name, side in (("real", "REAL"), ("synthetic", "SYNTHETIC")):
        if some := columns.get(name):
            more = f" and {len(some) - _MOST_OUTSIDE} more" if len(some) > _MOST_OUTSIDE else ""
            say(
                f"Not compared: {', '.join(map(repr, some[:_MOST_OUTSIDE]))}{more} of {side}. The other table or the "
                "schema does not have them."
            )


def _utility_rows(utility: Mapping[str, Any]) -> list[list[str]]:
    real = utility["real"]
    if "per_classifier" not in utility:
        what = utility.get("missing", "network taught by the images")
        return [[f"accuracy: {what}", _score(utility["accuracy"]), _score(real["accuracy"])]]
    rows = [[f"{label}, mean of the classifiers", _score(utility[key]), _score(real[key])] for key, label in _SCORES]
    for name, figures in utility["per_classifier"].items():
        other = real["per_classifier"][name]
        pairs = (f"{_score(side['auroc'])} / {_score(side['auprc'])}" for side in (figures, other))
        rows.append([f"  {name}: AUROC / AUPRC", *pairs])
    clusters = utility["clustering"]
    rows.append(["clustering accuracy of k-means", _score(clusters["synthetic"]), _score(clusters["real"])])
    return rows


def _print_sample(sample: Mapping[str, Any] | None) -> None:
    """Say how many rows classifiers learned from, and what that changes; of several runs, the mean over them."""
    if not sample:
        return
    of = " and ".join(f"{n} {name}" for name, n in sample["of"].items())
    say(f"Classifiers learned from {sample['rows']} of {of} rows, drawn at random (all: --train-rows 0). With")
    say("a quarter of these rows scores change as follows, and about as much they are off for the sample's sake:")
    for name, error in sample["error"].items():
        means = {key: value["mean"] if isinstance(value, Mapping) else value for key, value in error.items()}
        say(f"  {name}: {', '.join(f'{label} {number(means[key])}' for key, label in _SCORES)}")


def _score(value: Any) -> str:  # noqa: ANN401 - a figure, or what `over_runs` makes of it
    if isinstance(value, Mapping):
        return f"{number(value['mean'])} [{number(value['low'])}, {number(value['high'])}]"
    return number(value)
