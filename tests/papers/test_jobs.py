"""Tables as jobs: they go on where they stopped, and a cell that does not finish is complete."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[2] / "papers"

SCRIPT = """
import os, signal, subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from jobs import Cell, Limits, Results, run_cells
HERE = Path(__file__).parent

def count(name):
    with (HERE / f"{name}.runs").open("a") as file:
        file.write("x")
    return (HERE / f"{name}.runs").stat().st_size

def simple(name):
    return {"runs": count(name)}

def stops_the_table(name):  # the first time, as a power cut would
    if count(name) == 1:
        os.kill(os.getppid(), signal.SIGKILL)
    return {}

def raises(name):
    count(name)
    raise ValueError("told")

def busy(name):
    count(name)
    subprocess.run([sys.executable, "-c", "while True: pass"])

def large(name):
    count(name)
    kept = b"x" * (600 << 20)
    while True:
        pass

if __name__ == "__main__":
    cells = {
        "a": Cell(simple, ("a",)), "b": Cell(stops_the_table, ("b",)), "c": Cell(raises, ("c",)),
        "d": Cell(busy, ("d",), Limits(1.0, 8)), "e": Cell(large, ("e",), Limits(60, 0.4)), "f": Cell(simple, ("f",)),
    }
    run_cells(Results(HERE / "table.jsonl"), cells)
"""


@pytest.mark.slow
def test_a_stopped_table_goes_on(tmp_path: Path) -> None:
    script = tmp_path / "table.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run() -> tuple[int, dict[str, dict[str, object]]]:
        done = subprocess.run([sys.executable, script, PAPERS], capture_output=True, check=False, timeout=120)
        lines = (tmp_path / "table.jsonl").read_text().splitlines()
        return done.returncode, {entry["key"]: entry["value"] for entry in map(json.loads, lines)}

    code, found = run()
    assert code != 0
    assert list(found) == ["a"]
    code, found = run()
    assert code == 0
    assert {key: value["status"] for key, value in found.items()} == {
        "a": "finished", "b": "finished", "c": "failed", "d": "not finished", "e": "not finished", "f": "finished",
    }  # fmt: skip
    assert found["a"]["runs"] == 1
    assert (found["d"]["limit"], found["e"]["limit"]) == ("time", "memory")
    assert found["c"]["error"] == "ValueError: told"
    run()
    runs = {path.stem: path.stat().st_size for path in tmp_path.glob("*.runs")}
    runs.pop("d", None)  # on a busy machine its time may be over before it starts
    assert runs == {"a": 1, "b": 2, "c": 2, "e": 1, "f": 1}  # only what failed is tried again


@pytest.mark.parametrize("cut", ['{"key": "b", "val', '{"key": "b", "value": 2}'])
def test_a_line_that_was_cut_short_costs_only_its_own_figure(tmp_path: Path, cut: str) -> None:
    sys.path.insert(0, str(PAPERS))
    try:
        import jobs
    finally:
        sys.path.pop(0)
    path = tmp_path / "figures.jsonl"
    path.write_text('{"key": "a", "value": 1}\n' + cut)
    results = jobs.Results(path)
    assert results.get("c", lambda: 3) == 3
    assert results.get("b", lambda: 2) == 2
    assert results.get("a", lambda: 9) == 1
    assert results.found == {"a": 1, "b": 2, "c": 3}
