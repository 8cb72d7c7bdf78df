"""When a search pays: plain fits of every candidate beside searches among them, at one epsilon, on Adult.

    python benchmarks/tune.py DATA/adult.parquet [--epsilon 1] [--searches 5] [--repetitions 10] [--out scores.json]

Scored by mean 2-way total variation on the validation third of the training rows of `adult.py`; the held-out rows are
not touched. Plain fits tell what a candidate is worth at the whole budget, which nobody could know without spending it
on each; the default among them is what one has without a search.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from adult import DELTA, SCHEMA, TARGET, read

import sfumato
from sfumato.evaluate import total_variation

SHARES = (0.02, 0.1, 0.4, 0.7, 0.95)
DEFAULT = sfumato.MaxEntropy(epsilon=1.0).marginal_share


def candidates(epsilon):
    return [sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA, marginal_share=share) for share in SHARES]


def told(scores):
    return f"{statistics.fmean(scores):.4f} ± {(max(scores) - min(scores)) / 2:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--searches", type=int, default=5, help="and plain fits of each candidate")
    parser.add_argument("--repetitions", type=float, default=10.0, help="mean number of fits of a search")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    train, validation = read(options.data, validate=True)

    def score(release):
        rows = release.sample(len(train), seed=0)
        return total_variation(validation, rows, schema=SCHEMA, k=2)

    plain: dict[float, list[float]] = {}
    for candidate in candidates(options.epsilon):
        share = candidate.marginal_share
        plain[share] = [score(candidate.fit(train, schema=SCHEMA, target=TARGET)) for _ in range(options.searches)]
        print(f"plain fits, marginal_share {share}: {told(plain[share])}", flush=True)
    searches = []
    for _ in range(options.searches):
        release = sfumato.tune(
            train,
            SCHEMA,
            method=candidates(options.epsilon),
            target=TARGET,
            mean_repetitions=options.repetitions,
        )
        chosen = release.certificate.search.chosen
        searches.append({"marginal_share": SHARES[chosen], "tvd_2way": score(release)})
        print(f"search: chose {SHARES[chosen]}, {searches[-1]['tvd_2way']:.4f}", flush=True)
    print(f"searches: {told([found['tvd_2way'] for found in searches])}; the default: {told(plain[DEFAULT])}")
    settings = {"epsilon": options.epsilon, "delta": DELTA, "repetitions": options.repetitions}
    if options.out:
        options.out.write_text(json.dumps({**settings, "plain": plain, "searches": searches}, indent=1))


if __name__ == "__main__":
    main()
