"""Many fits at once against one ledger, some of them killed: as many are charged as it can pay for, and no other
leaves a file."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import tables
from sfumato import ConditionalGaussian, cli, create_ledger, load, read_ledger
from sfumato.privacy.across_fits import account_of_fits
from sfumato.privacy.plan import Neighbours

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

DELTA = 1e-5
# One process imports the package and does the accounting; every fit is a child of its, killed when the request says.
# Nothing before the fork may start a thread.
DRIVER = """
import functools, json, os, signal, sys, time
from sfumato.cli.app import run
from fixtures import tables
from fixtures.accounting import remember
from sfumato import ConditionalGaussian, PrivacyBudget
from sfumato.privacy import across_fits
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours
from sfumato.release import model
from sfumato.synthesizers import gaussian

gaussian._CALIBRATION_ROWS, model.SAMPLE_BLOCK = 1000, 128
remember(setattr)
synthesizer = ConditionalGaussian(epsilon=1)
synthesizer.describe_plan(tables.schema())
plan = synthesizer.plan(tables.schema())
Ledger(plan, PrivacyBudget(1, 1e-5))

arguments, deaths, payable = json.loads(sys.stdin.readline())
across_fits.account = functools.cache(across_fits.account)
for n in range(1, payable + 2):
    across_fits.account_of_fits([plan] * n, 1e-5, Neighbours.ADD_REMOVE)
begin, children = time.monotonic(), {}
for i, after in enumerate(deaths):
    child = os.fork()
    if child == 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")
        os._exit(run([part.format(i) for part in arguments]))
    children[child] = i
waiting = {child: deaths[i] for child, i in children.items() if deaths[i] is not None}
codes = {}
while len(codes) < len(children):
    for child in [c for c, after in waiting.items() if time.monotonic() - begin >= after and c not in codes]:
        del waiting[child]
        os.kill(child, signal.SIGKILL)
    done, status = os.waitpid(-1, os.WNOHANG)
    if done:
        codes[done] = os.waitstatus_to_exitcode(status)
    else:
        time.sleep(0.002)
print(json.dumps([[child, codes[child]] for child in children]))
"""


def crowd(folder: Path, deaths: list[float | None], payable: int) -> list[tuple[int, int]]:
    """Run a fit per entry, all at once, each killed after so many seconds if at all; return (process, exit code)."""
    environment = os.environ | {
        "PYTHONPATH": f"{Path(cli.__file__).parents[2]}{os.pathsep}{Path(tables.__file__).parents[1]}",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    fit = ["fit", folder / "people.csv", "--schema", folder / "schema.yaml", "--epsilon", 1, "--delta", DELTA]
    fit += ["--ledger", folder / "people.ledger", "--out", f"{folder}/r{{0}}.sfm"]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([[str(part) for part in fit], deaths, payable]) + "\n",
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    return [(int(process), int(code)) for process, code in json.loads(done.stdout)]


def prepare(folder: Path, payable: int) -> None:
    """Write records, schema, and a ledger that pays for so many fits and not one more."""
    tables.write_csv(folder / "people.csv")
    (folder / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    plan = ConditionalGaussian(epsilon=1, delta=DELTA).plan(tables.schema())
    enough, more = (account_of_fits([plan] * n, DELTA, Neighbours.ADD_REMOVE).epsilon for n in (payable, payable + 1))
    create_ledger(folder / "people.ledger", epsilon=(enough + more) / 2, delta=DELTA)


def check(folder: Path, ran: list[tuple[int, int]], payable: int) -> dict[str, int]:
    """Exactly so many are charged, each finished or killed; and nobody else left anything."""
    fits = read_ledger(folder / "people.ledger").fits
    assert len(fits) == payable
    assert {fit.status for fit in fits} <= {"finished", "killed"}
    charged = {fit.process.number: fit.status for fit in fits}
    assert len(charged) == payable
    for i, (process, code) in enumerate(ran):
        release = folder / f"r{i}.sfm"
        if process not in charged:
            assert code in (1, 2, -9)
            assert not list(folder.glob(f"*r{i}.sfm*")), "an uncharged fit left a file"
        elif code == 0:
            assert charged[process] == "finished"
        if release.exists():
            assert charged[process] == "finished"
            assert load(release).certificate.private
    known = {"people.csv", "schema.yaml", "people.ledger", "people.ledger.lock"}
    others = {path.name for path in folder.iterdir() if not path.match("r*.sfm")} - known
    assert all(name.startswith(".") and name.endswith(".partial") for name in others)
    return {status: list(charged.values()).count(status) for status in ("finished", "killed")}


def deaths_of(seed: int, fits: int, share: float, latest: float) -> list[float | None]:
    draw = random.Random(seed)
    return [draw.uniform(0.0, latest) if draw.random() < share else None for _ in range(fits)]


def test_a_few_at_once(tmp_path):
    prepare(tmp_path, 2)
    check(tmp_path, crowd(tmp_path, deaths_of(0, 8, 0.3, 2.0), 2), 2)


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(20))
def test_fifty_at_once(tmp_path, repetition):
    """Acceptance: 50 fits, a ledger for 10, two in five killed at a random moment, 20 times."""
    prepare(tmp_path, 10)
    found = check(tmp_path, crowd(tmp_path, deaths_of(repetition, 50, 0.4, 15.0), 10), 10)
    print(f"repetition {repetition}: {found}")
