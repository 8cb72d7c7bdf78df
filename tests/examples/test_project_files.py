"""What is said to those who change the project is true: recipes, groups, workflows, versions."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import sfumato

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
YAML = sorted([*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"])
RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
QUOTED = set(re.findall(r"`([^`\n]+)`", RECIPES))


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=~ ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _words(root: str) -> set[str]:
    """Names that the code of a folder defines or uses."""
    found: set[str] = set()
    for path in (ROOT / root).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found |= {getattr(node, key) for key in ("name", "id", "attr", "arg") if hasattr(node, key)}
    return {name for name in found if isinstance(name, str)}


@pytest.mark.parametrize("path", sorted(name for name in QUOTED if re.match(r"(src|tests|docs)/", name)))
def test_a_recipe_names_files_that_are_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.slow
def test_a_recipe_names_code_that_is_there() -> None:
    known = _words("src") | _words("tests")
    names = {name.partition("(")[0] for name in QUOTED if re.fullmatch(r"[A-Za-z_][A-Za-z_]*(\([^)]*\))?", name)}
    plain = {"make", "except"}  # no names of code
    assert {"IndependentItems", "DateTime", "noisy_words", "open_baskets"} <= names
    assert names - known - plain == set()


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_workflow_runs_what_continuous_integration_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert set(workflow[True]) == {"push", "pull_request"}  # YAML reads `on` as a truth
    assert workflow["permissions"] == {"contents": "read"}
    job, windows = workflow["jobs"]["run"], workflow["jobs"]["windows"]
    assert "bash .ci/run" in [step.get("run") for step in job["steps"]]
    versions = job["strategy"]["matrix"]["python"]
    assert versions == windows["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    classifiers = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if ":: 3." in line]
    assert classifiers == versions
    assert versions[0] == PROJECT["project"]["requires-python"].removeprefix(">=")


def test_hooks_are_the_checks_of_make_lint() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert recipe is not None
    tools = [line.split("/")[1].split()[0] for line in recipe[1].replace("$(BIN)", "bin").splitlines()]
    assert tools == [hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in hooks]


@pytest.mark.parametrize("extra", ["test", "lint", "docs", "bench", "papers"])
def test_groups_are_the_extras_of_development(extra: str) -> None:
    assert PROJECT["dependency-groups"][extra] == PROJECT["project"]["optional-dependencies"][extra]


def test_every_dependency_has_a_version_that_was_tested() -> None:
    pinned = {_name(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    project = PROJECT["project"]
    needed = {
        _name(r) for group in [project["dependencies"], *project["optional-dependencies"].values()] for r in group
    }
    assert needed - pinned == set()


def test_the_conda_recipe_requires_what_the_package_requires() -> None:
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    python, *run = recipe["requirements"]["run"]
    wanted = [
        re.sub(r"^([\w-]+)(.*)$", r"\1 \2", text.replace("~=0.6.0", ">=0.6.0,<0.7")) for text in project["dependencies"]
    ]
    assert run == wanted
    assert python == "python >=${{ python_min }}"
    assert recipe["context"]["python_min"] == project["requires-python"].removeprefix(">=")
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in project["scripts"].items()]
    assert {_name(text) for text in PROJECT["build-system"]["requires"]} < set(recipe["requirements"]["host"])
    assert recipe["about"]["license"] == project["license"]


def test_the_container_file_copies_what_is_there_and_installs_extras_that_exist() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M) for name in line.split()]
    assert {"pyproject.toml", "constraints.txt", "src"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []
    # what the build reads of the project has to be among it
    assert {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]} <= set(copied)
    (extras,) = re.findall(r"'\.\[(.*)\]'", text)
    assert set(extras.split(",")) <= PROJECT["project"]["optional-dependencies"].keys()
    assert set(re.findall(r"python:(\d\.\d+)", text)) == {"3.11"}
    assert re.search(r"^USER (?!root)", text, re.M)


def test_one_version_everywhere() -> None:
    version = sfumato.__version__
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert heading is not None
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))
    assert version == citation["version"] == recipe["context"]["version"] == heading[1]
