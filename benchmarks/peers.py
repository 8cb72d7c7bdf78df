"""MaxEntropy beside MST, AIM, MWEM and DP-CTGAN of SmartNoise and PrivBayes of dpmm, a process for each fit.

    make peers      # the peers' environments, in .peers
    python benchmarks/peers.py DATA --peer-python .peers/smartnoise/bin/python --dpmm-python .peers/dpmm/bin/python
        [--validate] [--tables adult] [--methods mst aim]

Tables: Adult and three NIST excerpts (`peer_tables.py`; those of P3GM's paper are in papers/p3gm), a tenth held out
with seed 0 before anything else. Releases at (1, 1e-5), add or remove one record; nothing but the schema and the
number of rows is public. The peers work on discrete data: numeric columns reach them in 20 bins between the schema's
bounds, which costs no budget, and a bin of their samples becomes a uniform one of its values. MaxEntropy
reads the columns as they are. A fit and a sample of as many rows get 30 minutes of CPU time, which other work on the
machine does not shorten, and 8 GiB of resident memory; what needs more is killed and recorded as not finished. Scores
are those of `adult.py`: four
classifiers of the target trained on the sample, and mean 2-way total variation against the fitted rows and, in
brackets, the held-out ones. CPU seconds count the start of the process too.

Each cell is written as soon as it is scored, and a cell already in the file is not run again: run the command again
to go on, or to print the table. With `--validate` a third of the training rows (seed 1) stands for the held-out ones,
which are then never touched.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from adult import DELTA, split
from peer_tables import TABLES, Table, decode, encode, public_domain
from scipy.optimize import brentq
from scipy.stats import norm

from sfumato.evaluate import total_variation
from sfumato.evaluate.utility import classifier_scores

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
from jobs import Limits, run_command

HERE = Path(__file__).parent
EPSILON = 1.0
LIMITS = Limits(seconds=30 * 60, gib=8)
HOUSE = "max-entropy"
SMARTNOISE = ("mst", "aim", "mwem", "mwem-by-threes", "dp-ctgan")
FITS = {
    "real": 1,
    "real-binned": 1,
    HOUSE: 3,
    "mst": 3,
    "aim": 1,
    "mwem": 1,
    "mwem-by-threes": 3,
    "dp-ctgan": 3,
    "privbayes": 3,
}
DEFAULT_TABLES = ("adult", "ma2019", "tx2019", "national2019")
DEFAULT_METHODS = ("real", HOUSE, "mst", "aim")


def protocol(*, validate: bool) -> dict[str, Any]:
    return {
        "epsilon": EPSILON,
        "delta": DELTA,
        "limit_cpu_seconds": LIMITS.seconds,
        "limit_gib": LIMITS.gib,
        "scored_on": "validation" if validate else "test",
    }


def gaussian_rho(epsilon: float) -> float:
    """Return ρ = μ²/2 of the Gaussian that is (epsilon, DELTA)-DP: Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) = δ."""

    def excess(mu: float) -> float:
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - DELTA

    return float(brentq(excess, 1e-3, 10 + epsilon)) ** 2 / 2


def sampled(
    method: str, table: Table, train: pd.DataFrame, peer: Path | None, limits: Limits, epsilon: float
) -> tuple[dict[str, Any], Any]:
    """Fit and sample in another process, by the Python `peer`: how that went, and the sample, if it finished."""
    is_house = method == HOUSE
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    if not is_house:
        environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("data", "sample", "report", "schema", "job")}
        job = {"method": method, "epsilon": epsilon, "delta": DELTA, "target": table.target}
        job |= {name: str(path) for name, path in paths.items()}
        if is_house:
            train.to_parquet(paths["data"])
            paths["schema"] = paths["schema"].with_suffix(".json")
            table.schema.save(paths["schema"])
            job["schema"] = str(paths["schema"])
        else:
            encode(train, table).to_csv(paths["data"], index=False)
            job |= {"domain": public_domain(table.schema), "rho": gaussian_rho(epsilon)}
        paths["job"].write_text(json.dumps(job))
        python = sys.executable if is_house else str(peer)
        cell = run_command([python, str(HERE / "peer_worker.py"), str(paths["job"])], limits, environment)
        if cell["status"] != "finished":
            return cell, None
        cell |= json.loads(paths["report"].read_text())
        cell["seconds"] = cell["fit_seconds"] + cell["sample_seconds"]
        if is_house:
            return cell, pd.read_parquet(paths["sample"])
        return cell, decode(pd.read_csv(paths["sample"]), table)


def run_cell(
    method: str,
    table: Table,
    rows: tuple[pd.DataFrame, pd.DataFrame],
    peer: Path | None,
    limits: Limits = LIMITS,
    epsilon: float = EPSILON,
) -> dict[str, Any]:
    """Fit, sample and score once."""
    train, test = rows
    load = os.getloadavg()[0]
    if method == "real":
        cell, sample = {"status": "finished"}, train
    elif method == "real-binned":  # what the peers' bins cost
        cell, sample = {"status": "finished"}, decode(encode(train, table), table)
    else:
        cell, sample = sampled(method, table, train, peer, limits, epsilon)
    cell |= {"load_at_start": load, "fitted_rows": len(train)}
    if sample is None:
        return cell
    cell |= classifier_scores(sample, test, schema=table.schema, target=table.target, positive=table.positive)
    cell["tvd_2way"] = total_variation(train, sample, schema=table.schema, k=2)
    cell["tvd_2way_test"] = total_variation(test, sample, schema=table.schema, k=2)
    return cell


def load_results(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    results = json.loads(path.read_text()) if path.exists() else {"protocol": facts, "cells": {}}
    if results["protocol"] != facts:
        sys.exit(f"Expected {path} to hold figures of this protocol, got another one's. Name another file by --out.")
    return results


def record(path: Path, facts: dict[str, Any], key: str, cell: dict[str, Any]) -> None:
    """Add one cell to the file in one step, so that runs side by side and killed runs lose nothing."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        results = load_results(path, facts)
        results["cells"][key] = cell
        fresh = path.with_suffix(".part")
        fresh.write_text(json.dumps(results, indent=1) + "\n")
        fresh.replace(path)
    finally:
        os.close(folder)


