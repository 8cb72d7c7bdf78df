"""The coding law: total, elementwise, exact round trip, and no cell in any message."""

import datetime as dt
import json
import math
import os
import traceback
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sfumato.columns.cells import joined, plain
from sfumato.columns.kinds import (
    Boolean,
    Categorical,
    Continuous,
    DateTime,
    Identifier,
    Image,
    Integer,
    LevelKind,
    NumericKind,
    Ordinal,
)
from sfumato.desk.drafting import draft_schema
from sfumato.errors import ConfigError, SchemaError
from sfumato.io.sources import open_source
from sfumato.schema.schema import MISSING_TOKENS, Schema

KINDS = [
    Categorical(categories=("a", "1", "true", "2020-01-02"), other="other", nullable=True),
    Categorical(categories=("b", "NA")),
    Categorical(categories=("b", "1", "NA", "04"), parents=("x", "number", "x", "number"), keep=1, nullable=True),
    Ordinal(categories=("low", "mid", "high")),
    Boolean(),
    Boolean(nullable=True),
    Boolean(text=("Nein", "Ja"), nullable=True),
    Integer(lower=-5, upper=100),
    Integer(lower=2**62, upper=2**62 + 10, nullable=True),
    Integer(lower=3, upper=3),
    Continuous(lower=-1.5, upper=2.5),
    Continuous(lower=0, upper=1, resolution=0.1, nullable=True),
    Continuous(lower=-1, upper=1, values=(-1, 1 / 3, 1), nullable=True),
    Continuous(lower=7.5, upper=7.5),
    DateTime(lower="1999-01-01", upper="2030-12-31", nullable=True),
    DateTime(lower="2020-01-01", upper="2020-01-02", resolution="microsecond"),
    DateTime(lower="1999-01-01", upper="2030-12-31", format="%d %b %Y"),
    # those of installed packages, as schema files write them
    *Schema.from_dict(
        {"columns": {"x": "boolean", **dict(enumerate(json.loads(os.environ.get("SFUMATO_KINDS", "[]"))))}}
    ).columns.values(),
]
TEXTS = [
    "", " ", "NA", "a", "b", "1", "1.0", "-0", "+7", "1e400", "1e-400", "inf", "-Infinity", "nan",
    "0x10", "1_0", "1e99999999999999999999", "9" * 400, "9223372036854775808", "true", " YES ",
    "2020-01-02", "2020-13-45", "2020-02-30", "2020-01-02 25:00:00", "2020-01-02T03:04:05.678Z",
    "0000-01-01", "9999-12-31", "02 Jan 2020", "٣", "ﬀ", "\x00", "😀", "2020\u201301\u201302",
]  # fmt: skip


def _code(kind, cells, missing=MISSING_TOKENS):
    return kind.code(cells, missing=missing)


def assert_in_domain(kind, codes, n):
    assert codes.shape == (n,)
    if isinstance(kind, LevelKind):
        assert codes.dtype == np.int32
        assert ((codes >= 0) & (codes < kind.n_levels)).all()
    else:
        assert codes.dtype == np.float64
        known = codes[~np.isnan(codes)]
        assert ((known >= 0) & (known <= 1)).all()
        if not kind.nullable:
            assert len(known) == n


@pytest.mark.parametrize("storage", [pa.string(), pa.string_view(), pa.binary_view(), pa.large_binary()])
def test_a_dictionary_is_read_as_its_values_are(storage):
    """Polars writes dictionaries of views, which Arrow does not decode: all were read as missing."""
    values = pa.array([b"a", b"b", None], pa.binary()).cast(pa.string()).cast(storage)
    cells = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 2, 1]), values)
    assert plain(cells).dictionary_decode().cast(pa.string()).to_pylist() == ["b", "a", None, None, "b"]
    assert joined(pa.chunked_array([cells])).cast(pa.string()).to_pylist() == ["b", "a", None, None, "b"]
    labels = Categorical(categories=("a", "b"), nullable=True)
    assert _code(labels, cells).tolist() == _code(labels, pa.array(["b", "a", None, None, "b"])).tolist()
    source = open_source(pa.table({"x": cells}))
    assert "b" in draft_schema(source, exact=True).to_yaml()


# --- totality ---

