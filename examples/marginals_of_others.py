"""Rows from marginals that somebody else measured: an age and income table of 12,000 people, with noise of 25 rows.

    python examples/marginals_of_others.py people.csv

The counts were published with the standard deviation of their Gaussian noise, and no record is at hand. What guarantee
they have is for those to say who drew the noise; rows made of them have the same, and Sfumato vouches for none.
"""

import sys

import sfumato

SCHEMA = {
    "rows": 12_000,
    "columns": {
        "age": {"kind": "integer", "lower": 18, "upper": 90},
        "work": {"kind": "categorical", "categories": ["none", "part", "full"]},
        "income": {"kind": "categorical", "categories": ["low", "high"]},
    },
}
AGES = {"age": [18, 30, 45, 65, 90]}  # 18 to 29, 30 to 44, 45 to 64, 65 to 90
NOISE_STD = 25.0
AGE_AND_WORK = [[714.2, 938.9, 1377.5], [402.0, 577.4, 2731.8], [655.1, 690.6, 2219.3], [1478.3, 171.0, 44.9]]
AGE_AND_INCOME = [[2701.5, 349.7], [2288.8, 1395.1], [1961.4, 1622.0], [1481.7, 238.2]]


def main(path: str) -> None:
    tables = [
        sfumato.marginal(SCHEMA, ["age", "work"], AGE_AND_WORK, noise_std=NOISE_STD, edges=AGES),
        sfumato.marginal(SCHEMA, ["age", "income"], AGE_AND_INCOME, noise_std=NOISE_STD, edges=AGES),
    ]
    release = sfumato.estimate_model(SCHEMA, tables)
    release.write_sample(path, seed=0, overwrite=True)
    sys.stdout.write(f"{release.mean('age')}\n{release.share({'income': 'high'})}\n")


if __name__ == "__main__":
    main(sys.argv[1])
