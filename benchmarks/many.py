"""Many rows a person: what samples keep of four laws, beside tables dealt anew, a tenth of the persons, a noisy chain.

    python benchmarks/many.py [--laws path clinic ledger register] [--epsilon 1 3] [--persons 600] [--fits 1]
                              [--kinds draw tenth dealt release chain] [--limit 900] [--out FILE]

*Path* is one table of linked rows, the others are databases (`many_laws.py`; `--parameters` prints the laws alone). All
records are made up. δ = 1e-6, add or remove one person with all rows; the noise is secret, the records are the same in
all fits. A fit runs in a process of its own; one that raises or passes --limit seconds is a line that says so. Without
options it takes about three minutes of processor time.

Printed are mean total variations to the records of the two-way tables of each block (`many_blocks.py`):

    own, given, lag    a column of a row and: another one; one of the row above or of the person; its own of the row
                       before
    between            columns of two tables of a person, of which none is above the other
    numbers            numbers of rows
    next, two, five    of path: state and the next one; two states and the next one; a state and that five on
    curves, days       of path: states by step; state and days to the next

    bar         what a coming model has to reach, of 5,000 persons (path, clinic) or 3,000; set on other laws alike
    release     mean and worst of the fits
    own dealt   samples of the release, each table dealt anew to rows above, persons and rows before: what keeping
                nothing between them gives; blocks that dealing leaves as they are have none
    chain       path alone: a first-order Markov chain from noisy counts at the same (ε, δ) (`chain`, in this file)
    draw        the law once more, with as many persons: samples cannot be expected to be nearer
    tenth       a tenth of the persons, without noise
    dealt       the records, dealt anew

Then facts: rows that cannot be, shares that no pair of columns shows, rows of each table ÷ those of the records,
seconds of processor time and the most memory of a fit; which certain facts the schema cannot say. Of the clinic,
eighteen questions (`many_questions.py`): the records' value, how many answers there are (one a group and fit), how many
intervals of 95 % hold that value, and their mean width ÷ that of the records' own sampling interval.

    --kinds noiseless   a fit without noise, beside
    --kinds rows        the coming model (`row_model.py`), whose noise is numpy's
    --kinds declared    a fit with all certain facts that its schema can say; `release` has those of the documents
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import many_questions
import numpy as np
import pandas as pd
import row_model
from many_blocks import blocks, errors, tables_of
from many_laws import LAWS, LONGEST, MOST_EVENTS, PARAMETERS, Law, Tables, apart, joined
from scipy.special import ndtr

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.errors import SfumatoError

DELTA = 1e-6
KINDS = ("draw", "tenth", "dealt", "release", "chain")
WORST = ("release", "rows")
DEALT = {"release": "own dealt", "rows": "rows dealt"}
FITTED = ("release", "noiseless", "declared", "rows")
BARS = {
    "path": {"next": (0.05, 0.04), "two": (0.09, 0.065), "five": (0.06, 0.045), "curves": (0.05, 0.03)},
    "clinic": {"own": (0.22, 0.18), "given": (0.18, 0.14), "between": (0.075, 0.045)},
    "ledger": {"own": (0.15, 0.11), "given": (0.11, 0.085), "between": (0.09, 0.055)},
    "register": {"own": (0.085, 0.055), "given": (0.08, 0.05), "between": (0.06, 0.045)},
}
"""By block: the most total variation at ε = 1 and 3."""
Line = dict[str, Any]


# The chain.


def gaussian(epsilon: float, delta: float) -> float:
    """Return the least deviation of Gaussian noise for (ε, δ) at sensitivity 1, by its exact δ."""
    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = (low * high) ** 0.5
        exact = ndtr(0.5 / middle - epsilon * middle) - np.exp(epsilon) * ndtr(-0.5 / middle - epsilon * middle)
        low, high = (low, middle) if exact < delta else (middle, high)
    return high


def chain(tables: Tables, epsilon: float, rng: np.random.Generator) -> Tables:
    """Return as many persons of a first-order chain: start, transitions, lengths with their end, days by state."""
    names, bins = PARAMETERS["path"]["states"], 16
    n, rows = len(tables["persons"]), tables["events"].sort_values(["person", "day"], kind="stable")
    who, state = rows["person"].to_numpy(), pd.Index(names).get_indexer(rows["state"])
    first, last = np.diff(who, prepend=-1) != 0, np.diff(who, append=n) != 0
    stage = tables["persons"]["stage"].astype(int).to_numpy() - 1
    length, end, gap = np.bincount(who), np.maximum(state[last] - 6, 0), np.diff(rows["day"])[~last[:-1]]
    step = np.flatnonzero(~last)

    def noisy(owner: np.ndarray, cell: np.ndarray, size: int, most: float, share: float) -> np.ndarray:
        counts = np.bincount(owner * size + cell, minlength=n * size).reshape(n, size).astype(float)
        counts *= np.minimum(1, most / np.maximum(np.linalg.norm(counts, axis=1), 1e-9))[:, None]
        noise = most * gaussian(epsilon, DELTA) / share**0.5 * rng.normal(size=size)
        return np.maximum(counts.sum(axis=0) + noise, 0) + 1e-9

    persons = np.arange(n)
    starts = noisy(persons, stage * 7 + state[first], 28, 1, 0.1)
    lengths = noisy(persons, 3 * length + end, 3 * MOST_EVENTS + 3, 1, 0.2)
    moves = noisy(who[step], state[step] * 9 + state[step + 1], 63, 4, 0.5).reshape(7, 9)
    days = noisy(who[step], state[step] * bins + np.minimum(gap * bins // LONGEST, bins - 1), 7 * bins, 4, 0.2)

    def picks(weights: np.ndarray) -> np.ndarray:
        sums = weights.cumsum(axis=1)
        return (sums < rng.random((len(weights), 1)) * sums[:, -1:]).sum(axis=1)

    stage, now = np.divmod(picks(np.tile(starts, (n, 1))), 7)
    goes, end = np.divmod(picks(np.tile(lengths, (n, 1))), 3)
    day, parts = rng.integers(0, 700, n), []
    for place in range(MOST_EVENTS):
        on = np.flatnonzero(np.maximum(goes, 1) > place)
        parts.append(pd.DataFrame({"person": on, "day": day[on], "state": np.array(names)[now[on]]}))
        on = on[goes[on] > place + 1]
        day[on] += ((picks(days.reshape(7, bins)[now[on]]) + rng.random(on.size)) * LONGEST / bins).astype(int)
        ends = (goes[on] == place + 2) & (end[on] > 0)
        now[on] = np.where(ends, 6 + end[on], picks(moves[now[on], :7]))
    rows = pd.concat(parts, ignore_index=True)
    return {"persons": pd.DataFrame({"person": persons, "stage": (stage + 1).astype(str)}), "events": rows}


# Fits, each in a process of its own.


def declared(law: Law, n: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the document with all certain facts that a schema can say, and why it cannot say the others."""
    document, reasons = law.document(n), dict[str, str]()
    for words, add in law.wishes.items():
        if add is None:
            reasons[words] = "schemas have no form for it"
            continue
        try:
            MaxEntropy(epsilon=1.0, delta=DELTA).plan(Schema.from_dict(add(document)))
            document = add(document)
        except SfumatoError as error:
            reasons[words] = str(error)
    return document, reasons


