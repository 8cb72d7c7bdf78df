"""A stranger's manifest: it loads and samples, or it is a ReleaseError; soon, and in little memory."""

import json
import random

import numpy as np
import pytest
import safetensors.numpy

from fixtures.hostile import put, saved, survives, write
from sfumato.errors import ReleaseError
from sfumato.release.files import ARRAYS, MANIFEST
from sfumato.release_front import load

__all__ = ["saved", "survives"]

ODD = [
    None, True, False, 0, 1, -1, 2, 3.5, -0.5, 1e308, 10**9, 2**63, 10**400, "", "x", "1", [], {},
    [1], {"x": 1}, [[]], "csv", "npz", "polars", "pandas", "image_gaussian", "int64", "string",
    "category", "null", "float16", "datetime64[ns]", "timestamp[ns]", "decimal128(99, 3)",
    "dictionary[int8](int8)[ordered]", "tensor[uint8](999999,999999)", "\x00", "é" * 3000,
    "../../etc/passwd", "parameters.factors", "measurements.0",
]  # fmt: skip


def paths_of(value, path=()):
    """The path of every value in a document."""
    yield path
    children = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from paths_of(child, (*path, key))


def test_what_is_written_here_is_what_save_writes(saved, survives, tmp_path):
    assert survives(write(tmp_path / "r", *saved))


def test_every_value_of_the_manifest_may_be_missing_or_another(saved, survives, tmp_path):
    manifest, arrays = saved
    packed = safetensors.numpy.save(arrays)
    rng = random.Random(0)
    places = [path for path in paths_of(manifest) if path]
    # of the account, which is only shown, a few; of all that is built from, everything
    shown = [p for p in places if p[0] == "certificate" and len(p) > 2]
    built = [p for p in places if p not in shown]
    cases = [(path, None, True) for path in built]
    cases += [(path, value, False) for path in built for value in rng.sample(ODD, 2)]
    cases += [(path, rng.choice(ODD), rng.random() < 0.3) for path in shown]
    assert len(cases) > 200
    for path, value, remove in cases:
        changed = put(manifest, path, value, remove=remove)
        survives(write(tmp_path / "r", changed, packed=packed))


def test_the_document_may_be_anything(saved, survives, tmp_path):
    packed = safetensors.numpy.save(saved[1])
    texts = [
        b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}", b"\xff\xfe", b"\x00" * 100, b"NaN",
        b'{"format_version": NaN}', b'{"format_version": 1e999}', b'{"format_version": 3}',
        b"[" * 100_000, b'{"a":' * 100_000, b"[" * 500 + b"]" * 500, b"9" * 10_000,
        "\ufeff{}".encode(), json.dumps(saved[0]).encode("utf-16"), b'{"format_version": "3"}',
        json.dumps({**saved[0], "format_version": "9" * 10**6}).encode(),
    ]  # fmt: skip
    for version in (0, 1, 2, 4, -1, 10**30, "3", None, [3], 1.5, 3.0, True):
        texts.append(json.dumps({**saved[0], "format_version": version}).encode())
    for text in texts:
        assert not survives(write(tmp_path / "r", text, packed=packed))


@pytest.mark.parametrize("key", ["certificate", "format_version", "schema", "arrays"])
def test_hardening_2_a_key_given_twice_is_refused(saved, survives, tmp_path, key):
    """Readers differ in which of two values they take: one would see another epsilon than we do."""
    manifest = json.dumps(saved[0])
    text = manifest[:-1] + f", {json.dumps(key)}: {json.dumps(saved[0][key])}" + "}"
    assert json.loads(text) == saved[0]
    assert not survives(write(tmp_path / "r", text.encode(), packed=safetensors.numpy.save(saved[1])))


@pytest.mark.parametrize(
    "place",
    [("certificate", "epsilon"), ("certificate", "delta"), ("measurements", 0, "noise_std")],
    ids=str,
)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_are_finite(saved, survives, tmp_path, place, number):
    manifest = put(saved[0], place, "here")
    folder = write(tmp_path / "r", manifest, saved[1])
    text = (folder / MANIFEST).read_text().replace('"here"', number)
    (folder / MANIFEST).write_text(text)
    assert not survives(folder)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [(lambda e: e[:0], "array 'edges'"), (lambda e: e + 1, "array 'edges'"), (lambda e: e[None], "array 'edges'"),
     (lambda e: e.astype(np.float64), "array 'edges'"), (lambda e: np.append(e, e), "array 'edges'"),
     (lambda e: e[e != 0], "array 'edges'"), (lambda e: e[:-1], "values of the column 'weight'"),
     (lambda e: np.append(e, e[-1]), "values of the column 'weight'"), (lambda e: -e, "values of the column 'age'"),
     (lambda e: e[1:] * (e[1:] != e[1]), "array 'edges'"), (lambda e: np.delete(e, 3), "array")],
)  # fmt: skip
def test_cells_of_numbers_are_those_of_the_schema(small, tmp_path, changed, problem):
    small.save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / MANIFEST).read_bytes())
    arrays = safetensors.numpy.load((tmp_path / "r" / ARRAYS).read_bytes())
    arrays["parameters.edges"] = np.ascontiguousarray(changed(arrays["parameters.edges"]))
    with pytest.raises(ReleaseError, match=problem):
        load(write(tmp_path / "r", manifest, arrays))


