"""Columns that name people, or may: by their names, by how their cells look, and by what is the same in all their rows.

    patient_id, Kundennr, e-mail, first name           the name says so
    S001, 01-701-1023, anna@example.org, 9f86d081…     opaque: codes of one form, of which each has several rows
    4711 in 20 rows, all of one sex and birth date     a person's sex is that of all of their rows

For the data holder's own screen: nothing of it goes into a release. A draft leaves such columns out, and asks.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.cells import joined, plain
from sfumato.columns.roles import PEOPLE, names_people, numbers_people, role_of, words_of
from sfumato.columns.storage import has_text, text_of
from sfumato.columns.text_forms import is_code
from sfumato.desk.survey import ColumnSurvey
from sfumato.io.chunks import Source

_ROWS = 200_000  # in which columns are looked for that follow from others
_MOST_VALUES = 5_000
_MOST_COLUMNS = 12  # of which that is looked for
_FEWEST, _FEWEST_CODES = 10, 20  # different values: fewer are labels
_FEWEST_ANSWERS = 2  # yes and no
_FEWEST_ROWS = 1.5  # of a value, on the mean
_LEAST_BREAKS = 8  # values with two cells of another column, if they had nothing to do with each other
_OPAQUE = 0.8  # share of values
_FORMS = 20  # values for each form of theirs
_LARGEST_SHARE = 0.5  # of rows, of one opaque value
_SEVERAL, _MANY = 2, 3  # columns that follow from what is called a number of something, and from any code
_MOST_SHOWN = 4
_TELLING = re.compile(
    r"sex|gender|geschlecht|sexe|sexo|sesso|geslacht|dob|yob|birth\w*|geburt\w*|geb(?:dat|datum|jahr)?|naissance|"
    r"nacimiento|nascita|geboorte\w*|race|ethnic\w*|ethnie|nationality|height|blutgruppe|bloodtype|menopause|handedness"
)
THINGS = {
    *("product", "item", "sku", "article", "artikel", "produkt", "produit", "producto", "ean", "upc", "isbn", "goods"),
    *("store", "shop", "branch", "filiale", "warehouse", "supplier", "vendor", "merchant", "brand", "model", "part"),
    *("code", "icd", "icd9", "icd10", "dx", "diag", "diagnosis", "diagnose", "procedure", "proc", "ops", "cpt", "drg"),
    *("drug", "atc", "ndc", "med", "medication", "loinc", "snomed", "test", "gene", "species", "concept", "drugname"),
    *("flight", "route", "line", "airport", "train", "tariff", "plan", "version", "language", "currency", "ticker"),
    *("country", "region", "state", "city", "county", "district", "place", "venue", "poi", "location", "area", "land"),
    *("hospital", "clinic", "site", "centre", "center", "ward", "department", "school", "class", "course", "category"),
    *("type", "group", "cat", "occupation", "job", "isco", "industry", "naics", "nace", "sic", "question", "answer"),
    *("cabin", "seat", "room", "floor", "page", "section"),
    *("hour", "day", "week", "month", "quarter", "year", "period", "date", "time", "jahr", "monat", "woche", "tag"),
    *("station", "sensor", "machine", "movie", "film", "song", "book", "game", "event", "campaign", "recipe", "bus"),
    *("age", "alter", "income", "salary", "price", "amount", "score", "band", "range", "size", "indp", "puma"),
}
_SUBJECT = re.compile(r"(?:u?subje?c?t?|case|vp|sujet|sujeto|soggetto|pat|pts?)s?\d*")
_ADDRESSED = re.compile(r"[^@\s]+@[^@\s]+")
_TURN = re.compile(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)")  # from letters to digits or back
_PERIOD_OR_RANGE = re.compile(r"(?:19|20)\d\d[-./ ]?[a-z]{0,2}\d{0,2}|\d{1,4} ?[-–/:x] ?\d{1,4}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a column's naming people.

    Attributes:
        n_values: how many different values it has, roughly if they are many.
        least: rows of the rarest.
        most: rows of the most frequent.
        follows: columns that are the same in all rows of a value.
        is_named: whether the column's name says that it names people.
    """

    n_values: int
    least: int
    most: int
    follows: tuple[str, ...] = ()
    is_named: bool = True

    @property
    def repeats(self) -> bool:
        """Whether a value has several rows."""
        return self.most > 1

    def __str__(self) -> str:
        """The evidence in words.

        Example:
            >>> str(Evidence(250, 1, 2_000, ("sex", "site")))
            '250 values of 1 to 2,000 rows each, all with one sex, site'
        """
        rows = f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
        more = len(self.follows) - _MOST_SHOWN
        shown = ", ".join(self.follows[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
        of_each = f", all with one {shown}" if self.follows else ""
        return f"{self.n_values:,} values of {rows} row{'s' if self.most > 1 else ''} each{of_each}"


def person_columns(source: Source, surveys: Mapping[str, ColumnSurvey]) -> dict[str, Evidence]:
    """Return the columns that name people, or may, with what speaks for it; in one pass more over the first rows.

    Privacy: none. It is for the holder's own screen.

    Args:
        source: the records.
        surveys: of all columns.
    """
    some = {name: survey for name, survey in surveys.items() if _may_name(survey)}
    named = {name for name, survey in some.items() if _is_named(name, survey)}
    watched = [name for name in some if name in named or _may_be_numbers(name, some[name])]
    follows = _followers(source, surveys, [name for name in watched if _average(some[name]) >= _FEWEST_ROWS])
    people = {}
    for name in watched:
        others = follows.get(name, ())
        if name in named or _is_opaque(some[name]) or _is_person(name, others, some[name]):
            counts = some[name].counts
            assert counts is not None
            rows = counts.counts.values()
            n_values = len(counts.counts) << counts.halvings
            people[name] = Evidence(n_values, min(rows), max(rows), others, name in named)
    return people


def _may_name(survey: ColumnSurvey) -> bool:
    """Whether a column holds texts or whole numbers, no dates."""
    is_measured = survey.is_number and not survey.is_whole
    return bool(survey.counts and survey.counts.counts) and survey.moments is None and not is_measured


def _is_named(name: str, survey: ColumnSurvey) -> bool:
    """Whether a column's name says that it numbers people, and the cells are no answers: `member` may say yes or no."""
    is_subject = _SUBJECT.fullmatch("".join(words_of(name))) is not None
    if numbers_people(name) or survey.counts is None or not (role_of(name) == "person" or is_subject):
        return numbers_people(name)
    if is_subject and survey.n_distinct < _FEWEST:
        return False
    codes = is_code(pa.array(list(survey.counts.counts), pa.string()))
    if is_subject and not (survey.is_number or codes.all()):
        return False  # what is taught
    return survey.n_distinct >= _FEWEST or (survey.n_distinct > _FEWEST_ANSWERS and bool(codes.all()))


def _may_be_numbers(name: str, survey: ColumnSurvey) -> bool:
    """Whether a column may number people as far as its name goes, and how often values occur."""
    is_thing = any(word.rstrip("0123456789") in THINGS or word in THINGS for word in words_of(name))
    if is_thing or role_of(name) not in (None, *PEOPLE):
        return False
    return survey.n_distinct >= _FEWEST and _average(survey) >= _FEWEST_ROWS


def _average(survey: ColumnSurvey) -> float:
    """How often a value occurs on average."""
    return 0.0 if survey.counts is None else survey.counts.counts.total() / max(len(survey.counts.counts), 1)


def _is_opaque(survey: ColumnSurvey) -> bool:
    """Whether values are addresses or codes of one form, none of them frequent: no periods, no ranges of numbers."""
    if survey.counts is None or survey.is_number or survey.n_distinct < _FEWEST_CODES:
        return False
    counts = survey.counts.counts
    if max(counts.values()) > _LARGEST_SHARE * counts.total():
        return False
    texts = list(counts)
    codes = is_code(pa.array(texts, pa.string())).tolist()
    opaque = [text for text, code in zip(texts, codes, strict=True) if code and _says_nothing(text)]
    forms = {_form(text) for text in opaque}
    return len(opaque) >= _OPAQUE * len(texts) and len(forms) <= max(len(texts) / _FORMS, 1)


def _says_nothing(text: str) -> bool:
    """Whether a code holds no words, but of people: `user 12`, no `Ward 12`; and is no period or range."""
    word = re.match(r"([^\W\d_]{3,})\s", text)
    if word is not None and role_of(word[1]) != "person" and not _SUBJECT.fullmatch(word[1].lower()):
        return False
    return not re.search(r"\s\D", text) and not _PERIOD_OR_RANGE.fullmatch(text)


def _form(text: str) -> str:
    """Return the form of a code: what stands between its letters and digits; of addresses and long hashes one form."""
    if _ADDRESSED.fullmatch(text):
        return "@"
    if re.fullmatch(r"[\w-]{7,}", text) and _TURN.search(text):
        return "hash"
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


def _is_person(name: str, follows: tuple[str, ...], survey: ColumnSurvey) -> bool:
    """Whether what follows from a column is what people have, such as sex or birth, or is much for a code."""
    is_coded = survey.is_number or (survey.text is not None and 2 * survey.text.n_codes > survey.n_values)
    if is_coded and names_people(name) and survey.n_distinct >= _FEWEST_CODES:
        return True
    much = len(follows) >= (_SEVERAL if names_people(name) else _MANY) and is_coded
    return much or any(_TELLING.fullmatch(word) for other in follows for word in words_of(other))


@dataclass(slots=True, repr=False)
class _Groups:
    """Rows by the values of one column, and of other columns the least and the largest cell of each group, as hashes.

    Attributes:
        values: the canonical texts of some values.
        cells: by column, how many cells, the least and the largest of each group, shape (3, values).
    """

    values: pa.Array
    cells: dict[str, np.ndarray]

    @classmethod
    def of(cls, survey: ColumnSurvey, others: list[str]) -> _Groups:
        """Return the groups of values that occur more than once."""
        counts = Counter() if survey.counts is None else survey.counts.counts
        texts = [text for text, count in counts.items() if count > 1][:_MOST_VALUES]
        empty = np.stack([np.zeros(len(texts), np.int64), np.full(len(texts), 2**32), np.full(len(texts), -1)])
        return cls(pa.array(texts, pa.string()), {other: empty.copy() for other in others})

    def add(self, texts: pa.Array, hashes: Mapping[str, np.ndarray]) -> None:
        """Add some rows; a hash is -1 where a cell is missing."""
        places = pc.index_in(texts.cast(pa.string()), value_set=self.values)
        group = places.fill_null(-1).to_numpy(zero_copy_only=False)
        for other, cells in self.cells.items():
            here = (group >= 0) & (hashes[other] >= 0)
            groups, words = group[here], hashes[other][here]
            cells[0] += np.bincount(groups, minlength=len(self.values))
            np.minimum.at(cells[1], groups, words)
            np.maximum.at(cells[2], groups, words)

    def follows(self, other: str, survey: ColumnSurvey, *, is_number: bool) -> bool:
        """Whether another column has one value in each group, which is no chance, and no span of the numbers."""
        n, least, most = self.cells[other]
        several = n > 1
        counts = np.array([] if survey.counts is None else list(survey.counts.counts.values()), dtype=float)
        if not several.any() or (least != most)[several].any() or 2 * survey.n_distinct > len(self.values):
            return False
        if np.sum(1 - (counts.max() / counts.sum()) ** (n[several] - 1)) < _LEAST_BREAKS:
            return False
        if not is_number:
            return True
        in_order = least[several][np.argsort(np.array(self.values.to_pylist(), dtype=float)[several], kind="stable")]
        spans = 1 + np.count_nonzero(np.diff(in_order))
        return bool(spans > 2 * len(np.unique(in_order)))


def _followers(source: Source, surveys: Mapping[str, ColumnSurvey], names: list[str]) -> dict[str, tuple[str, ...]]:
    """Return by column the others that are the same in all rows of each of its values."""
    names = sorted(names, key=lambda name: not names_people(name))[:_MOST_COLUMNS]
    others = [name for name, survey in surveys.items() if survey.counts is not None and survey.n_distinct > 1]
    groups = {name: _Groups.of(surveys[name], [other for other in others if other != name]) for name in names}
    n_rows = 0
    for chunk in source.chunks(source.names) if names else ():
        texts = {name: cell_texts(chunk.columns[name]) for name in {*names, *others}}
        hashes = {name: _hashes(texts[name]) for name in others}
        for name in names:
            groups[name].add(texts[name], hashes)
        n_rows += chunk.n_rows
        if n_rows >= _ROWS:
            break
    return {
        name: tuple(
            other for other in group.cells if group.follows(other, surveys[other], is_number=surveys[name].is_number)
        )
        for name, group in groups.items()
    }


def cell_texts(column: pa.ChunkedArray | np.ndarray) -> pa.Array:
    """Return cells as canonical text, null where missing."""
    cells = plain(joined(column))
    if pa.types.is_dictionary(cells.type):
        cells = plain(cells).dictionary_decode()
    if not has_text(cells.type):
        return pa.nulls(len(cells), pa.string())
    coded = cells.dictionary_encode()
    return text_of(coded.dictionary).cast(pa.string()).take(coded.indices)


def _hashes(texts: pa.Array) -> np.ndarray:
    """Return a hash of each text, int64, -1 where there is none or it is empty."""
    coded = texts.dictionary_encode()
    words = [zlib.crc32(word.encode()) if word else -1 for word in coded.dictionary.to_pylist()]
    taken = pa.array(words, pa.int64()).take(coded.indices)
    return taken.fill_null(-1).to_numpy(zero_copy_only=False)
