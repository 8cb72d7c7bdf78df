"""The score of NIST's Collaborative Research Cycle, K-marginal of `sdnist` 2.4, of releases of three excerpts.

    python benchmarks/nist.py DATA [--table ma|tx|national] [--columns 9|10|11|21|24] [--epsilon 1|none]
        [--target PINCP_DECILE] [--areas PUMA] [--runs 3] [--seed 0] [--out FILE] [--sdnist SDNIST/bin/python]

    python -m venv SDNIST && SDNIST/bin/pip install sdnist==2.4     # Python 3.11, an environment of its own

0 to 1,000: 1,000 (1 - mean total variation) over all pairs of columns but PUMA and INDP, of the two columns *with PUMA*
wherever PUMA is a column; a score without it is another figure and is not printed. All rows are fitted, and they are
what is scored against. AGEP, PINCP, POVPIP and the weights PWGTP and WGTP are in 20 percentile bins of the fitted
rows, DENSITY in bins of its logarithm; a missing cell is a level of its own.

The names of the columns are those of the bundle's index (`crc_data_and_metric_bundle_1.1/index.csv` of
usnistgov/privacy_collaborative_research_cycle): 9 industry-focused, 10 demographic-focused (without PUMA), 11
family-focused, 21 simple-features, 24 all-features. Schemas are the ones that NIST publishes beside the tables
(`sdnist_*2019.schema.json`), and the number of rows is that of its README, rounded. Releases are at δ = 1e-5, add or
remove one row, secret noise; `--epsilon none` shows the model's own error. Beside them stand random real rows, 10, 20
and 40 % of them, as in NIST's reports. With `--sdnist` each score is computed by the package too, and must be the same.
Every figure is made from real records without noise: NOT private.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import DELTA
from nist_schema import published_schema

import sfumato

INDUSTRY = "PUMA SEX MSP HISP RAC1P OWN_RENT INDP_CAT EDU PINCP_DECILE"
DEMOGRAPHIC = "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE"
FAMILY = "PUMA AGEP SEX MSP HISP RAC1P NOC NPF OWN_RENT PINCP_DECILE POVPIP"
BEYOND_SIMPLE = ("INDP", "PWGTP", "WGTP")
ROWS = {"ma": 7_600, "tx": 9_300, "national": 27_300}
"""README of the excerpts: 7,634, 9,276 and 27,254."""

MISSING = "N"
GROUPED_BY = "PUMA"
UNPAIRED = ("PUMA", "INDP")
NUMBERS = ("AGEP", "PINCP", "POVPIP", "PWGTP", "WGTP")
PERCENTILE_BINS = 20
DENSEST = 52_864.7 + 500
DENSITY_EDGES = np.array([0, 150, *np.logspace(1, math.log10(DENSEST), 21)[8:]])
SHARES = (10, 20, 40)
THEIRS = """
import sys
from pathlib import Path
import sdnist.report  # first: the two import each other
from sdnist.load import TestDatasetName
from sdnist.metrics.kmarginal import KMarginal
from sdnist.report.dataset import Dataset
from sdnist.utils import SimpleLogger
root, name, path = sys.argv[1:]
data = Dataset(Path(path), SimpleLogger(), TestDatasetName[name], data_root=Path(root), download=False)
groups = data.config["k_marginal"]["group_features"]
print(repr(float(KMarginal(data.d_target_data, data.d_synthetic_data, groups).compute_score())))
"""


@dataclass(frozen=True)
class Excerpt:
    """The columns of a table that one set names, and their public schema."""

    name: str
    frame: pd.DataFrame
    schema: sfumato.Schema
    folder: Path


def excerpt(folder: Path, name: str, columns: int = 21) -> Excerpt:
    """Read the columns of a set of `columns` names, and what NIST publishes of them."""
    frame = pd.read_parquet(folder / f"sdnist_{name}2019.parquet")
    schema = published_schema(folder / f"sdnist_{name}2019.schema.json")
    sets = {9: INDUSTRY.split(), 10: DEMOGRAPHIC.split(), 11: FAMILY.split(), 24: list(frame)}
    sets[21] = [column for column in frame if column not in BEYOND_SIMPLE]
    frame = frame[sets[columns]]
    # pandas reads whole numbers with missing cells as floats
    frame = frame.astype({column: "Int64" for column in ("NOC", "NPF", "PINCP", "POVPIP") if column in frame})
    kinds = {column: schema.columns[column] for column in frame}
    return Excerpt(name, frame, replace(schema, columns=kinds, rows=ROWS[name]), folder)


def written(frame: pd.DataFrame) -> pd.DataFrame:
    """Return cells as NIST's files have them: text, whole numbers but DENSITY, N for a missing one."""
    whole = [name for name in frame.select_dtypes("float") if name != "DENSITY"]
    return frame.astype(dict.fromkeys(whole, "Int64")).astype("string").fillna(MISSING).astype(object)


