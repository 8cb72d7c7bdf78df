"""Every storage type that data can come in has a text; nothing else is read."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Integer, LevelKind
from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.errors import ReleaseError, SchemaError
from sfumato.io.arrow import read_type, write_type

PLAIN = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
    pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
    pa.binary(1), pa.binary(4), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "America/Port-au-Prince"),
    pa.timestamp("ms", "+05:30"), pa.timestamp("us", "Nowhere/Zone"), pa.decimal32(5, 2),
    pa.decimal64(12, 0), pa.decimal128(20, 3), pa.decimal256(70, 10), pa.decimal128(5, -2),
]  # fmt: skip
STRANGE = [
    pa.duration("s"), pa.month_day_nano_interval(), pa.list_(pa.list_(pa.int64())),
    pa.list_(pa.int64(), 3), pa.large_list(pa.duration("s")), pa.list_view(pa.int8()),
    pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32()),
    pa.run_end_encoded(pa.int32(), pa.string()), pa.uuid(), pa.json_(),
]  # fmt: skip
TENSORS = [
    pa.fixed_shape_tensor(pa.uint8(), [28, 28]),
    pa.fixed_shape_tensor(pa.float32(), [3]),
    pa.fixed_shape_tensor(pa.int16(), [2, 3, 4, 5]),
]
DICTIONARIES = [
    pa.dictionary(index, values, ordered=ordered)
    for values in PLAIN
    for index in (pa.int8(), pa.int32(), pa.uint64())
    for ordered in (True, False)
]
LISTS = [make(values) for values in [*PLAIN, *DICTIONARIES] for make in (pa.list_, pa.large_list)]
SETS = [
    ItemSet(items=("a", "b"), max_length=2),
    ItemSet(items=("abcd", "efgh"), max_length=1),
    ItemSet(items=("0", "1"), other="2", max_length=2),
    ItemSet(n_items=5, max_length=3),
    ItemSet(n_items=70_000, max_length=3, other="1"),
]
KINDS = [
    Categorical(categories=("a", "b")),
    Categorical(categories=("abcd", "efgh"), nullable=True),
    Categorical(categories=("0", "1"), other="2", nullable=True),
    Categorical(categories=("2020-01-01", "2020-01-02")),
    Boolean(nullable=True),
    Integer(lower=-5, upper=50, nullable=True),
    Continuous(lower=0, upper=1),
    Continuous(lower=-1, upper=2, resolution=0.5, nullable=True),
    DateTime(lower="0001-01-01", upper="9999-12-31", resolution="microsecond", nullable=True),
    DateTime(lower="2000-01-01", upper="2020-01-01"),
]


@pytest.mark.parametrize("kind", [*PLAIN, *TENSORS, *DICTIONARIES], ids=str)
def test_types_round_trip(kind):
    assert read_type(write_type(kind)).equals(kind)


def test_whatever_a_schema_accepts_can_be_released():
    accepted = 0
    for storage in [*PLAIN, *STRANGE, *DICTIONARIES]:
        for kind in KINDS:
            try:
                kind.check_storage("c", storage)
            except SchemaError:
                continue
            accepted += 1
            codes = np.array([0.0, 0.3, 1.0, np.nan if kind.nullable else 0.5])
            if isinstance(kind, LevelKind):
                codes = np.arange(kind.n_levels, dtype=np.int32)
            assert read_type(write_type(storage)).equals(storage)
            assert kind.decode(codes, storage).type == storage
    assert accepted > 600


def test_lists_round_trip():
    for kind in LISTS:
        assert read_type(write_type(kind)).equals(kind)


def test_whatever_a_schema_of_sets_accepts_can_be_released():
    accepted = 0
    sets = CodedSets(np.array([0, 0, 2, 3]), np.array([0, 1, 1]))
    for storage in [*PLAIN, *STRANGE, *LISTS]:
        for kind in SETS:
            try:
                kind.check_storage("c", storage)
            except SchemaError:
                continue
            accepted += 1
            cells = kind.decode(sets, storage)
            assert cells.type == storage
            back = kind.code(cells, missing=())
            # of two items, a set of one keeps the first
            kept = sets.codes[[0, 2]] if kind.max_length == 1 else sets.codes
            np.testing.assert_array_equal(back.codes, kept)
    assert accepted > 200


@pytest.mark.parametrize("kind", STRANGE, ids=str)
def test_other_types_are_refused(kind):
    with pytest.raises(ReleaseError, match="storage type"):
        write_type(kind)


@pytest.mark.parametrize(
    "text",
    [
        "", "int65", "INT64", "int64 ", "timestamp[fs]", "timestamp[ns, tz=]", "timestamp[ns, tz=a b]",
        "timestamp[us, tz=" + "a" * 65 + "]", "decimal128(99, 0)", "decimal128(0, 0)",
        "decimal32(38, 0)", "dictionary[string](int8)[ordered]", "dictionary[float](string)[ordered]",
        "dictionary[int8](nothing)[ordered]", "dictionary[int8](string)", "tensor[uint8]()",
        "tensor[uint8](9999999)", "tensor[string](2,2)x", "fixed_size_binary[9999999]",
        "list<item: int64>", "dictionary[int32](" * 4000 + ")[ordered]" * 4000, "\x00", "é" * 10**6,
        None, 3, ["int64"], {"a": 1},
    ],
    ids=lambda text: str(text)[:30],
)  # fmt: skip
def test_other_texts_are_refused_briefly(text):
    with pytest.raises(ReleaseError, match="storage type") as caught:
        read_type(text)
    assert len(str(caught.value)) < 300


@given(
    st.text("dictionary[](),0123456789tensorstampnsuzedtime-+ ", max_size=40)
    | st.sampled_from([write_type(kind) for kind in [*PLAIN, *TENSORS, *DICTIONARIES, *LISTS[:20]]]).flatmap(
        lambda text: st.integers(0, len(text) - 1).map(lambda i: text[:i] + text[i + 1 :])
    )
)
@settings(deadline=None)
def test_any_text_is_a_type_or_refused(text):
    try:
        kind = read_type(text)
    except ReleaseError:
        return
    assert isinstance(kind, pa.DataType)
