"""Every script of `benchmarks` still runs: once, on a few rows, in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
DATA = Path(os.environ.get("SFUMATO_DATA", FOLDER.parent / "../shared/data")).resolve()
ROWS, PICTURES = 1_500, 300
SIZES = {"COMPLETE_ROWS": ROWS, "VALIDATION_FROM": PICTURES // 2}

LIBRARIES = {
    "many_blocks", "many_laws", "many_questions", "model_tables", "nist_schema", "pair_laws", "parity_list",
    "peer_tables", "row_laws", "row_model", "row_tables", "suite", "table_scores",
}  # fmt: skip
"""Which scripts run."""
OTHERS = {
    "k_marginal": "needs an environment with sdnist",
    "peer_worker": "needs an environment of a peer: `make peers`",
    "screens": "needs Chromium",
}
FIT_ONCE = ("--fits", "1")
# Words after the script's name, where DATA is the folder of small tables, and constants of the script that are smaller.
TINY: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "accounting": ((), {"REPEATS": 1, "PLANS": {"few": (0.1, 2.0, 20, 1e-3)}}),
    "adult": (("DATA/adult.parquet", "--validate", *FIT_ONCE), {}),
    "adult_without_schema": (("DATA/adult.parquet", "--validate", "--epsilon", "30", *FIT_ONCE), {}),
    "agreement": (("--tables", "1", *FIT_ONCE), {"ROWS": (800,)}),
    "alarms": (("ages",), {}),
    "columns": (("--rows", "600", *FIT_ONCE), {}),
    "no_schema": (("--rows", "600", *FIT_ONCE), {}),
    "single_values": (("--rows", "600", *FIT_ONCE), {}),
    "combine": (("--rows", "600", "--parts", "2", *FIT_ONCE), {}),
    "constants": ((), {}),
    "database_questions": (("--law", "shop", "--units", "600", *FIT_ONCE), {"LARGE": 5_000}),
    "databases": (("--units", "300", *FIT_ONCE), {}),
    "omop": (("--persons", "300", "--epsilon", "3", *FIT_ONCE), {}),
    "dates": (("register", "--rows", "600", *FIT_ONCE), {}),
    "coverage": (("law", "--rows", "500", "--fits", "1"), {"RESULTS": "OUT"}),
    "dependence": (("--columns", "4", "--rows", "500", "--epsilon", "1", "--target", "no"), {}),
    "dependence_pictures": ((str(FOLDER / "results" / "dependence"), "--out", "OUT/tables.png"), {}),
    "dependence_tables": (("DATA", "magic04", "--validate", "--out", "OUT", "--rows", "max-entropy", *FIT_ONCE), {}),
    "degenerate": (("--fits", "2", "--shape", "sets"), {}),
    "dpgm": (("--clusters", "2", "--batch", "50", "--steps", "1"), {}),
    "duration": ((), {"CASES": ((1_000, 4, False),)}),
    "em": (("--rows", "500", "--components", "2", "--columns", "3", "--repeats", "1"), {}),
    "feature_matching": (("DATA", "mnist", "--steps", "1"), {}),
    "figures": (("landing", "--out", "OUT"), {}),
    "gallery": (("--check",), {}),
    "gowalla": (("compare", "DATA", *FIT_ONCE), {}),
    "house": ((), {}),
    "image_levers": (("DATA", "mnist", "--runs", "1", "--out", "OUT/levers.json"), {}),
    "images": (("DATA", "mnist", "--epochs", "1", "--validate"), {}),
    "kmeans": (("--seeds", "1"), {}),
    "levels": (("plain", "--units", "200", "--epsilon", "1", *FIT_ONCE), {}),
    "label_functions": (("clinic", *FIT_ONCE), {}),
    "large_table": (("--rows", "2000"), {}),
    "linked": (("law", "--fits", "1", "--units", "300"), {}),
    "made_tables": ((), {}),
    "many": (
        (
            "--laws",
            "path",
            "clinic",
            "--persons",
            "100",
            "--kinds",
            "draw",
            "tenth",
            "dealt",
            "release",
            "rows",
            "chain",
            "--out",
            "OUT/many.jsonl",
            *FIT_ONCE,
        ),
        {},
    ),
    "model": (("eight", "--kinds", "here", "independent", "tenth", *FIT_ONCE), {}),
    "mixing": (("--mixtures", "200", "--degree", "8", "--records", "200"), {}),
    "named_questions": (
        ("--fits", "1", "--rows", "500", "--alone", "--out", "OUT/questions.jsonl"),
        {"LARGE": 20_000},
    ),
    "nested": (("--units", "300", "--out", "OUT/nested.json", *FIT_ONCE), {"LARGE": 20_000}),
    "nist": (("DATA", "--columns", "9", "--runs", "1", "--out", "OUT/nist.jsonl"), {}),
    "noise": (("--repeats", "20"), {"DRAWS": 2_000}),
    "p3gm": (("DATA", "--only", "adult", "--runs", "1", "--validate", "--out", "OUT/p3gm.json"), {}),
    "p3gm_curves": (("DATA", "--epochs", "1", "--out", "OUT/c.json", "--picture", "OUT/c.png"), {}),
    "p3gm_shares": (
        ("DATA", "--runs", "1", "--out", "OUT/s.json", "--picture", "OUT/s.png"),
        {"SHARES": [0.2]},
    ),
    "paired": (("ages", "--set", "CHAIN.slack=0.65", *FIT_ONCE, "--samples", "1"), {}),
    "parity": (("--fits", "1", "--only", "randhie", "--out", "OUT/parity.json"), {}),
    "prior": (("made", *FIT_ONCE), {"ROWS": 600}),
    "passes": (("rows",), {"CASES": {"rows": [[2_000, 4, 2]]}}),
    "peaks": (("--rows", "1000", *FIT_ONCE), {}),
    "peers": (
        ("DATA", "--tables", "adult", "--methods", "max-entropy", "--most-fits", "1", "--out", "OUT/peers.json"),
        {},
    ),
    "readers": (("--rows", "2000", "--times", "1", "--cases", "labels"), {}),
    "rules": (("DATA", "telco_churn", "--fits", "1", "--rows", "500"), {}),
    "set_coverage": (("--items", "5", "--rows", "300", "--fits", "1"), {"OUT": "OUT", "POPULATION": 20_000}),
    "sets_beside": (("DATA", "--fits", "1", "--items", "5", "--epsilons", "1"), {}),
    "sgd": (("--batch", "20", "--steps", "1", "--rounds", "1"), {}),
    "start": (("--runs", "1", "--only", "methods"), {}),
    "swift_aim": (("DATA", "--tables", "ages", "--out", "OUT/beside.jsonl"), {}),
    "tables": (("DATA", "esr", "--fits", "1", "--validate"), {}),
    "tails": (("--rows", "500", "--fits", "1"), {}),
    "tune": (("DATA/adult.parquet", "--searches", "1", "--repetitions", "1"), {}),
    "unit_questions": (("--fits", "1", "--units", "300", "--large", "2000", "--out", "OUT/units.jsonl"), {}),
    "views": (("--tables", "2 x 900", "--rows", "2000"), {"TABLES": {"2 x 900": (120, 120)}}),
    "weights": (("--rows", "3000", "--fits", "1"), {"RESULTS": "OUT"}),
}
RUN = """
import importlib, json, sys
from pathlib import Path
folder, name, words, constants, sizes = json.loads(sys.argv[1])
sys.path.insert(0, folder)
sys.argv = [f"{folder}/{name}.py", *words]
module = importlib.import_module(name)
for known in [known for known in sys.modules.values() if folder in str(getattr(known, "__file__", ""))]:
    for key, value in sizes.items():  # of Adult, whole; of images to fit
        if hasattr(known, key):
            setattr(known, key, value)