_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 2**62 + 3])
_CELLS = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.int64(): _NUMBERS,
    pa.float16(): st.floats(width=16).map(np.float16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text() | st.sampled_from(TEXTS),
    pa.large_string(): st.text() | st.sampled_from(TEXTS),
    pa.string_view(): st.text() | st.sampled_from(TEXTS),
    pa.binary(): st.binary() | st.sampled_from(TEXTS).map(str.encode),
    pa.large_binary(): st.binary(),
    pa.binary_view(): st.binary(),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.integers(-(2**31), 2**31 - 1),
    pa.date64(): st.dates(),
    pa.timestamp("s"): _NUMBERS,
    pa.timestamp("ms", "America/New_York"): _NUMBERS,
    pa.timestamp("us", "No/Such_Zone"): _NUMBERS,
    pa.timestamp("ns", "+05:30"): _NUMBERS,
    pa.time32("s"): st.integers(-(2**31), 2**31 - 1),
    pa.time64("ns"): _NUMBERS,
    pa.duration("ns"): _NUMBERS,
    pa.month_day_nano_interval(): st.tuples(st.just(1), st.just(2), st.just(3)),
    pa.decimal128(38, 5): st.decimals(-(10**30), 10**30, places=5),
    pa.decimal256(60, 0): st.integers(-(10**59), 10**59).map(Decimal),
    pa.decimal128(5, -3): st.integers(-99, 99).map(lambda k: Decimal(k) * 1000),
    pa.list_(pa.int8()): st.lists(st.integers(0, 3)),
    pa.struct([("x", pa.string())]): st.builds(lambda x: {"x": x}, st.text()),
    pa.map_(pa.string(), pa.int8()): st.just([("k", 1)]),
    pa.null(): st.none(),
}


@st.composite
def columns(draw):
    """Any column: every type, nulls, and dictionary, run-end or chunked forms of it."""
    storage = draw(st.sampled_from(list(_CELLS)))
    listed = draw(st.lists(st.none() | _CELLS[storage], max_size=12))
    raw = storage
    if pa.types.is_temporal(storage) and not pa.types.is_date64(storage):
        raw = pa.int32() if storage.bit_width == 32 else pa.int64()
    if pa.types.is_interval(storage):
        raw = storage
    cells = pa.array(listed, raw)
    if raw != storage:
        cells = cells.view(storage)
    form = draw(st.sampled_from(["plain", "plain", "dictionary", "run-end", "sliced", "chunked"]))
    if form == "dictionary":  # Arrow encodes not all types, but files hold such columns
        cells = pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int32()), cells)
    try:
        if form == "run-end":
            cells = pa.compute.run_end_encode(cells)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pass
    if form == "sliced":
        cells = cells.slice(len(cells) // 3)
    return pa.chunked_array([cells, cells.slice(1)]) if form == "chunked" else cells


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns(), st.sampled_from(KINDS))
def test_any_cell_of_any_type_gets_a_code_in_the_domain(cells, kind):
    assert_in_domain(kind, _code(kind, cells), len(cells))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns(), st.sampled_from(KINDS))
def test_a_code_depends_on_its_own_cell_only(cells, kind):
    together = _code(kind, cells)
    alone = [_code(kind, cells.slice(i, 1)) for i in range(len(cells))]
    np.testing.assert_array_equal(together, np.concatenate([together[:0], *alone]))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bad_text_neither_raises_nor_spreads(kind):
    texts = pa.array(TEXTS * 2)
    together = _code(kind, texts)
    alone = [_code(kind, pa.array([text]))[0] for text in TEXTS]
    np.testing.assert_array_equal(together, alone * 2)
    assert_in_domain(kind, together, len(texts))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_no_rows_give_no_codes(kind):
    assert_in_domain(kind, _code(kind, pa.array([], pa.string())), 0)
    assert_in_domain(kind, _code(kind, pa.chunked_array([], pa.int64())), 0)
    empty = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string()))
    assert_in_domain(kind, _code(kind, empty), 1)


def test_invalid_utf8_inside_a_string_column_is_read_as_windows_1252():
    raw = pa.array([b"caf\xe9", b"caf\xc3\xa9", b"\x81"], pa.binary())
    dishonest = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    kind = Categorical(categories=("x", "café"), other="?")
    for cells in (raw, dishonest):
        assert _code(kind, cells).tolist() == [1, 1, 2]


