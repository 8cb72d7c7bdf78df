"""What an average of the last weights, and a learning rate that falls, do to private descents, at ε = 1 and δ = 1e-5.

Both are functions of noisy gradients and cost nothing. Fitted on two thirds of the training rows (50,000 training
images) and scored on the rest; held-out rows and test images are not read.

    python benchmarks/descent_forms.py DATA [--runs 2] [--only "p3gm adult"] --out FILE

None of these figures is private.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from p3gm_shares import DELTA, adult_score, mnist_score

import sfumato
from sfumato.settings import VAE

FORMS: Mapping[str, Mapping[str, float]] = {
    "as it was": {},
    "last half averaged": {"average": 0.5},
    "rate falls": {"cooldown": 0.8},
    "both": {"cooldown": 0.8, "average": 0.2},
}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA}


def _p3gm(form: Mapping[str, Any], batch_size: int) -> Any:
    return sfumato.P3GM(**BUDGET, batch_size=batch_size, **form)


def _dpvae(form: Mapping[str, Any], batch_size: int) -> Any:
    return sfumato.DPVAE(**BUDGET, batch_size=batch_size, **form)


def _dpgm(form: Mapping[str, Any], **settings: Any) -> Any:
    """DPGM with these settings; clusters of images do not see labels."""
    method = sfumato.DPGM(**BUDGET, component=VAE(**form), **settings)
    return replace(method, class_distance=0.0) if "n_clusters" in settings else method


CASES = {
    "p3gm adult": (adult_score, lambda form: _p3gm(form, 200)),
    "dp-vae adult": (adult_score, lambda form: _dpvae(form, 200)),
    "dpgm adult": (adult_score, lambda form: _dpgm(form)),
    "p3gm mnist": (mnist_score, lambda form: _p3gm(form, 300)),
    "dpgm mnist, blind to labels": (mnist_score, lambda form: _dpgm(form, n_clusters=10)),
}


def summary(runs: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, list[float]]]:
    """Mean score, standard deviation and number of runs by case and form."""
    found: dict[str, dict[str, list[float]]] = {}
    for case in CASES:
        for form in FORMS:
            scores = [run[f"{case} | {form}"] for run in runs.values() if f"{case} | {form}" in run]
            if scores:
                spread = stdev(scores) if len(scores) > 1 else 0.0
                found.setdefault(case, {})[form] = [round(fmean(scores), 4), round(spread, 4), len(scores)]
    return found


def main() -> None:
    """Run what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--out", type=Path, required=True, help="figures as JSON; goes on from the runs in it")
    options = parser.parse_args()
    runs = json.loads(options.out.read_text(encoding="utf-8"))["runs"] if options.out.exists() else {}
    for run in map(str, range(options.runs)):
        for case in options.only:
            score, make = CASES[case]
            for form, settings in FORMS.items():
                key = f"{case} | {form}"
                if key not in runs.setdefault(run, {}):
                    runs[run][key] = round(float(score(make(settings), options.data, int(run))), 4)
                    print(run, key, runs[run][key], flush=True)
                    what = "AUROC of four classifiers, or accuracy after three epochs, on validation rows"
                    found = {"command": "python benchmarks/descent_forms.py DATA --out FILE", "what": what}
                    text = json.dumps({**found, "mean": summary(runs), "runs": runs}, indent=1)
                    options.out.write_text(text + "\n", encoding="utf-8")
    print(json.dumps(summary(runs), indent=1))


if __name__ == "__main__":
    main()
