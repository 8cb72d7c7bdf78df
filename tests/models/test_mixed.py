"""The table encoder's law: bounded, total, elementwise, and exact both ways."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Image, Integer, Ordinal
from sfumato.errors import ConfigError
from sfumato.models.mixed import TableEncoder
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit

LEVELS = (
    Categorical(categories=("a", "b", "c"), other="rest", nullable=True),
    Categorical(categories=("only",)),
    Ordinal(categories=("low", "mid", "high")),
    Boolean(),
    Boolean(nullable=True),
)
NUMBERS = (
    Integer(lower=-3, upper=7),
    Integer(lower=0, upper=2**40, nullable=True),
    Continuous(lower=-1.5, upper=2.5),
    Continuous(lower=0, upper=1, resolution=0.1, nullable=True),
    DateTime(lower="2000-01-01", upper="2000-12-31", nullable=True),
)
CONSTANTS = (
    Integer(lower=3, upper=3),
    Continuous(lower=0.5, upper=0.5),
    DateTime(lower="2000-01-01", upper="2000-01-01"),
)
ALL = (*LEVELS, *NUMBERS, *CONSTANTS, Integer(lower=3, upper=3, nullable=True))


def encoder_of(*kinds):
    return TableEncoder.of(Schema(columns={f"c{i}": kind for i, kind in enumerate(kinds)}))


def decoded(encoder, vectors):
    """The codes that vectors stand for: nothing is lost."""
    rows = {}
    for block in encoder.blocks:
        own = vectors[:, block.entries]
        if isinstance(block.kind, LEVEL_TYPES):
            rows[block.name] = np.where(own.any(axis=1), own.argmax(axis=1), block.kind.width).astype(np.int32)
        else:
            rows[block.name] = np.where(own[:, 1] == 1, np.nan, own[:, 0]) if block.kind.nullable else own[:, 0]
    return rows


def codes_of(kind, n):
    """Codes of the kind's domain."""
    if isinstance(kind, LEVEL_TYPES):
        return npst.arrays(np.int32, n, elements=st.integers(0, kind.n_levels - 1))
    numbers = st.just(0.0) if kind in CONSTANTS or kind == ALL[-1] else st.floats(0, 1)
    return npst.arrays(np.float64, n, elements=(st.just(np.nan) | numbers) if kind.nullable else numbers)


LEVEL_TYPES = (Categorical, Ordinal, Boolean)


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=6))
    n = draw(st.integers(0, 8))
    rows = {f"c{i}": draw(codes_of(kind, n)) for i, kind in enumerate(kinds)}
    return encoder_of(*kinds), rows


@given(tables())
@settings(deadline=None)
def test_a_table_comes_back_bit_for_bit_within_the_bound(table):
    encoder, rows = table
    vectors = encoder.encode(rows)
    assert vectors.dtype == np.float64
    assert vectors.shape == (len(rows["c0"]), encoder.dimension)
    assert np.isfinite(vectors).all()
    assert (np.linalg.norm(vectors, axis=1) <= encoder.norm_bound * (1 + 1e-12)).all()
    for name, codes in decoded(encoder, vectors).items():
        assert codes.dtype == rows[name].dtype
        np.testing.assert_array_equal(np.signbit(codes), np.signbit(rows[name]))
        np.testing.assert_array_equal(codes, rows[name])


ANY_CODES = npst.arrays(
    st.sampled_from([np.float64, np.float32, np.int32, np.int64, np.uint8, np.uint64, np.bool_]),
    st.just(5),
    elements=None,
)


@given(st.lists(st.sampled_from(ALL), min_size=1, max_size=6), st.data())
@settings(deadline=None)
def test_any_codes_give_vectors_of_the_domain(kinds, data):
    encoder = encoder_of(*kinds)
    rows = {block.name: data.draw(ANY_CODES) for block in encoder.blocks}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors = encoder.encode(rows)
    assert np.isfinite(vectors).all()
    assert (np.linalg.norm(vectors, axis=1) <= encoder.norm_bound * (1 + 1e-12)).all()
    # what comes back is of the domain: encoding it again changes nothing
    rows = decoded(encoder, vectors)
    again = decoded(encoder, encoder.encode(rows))
    for name in rows:
        np.testing.assert_array_equal(again[name], rows[name])


@pytest.mark.parametrize("kinds", [(kind,) for kind in ALL] + [ALL, LEVELS, CONSTANTS])
def test_the_bound_is_reached(kinds):
    encoder = encoder_of(*kinds)
    rows = {}
    for block in encoder.blocks:
        worst = 0 if isinstance(block.kind, LEVEL_TYPES) else 1.0
        only_missing = block.kind == ALL[-1]
        rows[block.name] = np.array([np.nan if only_missing else worst])
    (norm,) = np.linalg.norm(encoder.encode(rows), axis=1)
    assert norm == pytest.approx(encoder.norm_bound, rel=1e-15)


def test_blocks_tile_the_vector_in_schema_order():
    columns = {"id": Identifier(), "who": Identifier(), "a": LEVELS[0], "b": NUMBERS[1]}
    columns |= {"c": NUMBERS[0]}
    schema = Schema(columns=columns, unit=Unit(column="who", max_rows=2))
    encoder = TableEncoder.of(schema)
    assert [block.name for block in encoder.blocks] == ["a", "b", "c"]
    assert [(b.entries.start, b.entries.stop) for b in encoder.blocks] == [(0, 5), (5, 7), (7, 8)]
    assert encoder.dimension == 8
    assert encoder == TableEncoder.of(schema)


def test_what_each_cell_becomes():
    encoder = encoder_of(Boolean(nullable=True), Integer(lower=0, upper=4, nullable=True))
    rows = {
        "c0": np.array([0, 1, 2, 9, -1], dtype=np.int32),
        "c1": np.array([0.25, np.nan, np.inf, 7.0, -np.inf]),
    }
    expected = [[1, 0, 0, 0.25, 0], [0, 1, 0, 0, 1], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]]
    expected += [[1, 0, 0, 0, 0]]
    np.testing.assert_array_equal(encoder.encode(rows), expected)


def test_rows_do_not_feel_each_other():
    encoder = encoder_of(*ALL)
    rng = np.random.default_rng(0)
    rows = {block.name: rng.choice([0.0, 1.0, np.nan, np.inf], 30) for block in encoder.blocks}
    whole = encoder.encode(rows)
    parts = [encoder.encode({name: codes[i : i + 1] for name, codes in rows.items()})
             for i in range(30)]  # fmt: skip
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_a_hundred_thousand_categories():
    kind = Categorical(categories=tuple(f"c{i}" for i in range(100_000)), nullable=True)
    encoder = encoder_of(kind, Integer(lower=0, upper=9))
    codes = np.array([0, 99_999, 100_000, 5], dtype=np.int32)
    vectors = encoder.encode({"c0": codes, "c1": np.array([0.0, 1.0, 0.5, 0.25])})
    np.testing.assert_array_equal(decoded(encoder, vectors)["c0"], codes)
    assert encoder.norm_bound == pytest.approx(np.sqrt(2))


def test_images_are_refused():
    schema = Schema(columns={"x": Image(shape=(2, 2)), "y": Boolean()})
    with pytest.raises(ConfigError, match="'x' of kind image"):
        TableEncoder.of(schema)


def test_rows_of_another_shape_are_refused():
    encoder = encoder_of(Boolean(), Boolean())
    with pytest.raises(ConfigError, match="every released column"):
        encoder.encode({"c0": np.array([0])})
    with pytest.raises(ConfigError, match="equally many"):
        encoder.encode({"c0": np.array([0]), "c1": np.array([0, 1])})