def test_an_exception_inside_arrow_costs_one_cell_and_shows_nothing(monkeypatch):
    honest = Integer.read

    def fragile(kind, cells, missing):
        if "SECRET" in cells.to_pylist():
            raise pa.ArrowInvalid("cannot parse SECRET")
        return honest(kind, cells, missing)

    monkeypatch.setattr(Integer, "read", fragile)
    cells = pa.array(["1", "2", "SECRET", "4", "5"])
    codes = _code(Integer(lower=0, upper=10, nullable=True), cells)
    np.testing.assert_array_equal(codes, [0.1, 0.2, np.nan, 0.4, 0.5])


# --- meaning of cells ---


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        (pa.array(["a", " b ", "c", "zzz", "", None]), [0, 1, 2, 3, 4, 4]),
        (pa.array(["a", None, "q"]).dictionary_encode(), [0, 4, 3]),
        (pa.array([b"a", b"\xff", b"NA"]), [0, 3, 4]),
        (pa.array([1, None]), [3, 4]),
        (pa.array([[1], None]), [3, 4]),
        (pa.nulls(2), [4, 4]),
    ],
)
def test_unknown_goes_to_other_and_missing_to_the_last_level(cells, codes):
    kind = Categorical(categories=("a", "b", "c"), other="rest", nullable=True)
    assert _code(kind, cells).tolist() == codes


@pytest.mark.parametrize("form", [pa.string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())])
def test_whole_numbers_that_pandas_wrote_as_floats_are_the_labels_they_mean(form):
    """A column of numbers with a missing cell; a label may be written so itself, and codes keep zeros."""
    kind = Categorical(categories=(0, 1, -2, 10, "3.0", 5, "04"), other="rest", nullable=True)
    cells = pa.array(["1.0", "10.00", " -2.0 ", "0.0", "3.0", "3", "1.5", "01.0", "4.0", "-0.0", "1.", "", "NaN", "1"])
    if pa.types.is_dictionary(form):
        cells = cells.dictionary_encode().cast(form)
    codes = [1, 3, 2, 0, 4, 4, 7, 7, 7, 0, 1, 8, 8, 1]
    assert _code(kind, cells if pa.types.is_dictionary(form) else cells.cast(form)).tolist() == codes
    assert [_code(kind, cells.slice(i, 1)).tolist()[0] for i in range(len(cells))] == codes


@pytest.mark.parametrize(
    ("kind", "unknown", "missing"),
    [
        (Categorical(categories=("a", "b", "c")), 3, 3),
        (Ordinal(categories=("a", "b", "c")), 3, 3),
        (Ordinal(categories=("a", "b", "c", "d"), nullable=True), 4, 4),
        (Categorical(categories=("a", "b"), other="b"), 1, 1),
        (Categorical(categories=("a", "b"), other="b", nullable=True), 1, 2),
        (Boolean(), 2, 2),
        (Boolean(nullable=True), 2, 2),
    ],
)
def test_where_unknown_and_missing_go(kind, unknown, missing):
    assert _code(kind, pa.array(["?", "NA"])).tolist() == [unknown, missing]


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (pa.array([1], pa.uint8()), "1"),
        (pa.array([2.0]), "2"),
        (pa.array([-0.0]), "0"),
        (pa.array([0.1], pa.float32()), "0.1"),
        (pa.array([np.float16(0.1)]), "0.1"),
        (pa.array([1e-7]), "1e-07"),
        (pa.array([True]), "true"),
        (pa.array([Decimal("1.50")]), "1.5"),
        (pa.array([Decimal("100")]), "100"),
        (pa.array([dt.date(2020, 1, 31)]), "2020-01-31"),
        (pa.array([dt.datetime(2020, 1, 31)]), "2020-01-31"),
        (pa.array([dt.datetime(2020, 1, 31, 4, 5, 6)]), "2020-01-31 04:05:06"),
    ],
)
def test_the_canonical_text_of_a_stored_category(cells, text):
    assert _code(Categorical(categories=("x", text), other="y"), cells).tolist() == [1]


def test_a_missing_token_that_is_a_category_is_that_category():
    kind = Categorical(categories=("None", "some"), nullable=True)
    assert _code(kind, pa.array(["None", "NA", "some"])).tolist() == [0, 2, 1]


@pytest.mark.parametrize("cells", [["-9", "-8"], [-9, -8], [-9.0, -8.0], [Decimal("-9"), Decimal("-8")]], ids=str)
def test_tokens_hold_however_a_column_is_stored(cells):
    kind = Integer(lower=-10, upper=0, nullable=True)
    np.testing.assert_array_equal(_code(kind, pa.array(cells), missing=("-9", "")), [np.nan, 0.2])