def fit(name: str, kind: str, epsilon: float, persons: int, out: Path) -> None:
    """Fit once in this process, write the samples, print what it took and what the release answers."""
    law, real = LAWS[name], LAWS[name].draw(persons, 1)
    if kind == "rows":
        fit_rows(law, real, epsilon, persons, out)
        return
    document = declared(law, persons)[0] if kind == "declared" else law.document(persons)
    method = MaxEntropy(epsilon=NonPrivate() if kind == "noiseless" else epsilon, delta=DELTA)
    data, begin = joined(real) if name == "path" else real, time.process_time()
    release = method.fit(data, schema=Schema.from_dict(document))
    middle = time.process_time()
    sample = release.sample(persons)
    line: Line = {"cpu": middle - begin, "cpu sample": time.process_time() - middle}
    line["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pd.to_pickle(apart(sample) if name == "path" else sample, out)
    if name == "clinic":
        line["answers"] = many_questions.of_release(release)
    print(json.dumps(line))


def fit_rows(law: Law, real: Tables, epsilon: float, persons: int, out: Path) -> None:
    """Fit the coming model once in this process, write the samples, print what it took."""
    document, begin, tables = law.document(persons), time.process_time(), dict(real)
    if "tables" not in document:  # linked rows, as tables whose rows have a key
        unit, entries = document["unit"], tables_of(document)
        entries["persons"] |= {"rows": persons}
        entries["events"] |= {"key": "event", "ends": unit["ends"]}
        document = {"tables": entries, "columns": {**document["columns"], "event": "identifier"}}
        tables["events"] = tables["events"].assign(event=np.arange(len(tables["events"])))
    sample = row_model.sample(Schema.from_dict(document), tables, epsilon, DELTA)
    for name in sample:
        sample[name] = sample[name][list(real[name])]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pd.to_pickle(sample, out)
    print(json.dumps({"cpu": time.process_time() - begin, "cpu sample": 0.0, "peak": peak}))


def fit_apart(name: str, kind: str, epsilon: float, args: argparse.Namespace) -> tuple[Tables | None, Line]:
    """Return samples of a fit and what it took; of one that fails none, and why."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tables.pickle"
        words = [name, kind, str(epsilon), str(args.persons), str(out)]
        command = [sys.executable, "-W", "ignore", __file__, "--worker", *words]
        try:
            process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=args.limit)
        except subprocess.TimeoutExpired:
            return None, {"failed": f"no end in {args.limit:g} seconds"}
        if process.returncode:
            return None, {"failed": (process.stderr.strip() or f"exit {process.returncode}").splitlines()[-1]}
        return pd.read_pickle(out), json.loads(process.stdout.splitlines()[-1])


# Figures.


def of_persons(law: Law, tables: Tables, chosen: np.ndarray) -> Tables:
    """Return the tables of some persons, by their place."""
    entries, part = tables_of(law.document(1)), dict[str, pd.DataFrame]()
    for name, entry in entries.items():
        frame = tables[name]
        if "of" not in entry:
            part[name] = frame[chosen].reset_index(drop=True)
        else:
            key = entries[entry["of"]]["key"]
            part[name] = frame[frame[key].isin(part[entry["of"]][key])].reset_index(drop=True)
    return part


def scores(law: Law, real: dict[str, dict[str, np.ndarray]], tables: Tables, deal: int | None = None) -> Line:
    """Return total variations by block."""
    rng = None if deal is None else np.random.default_rng(deal)
    by_block = errors(real, blocks(law, tables, rng))
    return {block: float(np.mean(list(pairs.values()))) for block, pairs in by_block.items()}


def beside(name: str, kinds: list[str], real: Tables, args: argparse.Namespace) -> Iterator[tuple[str, Line]]:
    """Yield the lines of what needs no budget."""
    law, tables = LAWS[name], blocks(LAWS[name], real)
    for place in range(args.fits):
        rng = np.random.default_rng(place)
        if "draw" in kinds:
            other = law.draw(args.persons, 1_000 + place)
            yield "draw", {"scores": scores(law, tables, other), **facts(law, real, other)}
        if "tenth" in kinds:
            part = of_persons(law, real, rng.permutation(args.persons) < max(args.persons // 10, 1))
            yield "tenth", {"scores": scores(law, tables, part), **facts(law, real, part, times=10)}
        if "dealt" in kinds:
            yield "dealt", {"scores": scores(law, tables, real, deal=place)}


def facts(law: Law, real: Tables, tables: Tables, times: float = 1) -> Line:
    """Return what may not be, and rows ÷ those of the records."""
    rows = {f"rows of {name} ÷ real": times * len(tables[name]) / max(len(real[name]), 1) for name in real}
    return {"facts": {**law.facts(tables), **rows}}


def budgeted(name: str, epsilon: float, real: Tables, args: argparse.Namespace) -> Iterator[tuple[str, Line]]:
    """Yield the lines of what spends budget: fits of the release, samples of it dealt anew, chains."""
    law, of_real = LAWS[name], blocks(LAWS[name], real)
    for place in range(args.fits):
        for kind in (kind for kind in FITTED if kind in args.kinds):
            tables, line = fit_apart(name, kind, epsilon, args)
            if tables is not None:
                line |= {"scores": scores(law, of_real, tables), **facts(law, real, tables)}
            yield kind, line
            if tables is not None and kind in ("release", "rows"):
                yield DEALT[kind], {"scores": scores(law, of_real, tables, deal=place)}
        if "chain" in args.kinds and name == "path":
            tables = chain(real, epsilon, np.random.default_rng())
            yield "chain", {"scores": scores(law, of_real, tables), **facts(law, real, tables)}


# What is printed.

COLUMNS = ("release", "own dealt", "rows", "rows dealt", "chain", "noiseless", "declared", "draw", "tenth", "dealt")


def table(head: list[str], lines: list[list[str]]) -> str:
    """Return columns of equal width, the first to the left."""
    widths = [max(len(line[place]) for line in [head, *lines]) for place in range(len(head))]
    rows = (
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in [head, *lines]
    )
    return "\n".join(f"  {row.rstrip()}" for row in rows)


def shown(value: float | None, digits: int = 3) -> str:
    if value is None or not np.isfinite(value):
        return ""
    return f"{value:.0f}" if value == round(value) and digits != 3 else f"{value:.{digits}f}"


def mean_of(lines: list[Line], part: str, name: str) -> tuple[float | None, float | None]:
    """Return mean and worst over lines."""
    values = [line[part][name] for line in lines if part in line and name in line[part]]
    return (float(np.mean(values)), float(np.max(values))) if values else (None, None)


def show_scores(name: str, epsilon: float, lines: dict[str, list[Line]]) -> None:
    names = [kind for kind in COLUMNS if any("scores" in line for line in lines.get(kind, ()))]
    order = ("next", "two", "five", "curves", "days", "own", "given", "lag", "between", "numbers")
    blocks_of = [b for b in order if any(mean_of(lines[kind], "scores", b)[0] is not None for kind in names)]
    head = ["block", "bar"] + [word for kind in names for word in ((kind, "worst") if kind in WORST else (kind,))]
    body = []
    for block in blocks_of:
        bar = BARS[name].get(block, ())
        place = {1.0: 0, 3.0: 1}.get(epsilon)
        cells = [block, shown(bar[place]) if bar and place is not None else ""]
        for kind in names:
            mean, worst = mean_of(lines[kind], "scores", block)
            cells += [shown(mean), shown(worst)] if kind in WORST else [shown(mean)]
        body.append(cells)
    print(table(head, body))


def show_facts(law: Law, real: Tables, lines: dict[str, list[Line]]) -> None:
    names = [kind for kind in COLUMNS if any("facts" in line for line in lines.get(kind, ()))]
    if not names:
        return
    of_real, body = facts(law, real, real)["facts"], []
    for fact in of_real:
        bar = "0.9 to 1.1" if "÷" in fact else "0" if of_real[fact] == 0 else ""
        cells = [fact, bar, shown(of_real[fact], 4)]
        for kind in names:
            mean, worst = mean_of(lines[kind], "facts", fact)
            cells += [shown(mean, 4), shown(worst, 4)] if kind == "release" else [shown(mean, 4)]
        body.append(cells)
    head = ["fact", "bar", "real"] + [
        word for kind in names for word in ((kind, "most") if kind == "release" else (kind,))
    ]
    print(table(head, body))


def show_costs(lines: dict[str, list[Line]]) -> None:
    for kind in FITTED:
        whole = [line for line in lines.get(kind, ()) if "cpu" in line]
        if whole:
            cpu, draws = ([line[key] for line in whole] for key in ("cpu", "cpu sample"))
            print(
                f"  {kind}: fit {np.mean(cpu):.1f} s of processor time (most {max(cpu):.1f}), samples"
                f" {np.mean(draws):.1f} s, most memory {max(line['peak'] for line in whole):.0f} MiB (bar: a fit of"
                " 5,000 persons with nine tables 10 s)"
            )
        for line in lines.get(kind, ()):
            if "failed" in line:
                print(f"  {kind} failed: {line['failed']}")


def show_questions(law: Law, real: Tables, fits: list[Line]) -> None:
    answers = [line["answers"] for line in fits if "answers" in line]
    if not answers:
        return
    n, groups = len(real["persons"]), many_questions.GROUPS
    without = (of_persons(law, real, np.arange(n) % groups != place) for place in range(groups))
    print(table(many_questions.HEAD, many_questions.lines_of(many_questions.of_records(real, without), answers)))
    print("\n".join(many_questions.refusals(answers)))


def show_worse(name: str, by_epsilon: dict[float, dict[str, list[Line]]]) -> None:
    """Print the blocks that a larger ε has more than .01 further off."""
    low, high = by_epsilon.get(1.0, {}), by_epsilon.get(3.0, {})
    for block in ("next", "two", "five", "curves", "days", "own", "given", "lag", "between", "numbers"):
        one, three = (mean_of(lines.get("release", []), "scores", block)[0] for lines in (low, high))
        if one is not None and three is not None and three > one + 0.01:
            print(f"  {name}, {block}: ε = 3 is further off than ε = 1, {three:.3f} beside {one:.3f}")


def run(name: str, args: argparse.Namespace, write: Callable[[Line], None]) -> None:
    """Print all of one law."""
    law, real = LAWS[name], LAWS[name].draw(args.persons, 1)
    print(f"\n{name}: {args.persons:,} persons; rows of " + ", ".join(f"{key} {len(t):,}" for key, t in real.items()))
    print("\n".join(f"  {key}: {value}" for key, value in PARAMETERS[name].items()))
    for words, why in declared(law, args.persons)[1].items():
        print(f"  not sayable: {words}: {why}")
    free = dict[str, list[Line]]()
    for kind, line in beside(name, args.kinds, real, args):
        free.setdefault(kind, []).append(line)
        write({"law": name, "persons": args.persons, "kind": kind, **line})
    by_epsilon = dict[float, dict[str, list[Line]]]()
    for epsilon in args.epsilon:
        lines = by_epsilon[epsilon] = {kind: list(of) for kind, of in free.items()}
        for kind, line in budgeted(name, epsilon, real, args):
            lines.setdefault(kind, []).append(line)
            write({"law": name, "persons": args.persons, "epsilon": epsilon, "kind": kind, **line})
        print(f"\n{name}, ε = {epsilon:g}, {args.persons:,} persons, fits: {args.fits}")
        show_scores(name, epsilon, lines)
        show_facts(law, real, lines)
        show_costs(lines)
        if name == "clinic":
            show_questions(law, real, lines.get("release", []))
        sys.stdout.flush()
    show_worse(name, by_epsilon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--persons", type=int, default=600)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS, *FITTED[1:]], default=list(KINDS))
    parser.add_argument("--limit", type=float, default=900, help="seconds of a fit")
    parser.add_argument("--out", type=Path, help="of JSON lines")
    parser.add_argument("--parameters", action="store_true", help="print the laws alone")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        name, kind, epsilon, persons, out = args.worker
        fit(name, kind, float(epsilon), int(persons), Path(out))
        return
    if args.parameters:
        print(json.dumps({name: PARAMETERS[name] for name in args.laws}, indent=1, ensure_ascii=False))
        return

    def write(line: Line) -> None:
        if args.out:
            with args.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    warnings.simplefilter("ignore")
    for name in args.laws:
        run(name, args, write)


if __name__ == "__main__":
    main()
