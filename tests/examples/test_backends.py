"""The page on backends runs: JSON, classes for hosts against their published interfaces, and the R package's calls."""

import abc
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fixtures.command_line import call
from fixtures.sampling import few_simulations
from sfumato import create_ledger, read_ledger
from sfumato.cli.commands import load_command

__all__ = ["call", "few_simulations"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "backends.md").read_text(encoding="utf-8")
R = ROOT / "r"
SCHEMA = {"columns": {"age": {"kind": "integer", "lower": 0, "upper": 99}, "sex": ["f", "m"]}, "rows": 500}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """500 people, whose schema and ledger lie in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 500), "sex": rng.choice(["f", "m"], 500)})
    frame.to_csv("people.csv", index=False)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    Path("schema.yaml").write_text(json.dumps(SCHEMA))
    create_ledger("people.ledger", epsilon=3, delta=1e-5)
    return frame


def test_each_call_of_the_page_prints_json(call, people):
    [script] = blocks("bash")
    *calls, sample = [line.split()[1:] for line in script.splitlines()]
    for arguments in calls:
        assert call(*arguments).json["epsilon"] <= 1
    program = [sys.executable, "-m", "sfumato", *sample]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, timeout=120).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    assert (len(rows), set(rows[0])) == (1000, {"age", "sex"})


def test_the_class_for_petsard_has_its_published_interface(people):
    """What PETsARD 1.10.1 asks of a class: parameters of these names, and a call as it makes it."""
    space, settings = {}, yaml.safe_load(blocks("text")[0])["Synthesizer"]["sfumato"]
    exec(blocks("python")[0], space)
    method = space[settings.pop("class_name")]
    for name, needed in {"__init__": ["config", "metadata"], "fit": ["data"], "sample": []}.items():
        assert [p for p in inspect.signature(getattr(method, name)).parameters if p != "self"] == needed
    made = method(config={**settings, "sample_num_rows": 499}, metadata=None)
    made.fit(people)
    assert made.sample().shape == (500, 2)
    assert [fit.status for fit in read_ledger("people.ledger").fits] == ["finished"]


def test_petsard_itself_takes_the_class(people):
    hosts = pytest.importorskip("petsard.synthesizer.synthesizer", reason="PETsARD is not installed")
    Path("sfumato_method.py").write_text(blocks("python")[0])
    settings = yaml.safe_load(blocks("text")[0])["Synthesizer"]["sfumato"]
    synthesizer = hosts.Synthesizer(**settings)
    synthesizer.create()
    synthesizer.fit(people)
    assert synthesizer.sample().shape == (500, 2)


class PublishedQuerier(abc.ABC):
    """What lomas-server 0.4.1 has of a querier: cost before query, both of a request."""

    def __init__(self, data_connector, admin_database):
        self.data_connector, self.admin_database = data_connector, admin_database

    @abc.abstractmethod
    def cost(self, query_json):
        """ε and δ."""

    @abc.abstractmethod
    def query(self, query_json):
        """The answer."""


def test_the_querier_for_lomas_has_its_published_interface(people, monkeypatch):
    package = "lomas_server.dp_queries.dp_querier"
    for name in ("lomas_server", "lomas_server.dp_queries", package):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[package].DPQuerier = PublishedQuerier
    space = {}
    exec(blocks("python")[1], space)
    querier = space["SfumatoQuerier"](types.SimpleNamespace(get_pandas_df=lambda: people), None)
    querier.schemas = {"people": ("schema.yaml", "people.ledger")}
    request = types.SimpleNamespace(dataset_name="people", epsilon=1.0, delta=1e-6, nb_samples=7)
    assert querier.cost(request) == (1.0, 1e-6)
    assert len(querier.query(request)) == 7
    assert read_ledger("people.ledger").spent() <= 1.0


def in_r(name):
    """The vectors of text in a list of the R file, by name."""
    text = (R / "R" / "sfumato.R").read_text(encoding="utf-8")
    content = re.search(rf"^{name} <- list\((.*?)^\)", text, re.M | re.S).group(1)
    return {
        key: re.findall(r"(?:(\w+) = )?\"([^\"]+)\"", part)
        for key, part in re.findall(r"(\w+) = c\(([^)]*)\)", content)
    }


CALLS, OPTIONS = in_r("calls"), in_r("options_of")
VALUES = {"given": "age=40", "at": "age=40", "family": "ols", "of": "table", "by": "sex"}


@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name in CALLS for option in (("", ""), *OPTIONS[name])], ids=str
)
def test_each_call_of_the_r_package_is_one_of_the_command_line(name, option, tmp_path):
    """Parsed by the command line's own parser; values stand for the words in capitals."""
    (tmp_path / "file").write_text("")
    words = [word for _, word in CALLS[name]]
    assert words[0] == name
    values = {"EPSILON": "1", "OUT": str(tmp_path / "out"), "QUESTION": "mean"}
    arguments = [values.get(word, str(tmp_path / "file")) if word.isupper() else word for word in words[1:]]
    if option[0]:
        arguments += [option[1], VALUES.get(option[0], "1")]
    context = load_command(name).make_context(name, arguments)
    assert context.params["epsilon" if "EPSILON" in words else "release"] is not None


def test_what_r_names_is_what_the_package_exports():
    functions = re.findall(r"^(sfumato_\w+) <- function", (R / "R" / "sfumato.R").read_text(encoding="utf-8"), re.M)
    exported = re.search(r"export\((.*)\)", (R / "NAMESPACE").read_text(encoding="utf-8")).group(1).split(", ")
    assert sorted(functions) == sorted(exported)
    assert set(OPTIONS) == set(CALLS)


def test_the_r_package_runs(tmp_path):
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed")
    command = tmp_path / "sfumato"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m sfumato "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "SFUMATO": str(command), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ended = subprocess.run(
        [program, "tests/sfumato.R"], cwd=R, env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert (ended.returncode, ended.stdout[-7:]) == (0, "passed\n"), ended.stderr