@pytest.mark.parametrize("true", ["true", "TRUE", "Yes", "y", "T", "1", 1, 1.0, True])
@pytest.mark.parametrize("false", ["false", "False", "NO", "n", "f", "0", 0, 0.0, False])
def test_booleans_in_many_words(true, false):
    kind = Boolean(nullable=True)
    assert _code(kind, pa.array([true])).tolist() == [1]
    assert _code(kind, pa.array([false])).tolist() == [0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17), (" 17 ", 17), ("+17", 17), ("17.0", 17), ("1.7e1", 17), ("17.4", 17),
        (".5e1", 5), ("5.", 5), ("-3", 0), ("1e400", 100), ("inf", 100), ("-INF", 0),
        ("00012", 12), ("99999999999999999999", 100), ("-99999999999999999999999", 0),
        ("x", None), ("1,5", None), ("0x11", None), ("1_7", None), ("1e", None), ("--1", None),
        ("+-1", None), ("nan", None), ("٣", 3), ("\u22125", 0), ("1 2", None), (".", None), ("e5", None),
    ],
)  # fmt: skip
def test_numbers_in_text(text, value):
    for kind in (
        Integer(lower=0, upper=100, nullable=True),
        Continuous(lower=0, upper=100, resolution=1, nullable=True),
    ):
        expected = math.nan if value is None else value / 100
        np.testing.assert_array_equal(_code(kind, pa.array([text])), [expected])


def test_out_of_range_numbers_are_clamped():
    cells = pa.array([-math.inf, -1e300, -1, 0.25, 2, 1e300, math.inf, math.nan, None])
    codes = _code(Continuous(lower=-1, upper=1, nullable=True), cells)
    np.testing.assert_array_equal(codes, [0, 0, 0, 0.625, 1, 1, 1, np.nan, np.nan])
    huge = pa.array([2**64 - 1, 0], pa.uint64())
    np.testing.assert_array_equal(_code(Integer(lower=-1, upper=1), huge), [1, 0.5])


def test_missing_numbers_of_a_column_that_is_not_nullable_become_the_midpoint():
    missing = pa.nulls(1, pa.float64())
    assert _code(Continuous(lower=0, upper=1), missing) == [0.5]
    assert _code(Continuous(lower=0, upper=1, resolution=0.25), missing) == [0.5]
    assert _code(Integer(lower=0, upper=3), missing) == [1 / 3]
    assert _code(Integer(lower=3, upper=3), missing) == [0]
    assert _code(DateTime(lower="2020-01-01", upper="2020-01-03"), missing) == [0.5]


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2020-01-31", "2020-01-31"),
        ("2020-02-29", "2020-02-29"),
        ("2020-02-30", None),
        ("2021-02-29", None),
        ("1900-02-29", None),
        ("2020-13-01", None),
        ("2020-00-01", None),
        ("2020-01-31 10:20", "2020-01-31 10:20:00"),
        ("2020-01-31T10:20:30", "2020-01-31 10:20:30"),
        ("2020-01-31 10:20:30.25", "2020-01-31 10:20:30.250000"),
        ("2020-01-31 10:20:30.123456", "2020-01-31 10:20:30.123456"),
        ("2020-01-31T10:20:30Z", "2020-01-31 10:20:30"),
        ("2020-01-31T10:20:30+02:00", "2020-01-31 10:20:30"),
        ("20200131", "2020-01-31"),
        ("2020-01-31 24:00:01", None),
        ("2020-01-31 10:60:00", None),
        ("20x0-01-31", None),
        ("2020-01-31 10:20:3:", None),
        ("2020_01_31", None),
        ("31/01/2020", None),
        ("today", None),
    ],
)
def test_dates_in_text(text, iso):
    kind = DateTime(lower="1900-01-01", upper="2030-01-01", resolution="microsecond", nullable=True)
    back = kind.decode(_code(kind, pa.array([text])), pa.timestamp("us"))
    assert back.to_pylist() == [None if iso is None else dt.datetime.fromisoformat(iso)]


def test_times_are_cut_down_to_the_resolution():
    cells = pa.array([dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1970, 1, 1, 23, 59)])
    kind = DateTime(lower="1969-12-31", upper="1970-01-02")
    assert _code(kind, cells).tolist() == [0, 0.5]


def test_a_day_is_the_day_of_the_columns_own_zone():
    zone = pa.timestamp("s", "America/New_York")
    midnight = pa.array([dt.datetime(2020, 7, 1, 4)], pa.timestamp("s")).cast(zone)
    kind = DateTime(lower="2020-07-01", upper="2020-07-11")
    codes = _code(kind, midnight)
    assert codes.tolist() == [0]
    assert kind.decode(codes, zone) == midnight


