"""Rerun the cheap cells of docs/papers.md, and compare them with expected.json.

    python papers/quick.py --data FOLDER [--only TEXT] [--list] [--out FOLDER]

Scripts run one after the other, in a folder of their own, so that nothing is taken over. A cell without noise, or with
noise of a seed, has to be equal to the last digit that the page prints. One whose noise is secret has to lie where a
further run of the same law does, by a t interval about the mean of the runs that are written down: with their standard
deviation, at least 0.005, at a level at which one rerun in a hundred tells of a difference that is none. So has one of
a trained network, whose last digits are those of the processor. Whatever differs is named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parent))
from judged import LEAST
from tabulated import grouped

HERE = Path(__file__).parent
FALSE_ALARMS = 0.01  # of all random cells together
RANDOM = ("auroc", "auprc", "tvd_2way")


@dataclass(frozen=True)
class Rerun:
    """A command, where its figures are, and where what was written down of them is.

    Attributes:
        command: as the page names it; `FOLDER` is that of the data.
        source: a file in the folder of results, or "stdout", whose last value it is.
        place: keys in that value.
        at: the paper, and keys in its expected.json.
        digits: that the page prints.
        random: whether noise has no seed: then the value is results by key, and `at` is runs by key.
        trained: whether a network is trained, whose steps add up rounding: then both are lists of runs by key.
        means: whether pairs are a mean and how sure it is, which is not compared.
    """

    command: str
    source: str
    place: tuple[str, ...]
    at: tuple[str, ...]
    digits: int = 3
    random: bool = False
    trained: bool = False
    means: bool = False


_EM, _P3GM, _DPGM, _DPMIX = (f"python papers/{paper}" for paper in ("dp_em", "p3gm", "dpgm", "dpmix"))
RERUNS = (
    Rerun(f"{_P3GM}/figure_9.py", "figure_9_figure_9.json", ("figure 9",), ("p3gm", "figures", "figure_9"), 2),
    Rerun(f"{_EM}/figure_1.py", "stdout", (), ("dp_em", "figure_1", "found")),
    Rerun(f"{_EM}/figure_3.py --data FOLDER --splits 10", "stdout", ("mean_and_error",),
          ("dp_em", "figure_3", "mean_and_error"), 2),
    Rerun(f"{_EM}/figure_4.py --data FOLDER --splits 10 --places gowalla_nyc", "stdout", ("mean_and_error",),
          ("dp_em", "figure_4", "mean_and_error"), 4),
    Rerun(f"{_EM}/figure_4.py --data FOLDER --iterations 20 --epsilons 0.01 --places gowalla_nyc", "stdout",
          ("mean_and_error",), ("dp_em", "figure_4", "iterations", "gowalla_nyc", "20", "mean_and_error"), 4),
    Rerun(f"{_DPGM}/accounts.py --run", "accounts.json", (), ("dpgm", "accounts")),
    *(Rerun(f"{_DPGM}/figure_3.py --data FOLDER --features 50 --plain --epsilons 0.1 1",
            f"figure_3_{start.replace('-', '_').replace(' ', '_')}__T_8__20_runs.json",
            (f"{start}, T 8, 20 runs", "kernel, d = 50"),
            ("dpgm", "figure_3", "mean_and_runs", f"{start} | kernel, d = 50"), means=True)
      for start in ("data-free", "public records")),
    Rerun(f'{_DPGM}/figure_5.py --data FOLDER --only bms --epsilons 1 --methods "answer 0" "independent items"',
          "figure_5_bms__ε___1__3_runs.json", ("bms, ε = 1, 3 runs",), ("dpgm", "figure_5", "errors", "bms, ε = 1")),
    Rerun(f"{_DPMIX}/as_published.py --data FOLDER --accounts --cells subsets:10:64 subsets:20:64 unit:10:64 "
          "unit:20:64 unit:10:16 fixed:10:64 fixed:20:64", "accounts_accounts.json", ("accounts",),
          ("dpmix", "accounts"), 2),
    Rerun(f"{_DPMIX}/table_1.py --data FOLDER --degrees 64", "mnist-table-1.jsonl", (), ("dpmix", "table_1", "mnist")),
    Rerun(f"{_DPMIX}/tables.py --data FOLDER --network linear --cells baselines", "mnist-linear.jsonl", (),
          ("dpmix", "test_images", "mnist, linear")),
    Rerun(f'{_P3GM}/as_published.py --data FOLDER --table esr --forms released --scalings "unit variance" --runs 1',
          "as_published_esr_as_published_esr.json", ("as published esr", "runs"),
          ("p3gm", "as_published", "esr", "runs"), trained=True),
    Rerun(f"{_P3GM}/tables.py --data FOLDER --only credit adult --methods max-entropy dpgm real --runs 1",
          "tables_test.jsonl", (), ("p3gm", "runs"), random=True),
)  # fmt: skip


def leaves(value: Any, *keys: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every number and text of a JSON value, with the keys that lead to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, *keys, str(key))
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from leaves(inner, *keys, str(i))
    else:
        yield keys, value


def differences(expected: Any, again: Any, digits: int) -> tuple[int, list[str]]:
    """Return how many figures of a rerun are written down, and those that are not equal to so many digits."""
    known, count, wrong = dict(leaves(expected)), 0, []
    for keys, value in leaves(again):
        before = known.get(keys)
        if not (_is_number(value) and _is_number(before)):
            continue
        count += 1
        if f"{value:.{digits}f}" != f"{before:.{digits}f}":
            wrong.append(f"{', '.join(keys)}: {value:.{digits}f}, written down {before:.{digits}f}")
    return count, wrong if count else ["none of its figures is written down"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def allowance(runs: Sequence[float], level: float) -> float:
    """Return how far a further run may be from the mean of these: half a prediction interval of Student's t."""
    n = len(runs)
    return float(student.ppf(1 - level / 2, n - 1)) * max(stdev(runs), LEAST) * math.sqrt(1 + 1 / n)