def line(table: str, method: str, cells: list[dict[str, Any]]) -> str:
    """One row of the table in Markdown: means over the fits, and half the range of AUROC and AUPRC."""
    done = [cell for cell in cells if cell["status"] == "finished"]
    if not done:
        cell = cells[0]
        why = f"{cell['status']} ({cell.get('limit', 'error')})"
        costs = [f"{cell[key]:.{digits}f}" if key in cell else "" for key, digits in COSTS.items()]
        return f"| {table} | {method} | {why} | | | {' | '.join(costs)} |"
    columns = {key: [cell[key] for cell in done if key in cell] for key in (*SCORES, *COSTS)}
    scores = [
        f"{statistics.fmean(columns[key]):.3f} ± {(max(columns[key]) - min(columns[key])) / 2:.3f}" for key in SCORES
    ]
    if len(done) == 1:
        scores = [score.split()[0] for score in scores]
    scores[2:] = [f"{scores[2].split()[0]} ({scores[3].split()[0]})"]
    costs = [f"{statistics.fmean(columns[key]):.{digits}f}" if columns[key] else "" for key, digits in COSTS.items()]
    return f"| {table} | {method}, {len(done)} | {' | '.join([*scores, *costs])} |"


SCORES = ("auroc", "auprc", "tvd_2way", "tvd_2way_test")
COSTS = {"seconds": 0, "cpu_seconds": 0, "peak_gib": 1}
HEAD = """| table | method, fits | AUROC | AUPRC | 2-way TVD | seconds | CPU seconds | peak GiB |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def show(cells: dict[str, Any]) -> None:
    print(HEAD)
    for table in TABLES:
        for method in FITS:
            made = [cell for key, cell in cells.items() if key.startswith(f"{table}/{method}/")]
            if made:
                print(line(table, method, made))
    print("\nMade from real records without noise: these figures are NOT private.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the Parquet files")
    parser.add_argument("--peer-python", type=Path, help="Python of an environment with smartnoise-synth")
    parser.add_argument("--dpmm-python", type=Path, help="Python of an environment with dpmm, for privbayes")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(DEFAULT_TABLES))
    parser.add_argument("--methods", nargs="+", choices=FITS, default=list(DEFAULT_METHODS))
    parser.add_argument("--most-fits", type=int, default=3, help="of a method on a table, by default 3; of AIM 1")
    parser.add_argument("--validate", action="store_true", help="score on training rows instead")
    parser.add_argument("--out", type=Path, help="figures as JSON; by default results/peers[_validation].json")
    arguments = parser.parse_args()
    pythons = dict.fromkeys(SMARTNOISE, arguments.peer_python) | {"privbayes": arguments.dpmm_python}
    for method in arguments.methods:
        if method in pythons and pythons[method] is None:
            parser.error(f"--{'dpmm' if method == 'privbayes' else 'peer'}-python is needed for {method}.")
    name = "peers_validation.json" if arguments.validate else "peers.json"
    out, facts = arguments.out or HERE / "results" / name, protocol(validate=arguments.validate)
    for name in arguments.tables:
        table = TABLES[name](arguments.data)
        train, test = split(table.frame, share=0.1, seed=0)
        rows = split(train, share=1 / 3, seed=1) if arguments.validate else (train, test)
        for method in arguments.methods:
            for number in range(min(FITS[method], arguments.most_fits)):
                key = f"{name}/{method}/{number}"
                known = load_results(out, facts)["cells"].get(key)
                if known and known["status"] != "failed":
                    continue
                cell = run_cell(method, table, rows, pythons.get(method))
                record(out, facts, key, cell)
                print(f"{key}: {cell['status']}", file=sys.stderr)
    show(load_results(out, facts)["cells"])


if __name__ == "__main__":
    main()