# --- round trips ---


def assert_round_trip(kind, values, storage):
    kind.check_storage("column", storage)
    back = kind.decode(_code(kind, values), storage)
    back.validate(full=True)
    assert back.type == storage
    assert back.to_pylist() == values.to_pylist()


TEXT_TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string(), True),
]  # fmt: skip


def _stored(values, storage):
    if pa.types.is_dictionary(storage):
        coded = _stored(values, storage.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            coded.indices.cast(storage.index_type), coded.dictionary, ordered=storage.ordered
        )
    if "binary" in str(storage):
        return pa.array([None if v is None else str(v).encode() for v in values], storage)
    return pa.array(values, storage)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(
    ("storage", "labels"),
    [
        *((storage, ["b", "a", "é", "NA"]) for storage in TEXT_TYPES),
        (pa.int8(), [3, -1, 100]),
        (pa.uint64(), [2**53 - 1, 0]),
        (pa.float64(), [0.5, 2.0, 1e-300]),
        (pa.float32(), [0.5, 2.0, float(np.float32(0.1))]),
        (pa.bool_(), [True, False]),
        (pa.date32(), [dt.date(2020, 1, 1), dt.date(1900, 1, 1)]),
        (pa.timestamp("us"), [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 1, 2, 3, 4)]),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-2.00")]),
        (pa.dictionary(pa.uint8(), pa.int64()), [5, 7, 9]),
    ],
    ids=str,
)
def test_categories_round_trip(storage, labels, nullable):
    values = _stored(labels + ([None] if nullable else []), storage)
    names = [str(float(np.float32(0.1))), "0.1"]
    written = [names[1] if str(label) == names[0] else label for label in labels]
    written = [str(label) if isinstance(label, (Decimal, dt.date)) else label for label in written]
    written = [w.replace("1.50", "1.5").replace("-2.00", "-2") if isinstance(w, str) else w for w in written]
    written = [w.removesuffix(" 00:00:00") if isinstance(w, str) else w for w in written]
    for kind in (Categorical, Ordinal):
        assert_round_trip(kind(categories=tuple(written), nullable=nullable), values, storage)


@pytest.mark.parametrize("storage", [*TEXT_TYPES, pa.bool_(), pa.int32(), pa.float64(), pa.decimal128(3, 1)], ids=str)
def test_booleans_round_trip(storage):
    listed = [True, False, None]
    if storage in TEXT_TYPES:
        listed = ["true", "false", None]
    elif not pa.types.is_boolean(storage):
        listed = [Decimal(1) if pa.types.is_decimal(storage) else 1, 0, None]
    assert_round_trip(Boolean(nullable=True), _stored(listed, storage), storage)


@settings(deadline=None)
@given(st.data())
def test_integers_round_trip(data):
    lower = data.draw(st.integers(-(2**63), 2**63 - 1))
    upper = data.draw(st.integers(lower, min(lower + 2**50, 2**63 - 1)))
    listed = data.draw(st.lists(st.none() | st.integers(lower, upper), min_size=1))
    kind = Integer(lower=lower, upper=upper, nullable=True)
    assert_round_trip(kind, pa.array(listed, pa.int64()), pa.int64())


@pytest.mark.parametrize("lower", [-(2**63), 2**62 + 1, 2**63 - 11])
def test_large_integers_are_subtracted_exactly(lower):
    values = pa.array([lower + 3, lower, lower + 10], pa.int64())
    kind = Integer(lower=lower, upper=lower + 10)
    assert _code(kind, values).tolist() == [0.3, 0, 1]
    assert_round_trip(kind, values, pa.int64())


@pytest.mark.parametrize("index", [pa.int32(), pa.int64(), pa.uint32()])
@pytest.mark.parametrize("ordered", [False, True])
def test_numbers_round_trip_in_dictionaries(index, ordered):
    kind = Integer(lower=0, upper=9, nullable=True)
    for values in (pa.int16(), pa.float64(), pa.decimal128(5, 1)):
        storage = pa.dictionary(index, values, ordered)
        cells = _stored([7, 0, None, 7], storage)
        assert_round_trip(kind, cells, storage)


