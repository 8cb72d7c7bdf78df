"""JSON from strangers: what two readers would read differently is refused, and no message quotes it."""

import json

import pytest

from sfumato.io.strict_json import parse_object


def test_an_object_is_read_as_the_standard_library_reads_it():
    text = '{"a": [1, 2.5, null, true, {"b": "é"}], "": -1e-300}'
    assert parse_object(text) == parse_object(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"secret": 1, "secret": 1}', "a key given twice"),
        ('{"a": {"secret": 1, "b": [{"secret": 1, "secret": 2}]}}', "a key given twice"),
        ('{"a": 1, "\\u0061": 2}', "a key given twice"),
        ('{"secret": NaN}', "no valid JSON"),
        ('{"secret": -Infinity}', "no valid JSON"),
        ('{"secret": 1e999}', "no valid JSON"),
        ('{"secret": 1', "no valid JSON"),
        ("[" * 100_000, "no valid JSON"),
        (b"\xff{}", "no valid JSON"),
        ("", "no valid JSON"),
        ('["secret"]', "no mapping"),
        ("null", "no mapping"),
    ],
)
def test_what_readers_differ_about_is_refused(text, fault):
    with pytest.raises(ValueError, match=fault) as caught:
        parse_object(text)
    assert str(caught.value) == fault
    assert caught.value.__context__ is None
