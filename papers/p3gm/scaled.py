"""Seizure on its own scale, and private: P3GM on amplitudes between public bounds, beside the ranks of Table VI.

    python papers/p3gm/scaled.py --data FOLDER [--methods released best] [--bound 500] [--runs 3] [--validate]

A record's 178 amplitudes are an image of one line, each clamped to ±bound by itself, so its vector holds the amplitudes
÷ 2·bound and no rank, and no marginal is bought. The recorder has 12 bits, ±2048; ±500 was fixed before a run, as the
EEG of a waking adult is within ±100 µV. `released` has the noise of the authors' code at the ε of its preset, the
others ε = 1. Scored as in Table VI. "released, no noise" and "best, no noise" say what noise is to blame for: they are
not private.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import DELTA, p3gm, parser, peer_tables, read, split

import sfumato
from sfumato.columns.kinds import Categorical, Image
from sfumato.evaluate.utility import classifier_scores
from sfumato.fitting.synthesizer import Synthesizer

sys.path.insert(0, str(Path(__file__).parents[1]))
from jobs import Results

DATA, LABELS = "esr", ("0", "1")
METHODS: dict[str, Callable[[int], Synthesizer]] = {
    "released": lambda rows: p3gm.synthesizer("released", DATA, rows),
    "best": lambda rows: replace(p3gm.synthesizer("best", DATA, rows), variance=False),
    "max-entropy": lambda rows: sfumato.MaxEntropy(epsilon=1.0, delta=DELTA),
}
SILENT = ", no noise"  # after a method's name
METHODS |= {
    f"{name}{SILENT}": lambda rows, make=METHODS[name]: replace(make(rows), epsilon=sfumato.NonPrivate())
    for name in ("released", "best")
}


def run(folder: Path, method: str, bound: int, *, validate: bool) -> dict[str, float]:
    """Fit once to amplitudes and labels, sample as many rows, and score."""
    table = peer_tables.TABLES[DATA](folder)
    train, held = split(table.frame, share=0.1, seed=0)
    if validate:
        train, held = split(train, share=1 / 3, seed=1)
    numbers = train.columns.drop(table.target)
    amplitudes = Image(shape=(len(numbers),), dtype="int16", lower=-bound, upper=bound)
    schema = sfumato.Schema(columns={"x": amplitudes, "y": Categorical(categories=LABELS)}, rows=table.schema.rows)
    records = {"x": train[numbers].to_numpy(np.int16), "y": train[table.target].to_numpy(str)}
    release = METHODS[method](table.schema.rows or len(train)).fit(records, schema=schema)
    made = release.sample(len(train))
    columns = pd.DataFrame(np.asarray(made["x"]), columns=numbers).assign(**{table.target: made["y"].astype(str)})
    scores = classifier_scores(columns, held, schema=table.schema, target=table.target, positive=table.positive)
    found = {name: round(scores[name], 4) for name in ("auroc", "auprc")}
    epsilon = release.certificate.epsilon
    return {**found, "epsilon": None if epsilon is None else round(epsilon, 4)}


def main() -> None:
    """Run what is missing, and print."""
    arguments = parser(__doc__)
    private = [name for name in METHODS if not name.endswith(SILENT)]
    arguments.add_argument("--methods", nargs="+", default=private, choices=METHODS)
    arguments.add_argument("--bound", type=int, default=500)
    options = arguments.parse_args()
    kind = "validation" if options.validate else "test"
    results = Results(options.out / f"scaled_{kind}.jsonl")
    shared = {"folder": read(options), "bound": options.bound, "validate": options.validate}
    found: dict[str, list[dict[str, Any]]] = {
        method: [
            results.get(f"{method} {options.bound} {i}", partial(run, method=method, **shared))
            for i in range(options.runs)
        ]
        for method in options.methods
    }
    results.note(f"scaled {kind}", {"bound": options.bound, "runs": found})


if __name__ == "__main__":
    main()