@settings(deadline=None)
@given(
    st.lists(st.none() | st.integers(-(2**24), 2**24), min_size=1),
    st.sampled_from(
        [
            pa.int32(),
            pa.float32(),
            pa.float64(),
            pa.decimal128(12, 3),
            pa.decimal256(60, 0),
            pa.string(),
            pa.large_string(),
            pa.binary(),
            pa.dictionary(pa.int32(), pa.string()),
        ]
    ),
)
def test_integers_round_trip_in_every_storage(listed, storage):
    kind = Integer(lower=-(2**24), upper=2**24, nullable=True)
    if pa.types.is_string(storage) or pa.types.is_large_string(storage):
        listed = [None if v is None else str(v) for v in listed]
    if pa.types.is_dictionary(storage):
        listed = [None if v is None else str(v) for v in listed]
    assert_round_trip(kind, _stored(listed, storage), storage)


@settings(deadline=None)
@given(
    st.sampled_from([5.0, 1.0, 0.5, 0.25, 0.3, 0.1, 0.01, 1e-6]),
    st.lists(st.none() | st.integers(-(10**6), 10**6), min_size=1),
)
def test_continuous_values_round_trip_at_their_resolution(resolution, steps):
    exact = [None if k is None else k * Decimal(repr(resolution)) for k in steps]
    bound = float(10**6 * Decimal(repr(resolution)))
    kind = Continuous(lower=-bound, upper=bound, resolution=resolution, nullable=True)
    floats = [None if value is None else float(value) for value in exact]
    assert_round_trip(kind, pa.array(floats, pa.float64()), pa.float64())
    assert_round_trip(kind, pa.array(floats, pa.float32()), pa.float32())
    decimals = max(0, -Decimal(repr(resolution)).normalize().as_tuple().exponent)
    words = [None if value is None else f"{value:.{decimals}f}" for value in exact]
    words = [w if w is None or float(w) else w.removeprefix("-") for w in words]
    assert_round_trip(kind, pa.array(words, pa.string()), pa.string())
    assert_round_trip(kind, pa.array(exact, pa.decimal128(30, 8)), pa.decimal128(30, 8))


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
@example([1.8451579214352151e-09])
def test_continuous_values_without_resolution_come_back_to_float64_precision(values):
    """To 1e-9 of bounds of 1e6; what is within 2^-50 of their span comes back as exactly 0."""
    kind = Continuous(lower=-1e6, upper=1e6)
    back = kind.decode(_code(kind, pa.array(values)), pa.float64())
    found, near_0 = back.to_numpy(), np.abs(values) <= 2e6 * 2.0**-50 + 1e-9
    assert (np.abs(found - values)[~near_0] <= 1e-9).all()
    assert all(there == 0 or abs(there - value) <= 1e-9 for there, value in zip(found, values, strict=True))
    again = kind.decode(_code(kind, back), pa.string())
    np.testing.assert_allclose([float(word) for word in again.to_pylist()], found, atol=1e-9)


