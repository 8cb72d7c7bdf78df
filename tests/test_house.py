"""Counts of the source stay at or below their limits: benchmarks/house.py."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest


def _house():
    path = Path(__file__).parents[1] / "benchmarks" / "house.py"
    spec = importlib.util.spec_from_file_location("house", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


house = _house()


@pytest.fixture(scope="module")
def package():
    return house.House.read()


@pytest.fixture
def source(tmp_path):
    """A reader of a small package, by file and text."""

    def read(**files):
        for name, text in {"__init__": "", **files}.items():
            path = tmp_path / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return house.House.read(tmp_path)

    return read


def test_no_count_is_above_its_limit(package):
    counts = package.counts()
    assert counts.keys() == house.LIMITS.keys() == house.GOALS.keys()
    assert house.above(counts) == {}


def test_an_import_inside_a_function_closes_a_circle(source):
    read = source(a="from sfumato.b import x", b="def x():\n    from sfumato.a import y\n    return y")
    assert house.circles_of(read.graph()) == [["sfumato.a", "sfumato.b"]]


def test_an_import_for_type_checkers_closes_one_of_its_own_count(source):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sfumato.a import y\n"
    read = source(a="import sfumato.b", b=text)
    assert house.circles_of(read.graph()) == []
    assert house.circles_of(read.graph(typing=True)) == [["sfumato.a", "sfumato.b"]]
    assert read.counts()["circles with imports for type checkers"] == 1


def test_a_module_that_later_names_is_an_import(source):
    read = source(a="import sfumato.b", b='import sfumato\nx = later("sfumato.a")')
    assert house.circles_of(read.graph()) == [["sfumato.a", "sfumato.b"]]


def test_a_lazy_name_is_an_import_of_its_home(source, tmp_path):
    stub = "from sfumato.room.home import x as x\nfrom sfumato.room.user import y as y"
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "__init__.pyi").write_text(stub, encoding="utf-8")
    read = source(room__in____init__="", room__in__home="x = 1", room__in__user="from sfumato.room import x\n\ny = x")
    assert read.graph()["sfumato.room.user"] == {"sfumato.room.home"}
    assert read.graph()["sfumato.room"] == {"sfumato.room.home", "sfumato.room.user"}
    assert house.circles_of(read.graph()) == []


def test_an_eager_package_is_a_file_of_the_circle(source):
    read = source(room__in____init__="from sfumato.room.a import x", room__in__a="from sfumato.room import y")
    assert house.circles_of(read.graph()) == [["sfumato.room", "sfumato.room.a"]]


def test_two_circles_that_share_a_file_are_one():
    graph = {"a": {"b"}, "b": {"a", "c"}, "c": {"b", "d"}, "d": {"e"}, "e": set()}
    assert house.circles_of(graph) == [["a", "b", "c"]]


def test_parameters_and_participles_are_counted():
    (function,) = ast.parse("def f(self, a, /, b, *c, told, **d):\n    for found in b: said = [x for x in c]").body
    assert house.n_parameters(function) == 3
    assert house.participles(function) == {"told", "found", "said"}


def test_ignored_arrows_are_those_within_the_package(tmp_path):
    path = tmp_path / "pyproject.toml"
    arrows = '["sfumato.a -> sfumato.b.*", "sfumato.a -> torch"]'
    path.write_text(f"[[tool.importlinter.contracts]]\nignore_imports = {arrows}\n", encoding="utf-8")
    assert house.ignored_arrows(path) == ["sfumato.a -> sfumato.b.*"]


def test_the_core_imports_no_family(package):
    """Contracts list rooms by hand; here every module counts, but the names that `sfumato` hands out."""
    graph = package.graph(typing=True)
    families = {name for name in graph if any(f"{name}.".startswith(f"{family}.") for family in house.FAMILIES)}
    assert all(any(f"{name}.".startswith(f"{family}.") for name in families) for family in house.FAMILIES)
    core = {name for name in graph if house._in_core(name)} - {"sfumato"}
    assert not [(name, target) for name in sorted(core) for target in sorted(graph[name] & families)]
