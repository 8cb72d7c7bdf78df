"""When a search pays: plain fits of every candidate beside searches among them, at one epsilon, on Adult.

    python benchmarks/tune.py DATA/adult.parquet [--epsilon 1] [--searches 3] [--out scores.json]

Scored by mean 2-way total variation on the validation third of the training rows of `adult.py`; the held-out rows are
not touched. Plain fits tell what a candidate is worth at the whole budget, which nobody could know without spending it
on each.
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


def candidates(epsilon):
    return [sfumato.ConditionalGaussian(epsilon=epsilon, delta=DELTA, marginal_share=share) for share in SHARES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--searches", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    train, validation = read(options.data, validate=True)

    def score(release):
        rows = release.sample(len(train), seed=0)
        return total_variation(validation, rows, schema=SCHEMA, k=2)

    plain = {}
    for candidate in candidates(options.epsilon):
        fits = [score(candidate.fit(train, schema=SCHEMA, target=TARGET)) for _ in range(options.searches)]
        plain[candidate.marginal_share] = statistics.mean(fits)
        print(
            f"plain fit, marginal_share {candidate.marginal_share}: {plain[candidate.marginal_share]:.4f}", flush=True
        )
    searches = []
    for _ in range(options.searches):
        release = sfumato.tune(train, candidates(options.epsilon), schema=SCHEMA, target=TARGET)
        chosen = release.certificate.content["search"]["chosen"]
        searches.append({"marginal_share": SHARES[chosen], "tvd_2way": score(release)})
        print(f"search: {searches[-1]}", flush=True)
    if options.out:
        options.out.write_text(json.dumps({"epsilon": options.epsilon, "plain": plain, "searches": searches}, indent=1))


if __name__ == "__main__":
    main()