_RESOLUTIONS = {
    "day": dt.timedelta(days=1),
    "hour": dt.timedelta(hours=1),
    "minute": dt.timedelta(minutes=1),
    "second": dt.timedelta(seconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "microsecond": dt.timedelta(microseconds=1),
}
_FORMATS = [None, "%Y-%m-%dT%H:%M:%S.%fZ", "%d.%m.%Y %H:%M:%S,%f", "%B %d, %Y %I:%M:%S.%f %p"]


@settings(deadline=None)
@given(
    st.sampled_from(list(_RESOLUTIONS)),
    st.lists(st.none() | st.datetimes(dt.datetime(1995, 1, 1), dt.datetime(2024, 12, 31)), min_size=1),
    st.sampled_from([pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")])
    | st.sampled_from([pa.timestamp("ns", "+05:30"), *_FORMATS]),
)
def test_times_round_trip_at_their_resolution(resolution, moments, storage):
    step = _RESOLUTIONS[resolution]
    epoch = dt.datetime(1970, 1, 1)
    cut = [None if m is None else m - (m - epoch) % step for m in moments]
    format = storage if isinstance(storage, str) else None
    kind = DateTime(
        lower="1995-01-01",
        upper="2024-12-31",
        resolution=resolution,
        format=format,
        nullable=True,
    )
    if isinstance(storage, pa.DataType):
        if resolution == "microsecond" and storage.unit == "s":
            return
        wall = pa.array(cut, pa.timestamp(storage.unit))
        values = pa.compute.assume_timezone(wall, storage.tz) if storage.tz else wall
        assert_round_trip(kind, values, storage)
        return
    words = pa.array([None if m is None else _written(m, kind) for m in cut], pa.string())
    assert_round_trip(kind, words, pa.string())


def _written(moment, kind):
    if kind.format:
        return moment.strftime(kind.format)
    if kind.resolution == "day":
        return str(moment.date())
    return moment.isoformat(" ", "microseconds" if kind.resolution in ("millisecond", "microsecond") else "seconds")


@given(st.lists(st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)), min_size=1))
def test_dates_round_trip(dates):
    kind = DateTime(lower="0001-01-01", upper="9999-12-31")
    for storage in (pa.date32(), pa.date64()):
        assert_round_trip(kind, pa.array(dates, storage), storage)
    assert_round_trip(kind, pa.array([str(date) for date in dates]), pa.string())


def test_the_repeated_hour_comes_back_as_its_first():
    zone = pa.timestamp("s", "America/New_York")
    hours = [dt.datetime(2020, 11, 1, 5, 30), dt.datetime(2020, 11, 1, 6, 30)]  # both 01:30 there
    cells = pa.array(hours, pa.timestamp("s")).cast(zone)
    kind = DateTime(lower="2020-11-01", upper="2020-11-01", resolution="minute")
    codes = _code(kind, cells)
    assert codes[0] == codes[1]
    assert kind.decode(codes, zone).cast(pa.timestamp("s")).to_pylist() == hours[:1] * 2


@pytest.mark.parametrize("storage", [pa.timestamp("s"), pa.timestamp("ms", "Europe/Paris")])
def test_coarse_timestamps_round_trip(storage):
    wall = pa.array([dt.datetime(2020, 6, 1, 12), None], pa.timestamp(storage.unit))
    values = pa.compute.assume_timezone(wall, storage.tz) if storage.tz else wall
    kind = DateTime(lower="2000-01-01", upper="2030-01-01", resolution="hour", nullable=True)
    assert_round_trip(kind, values, storage)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_codes_outside_the_domain_are_clamped_on_the_way_back(kind):
    if isinstance(kind, LevelKind):
        codes, last = np.array([-5, 10**6]), kind.n_levels - 1
        back = kind.decode(codes, pa.string())
        assert back == kind.decode(np.array([0, last]), pa.string())
        return
    codes = np.array([-np.inf, -1, 0, 1, 2, np.inf, np.nan])
    back = kind.decode(codes, pa.string()).to_pylist()
    assert back[0] == back[1] == back[2]
    assert back[3] == back[4] == back[5]
    assert (back[6] is None) == kind.nullable


def test_text_forms():
    def text(kind, codes):
        return kind.decode(np.array(codes), pa.string()).to_pylist()

    assert text(Integer(lower=0, upper=17), [1.0]) == ["17"]
    assert text(Continuous(lower=0, upper=1, resolution=0.05), [0.5, 0]) == ["0.50", "0.00"]
    assert text(Continuous(lower=-1, upper=0, resolution=1), [1.0]) == ["0"]
    assert text(Continuous(lower=0, upper=1), [0.1]) == ["0.1"]
    assert text(Boolean(), [1]) == ["true"]
    assert text(DateTime(lower="2020-01-01", upper="2020-01-02"), [1.0]) == ["2020-01-02"]
    kind = DateTime(lower="2020-01-01", upper="2020-01-02", resolution="second")
    assert text(kind, [0.0]) == ["2020-01-01 00:00:00"]


# --- storage ---


@pytest.mark.parametrize(
    ("kind", "storage", "words"),
    [
        (Categorical(categories=(1, 2), other="other"), pa.int64(), "got 'other'"),
        (Categorical(categories=("01",)), pa.int64(), "got '01'"),
        (Categorical(categories=("1.0.",)), pa.float64(), "got '1.0.'"),
        (Categorical(categories=(300,)), pa.int8(), "got '300'"),
        (Categorical(categories=("a",)), pa.bool_(), "got 'a'"),
        (Categorical(categories=("a",)), pa.list_(pa.int8()), "got 'a'"),
        (Categorical(categories=range(200)), pa.dictionary(pa.int8(), pa.string()), "at most 128"),
        (Boolean(), pa.date32(), "date32"),
        (Integer(lower=0, upper=300), pa.int8(), "upper=300"),
        (Integer(lower=-1, upper=3), pa.uint8(), "lower=-1"),
        (Integer(lower=0, upper=10**6), pa.decimal128(5, 2), "upper=1000000"),
        (Integer(lower=0, upper=10**6), pa.float16(), "upper=1000000"),
        (Integer(lower=0, upper=9), pa.decimal128(5, -3), "decimal128(5, -3)"),
        (Continuous(lower=0, upper=9.99), pa.decimal128(2, 1), "upper=9.99"),
        (Integer(lower=0, upper=2), pa.timestamp("s"), "kind integer"),
        (Integer(lower=0, upper=2), pa.dictionary(pa.int8(), pa.int64()), "without a dictionary"),
        (Continuous(lower=0, upper=1e300), pa.float32(), "upper=1e+300"),
        (DateTime(lower="2020-01-01", upper="2021-01-01"), pa.int64(), "kind datetime"),
        (DateTime(lower="1500-01-01", upper="2021-01-01"), pa.timestamp("ns"), "1678"),
    ],
)
def test_a_storage_that_cannot_hold_the_values_is_refused(kind, storage, words):
    with pytest.raises(SchemaError) as caught:
        kind.check_storage("some column", storage)
    assert words in str(caught.value)
    assert "'some column'" in str(caught.value)
    assert caught.value.__context__ is None


def test_what_is_not_coded_needs_no_storage():
    Identifier().check_storage("x", pa.string())


def test_images_are_stored_as_tensors():
    with pytest.raises(SchemaError, match="'x': Expected the column to hold images"):
        Image(shape=(2, 2)).check_storage("x", pa.list_(pa.uint8()))


@pytest.mark.parametrize("kind", [Identifier(), Image(shape=(2, 2))])
def test_kinds_without_codes_are_refused(kind):
    with pytest.raises(ConfigError, match=type(kind).__name__):
        kind.code(pa.array(["SECRET"]), missing=())
    with pytest.raises(ConfigError, match=type(kind).__name__):
        kind.decode(np.zeros(1), pa.string())


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns(), st.sampled_from(KINDS))
def test_an_accepted_storage_takes_every_code(cells, kind):
    try:
        kind.check_storage("x", cells.type)
    except SchemaError as error:
        assert "'x'" in str(error)  # noqa: PT017
        return
    codes = _code(kind, cells)
    back = kind.decode(codes, cells.type)
    assert back.type == cells.type
    back.validate(full=True)
    again = _code(kind, back)
    if isinstance(kind, LevelKind) or (pa.types.is_int64(cells.type) and not isinstance(kind, Continuous)):
        np.testing.assert_array_equal(again, codes)


