"""A release as a card: what it is, what it cost, its columns as small pictures, and what it can answer.

A function of the release: rows that it draws from a fixed seed, and intervals from its noisy measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

import pyarrow as pa

from sfumato.cards.html import Bar, Html, banner, bars, card, code, fold, grid, paragraph, piece, shown, table, whole
from sfumato.columns.facts import grouped
from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import Image
from sfumato.errors import EstimateError
from sfumato.evaluate.database_scores import read_tables
from sfumato.evaluate.fidelity import read_bins
from sfumato.inference.agreement import in_words
from sfumato.inference.item_measurements import MeasuredItems
from sfumato.inference.questions import Questions
from sfumato.privacy import words
from sfumato.privacy.certificate_cards import spending, standing
from sfumato.release.model import ReleaseValue
from sfumato.report.column_lines import column_lines, cures, worst
from sfumato.report.columns import ColumnFigure, Ends, column_figures, set_content
from sfumato.report.estimates import Ends as MeasuredEnds
from sfumato.report.linked import drawn_units
from sfumato.report.page import sheets
from sfumato.schema.set_columns import itemised, sets_alone

MOST_COLUMNS = 24
ROWS = 4_096
"""Rows that are drawn for the pictures; of linked rows, units."""

MOST_LINES = 200

_HEADER = ("column", "known", "kept", "lost")
_BEFORE = "Estimated: by the fit, with part of the budget. Declared: by the schema, before it."
_SEED = 0
_MOST_NAMES = 4


def release_card(release: ReleaseValue) -> str:
    """Return the card of a release.

    Example:
        >>> print(release_card(release)[:6])  # doctest: +SKIP
        <style
    """
    certificate, released = release.certificate, release.schema.released
    mixtures = release.is_data_set
    what = "a data set of mixtures" if mixtures else "synthetic rows of"
    columns = f"{len(released)} column{'s' if len(released) > 1 else ''}"
    return card(
        f"Release: {what} {columns}, method {shown(certificate.method)}",
        standing(certificate),
        *([paragraph(words.meaning(certificate)[len(words.not_covered(certificate))])] if certificate.private else []),
        *map(paragraph, words.risks(certificate)),
        *([banner(wrong, alarm=True)] if (wrong := in_words(release)) else []),
        *([] if mixtures else _pictures(release)),
        *_columns(release),
        *_answers(release),
        fold("What was spent on what", *spending(certificate)),
        _next(release, mixtures=mixtures),
    )


def _columns(release: ReleaseValue) -> list[Html]:
    """Return the columns with what is kept of each, those that lost something at the top."""
    lines = column_lines(release)
    lost = worst(lines)
    rows = [(line.name, line.known, line.kept, line.loss) for line in lines[:MOST_LINES]]
    more = f" The first {MOST_LINES} of {len(lines)}." if len(lines) > MOST_LINES else ""
    details = fold(
        "What was known of each column, and is kept", table(_HEADER, rows), paragraph(_BEFORE, more, quiet=True)
    )
    losses = "; ".join(f"{shown(line.name, 40)}: {line.loss}" for line in lost[:_MOST_NAMES])
    rest = f"; and {len(lost) - _MOST_NAMES} more columns" if len(lost) > _MOST_NAMES else ""
    advice = (f"Declare this to keep {', '.join(names[:_MOST_NAMES])}: {c}." for c, names in cures(lost).items())
    alarm = [banner(f"Lost: {losses}{rest}. {' '.join(advice)}", alarm=True)] if lost else []
    return [*alarm, details]


def _next(release: ReleaseValue, *, mixtures: bool) -> Html:
    n = "" if mixtures else "1_000"
    return paragraph(
        "Next: ", code(f"release.sample({n})"), ", ", code('release.save("people.sfm")'), ", ",
        code("release.certificate"),
        *(() if release.schema.linked else (", ", code('release.report("page.html")'), " for all columns and pairs")),
        ". Free, as often as you like.", quiet=True,
    )  # fmt: skip


def _pictures(release: ReleaseValue) -> list[Html]:
    """Return the columns as small multiples, or sheets of pictures."""
    if release.schema.of_kind(Image):
        return _sheets(release)
    n = min(ROWS, release.certificate.n_public)
    if release.schema.tree is not None:
        cards: list[Html] = []
        for name, part in read_tables(drawn_units(release, n, _SEED), release.schema).items():
            figures = column_figures(read_bins(part.cells, part.schema), None, part.schema)[:MOST_COLUMNS]
            cards += [paragraph("Table ", code(shown(name)), ":"), *_multiples(figures, part.known.n_rows, 0)]
        return cards
    table = pa.concat_tables(release.batches(n, seed=_SEED))
    if sets_alone(release.schema):
        return _multiples(set_content(table, None, schema=release.schema, seed=_SEED)["columns"], n, 0)
    columns = {name: release.schema.columns[name] for name in release.schema.released[:MOST_COLUMNS]}
    # rules, weights and units do not matter to bars
    schema = replace(
        release.schema,
        columns=columns,
        unit=None,
        weight=None,
        rules=(),
        accept=(),
        questions=(),
        sources={},
        table_source={},
    )
    rows = read_bins(table.select(list(columns)), schema)
    figures = column_figures(rows, None, schema, _ends(release))[:MOST_COLUMNS]  # of sets each item is one
    return _multiples(figures, table.num_rows, len(itemised(release.schema)) - len(figures))


def _ends(release: ReleaseValue) -> Ends | None:
    try:
        return MeasuredEnds(Questions(release))
    except EstimateError:
        return None


def _multiples(figures: Sequence[ColumnFigure], n: int, more: int) -> list[Html]:
    measured = any(bin_.high is not None for figure in figures for bin_ in figure.bins)
    lines = " Lines: where the records' own share is, in 95 of 100 releases." if measured else ""
    rest = f" And {more} more columns." if more else ""
    return [
        paragraph(f"Bars: shares of {grouped(n)} synthetic records, drawn for this card.{lines}{rest}", quiet=True),
        grid(map(_multiple, figures)),
    ]


def _multiple(figure: ColumnFigure) -> Html:
    shares = [Bar(b.synthetic, b.low, b.high) for b in figure.bins]
    largest = max(figure.bins, key=lambda b: b.synthetic, default=None)
    mode = "" if largest is None else f", most often {shown(largest.label, 40)}, {largest.synthetic:.0%}"
    picture = bars(shares, f"{shown(figure.name)}, {figure.kind}{mode}")
    ends = [shown(b.label, 18) for b in (figure.bins[0], figure.bins[-1])] if figure.bins else ["", ""]
    return Html('<p><b>{}</b> {}</p>{}<p class="sfumato-ends"><span>{}</span><span>{}</span></p>').format(
        whole(shown(figure.name, 40)), figure.kind, picture, *map(piece, ends)
    )


def _sheets(release: ReleaseValue) -> list[Html]:
    if find_spec("PIL") is None:
        return [paragraph("To see pictures here, install sfumato[images].", quiet=True)]
    form = '<li><img src="{}" width="{}" height="{}" alt="{}" style="max-width:100%;image-rendering:pixelated"></li>'
    items = [Html(form).format(s.uri, s.width, s.height, piece(s.shows)) for s in sheets(release, seed=_SEED)]
    return [Html('<ul class="sfumato-grid">{}</ul>').format(Html("").join(items))] if items else []


def _answers(release: ReleaseValue) -> list[Html]:
    """Return the questions that it answers, with its own columns as examples; and those that it does not."""
    try:
        return _answers_of_sets(release) if sets_alone(release.schema) else _answers_of_rows(release)
    except EstimateError as error:
        return [paragraph("Estimates with intervals: none. ", str(error), quiet=True)]


def _answers_of_rows(release: ReleaseValue) -> list[Html]:
    questions = Questions(release)
    kinds = {name: kind for name, kind in itemised(release.schema).items() if isinstance(kind, TabularKind)}
    free = [name for name in kinds if name not in questions.following]
    numbers, labels = ([n for n in free if kinds[n].is_numeric is numeric] for numeric in (True, False))
    calls = [f"release.mean({numbers[0]!r})"] if numbers else []
    calls += [f"release.crosstab({labels[0]!r}, {labels[1]!r})"] if len(labels) > 1 else []
    calls += [f"release.correlation({numbers[0]!r}, {numbers[1]!r})"] if len(numbers) > 1 else []
    topics = [
        *([f"mean, quantiles and variance of {_named(numbers)}"] if numbers else []),
        *([f"shares of {_named(labels)}"] if labels else []),
        *(["any two columns together: cross-tables, correlations, regressions"] if len(free) > 1 else []),
    ]
    never = "single records, extremes, three columns together, but two numbers and a target of few labels."
    return _questions("; ".join(topics), calls, never)


def _answers_of_sets(release: ReleaseValue) -> list[Html]:
    measured = MeasuredItems(release)
    name, pairs = measured.column.name, measured.pairs is not None
    answers = "shares of the sets that hold an item" + (", or two frequent ones" if pairs else "") + "; their mean size"
    never = f"single sets, {'three' if pairs else 'two'} items together."
    return _questions(answers, [f"release.set_size({name!r})"], never)


def _questions(topics: str, calls: Sequence[str], never: str) -> list[Html]:
    examples = Html(", ").join(code(shown(text, 120)) for text in (*calls, "release.answers()"))
    return [
        paragraph("It answers, with intervals: ", topics, ". For example ", examples, "."),
        paragraph("It does not answer: ", never, quiet=True),
    ]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(shown(name, 40) for name in names[:_MOST_NAMES]) + more
