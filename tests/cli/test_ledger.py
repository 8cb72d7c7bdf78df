"""Many fits against one ledger, killed at random: exactly what it can pay for is charged, and nothing is lost."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from fixtures import tables
from fixtures.processes import serving
from sfumato import ConditionalGaussian, create_ledger, load, read_ledger
from sfumato.privacy.across_fits import account_of_fits
from sfumato.privacy.plan import Neighbours

# One process imports the package and calibrates; every fit is a child of its.
DRIVER = """
import json, os, signal, sys, time
from sfumato.cli.app import run
from sfumato.synthesizers import gaussian
from fixtures import tables
from fixtures.accounting import remember
from sfumato import ConditionalGaussian

remember(setattr)
gaussian._CALIBRATION_ROWS = 1_000
ConditionalGaussian(epsilon=1).describe_plan(tables.schema())

for line in sys.stdin:
    kills, calls = json.loads(line)
    children = []
    for arguments in calls:
        child = os.fork()
        if child == 0:
            sys.stdout = sys.stderr = open(os.devnull, "w")
            os._exit(run(arguments))
        children.append(child)
    start, codes = time.monotonic(), {}
    for after, i in sorted((after, i) for i, after in enumerate(kills) if after is not None):
        time.sleep(max(0, start + after - time.monotonic()))
        os.kill(children[i], signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps([children, codes]), flush=True)
"""

DELTA = 1e-5
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def driver():
    with serving(DRIVER) as process:
        yield process


def compete(driver, folder: Path, *, fits: int, payable: int, kills: list[float | None]) -> list[int]:
    """Run so many fits at once against a ledger that can pay for few; check what has to hold; return exit codes."""
    folder.mkdir()
    tables.write_csv(folder / "people.csv")
    (folder / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    plan = ConditionalGaussian(epsilon=1).plan(tables.schema())
    epsilon = account_of_fits([plan] * payable, DELTA, Neighbours.ADD_REMOVE).epsilon
    create_ledger(folder / "l", epsilon=epsilon * (1 + 1e-6), delta=DELTA)
    calls = [
        ["fit", "people.csv", "--schema", "schema.yaml", "--epsilon", "1", "--out", f"r{i}", "--ledger", "l"]
        for i in range(fits)
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


def test_concurrent_fits_and_kills(driver, tmp_path):
    kills = [None, 0.4, None, 0.8, None, 1.6, None, 2.5]
    codes = compete(driver, tmp_path / "a", fits=8, payable=3, kills=kills)
    assert -signal.SIGKILL in codes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_fifty_fits_and_ten_payments(driver, tmp_path, seed):
    rng = np.random.default_rng(seed)
    kills = [float(rng.uniform(0, 25)) if i % 2 else None for i in range(50)]
    compete(driver, tmp_path / "a", fits=50, payable=10, kills=kills)


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
    assert set(shown) == {"budget", "neighbours", "spent", "fits"}
    assert shown["spent"]["epsilon"] == pytest.approx(1, abs=1e-3)
    (fitted,) = shown["fits"]
    assert fitted["status"] == "finished"
    assert set(fitted) == {"id", "method", "unit", "status", "started", "ended", "epsilon_alone", "events"}
    assert "finished" in call("ledger", "show", path).out
    assert call("ledger", "show", tmp_path / "absent").code == 2
