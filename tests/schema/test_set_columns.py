"""Sets beside other columns as truth values of items: what is modelled, what is refused, and the way back."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Schema
from sfumato.columns import Categorical, Identifier, Image, Integer, ItemSet
from sfumato.columns.booleans import Truth
from sfumato.columns.sets import CodedSets
from sfumato.errors import ConfigError, SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.schema.set_columns import MOST_ITEMS, itemised, sets_alone

AGE, SEX = Integer(lower=18, upper=90), Categorical(categories=("f", "m"))
ITEMS = ItemSet(items=("E11", "I10", "J45"), max_length=2)


def schema(**columns):
    return Schema(columns={"age": AGE, "ill": ITEMS, "sex": SEX, **columns}, rows=100)


def coded(*sets):
    offsets = np.cumsum([0, *map(len, sets)])
    return CodedSets(offsets, np.array([code for held in sets for code in held], dtype=np.int32))


def items_of(sets):
    return [sets.codes[a:b].tolist() for a, b in zip(sets.offsets, sets.offsets[1:], strict=False)]


class TestWhatIsModelled:
    def test_each_item_is_a_column_in_the_place_of_the_sets(self):
        modelled = plain_schema(schema())
        assert list(modelled.columns) == ["age", "ill: E11", "ill: I10", "ill: J45", "sex"]
        assert all(modelled.columns[f"ill: {item}"] == Truth() for item in ITEMS.items)
        assert plain_schema(modelled) == modelled

    def test_other_and_numbered_items_and_two_columns(self):
        found = schema(ill=ItemSet(items=("E11",), other="else", max_length=2), bought=ItemSet(n_items=2, max_length=1))
        assert list(plain_schema(found).columns) == ["age", "ill: E11", "ill: else", "sex", "bought: 0", "bought: 1"]
        assert list(itemised(found)) == list(plain_schema(found).columns)

    @pytest.mark.parametrize("columns", [{"ill": ITEMS}, {"ill": ITEMS, "p": Identifier()}, {"age": AGE, "sex": SEX}])
    def test_sets_alone_and_tables_without_are_as_they_were(self, columns):
        found = Schema(columns=columns, rows=100)
        assert plain_schema(found) is found
        assert found.set_columns == {}
        assert sets_alone(found) == ("ill" in columns)

    def test_what_is_declared_is_written_as_it_was(self):
        assert Schema.from_dict(schema().to_dict()) == schema()


class TestWhatIsRefused:
    def test_more_items_than_there_is_noise_for(self):
        full = schema(ill=ItemSet(n_items=MOST_ITEMS, max_length=2))
        assert len(plain_schema(full).columns) == MOST_ITEMS + 2
        for more in (schema(ill=ItemSet(n_items=MOST_ITEMS + 1, max_length=2)), schema(
            ill=ItemSet(n_items=MOST_ITEMS, max_length=2), more=ITEMS
        )):  # fmt: skip
            with pytest.raises(SchemaError, match=r"at most 64 items together.*'ill'.*`other`.*dpgm"):
                _ = plain_schema(more)

    def test_a_name_that_another_column_has(self):
        with pytest.raises(SchemaError, match="'ill: E11' twice"):
            _ = plain_schema(schema(**{"ill: E11": SEX}))
        with pytest.raises(SchemaError, match="'ill: E11' twice"):
            _ = plain_schema(schema(**{"ill: E11": Identifier()}))

    def test_images_and_weights(self):
        with pytest.raises(SchemaError, match="images in column 'x'"):
            _ = plain_schema(schema(x=Image(shape=(2, 2), dtype="uint8")))
        columns = {"ill": schema().columns["ill"], "w": Integer(lower=0, upper=9)}
        with pytest.raises(SchemaError, match="images, or sets alone"):
            Schema(columns=columns, weight="w")


class TestThereAndBack:
    def test_a_record_has_one_cell_in_each_column(self):
        column = schema().set_columns["ill"]
        cells = pa.array([["E11"], ["J45", "?", "J45", "E11", "I10"], [], None, ["I10", None]])
        held = column.truth_values(ITEMS.code(cells, missing=()))
        assert {name: codes.tolist() for name, codes in held.items()} == {
            "ill: E11": [1, 1, 0, 0, 0], "ill: I10": [0, 0, 0, 0, 1], "ill: J45": [0, 1, 0, 0, 0],
        }  # fmt: skip
        assert {codes.dtype for codes in held.values()} == {np.dtype(np.int32)}

    def test_the_way_back_uses_no_randomness_where_all_fit(self):
        column, rng = schema().set_columns["ill"], np.random.default_rng(0)
        sets = coded([0, 2], [], [1], [1, 2])
        back = column.sets(column.truth_values(sets), rng)
        assert items_of(back) == items_of(sets)
        assert rng.random() == np.random.default_rng(0).random()

    def test_of_no_row(self):
        column = schema().set_columns["ill"]
        assert len(column.sets(column.truth_values(coded()), np.random.default_rng(0))) == 0

    def test_of_a_long_set_a_random_part_is_left(self):
        column = schema().set_columns["ill"]
        n = 30_000
        held = column.truth_values(coded([0, 1, 2])) | {}
        full = {name: np.repeat(codes, n) for name, codes in held.items()}
        back = column.sets(full, np.random.default_rng(1))
        assert set(back.lengths) == {2}
        shares = np.bincount(back.codes, minlength=3) / n
        assert np.abs(shares - 2 / 3).max() < 4.5 * np.sqrt(2 / 9 / n)
        kept = column.sets(full, np.random.default_rng(1), frozenset({2}))
        assert np.bincount(kept.codes, minlength=3)[2] == n
        assert set(kept.lengths) == {2}


class TestGiven:
    def test_items_by_name_or_number(self):
        column = schema().set_columns["ill"]
        assert column.taken_from({"ill": {"I10": True, "E11": np.False_}}) == {1: 1, 0: 0}
        numbered = schema(ill=ItemSet(n_items=3, max_length=1)).set_columns["ill"]
        assert numbered.taken_from({"ill": {2: True, "0": False}}) == {2: 1, 0: 0}

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("E11", "true or false"), (["E11"], "true or false"), ({"E11": 1}, "true or false"),
            ({"X": True}, "an item of column 'ill', got 'X'"), ({True: True}, "an item of column 'ill'"),
            (None, "true or false"),
            ({"E11": True, "I10": True, "J45": True}, "at most 2 items"),
        ],
    )  # fmt: skip
    def test_mistakes_are_told(self, value, message):
        with pytest.raises(ConfigError, match=message):
            schema().set_columns["ill"].taken_from({"ill": value})

    @pytest.mark.parametrize("item", ["01", "3", "-1", "²", 2**40, 1.0, None])
    def test_what_is_no_number_of_an_item(self, item):
        with pytest.raises(ConfigError, match="an item of column 'ill'"):
            schema(ill=ItemSet(n_items=3, max_length=1)).set_columns["ill"].taken_from({"ill": {item: True}})

    def test_an_item_twice(self):
        with pytest.raises(ConfigError, match="once, got one twice"):
            schema(ill=ItemSet(n_items=3, max_length=1)).set_columns["ill"].taken_from({"ill": {1: True, "1": False}})

    def test_items_by_their_own_columns(self):
        column, given = schema().set_columns["ill"], {"ill: E11": "true", "ill": {"I10": False}, "sex": "f"}
        assert column.taken_from(given) == {0: 1, 1: 0}
        assert given == {"sex": "f"}
        for given, message in (
            ({"ill: E11": "x"}, "'ill: E11'"),
            ({"ill: E11": None}, "'ill: E11'"),
            ({"ill: E11": True, "ill": {"E11": True}}, "'ill: E11' twice"),
            ({f"ill: {item}": True for item in ITEMS.items}, "at most 2 items"),
        ):
            with pytest.raises(ConfigError, match=message):
                column.taken_from(given)
