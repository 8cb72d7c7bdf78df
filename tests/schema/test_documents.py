import json
import time

import pytest

from sfumato.errors import OutputError, SchemaError
from sfumato.schema.documents import MAX_BYTES, parse_document, read_document, with_comments, write_text, yaml_text
from sfumato.schema.schema import Schema


def _read(tmp_path, text, name="file.yaml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_document(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("off", "off"),
        ("True", True),
        ("010", "010"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("1e5", "1e5"),
        ("2020-01-01", "2020-01-01"),
        ("7", 7),
        ("-1.5", -1.5),
        ("~", None),
        ("", None),
    ],
)
def test_yaml_means_what_it_looks_like(tmp_path, text, value):
    assert _read(tmp_path, f"a: {text}") == {"a": value}


def test_what_is_written_reads_back(tmp_path):
    words = [
        "no",
        "1",
        "1.0",
        "true",
        "010",
        "2020-01-01",
        "~",
        "",
        " x",
        "é",
        "a: b",
        "#",
        "null",
    ]
    document = {"a": words, "b": {"c": 1.5, "d": 1e-7, "e": 2**60, "f": [0, True, None]}}
    assert _read(tmp_path, yaml_text(document)) == document


def test_a_byte_order_mark_is_ignored(tmp_path):
    assert _read(tmp_path, b"\xef\xbb\xbfa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("s.yaml", "a: 1\na: 2", "a key given twice at line 2"),
        ("s.json", '{"a": 1, "a": 2}', "a key given twice"),
        ("s.json", '{"a": NaN}', "cannot be read"),
        ("s.json", '{"a": 1', "a mistake at line 1, column 8"),
        ("s.yaml", "a: [1, 2", "a mistake at line 2, column 1"),
        ("s.yaml", "a: !!python/object:os.system x", "a tag (!) at line 1, column 4"),
        ("s.yaml", f"a: !!int '{'1:' * 9}1'", "a tag (!) at line 1, column 4"),
        ("s.yaml", "a: &x {k: 1}\nb: {<<: *x}", "a merge key (<<), which is not read: write its keys out at line 2"),
        ("s.yaml", "a: *x", "an alias of nothing"),
        ("s.yaml", "[" * 100_000, "nesting too deep at line 1, column 101"),
        ("s.yaml", "- " * 100_000, "nesting too deep"),
        ("s.yaml", "{a: " * 100_000, "nesting too deep"),
        ("s.yaml", "[" + "a," * 500_000 + "]", "more than 500,000 values"),
        ("s.json", "[" + "[]," * 2_000_001 + "1]", "more than 4,000,000 values"),
        ("s.yaml", b"a: \xff\xfe", "not UTF-8"),
        ("s.json", "[" * 100_000, "nesting too deep"),
        ("s.json", '{"a": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path, name, text, words):
    with pytest.raises(SchemaError) as caught:
        _read(tmp_path, text, name)
    assert words in str(caught.value)
    assert name in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("text", ["*SECRET", "!SECRET x", "SECRET: 1\nSECRET: 2", "@SECRET"])
@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_a_broken_file_is_not_quoted(tmp_path, name, text):
    with pytest.raises(SchemaError) as caught:
        _read(tmp_path, text, name)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("line", ["&b{} [{}]", "&b{} {{<<: [{}]}}"])
def test_a_few_lines_do_not_become_a_billion_values(tmp_path, line):
    """Aliases that multiply are refused by what they stand for, before any value is made: 9 lines would be 10^9."""
    lines = ["b0: &b0 [z, z, z, z, z, z, z, z, z, z]" if "<<" not in line else "b0: &b0 {z: z}"]
    lines += [f"b{i}: {line.format(i, ', '.join(10 * [f'*b{i - 1}']))}" for i in range(1, 9)]
    path = tmp_path / "s.yaml"
    path.write_text("\n".join([*lines, "columns: *b8"]))
    before = time.process_time()
    with pytest.raises(SchemaError, match="merge key" if "<<" in line else "more than 500,000 values"):
        Schema.load(path)
    assert time.process_time() - before < 0.5


def test_a_tag_of_text_and_a_merge_sign_in_quotes_are_read(tmp_path):
    assert _read(tmp_path, "a: !!str 7\n'<<': [\"<<\", ! x]") == {"a": "7", "<<": ["<<", "x"]}


@pytest.mark.parametrize("text", ["columns: &c {a: *c}", "rows: &c [*c]\ncolumns: {a: {kind: boolean}}"])
def test_a_value_within_itself_is_refused(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(SchemaError):
        Schema.load(path)


def test_columns_may_share_what_they_say(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("columns: {a: &k {kind: categorical, categories: [u, v]}, b: *k}")
    schema = Schema.load(path)
    assert schema.columns["a"] == schema.columns["b"]


def test_missing_files_directories_and_giants_are_refused(tmp_path):
    with pytest.raises(SchemaError, match="no such file"):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(SchemaError, match="is a directory"):
        read_document(tmp_path)
    giant = tmp_path / "giant.yaml"
    with giant.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(SchemaError, match="more than 64 MiB"):
        read_document(giant)


def test_an_output_is_not_overwritten_unless_asked(tmp_path):
    path = tmp_path / "s.yaml"
    write_text(path, "one")
    with pytest.raises(OutputError, match="which exists"):
        write_text(path, "two")
    assert path.read_text() == "one"
    write_text(path, "two", overwrite=True)
    assert path.read_text() == "two"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_to_nowhere_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="folder"):
        write_text(tmp_path / "none" / "s.yaml", "")


def test_json_is_read_by_its_suffix(tmp_path):
    assert _read(tmp_path, json.dumps({"a": "no"}), "s.JSON") == {"a": "no"}


def test_comments_stay_above_what_is_as_it_was():
    before = """# head
draft: true

# no unit is stated
columns:
  # whole numbers
  age: {kind: integer, discover: true}
  # labels
  sex:
    kind: categorical
    categories: [f, m]
    other: x
"""
    document = {
        "draft": True,
        "columns": {
            "age": {"kind": "integer", "lower": 0},
            "sex": {"kind": "categorical", "categories": ["f", "m"], "other": "x"},
        },
    }
    lines = with_comments(yaml_text(document), before).splitlines()
    assert lines[:6] == [
        "# head",
        "draft: true",
        "",
        "# no unit is stated",
        "columns:",
        "  age: {kind: integer, lower: 0}",
    ]
    assert "  # labels" in lines
    after = with_comments(yaml_text({"unit": {"column": "id"}, **document}), before)
    assert parse_document(after, "after") == {"unit": {"column": "id"}, **document}
    assert "no unit" not in after
    assert with_comments(before, before) == before
