"""Our k-marginal score beside that of NIST's `sdnist`, run in an environment of its own, on the same cells.

    python -m venv SDNIST && SDNIST/bin/pip install sdnist==2.4
    python benchmarks/k_marginal.py DATA --sdnist-python SDNIST/bin/python [--table ma2019]

Real rows and samples of MaxEntropy at ε = 1 as the cells that total variation counts. sdnist leaves the
columns PUMA and INDP out of its pairs, so both are scored without them. The figures are NOT private.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import peer_tables
from adult import DELTA

import sfumato
from sfumato.evaluate import total_variation

LEFT_OUT = ("PUMA", "INDP")
THEIRS = """
import json, sys
import pandas as pd
import sdnist.report  # first: the two import each other
from sdnist.metrics.kmarginal import KMarginal
real, made = (pd.read_csv(path) for path in sys.argv[1:])
print(json.dumps(float(KMarginal(real, made).compute_score())))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the Parquet files")
    parser.add_argument("--sdnist-python", type=Path, required=True)
    parser.add_argument("--table", choices=("ma2019", "tx2019", "national2019"), default="ma2019")
    arguments = parser.parse_args()
    table = peer_tables.TABLES[arguments.table](arguments.data)
    method = sfumato.MaxEntropy(epsilon=1.0, delta=DELTA)
    made = method.fit(table.frame, schema=table.schema, target=table.target).sample(len(table.frame), seed=0)
    kept = {name: kind for name, kind in table.schema.columns.items() if name not in LEFT_OUT}
    schema = replace(table.schema, columns=kept)
    ours = 1000 * (1 - total_variation(table.frame, made, schema=schema, k=2))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("real.csv", "made.csv")]
        for frame, path in zip((table.frame, made), paths, strict=True):
            peer_tables.encode(frame, replace(table, schema=schema)).to_csv(path, index=False)
        command = [str(arguments.sdnist_python), "-c", THEIRS, *map(str, paths)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        sys.exit(answer.stderr[-2000:])
    theirs = json.loads(answer.stdout.splitlines()[-1])
    print(f"{arguments.table}: ours {ours:.6f}, sdnist {theirs:.6f}, difference {abs(ours - theirs):.1e}")


if __name__ == "__main__":
    main()
