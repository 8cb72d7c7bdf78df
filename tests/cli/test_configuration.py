"""The configuration file: defaults of options, which the call goes over; what changes the guarantee is not in it."""

import json

import pytest

from fixtures import tables


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    return tmp_path


def write(folder, text: str, name: str = "sfumato.toml") -> None:
    (folder / name).write_text(text, encoding="utf-8")


def test_it_gives_defaults_and_says_so(call, folder) -> None:
    write(folder, 'schema = "schema.yaml"\nepsilon = 2\n[plan]\ntarget = "income"\ndelta = 1e-7\njson = true\n')
    result = call("plan")
    assert result.code == 0, result.err
    plan = json.loads(result.out)
    assert plan["epsilon"] == pytest.approx(2, rel=1e-3)
    assert plan["delta"] == 1e-7
    assert "second moments" in [stage["name"] for stage in plan["stages"]]
    assert " ".join(result.err.split()) == "Note: defaults from sfumato.toml: schema, epsilon, target, delta, json."


def test_the_call_goes_over_the_section_and_that_over_the_top(call, folder) -> None:
    write(folder, 'schema = "schema.yaml"\nepsilon = 2\ndelta = 1e-7\n[plan]\nepsilon = 3\njson = true\n')
    assert json.loads(call("plan").out)["epsilon"] == pytest.approx(3, rel=1e-3)
    assert json.loads(call("plan", "--epsilon", 1).out)["epsilon"] == pytest.approx(1, rel=1e-3)


def test_a_table_of_pyproject_is_one_too(call, folder) -> None:
    write(folder, '[tool.other]\nx = 1\n[tool.sfumato]\nschema = "schema.yaml"\nepsilon = 1\n', "pyproject.toml")
    result = call("plan")
    assert result.code == 0, result.err
    assert "defaults from pyproject.toml" in result.err
    write(folder, "epsilon = 4\n")
    assert "Missing option '--schema'" in call("plan").err


def test_a_pyproject_of_others_is_left_alone(call, folder) -> None:
    write(folder, "this is = = no TOML", "pyproject.toml")
    assert call("plan", "--schema", "schema.yaml", "--epsilon", 1).err == ""


def test_commands_of_a_group_and_repeated_options(call, folder) -> None:
    write(folder, '["schema draft"]\nexact = true\n[plan]\nset = ["pooled_share=0.2"]\nschema = "schema.yaml"\n')
    assert call("schema", "draft", "people.csv", "--out", "d.yaml").code == 0
    assert "discover" not in (folder / "d.yaml").read_text(encoding="utf-8").split("columns:")[1]
    result = call("plan", "--epsilon", 1)
    assert "pooled_share" in result.err  # no setting of the method: the list came through
    assert result.code == 2


def test_another_file_by_name(call, folder) -> None:
    write(folder, 'schema = "schema.yaml"\nepsilon = 1\n', "other.toml")
    assert call("--config", "other.toml", "plan").code == 0
    missing = call("--config", "none.toml", "plan")
    assert (missing.code, "none.toml" in missing.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fit]\nseed = 1\n", "Expected --seed on the call itself"),
        ('[fit]\n"accept-draft" = true\n', "Expected --accept-draft on the call itself"),
        ("[fit]\noverwrite = true\n", "Expected --overwrite on the call itself"),
        ('[report]\nreal = "people.csv"\n', "Expected --real on the call itself"),
        ("seed = 1\n", "got 'seed'"),
        ("[fit]\nepsilom = 1\n", "got 'epsilom'. Did you mean 'epsilon'?"),
        ("epsilom = 1\n", "got 'epsilom'. Did you mean 'epsilon'?"),
        ("[fitt]\nepsilon = 1\n", "got 'fitt'. Did you mean 'fit'?"),
        ("epsilon = [\n", "in TOML"),
        ("epsilon = " + "[" * 5_000 + "]" * 5_000, "nesting too deep"),
        ("epsilon = " + "9" * 5_000, "in TOML"),
        (".".join(["a"] * 20_000) + " = 1", "to have short keys"),
        ("# " + "x" * (1 << 20), "more than 1 MiB"),
        ("[fit]\nepsilon = {a = 1}\n", "Expected a value for 'epsilon'"),
        ("epsilon = 'x'\n", "Invalid value for '--epsilon'"),
    ],
)
def test_what_it_may_not_say_is_refused_before_any_work(call, folder, text: str, said: str) -> None:
    write(folder, text)
    of_fit = ("fit", "people.csv", "--schema", "schema.yaml", "--out", "r")
    result = call(*(("report", "r", "--out", "r.html") if "[report]" in text else of_fit))
    assert result.code == 2
    assert said in " ".join(result.err.split())
    assert not (folder / "r").exists()


def test_a_fit_with_defaults_of_a_file_is_the_fit_of_the_same_call(call, folder) -> None:
    write(folder, 'schema = "schema.yaml"\ntarget = "income"\n[fit]\nepsilon = 1\nout = "a"\n')
    assert call("fit", "people.csv", "--seed", 3).code == 0
    (folder / "sfumato.toml").unlink()
    rest = ("--schema", "schema.yaml", "--target", "income", "--epsilon", 1, "--seed", 3)
    assert call("fit", "people.csv", "--out", "b", *rest).code == 0
    assert (folder / "a" / "arrays.safetensors").read_bytes() == (folder / "b" / "arrays.safetensors").read_bytes()