def random_differences(expected: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[int, list[str]]:
    """The same of runs whose noise is secret, against all that are written down of the same data and method."""
    runs, figures = grouped(expected), []
    for key, run in again.items():
        data, method, _ = key.split(" | ")
        for name in RANDOM:
            before = [one[name] for one in runs.get((data, method), []) if name in one]
            if name in run and len(before) > 1:
                figures.append((f"{data}, {method}, {name}", run[name], before))
    return _far_off(figures)


def trained_differences(
    expected: Mapping[str, Sequence[Mapping[str, float]]], again: Mapping[str, Sequence[Mapping[str, float]]]
) -> tuple[int, list[str]]:
    """The same of runs of trained networks, against all that are written down of the same key."""
    figures = [
        (f"{key}, {name}", value, [run[name] for run in expected[key]])
        for key, runs in again.items()
        for one in runs
        for name, value in one.items()
        if len(expected.get(key, ())) > 1
    ]
    return _far_off(figures)


def _far_off(figures: Sequence[tuple[str, float, Sequence[float]]]) -> tuple[int, list[str]]:
    """Return how many figures there are, each a name, a value and runs before, and those that lie too far off."""
    wrong = [
        f"{name}: {value:.3f}, of {len(before)} runs {fmean(before):.3f} ± {stdev(before):.3f}"
        for name, value, before in figures
        if abs(value - fmean(before)) > allowance(before, FALSE_ALARMS / len(figures))
    ]
    return len(figures), wrong if figures else ["no run has a spread to compare with"]


def compared(rerun: Rerun, expected: Any, again: Any) -> tuple[int, list[str]]:
    """Return how many figures were compared, and what differs."""
    if rerun.random:
        return random_differences(expected, again)
    if rerun.trained:
        return trained_differences(expected, again)
    if rerun.means:
        expected, again = ({key: pair[0] for key, pair in each.items()} for each in (expected, again))
    return differences(expected, again, rerun.digits)


def results_of(rerun: Rerun, folder: Path, printed: str) -> Any:
    """Return the figures of a rerun."""
    if rerun.source == "stdout":
        start = max(printed.rfind("\n{\n"), printed.rfind("\n{'"), 0)
        text = printed[start:].strip()
        value = ast.literal_eval(text) if text.startswith("{'") else json.loads(text)
    else:
        text = (folder / rerun.source).read_text(encoding="utf-8")
        if rerun.source.endswith(".jsonl"):
            entries = [json.loads(line) for line in text.splitlines()]
            value = {entry["key"].removeprefix("degree="): entry["value"] for entry in entries}
        else:
            value = json.loads(text)
    for key in rerun.place:
        value = value[key]
    return value


def written_down(at: Sequence[str]) -> Any:
    """Return what stands in a paper's expected.json."""
    value = json.loads((HERE / at[0] / "expected.json").read_text(encoding="utf-8"))
    for key in at[1:]:
        value = value[key]
    return value


def run(command: str, data: Path, out: Path) -> str:
    """Run a command and return what it printed.

    Raises:
        SystemExit: it failed.
    """
    words = [str(data) if word == "FOLDER" else word for word in shlex.split(command)]
    line = [sys.executable, *words[1:], "--out", str(out.absolute())]
    done = subprocess.run(line, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "stdout.txt").write_text(done.stdout, encoding="utf-8")
    return done.stdout


def main() -> None:
    """Run, compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SFUMATO_DATA"), help="folder of the data")
    parser.add_argument("--only", default="", help="commands that hold this text")
    parser.add_argument("--list", action="store_true", help="print the commands, and run none")
    parser.add_argument("--out", type=Path, help="a new folder that keeps what the scripts write, for keep.py")
    options = parser.parse_args()
    chosen = [rerun for rerun in RERUNS if options.only in rerun.command]
    if options.list:
        print("\n".join(dict.fromkeys(rerun.command for rerun in chosen)))
        return
    if options.data is None:
        parser.error("expected the folder of the data: --data FOLDER, or SFUMATO_DATA=FOLDER")
    begun, total, wrong = time.monotonic(), 0, []
    if options.out is not None and options.out.exists():
        parser.error(f"expected a new folder, as what is there would not be run again: {options.out}")
    with nullcontext(options.out) if options.out else tempfile.TemporaryDirectory() as name:
        printed: dict[str, str] = {}
        for rerun in chosen:
            start = time.monotonic()
            out = Path(name) / str([one.command for one in chosen].index(rerun.command))
            if rerun.command not in printed:
                printed[rerun.command] = run(rerun.command, options.data, out)
            count, found = compared(rerun, written_down(rerun.at), results_of(rerun, out, printed[rerun.command]))
            total += count
            wrong += [f"{'.'.join(rerun.at)}: {each}    ({rerun.command})" for each in found]
            seconds = time.monotonic() - start
            print(f"{rerun.command}: {count} figures, {len(found)} differ, {seconds:.0f} s", flush=True)
    print(f"{total} figures compared in {(time.monotonic() - begun) / 60:.1f} minutes; {len(wrong)} differ.")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