def percentile_codes(real: pd.Series, made: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return bins of the real numbers' percentiles, equal numbers together, and of made ones; missing is -1.

    A made number is in the lowest bin whose largest real number it does not exceed. Where no real row is in bin 0,
    what is not above 0 stays what it is: as in the package.
    """
    known, other = real.notna(), made.notna()
    bins = np.full(len(real), -1)
    ranks = real[known].rank(pct=True).to_numpy()
    bins[known] = np.minimum((PERCENTILE_BINS * ranks).astype(int), PERCENTILE_BINS - 1)
    tops = real[known].groupby(bins[known]).max()
    values = np.trunc(made[other].to_numpy(float))
    found = tops.index.to_numpy()[np.searchsorted(tops.to_numpy()[:-1], values)]
    codes = np.full(len(made), -1)
    codes[other] = found if tops.index[0] == 0 else np.where(values <= 0, values, found)
    return bins, codes


def density_codes(values: pd.Series) -> np.ndarray:
    """Return bins of the logarithm, of which the lowest two are wider."""
    whole = np.trunc(values.to_numpy(float)).clip(min=0)
    return np.searchsorted(DENSITY_EDGES, np.where(whole > DENSEST, DENSEST - 100, whole)) - 1


def codes(real: pd.DataFrame, made: pd.DataFrame) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Yield names, and levels of both tables counted from 0, of cells as `written`."""
    for name in real:
        pair = (real[name], made[name])
        if name in NUMBERS or name == "DENSITY":
            numbers = [pd.to_numeric(column.where(column != MISSING)) for column in pair]
            binned = map(density_codes, numbers) if name == "DENSITY" else percentile_codes(numbers[0], numbers[1])
            pair = tuple(map(pd.Series, binned))
        levels = pd.factorize(pd.concat(pair), sort=True)[0]
        yield str(name), (levels[: len(real)], levels[len(real) :])


def distances(real: pd.DataFrame, made: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the sum of absolute differences of shares, of every pair of columns, with PUMA where it is a column."""
    levels = dict(codes(written(real), written(made[list(real)])))
    groups = levels.get(GROUPED_BY, (np.zeros(len(real), int), np.zeros(len(made), int)))
    found = {}
    for pair in combinations(sorted(set(levels) - set(UNPAIRED)), 2):
        three = (groups, levels[pair[0]], levels[pair[1]])
        sizes = [1 + max(column.max() for column in both) for both in three]
        shares = [
            np.bincount(np.ravel_multi_index(side, sizes), minlength=math.prod(sizes)) / len(side[0])
            for side in zip(*three, strict=True)
        ]
        found[pair] = float(np.abs(shares[0] - shares[1]).sum())
    return found


def score(real: pd.DataFrame, made: pd.DataFrame) -> float:
    """Return the official score of rows that stand for `real`: 1,000 is best."""
    return (2 - statistics.fmean(distances(real, made).values())) * 500


def their_score(python: Path, table: Excerpt, made: pd.DataFrame) -> float:
    """Return the score of the package, in the environment of `python`, from files laid out as it wants them."""
    places = {"ma": "massachusetts", "tx": "texas", "national": "national"}
    with tempfile.TemporaryDirectory() as home:
        root = Path(home) / "excerpts"
        target = root / places[table.name] / f"{table.name}2019.csv"
        target.parent.mkdir(parents=True)
        written(excerpt(table.folder, table.name, 24).frame).to_csv(target, index=False)  # it wants every column
        shutil.copy(table.folder / f"sdnist_{table.name}2019.schema.json", target.with_suffix(".json"))
        shutil.copy(table.folder / "sdnist_data_dictionary.json", root / "data_dictionary.json")
        areas = json.loads((root / "data_dictionary.json").read_text())[GROUPED_BY]["values"]
        (root / "mappings.json").write_text(json.dumps({GROUPED_BY: {code: {"name": code} for code in areas}}))
        (root / "config.json").write_text("{}")
        sample = Path(home) / "made.csv"
        written(made).to_csv(sample, index=False)
        command = [str(python), "-c", THEIRS, str(root), f"{table.name}2019", str(sample)]
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=home, env=clean)
    if answer.returncode:
        sys.exit(answer.stderr[-2000:])
    return float(answer.stdout.splitlines()[-1])


def released(table: Excerpt, epsilon: float | None, favoured: dict[str, Any], seed: int) -> tuple[pd.DataFrame, float]:
    """Fit the default method and sample as many rows as were fitted; and the seconds that took."""
    method = sfumato.MaxEntropy(epsilon=sfumato.NonPrivate() if epsilon is None else epsilon, delta=DELTA)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no noise is not private
        release = method.fit(table.frame, schema=table.schema, **favoured)
    return release.sample(len(table.frame), seed=seed), time.perf_counter() - start


def figures(table: Excerpt, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a figure of each release, then of random real rows."""
    facts = {"table": table.name, "columns": len(table.frame.columns), "rows": len(table.frame)}
    cost = "no noise" if arguments.epsilon is None else f"ε = {arguments.epsilon:g}"
    favoured = {"target": arguments.target, "areas": arguments.areas}
    favoured = {name: value for name, value in favoured.items() if value}
    towards = "".join(f", {name} {value if name == 'target' else ' '.join(value)}" for name, value in favoured.items())
    for run in range(arguments.runs):
        made, seconds = released(table, arguments.epsilon, favoured, arguments.seed + run)
        asked = {"of": f"max-entropy, {cost}{towards}", "run": run, "seconds": round(seconds, 1)}
        yield facts | asked | scored(table, made, arguments.sdnist)
    for share in SHARES:
        made = table.frame.sample(frac=share / 100, random_state=arguments.seed)
        yield facts | {"of": f"random {share} % of the rows"} | scored(table, made, arguments.sdnist)


def scored(table: Excerpt, made: pd.DataFrame, python: Path | None) -> dict[str, float]:
    """Return the score, and the package's where it is there, which has to be the same."""
    ours = score(table.frame, made)
    if python is None:
        return {"score": ours}
    theirs = their_score(python, table, made)
    if abs(ours - theirs) > 1e-9:
        sys.exit(f"Expected the score of sdnist, {theirs!r}, got {ours!r}.")
    return {"score": ours, "sdnist": theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    home = os.environ.get("SFUMATO_DATA")
    parser.add_argument("data", type=Path, nargs="?", default=home, help="folder of the tables; or SFUMATO_DATA")
    parser.add_argument("--table", choices=ROWS, default="ma")
    parser.add_argument("--columns", type=int, choices=(9, 10, 11, 21, 24), default=21)
    parser.add_argument("--epsilon", type=lambda text: None if text == "none" else float(text), default=1.0)
    parser.add_argument("--target", help="column to favour, such as PUMA or PINCP; by default none")
    parser.add_argument("--areas", nargs="+", help="columns that others are counted by, such as PUMA; by default none")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of samples and of random rows; noise is secret")
    parser.add_argument("--out", type=Path, help="file that figures are added to, a JSON line each")
    parser.add_argument("--sdnist", type=Path, help="Python of an environment with sdnist 2.4")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("Expected a folder of tables, got none. Name it, or set SFUMATO_DATA.")
    table = excerpt(arguments.data, arguments.table, arguments.columns)
    if arguments.target not in (None, *table.schema.columns):
        parser.error(f"Expected --target to be one of {', '.join(table.schema.columns)}.")
    if arguments.sdnist is None:
        print("sdnist: skipped, no environment with it was named by --sdnist", file=sys.stderr)
    print("| table | columns | of | run | score | sdnist | seconds |\n| --- | --- | --- | --- | --- | --- | --- |")
    for figure in figures(table, arguments):
        shown = [figure["table"], figure["columns"], figure["of"], figure.get("run", "")]
        theirs = f"{figure['sdnist']:.6f}" if "sdnist" in figure else "skipped"
        print(f"| {' | '.join(map(str, shown))} | {figure['score']:.6f} | {theirs} | {figure.get('seconds', '')} |")
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(figure, ensure_ascii=False) + "\n")
    print("\nMade from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
