"""Readers of strangers' documents: each takes what it says, and nothing near it."""

import dataclasses
import math
from enum import Enum

import pytest

from sfumato.errors import ReleaseError
from sfumato.privacy.reading import (
    Place,
    document,
    entry,
    many,
    mapping,
    number,
    one_of,
    optional,
    plain,
    reader,
    whole,
)

PLACE = Place("thing")


class Colour(Enum):
    RED = "red"


@document
class Point:
    x: float = entry(number(0, 1))
    name: str = entry(str)


@document
class Thing:
    points: tuple[Point, ...] = entry(many(Point, 2))
    colour: Colour = entry(one_of(*Colour))
    note: str | None = entry(str, default=None)
    labels: dict = entry(mapping(str), factory=dict)


SOUND = {"points": [{"x": 1, "name": "a"}], "colour": "red", "labels": {"k": "v"}}

TAKEN = [
    (str, ""), (bool, False), (number(0, 1), 0), (number(0, 1), 1.0), (number(0, 1, inside=True), 5e-324),
    (whole(1), 1), (whole(1), 2**53), (one_of("a", "b"), "b"), (one_of(1), 1), (optional(str), None),
    (many(str), []), (mapping(str), {}), (mapping(), {"a": [1]}),
]  # fmt: skip
REFUSED = [
    (str, None), (str, 1), (str, b"x"), (bool, 1), (bool, 0), (bool, None), (bool, "true"),
    (number(0, 1), True), (number(0, 1), False), (number(0, 1), math.nan), (number(0, math.inf), math.nan),
    (number(0, 1), math.inf), (number(0, 1), -math.inf), (number(0, 1e300), 10**400), (number(0, 1), "0.5"),
    (number(0, 1), 1 + 1e-15), (number(0, 1), -5e-324), (number(0, 1), None), (number(0, 1), 0.5j),
    (number(0, 1, inside=True), 0), (number(0, 1, inside=True), 1.0),
    (whole(1), 0), (whole(1), 2**53 + 1), (whole(1), 10**400), (whole(1), 1.0), (whole(1), True), (whole(1), "1"),
    (one_of("a", "b"), "c"), (one_of("a"), ["a"]), (one_of("a"), None), (one_of(1), True), (one_of(1), 1.0),
    (one_of(*Colour), "RED"), (one_of(*Colour), Colour.RED), (optional(str), 1),
    (many(str), "ab"), (many(str), {"a": 1}), (many(str), ("a",)), (many(str), ["a", 1]),
    (many(str, 2), ["a"] * 3),
    (mapping(str), [["a", "b"]]), (mapping(str), {"a": 1}), (mapping(str), None),
    (Point, None), (Point, [0.5, "a"]), (Point, {"x": 0.5}), (Point, {}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "value"), TAKEN)
def test_what_is_of_the_form_is_taken_as_it_is(form, value):
    found = reader(form)(value, PLACE)
    assert plain(found) == value
    assert type(plain(found)) is type(value)


@pytest.mark.parametrize(("form", "value"), REFUSED)
def test_what_is_not_is_refused(form, value):
    with pytest.raises(ReleaseError, match="Expected a well-formed thing") as caught:
        reader(form)(value, PLACE)
    assert caught.value.__context__ is None


def test_a_document_comes_back_in_order():
    found = reader(Thing)(SOUND, PLACE)
    assert found == Thing(points=(Point(x=1, name="a"),), colour=Colour.RED, labels={"k": "v"})
    assert plain(found) == SOUND
    assert list(plain(dataclasses.replace(found, note="n"))) == ["points", "colour", "note", "labels"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.colour = None


def test_unknown_keys_are_passed_over():
    assert reader(Thing)({**SOUND, "more": [1]}, PLACE) == reader(Thing)(SOUND, PLACE)


def test_only_a_default_lets_a_key_be_missing():
    """A factory is for those who construct a document, not for strangers."""
    for key in SOUND:
        with pytest.raises(ReleaseError, match=f"'{key}' is missing"):
            reader(Thing)({name: value for name, value in SOUND.items() if name != key}, PLACE)
    with pytest.raises(ReleaseError, match="'note' is not text"):
        reader(Thing)({**SOUND, "note": None}, PLACE)


def test_a_refusal_says_where_and_quotes_nobody():
    hostile = "\x1b[31mnobody"
    for changed, said in (
        (
            {"points": [SOUND["points"][0], {"x": hostile, "name": hostile}]},
            "'points[1].x' is not a number from 0 to 1",
        ),
        ({"labels": {hostile: 1}}, "'labels' is not text"),
        ({"colour": hostile}, "'colour' is not one of 'red'"),
    ):
        with pytest.raises(ReleaseError) as caught:
            reader(Thing)({**SOUND, **changed}, PLACE)
        assert said in str(caught.value)
        assert "nobody" not in str(caught.value)
