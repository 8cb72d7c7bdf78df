"""Tables of the papers' page: Markdown, means with their spread, and what became of a cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

Row = Sequence[object]


def table(head: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown."""
    lines = [list(map(_escaped, head)), ["---"] * len(head), *(list(map(_escaped, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def made_by(commands: Mapping[str, Iterable[str]] | str) -> str:
    """Say which command makes the cells of the table above; of several, which of its rows or columns."""
    if isinstance(commands, str):
        return f"Made by `{commands}`."
    each = (f"{', '.join(cells)} by `{command}`" for command, cells in commands.items())
    return f"Made: {'; '.join(each)}."


def _escaped(entry: object) -> str:
    return str(entry).replace(" | ", ", ")


def spread(values: Sequence[float]) -> str:
    """The mean, and the standard deviation of several."""
    apart = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{apart}"


def grouped(runs: Mapping[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Runs by data and method."""
    found = defaultdict(list)
    for key, run in runs.items():
        data, method, _ = key.split(" | ")
        found[data, method].append(run)
    return found


def cell(runs: Sequence[Mapping[str, Any]], *names: str) -> str:
    """Figures of runs side by side, their number, or why there are none."""
    done = [run for run in runs if names[0] in run]
    if done:
        return " / ".join(spread([run[name] for run in done if name in run]) for name in names) + f" ({len(done)})"
    if not runs:
        return "not run"
    return why_not(runs[0])


def why_not(run: Mapping[str, Any]) -> str:
    """Why a run has no figure."""
    if run.get("status", "finished") == "finished":
        return "not measured"
    if run["status"] != "not finished":
        return f"failed: {run.get('error', '')[:60]}"
    limits = {"memory": "over 8 GiB", "time": f"over {run['cpu_seconds'] / 60:.0f} min"}
    return f"not finished: {limits[run['limit']]}"


def by_epsilon(curves: Mapping[str, Mapping[str, Sequence[float]]], digits: int, verdict: Callable[[str], str]) -> str:
    """A table of means by method and ε, and the verdict on each method."""
    epsilons = sorted({float(e) for points in curves.values() for e in points if e not in ("0", "no noise")})
    shown = [f"{e:g}" for e in epsilons]

    def row(method: str, points: Mapping[str, Sequence[float]]) -> Row:
        still = next((points[e] for e in ("0", "no noise") if e in points), None)
        figures = [f"{points[e][0]:.{digits}f}" if e in points else "" for e in shown]
        return [method, *figures, "" if still is None else f"{still[0]:.{digits}f}", verdict(method)]

    return table(["ε", *shown, "no noise", "verdict"], [row(*entry) for entry in curves.items()])