# --- the law ---


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns(), st.sampled_from([*KINDS, Identifier()]))
def test_a_secret_in_the_cells_is_in_no_exception(cells, kind):
    secret = "SECRET-7f3a"
    planted = pa.array([secret] * 3 + [secret + "9" * 30, secret + "\x00"])
    for column in (planted, planted.cast(pa.binary()), planted.dictionary_encode(), cells):
        try:
            codes = _code(kind, column)
            kind.decode(codes, column.type)
        except Exception:  # noqa: BLE001
            assert secret not in traceback.format_exc()


def test_level_kinds_are_level_kinds():
    for kind in KINDS:
        assert isinstance(kind, LevelKind) != isinstance(kind, NumericKind)
        if isinstance(kind, LevelKind):
            assert kind.n_levels == len(kind.labels) + (kind.nullable or not kind.goes_to_other)


@pytest.mark.parametrize("seed", range(40))
def test_zero_comes_back_as_zero(seed):
    rng = np.random.default_rng(seed)
    kind = Continuous(lower=-rng.exponential(100), upper=rng.exponential(100))
    zero = kind.code(pa.array([0.0]), missing=())
    assert kind.decode(zero, pa.float64()).to_pylist() == [0.0]


def test_a_format_with_a_field_twice_is_a_schema_error():
    with pytest.raises(SchemaError, match="format"):
        DateTime(lower="2020-01-01", upper="2020-12-31", format="%Y-%m-%d %Y")


def test_uuids_are_read_as_they_are_written():
    """Their bytes as text would join those that end in white space or zeros."""
    ids = [uuid.UUID(int=i) for i in (9, 10, 32, 2**127 + 160)]
    column = pa.array([*(i.bytes for i in ids), None], pa.uuid())
    kind = Categorical(categories=tuple(map(str, ids)), nullable=True)
    assert kind.code(column, missing=()).tolist() == [0, 1, 2, 3, 4]
    assert kind.code(pa.chunked_array([column.slice(2)]), missing=()).tolist() == [2, 3, 4]
