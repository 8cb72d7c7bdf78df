"""What the tables of P3GM's paper share: data sets, methods, one cell of a table, and where the peers live."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import p3gm
import peer_tables
import peers
from adult import split
from jobs import Limits
from tabulated import why_not

import sfumato
from sfumato.evaluate import total_variation
from sfumato.evaluate.utility import classifier_scores
from sfumato.fitting.synthesizer import Synthesizer

DELTA = 1e-5
DATA = ("adult", "credit", "esr", "isolet")
WIDE = ("esr", "isolet")
P3GM = ("released", "written", "best", "pgm", "plain vae", "vae")
PEERS = (*peers.SMARTNOISE, "privbayes")
REAL = ("real", "real-binned")
NAMES = {
    "released": "P3GM, as released",
    "written": "P3GM, as written",
    "best": "P3GM, best form",
    "pgm": "PGM (no noise)",
    "plain vae": "VAE (no noise)",
    "vae": "DP-VAE",
    "dpgm": "DPGM",
    "max-entropy": "max-entropy",
    "mst": "MST",
    "aim": "AIM",
    "mwem": "MWEM",
    "mwem-by-threes": "MWEM, columns in threes",
    "dp-ctgan": "DP-CTGAN",
    "privbayes": "PrivBayes",
    "real": "real rows",
    "real-binned": "real rows in the peers' bins",
}
OURS: Mapping[str, Callable[..., Synthesizer]] = {"max-entropy": sfumato.MaxEntropy, "dpgm": sfumato.DPGM}
NO_LIMITS = Limits(seconds=float("inf"), gib=float("inf"))


def parser(text: str | None) -> argparse.ArgumentParser:
    """Arguments of every script here."""
    arguments = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, default=os.environ.get("SFUMATO_DATA"), help="folder of the data")
    arguments.add_argument("--out", type=Path, default=Path("papers/p3gm/out"), help="folder of results and pictures")
    arguments.add_argument("--peers", type=Path, default=Path(".peers"), help="folder of the peers' environments")
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--minutes", type=float, default=30, help="of CPU time that a cell gets")
    arguments.add_argument("--validate", action="store_true", help="score on training rows; held-out rows are not read")
    return arguments


def read(arguments: argparse.Namespace) -> Path:
    """Folder of the data, or an error that says how to give it."""
    if arguments.data is None:
        raise SystemExit("Expected the folder of the data: --data FOLDER, or SFUMATO_DATA=FOLDER.")
    return Path(arguments.data)


def peer_python(folder: Path, method: str) -> Path:
    """Python of a peer's environment."""
    return folder.resolve() / ("dpmm" if method == "privbayes" else "smartnoise") / "bin" / "python"


def table_cell(
    folder: Path, data: str, method: str, peer_folder: Path, validate: bool, epsilon: float = 1.0
) -> dict[str, Any]:
    """Fit once, sample as many rows as were fitted, and score; figures of one cell."""
    if method in P3GM:
        return p3gm.table_run(folder, data, method, validate=validate, epsilon=epsilon)
    table = peer_tables.TABLES[data](folder)
    train, held = split(table.frame, share=0.1, seed=0)
    if validate:
        train, held = split(train, share=1 / 3, seed=1)
    if method in OURS:
        return ours(OURS[method](epsilon=epsilon, delta=DELTA), table, train, held)
    # limits are those of the whole cell, whose process family is watched
    return peers.run_cell(method, table, (train, held), peer_python(peer_folder, method), NO_LIMITS, epsilon)


def ours(method: Synthesizer, table: peer_tables.Table, train: Any, held: Any) -> dict[str, Any]:
    """Fit a method of ours to the table as it is, and score."""
    begun = time.perf_counter()
    release = method.fit(train, schema=table.schema, target=table.target)
    seconds = time.perf_counter() - begun
    made = release.sample(len(train))
    scores = classifier_scores(made, held, schema=table.schema, target=table.target, positive=table.positive)
    return {
        **{key: scores[key] for key in ("auroc", "auprc", "per_classifier")},
        "tvd_2way": total_variation(train, made, schema=table.schema, k=2),
        "tvd_2way_test": total_variation(held, made, schema=table.schema, k=2),
        "fit_seconds": seconds,
        "epsilon": release.certificate.epsilon,
    }


def mean(runs: Sequence[Mapping[str, Any]], name: str) -> float | str:
    """The mean of a score over the runs that have it; where none has, why."""
    found = [run[name] for run in runs if name in run]
    return round(fmean(found), 4) if found else why_not(runs[0])
