"""Many fits against one ledger, killed here and there: exactly what it can pay for is charged, and nothing is lost."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from fixtures import tables
from fixtures.processes import serving
from sfumato import MaxEntropy, create_ledger, load, read_ledger
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.plan import Neighbours

# One process imports the package and calibrates; every fit is a child of its, which dies at the place that is named.
DRIVER = """
import json, os, signal, sys
from pathlib import Path
from sfumato.cli.app import run
from sfumato.privacy.ledger import Ledger
from sfumato.release import files
from sfumato.data_ledger import data_ledger
from fixtures import tables
from fixtures.accounting import remember
import pytest
from fixtures.sampling import little_effort
from sfumato import MaxEntropy

remember(setattr)
little_effort(pytest.MonkeyPatch())
MaxEntropy(epsilon=1).describe_plan(tables.schema())

PLACES = {
    "locked": (data_ledger, "read_ledger_file"), "almost charged": (Path, "replace"), "charged": (Ledger, "charge"),
    "ended": (data_ledger.Charge, "finish"), "writing": (files, "_write"),
}

def dying(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

for line in sys.stdin:
    kills, calls = json.loads(line)
    children = []
    for place, arguments in zip(kills, calls, strict=True):
        child = os.fork()
        if child == 0:
            if place is not None:
                setattr(*PLACES[place], dying)
            sys.stdout = sys.stderr = open(os.devnull, "w")
            os._exit(run(arguments))
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps([children, codes]), flush=True)
"""

DELTA = 1e-5
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def driver():
    with serving(DRIVER) as process:
        yield process


PLACES = ("locked", "almost charged", "charged", "ended", "writing")


def compete(driver, folder: Path, *, payable: int, kills: list[str | None]) -> list[int]:
    """Run fits at once, each killed at its place, on a ledger that pays for few; check; return exit codes."""
    folder.mkdir()
    tables.write_csv(folder / "people.csv")
    (folder / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    plan = MaxEntropy(epsilon=1).plan(tables.schema())
    epsilon = account_of_fits([plan] * payable, DELTA, Neighbours.ADD_REMOVE).epsilon
    create_ledger(folder / "l", epsilon=epsilon * (1 + 1e-6), delta=DELTA)
    calls = [
        ["fit", "people.csv", "--schema", "schema.yaml", "--epsilon", "1", "--out", f"r{i}", "--ledger", "l"]
        for i in range(len(kills))
    ]
    calls = [
        [str(folder / a) if a in ("people.csv", "schema.yaml", "l") or a[0] == "r" else a for a in c] for c in calls
    ]
    driver.stdin.write(json.dumps([kills, calls]) + "\n")
    driver.stdin.flush()
    children, codes = json.loads(driver.stdout.readline())

    charged = {fit.process.number: fit.status for fit in read_ledger(folder / "l").fits}
    assert len(charged) == len(read_ledger(folder / "l").fits) == payable
    assert set(charged.values()) <= {"finished", "killed"}
    names = {path.name for path in folder.iterdir()}
    for i, (child, code) in enumerate(zip(children, codes, strict=True)):
        if child not in charged:
            assert code in (1, -signal.SIGKILL)
            assert f"r{i}" not in names
            assert not any(name.startswith(f".r{i}.") for name in names)
        elif code == 0:
            assert charged[child] == "finished"
            assert load(folder / f"r{i}").certificate.private
        else:
            assert code == -signal.SIGKILL
    return codes


@pytest.mark.slow
def test_concurrent_fits_and_kills(driver, tmp_path):
    """Those that die before they are charged cost nothing; of the others as many are charged as can be."""
    kills = [None, "locked", None, "almost charged", None, "charged", None, "writing"]
    codes = compete(driver, tmp_path / "a", payable=3, kills=kills)
    assert codes[1] == -signal.SIGKILL
    codes = compete(driver, tmp_path / "b", payable=3, kills=["charged", "ended", "writing", "charged"])
    assert sorted(codes) == 3 * [-signal.SIGKILL] + [1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_fifty_fits_and_ten_payments(driver, tmp_path, seed):
    rng = np.random.default_rng(seed)
    kills = [str(rng.choice(PLACES)) if i % 2 else None for i in range(50)]
    compete(driver, tmp_path / "a", payable=10, kills=kills)


def test_the_commands(call, tmp_path):
    path = tmp_path / "l"
    assert call("ledger", "create", path, "--epsilon", 1, "--delta", 1e-6).code == 0
    assert call("ledger", "create", path, "--epsilon", 1, "--delta", 1e-6).code == 2
    assert call("ledger", "create", tmp_path / "m", "--epsilon", -1, "--delta", 1e-6).code == 2
    tables.write_csv(tmp_path / "p.csv")
    (tmp_path / "s.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    fit = ("fit", tmp_path / "p.csv", "--schema", tmp_path / "s.yaml", "--delta", 1e-6, "--ledger", path)
    assert call(*fit, "--epsilon", 1, "--out", tmp_path / "r").code == 0
    refused = call(*fit, "--epsilon", 0.1, "--out", tmp_path / "q")
    assert refused.code == 1
    assert "can pay for" in refused.err
    assert not (tmp_path / "q").exists()
    shown = call("ledger", "show", path, "--json").json
    assert set(shown) == {"budget", "neighbours", "spent", "further", "fits"}
    assert shown["spent"]["epsilon"] == pytest.approx(1, abs=1e-3)
    (fitted,) = shown["fits"]
    assert fitted["status"] == "finished"
    assert set(fitted) == {
        "charge", "chain", "id", "method", "unit", "status", "started", "ended", "runs", "release", "epsilon_alone",
        "events",
    }  # fmt: skip
    assert "finished" in call("ledger", "show", path).out
    assert call("ledger", "show", tmp_path / "absent").code == 2