def test_settings_that_ask_for_too_much(saved, survives, tmp_path):
    manifest, arrays = saved
    schema = manifest["schema"]["columns"]
    changes = []
    for name in schema:
        for kind in (
            {"kind": "image", "shape": [8192, 8192]},
            {"kind": "image", "shape": [10**9, 10**9]},
            {"kind": "image", "shape": [4, 4], "lower": -1e308, "upper": 1e308},
            {"kind": "categorical", "categories": [str(i) for i in range(50_000)]},
            {"kind": "integer", "lower": -(2**61), "upper": 2**61},
            {"kind": "datetime", "lower": "0001-01-01", "upper": "9999-12-31", "format": "%Y %Y"},
            {"kind": "datetime", "lower": "2000-01-01", "upper": "2001-01-01", "format": "%d" * 9999},
            {"kind": "identifier"},
        ):
            changes.append((("schema", "columns", name), kind))
    changes += [(("certificate", "n_public"), 10**400), (("sampler", "target"), "nobody")]
    changes += [(("sampler", "name"), name) for name in ("table_softmax", "image_portrait", "gpt")]
    for path, value in changes:
        survives(write(tmp_path / "r", put(manifest, path, value), arrays))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("field", ["dtypes", "storage", "keys"])
def test_forms_of_another_make(saved, survives, tmp_path, field):
    manifest, arrays = saved
    texts = [v for v in ODD if isinstance(v, str)]
    texts += ["object", "i4,i4", "O", "V9999999999", "U9999999", "M8[99Y]", ">i8", "f16", "(" * 9999,
              "period[D]", "Sparse[int64]", "interval[int64]", "Enum", "Categorical", "string[python]",
              "int64[pyarrow]", "../x", "x_train", "y", "a/b", "CON"]  # fmt: skip
    names = [*manifest["schema"]["columns"], "nobody"]
    rng = random.Random(0)
    containers = ("pandas", "polars", "npz", manifest["form"]["container"])
    for text in texts:
        changed = put(manifest, ("form", "container"), rng.choice(containers))
        changed["form"][field] = {**changed["form"][field], rng.choice(names): text}
        survives(write(tmp_path / "r", changed, arrays))


def test_an_error_quotes_the_file_briefly(saved, tmp_path):
    manifest, arrays = saved
    for path in (("sampler", "name"), ("form", "container"), ("format_version",)):
        with pytest.raises(ReleaseError) as caught:
            load(write(tmp_path / "r", put(manifest, path, "\x1b[31m" + "a" * 10**6), arrays))
        assert len(str(caught.value)) < 3000
        assert "\x1b" not in str(caught.value)


LABEL = {"column": "label", "base": 3}  # no, yes, and none
ROWS = {"column": "", "base": 1}


@pytest.mark.parametrize(
    ("query", "shape", "problem"),
    [
        ({"tables": [[LABEL, LABEL]]}, (9,), "'label' stands twice"),
        ({"tables": [[LABEL]], "by": [LABEL]}, (3, 3), "'label' stands twice"),
        ({"tables": [[ROWS] * 70]}, (1,), "more than 8 columns"),
        ({"tables": [[LABEL]], "weight": "age"}, (3,), "counts records by 'age'"),
        ({"tables": [[{"column": "label", "base": 2**32}] * 2, [LABEL]]}, (3,), "'label' into other cells"),
    ],
    ids=["a column twice", "a column by itself", "axes without end", "a weight of its own", "more cells than 64 bits"],
)
def test_queries_that_no_question_survives(small, tmp_path, query, shape, problem):
    small.save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / MANIFEST).read_bytes())
    arrays = safetensors.numpy.load((tmp_path / "r" / ARRAYS).read_bytes())
    manifest["measurements"].append(
        {"name": "more", "array": "more", "noise_std": 1.0, "symmetric": False, "query": {"kind": "marginals", **query}}
    )
    with pytest.raises(ReleaseError, match=problem):
        load(write(tmp_path / "r", manifest, {**arrays, "more": np.zeros(shape)}))


@pytest.mark.parametrize("part", ["noise", "value"])
def test_numbers_whose_squares_are_none(small, tmp_path, part):
    small.save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / MANIFEST).read_bytes())
    arrays = safetensors.numpy.load((tmp_path / "r" / ARRAYS).read_bytes())
    noise, value = (1e200, 1.0) if part == "noise" else (1.0, 1e200)
    manifest["measurements"].append({"name": "more", "array": "more", "noise_std": noise, "symmetric": False})
    with pytest.raises(ReleaseError, match="1e\\+100"):
        load(write(tmp_path / "r", manifest, {**arrays, "more": np.full(2, value)}))