for key, value in constants.items():
    kind = type(getattr(module, key))
    setattr(module, key, value if isinstance(value, kind) else kind(value))
module.main()
"""


def test_every_script_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == TINY.keys() | OTHERS.keys() | LIBRARIES


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows of each table of the shared folder."""
    if not DATA.exists():
        pytest.skip("no folder of data: set SFUMATO_DATA")
    folder = tmp_path_factory.mktemp("data")
    for path in DATA.glob("*.parquet"):
        table = pd.read_parquet(path)
        table = table.dropna() if path.name == "adult.parquet" else table
        rows = len(table) if path.name == "credit_sample.parquet" else min(ROWS, len(table))  # 10,000 are drawn of it
        table.sample(rows, random_state=0).to_parquet(folder / path.name, index=False)
    for path in (DATA / "retail_transactions.npz", *DATA.glob("sdnist_*.schema.json")):
        shutil.copy(path, folder)
    for path in DATA.glob("*mnist.npz"):
        with np.load(path) as stored:
            np.savez(folder / path.name, **{key: stored[key][:PICTURES] for key in stored})
    return folder


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("name", sorted(TINY))
def test_a_script_runs(name: str, small: Path, tmp_path: Path) -> None:
    words, constants = TINY[name]
    if "import matplotlib" in (FOLDER / f"{name}.py").read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib", reason="a picture is drawn by the extra bench alone")

    def placed(text: Any) -> Any:
        return text.replace("DATA", str(small)).replace("OUT", str(tmp_path)) if isinstance(text, str) else text

    smaller = {key: placed(value) for key, value in constants.items()}
    request = [str(FOLDER), name, [placed(word) for word in words], smaller, SIZES]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, json.dumps(request)],
        cwd=tmp_path, env={**os.environ, "SFUMATO_DATA": str(small)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
