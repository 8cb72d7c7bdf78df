"""`sfumato publish combine`, and what the other commands do with its file."""

import zipfile

import pytest

from fixtures.parts import part


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for place in (0, 1):
        part(place).save(folder / f"{place}.sfm")
    return [folder / "0.sfm", folder / "1.sfm"]


@pytest.fixture
def union(places, tmp_path, call):
    out = tmp_path / "all.sfm"
    assert call("publish", "combine", *places, "--disjoint", "--out", out).code == 0
    return out


def test_a_union_is_written_sampled_asked_and_checked(call, union, places, tmp_path):
    with zipfile.ZipFile(union) as archive:
        assert archive.read("2.sfm") == places[1].read_bytes()
    assert call("sample", union, "-n", 7, "--seed", 1, "--out", tmp_path / "s.csv").code == 0
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 8
    assert call("estimate", union, "mean", "x", "--json").json["std_error"] > 0
    assert call("estimate", union, "share", "s=f", "--by", "s").code in {0, 1}
    assert "computed again" in call("certificate", union).out
    content = call("certificate", union, "--json").json
    assert [own["n"] for own in content["parts"]] == [250, 350]


def test_the_word_is_needed_before_a_file_is_written(call, places, tmp_path):
    result = call("publish", "combine", *places, "--out", tmp_path / "all.sfm")
    assert (result.code, "your word" in result.err) == (2, True)
    assert not (tmp_path / "all.sfm").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "--given", "x=1", "--out", "-"), ("sample", "--replicates", 2, "--out", "-"),
        ("sample", "--unique-rows", "drop", "--out", "-"), ("sample", "--class-count", "f=3", "--out", "-"),
        ("estimate", "quantile", "x", "0.5"), ("estimate", "x ~ s"), ("estimate", "--list"),
        ("estimate", "--units", "mean", "x"),
        ("estimate", "missing", "k", "--by", "s"), ("certificate", "--public-key", "k.pub"),
        ("report", "--out", "p.html"), ("publish pack", "--out", "pack", "--title", "t"),
    ],
)  # fmt: skip
def test_what_is_not_of_a_union_is_refused_in_a_sentence(call, union, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    name, *rest = words
    result = call(*name.split(), union, *rest)
    assert result.code in {1, 2}
    assert "combined" in result.err
    assert set(tmp_path.iterdir()) == before


def test_the_output_is_no_part_and_a_file(call, places, tmp_path):
    assert call("publish", "combine", *places, "--disjoint", "--out", places[0], "--overwrite").code == 2
    assert call("publish", "combine", *places, "--disjoint", "--out", tmp_path / "folder").code == 2
    assert call("publish", "combine", places[0], places[0], "--disjoint", "--out", tmp_path / "all.sfm").code == 2
