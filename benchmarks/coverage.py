"""How often intervals of estimates cover what they are of: fits of drawn tables, counted.

    python benchmarks/coverage.py law --rows 5000 --epsilon 1 --fits 200
    python benchmarks/coverage.py law --rows 5000 --epsilon 1 --fits 50 --replicates 10
    python benchmarks/coverage.py all --table    # what was counted, as the table of docs/inference.md

`law` is a Gaussian law with labels, whose population is known; in those of `pair_laws.py` a few columns of many go
together; `adult` and `california_housing` draw rows with replacement from the real table, which then is the population
(SFUMATO_DATA is the folder of both). `skewed` is fitted without a schema, with all bounds estimated. Writes
benchmarks/results/coverage/NAME.json: per question and target how many intervals covered, their median width, and that
of the standard error of sampling and noise alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pair_laws import LEVEL, PAIR_CASES, answer

from sfumato import MaxEntropy, Schema, combine
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import EstimateError, UnknownGroupError
from sfumato.schema.open_schema import OpenSchema

RESULTS = Path(__file__).parent / "results" / "coverage"
LAW_ROWS = 2_000_000

Question = tuple[
    str,
    Callable[[Any, str], dict[str, tuple[float, float, float, dict[str, float]]]],
    Callable[[pd.DataFrame], dict[str, float]],
]


def regression(name, fitted, terms):
    ends = fitted.conf_int(LEVEL)
    parts = fitted.parts
    return {
        f"{name} {term}": (
            fitted.params[term], ends.loc[term].iloc[0], ends.loc[term].iloc[1],
            {cause: float(parts.loc[term, cause]) for cause in parts.columns},
        )
        for term in terms
    }  # fmt: skip


def real_regression(name, formula, terms, *, logit=False):
    import statsmodels.formula.api as smf

    def truth(frame, errors=False):
        if logit:
            left, right = formula.split("~")
            own = frame.assign(left=(frame[left.strip()] == frame[left.strip()].cat.categories[1]).astype(float))
            found = smf.logit(f"left ~ {right}", own).fit(disp=0)
        else:
            found = smf.ols(formula, frame).fit()
        if errors:
            return {f"{name} {term}": (float(found.params[term]), float(found.bse[term])) for term in terms}
        return {f"{name} {term}": float(found.params[term]) for term in terms}

    return truth


def with_errors(name, truth):
    """The analysis of one replicate: values and the standard errors of rows taken for records."""

    def analysis(frame):
        if name in ("ols", "interaction", "logit"):
            return truth(frame, errors=True)
        ((key, value),) = truth(frame).items()
        if name == "mean":
            error = frame[truth.column].std()
        elif name == "correlation":
            error = 1 - value**2
        else:
            error = np.sqrt(value * (1 - value))
        return {key: (value, error / len(frame) ** 0.5)}

    return analysis


# --- the laws


def law(n, rng):
    z = rng.random(n) < 0.4
    x = rng.normal(size=n) + 0.5 * z
    u = 0.4 * x + rng.normal(size=n)
    y = 0.5 * x + 0.3 * z - 0.25 * x * z + 0.2 * u + rng.normal(size=n)
    w = rng.random(n) < 1 / (1 + np.exp(-(0.8 * x - 0.4 * u - 0.3)))
    return pd.DataFrame(
        {
            "x": np.clip(x, -5, 6), "u": np.clip(u, -6, 6), "y": np.clip(y, -7, 7),
            "z": pd.Categorical(np.where(z, "b", "a"), categories=["a", "b"]),
            "w": pd.Categorical(np.where(w, "yes", "no"), categories=["no", "yes"]),
        }
    )  # fmt: skip


def law_schema(n):
    return Schema(
        columns={
            "x": Continuous(lower=-5, upper=6), "u": Continuous(lower=-6, upper=6), "y": Continuous(lower=-7, upper=7),
            "z": Categorical(categories=("a", "b")), "w": Categorical(categories=("no", "yes")),
        },
        rows=n,
    )  # fmt: skip


def questions_of(number, other, third, label, binary, group, binary_by):
    """The acceptance's questions: of numbers, a label and a binary column, `group` the class of the interaction."""
    second = {"number": number, "other": other}
    slopes, interaction = f"{other} ~ {number} + {third} + C({label[0]})", f"{other} ~ {number} * C({group[0]})"
    product = f"{number}:C({group[0]})[T.{group[1]}]"

    def mean(frame):
        return {"mean": frame[number].mean()}

    mean.column = number
    return [
        ("mean", lambda r, t: answer("mean", r.mean(number, target=t)), mean),
        ("share", lambda r, t: answer("share", r.share({label[0]: label[1]}, target=t)),
         lambda f: {"share": (f[label[0]] == label[1]).mean()}),
        ("cell", lambda r, t: answer("cell", r.share({label[0]: label[1], binary[0]: binary[1]}, target=t)),
         lambda f: {"cell": ((f[label[0]] == label[1]) & (f[binary[0]] == binary[1])).mean()}),
        ("quantile", lambda r, t: answer("quantile", r.quantile(number, 0.75, target=t)),
         lambda f: {"quantile": f[number].quantile(0.75)}),
        ("correlation", lambda r, t: answer("correlation", r.correlation(second["number"], second["other"], target=t)),
         lambda f: {"correlation": np.corrcoef(f[number], f[other])[0, 1]}),
        ("ols", lambda r, t: regression("ols", r.ols(slopes, target=t), [number, third]),
         real_regression("ols", slopes, [number, third])),
        ("interaction", lambda r, t: regression("ols", r.ols(interaction, target=t), [product]),
         real_regression("ols", interaction, [product])),
        ("logit",
         lambda r, t: regression("logit", r.logit(f"{binary[0]} ~ {binary_by}", target=t), binary_by.split(" + ")),
         real_regression("logit", f"{binary[0]} ~ {binary_by}", binary_by.split(" + "), logit=True)),
    ]  # fmt: skip


def law_case():
    return law, law_schema, "z", questions_of("x", "y", "u", ("z", "b"), ("w", "yes"), ("z", "b"), "x + u")


def resampled(table, schema, target, questions):
    def draw(n, rng):
        return table.iloc[rng.integers(0, len(table), n)].reset_index(drop=True)

    return draw, schema, target, questions, table


def real(name):
    return pd.read_parquet(Path(os.environ.get("SFUMATO_DATA", "../shared/data")) / f"{name}.parquet")


def labels(column):
    return pd.Categorical(column, categories=sorted(set(column)))


def adult_case():
    table = real("adult").rename(columns=lambda name: name.replace("-", "_"))
    named = ["marital_status", "relationship", "sex", "income"]
    table = table[["age", "education_num", "hours_per_week", *named]].assign(
        **{name: labels(table[name].astype(str)) for name in named}
    )

    def schema(n):
        numbers = {
            "age": Integer(lower=17, upper=90), "education_num": Integer(lower=1, upper=16),
            "hours_per_week": Integer(lower=1, upper=99),
        }  # fmt: skip
        return Schema(
            columns=numbers | {name: Categorical(categories=tuple(table[name].cat.categories)) for name in named},
            rows=n,
        )

    sex = ("sex", table["sex"].cat.categories[1])
    asked = questions_of(
        "age", "hours_per_week", "education_num", sex, ("income", table["income"].cat.categories[1]),
        ("income", table["income"].cat.categories[1]), "age + education_num",
    )  # fmt: skip
    return resampled(table, schema, "income", asked)


def housing_case():
    table = real("california_housing").drop(columns=["longitude", "latitude"])
    table = table.assign(
        north=labels(np.where(real("california_housing")["latitude"] > 36, "yes", "no")),
        dear=labels(np.where(table["medianHouseValue"] > 250_000, "yes", "no")),
    )
    bounds = {
        "housingMedianAge": (1, 52), "totalRooms": (0, 40_000), "totalBedrooms": (0, 7_000), "population": (0, 36_000),
        "households": (0, 6_500), "medianIncome": (0, 16), "medianHouseValue": (0, 500_001),
    }  # fmt: skip

    def schema(n):
        numbers = {name: Continuous(lower=low, upper=high) for name, (low, high) in bounds.items()}
        words = {name: Categorical(categories=("no", "yes")) for name in ("north", "dear")}
        return Schema(columns=numbers | words, rows=n)

    asked = questions_of(
        "medianIncome", "medianHouseValue", "housingMedianAge", ("north", "yes"), ("dear", "yes"), ("north", "yes"),
        "medianIncome + housingMedianAge",
    )  # fmt: skip
    return resampled(table, schema, "north", asked)


def skewed(n, rng):
    """Five columns as people's tables have them: skewed, of counts, bounded, and a cost that few have."""
    return pd.DataFrame(
        {
            "income": np.exp(rng.normal(10, 0.9, n)),
            "visits": rng.poisson(1.2, n) + (rng.random(n) < 0.05) * rng.poisson(15, n),
            "age": rng.uniform(18, 95, n),
            "sex": rng.choice(["f", "m"], n),
            "cost": np.where(rng.random(n) < 0.7, 0.0, 400 * rng.pareto(2.5, n)),
        }
    )


def mean_of(column):
    def truth(frame):
        return {f"mean {column}": frame[column].mean()}

    return f"mean {column}", lambda r, t: answer(f"mean {column}", r.mean(column, target=t)), truth


def skewed_case():
    """Without a schema: all bounds are estimated."""
    questions = [mean_of(column) for column in ("income", "visits", "age", "cost")]
    few = skewed(1, np.random.default_rng(0))
    return skewed, lambda n: OpenSchema.of(few, rows=n), None, questions, skewed(LAW_ROWS, np.random.default_rng(99))


def strong_case(correlation):
    """Two columns that nearly are one, beside others."""

    def draw(n, rng):
        x, z = rng.normal(size=n), rng.random(n) < 0.4
        y = correlation * x + np.sqrt(1 - correlation**2) * rng.normal(size=n)
        return pd.DataFrame(
            {"x": x.clip(-5, 5), "y": y.clip(-5, 5), "u": (0.3 * x + rng.normal(size=n)).clip(-6, 6),
             "z": pd.Categorical(np.where(z, "b", "a"), categories=["a", "b"])}
        )  # fmt: skip

    def schema(n):
        numbers = {name: Continuous(lower=-6 if name == "u" else -5, upper=6 if name == "u" else 5) for name in "xyu"}
        return Schema(columns=numbers | {"z": Categorical(categories=("a", "b"))}, rows=n)

    asked = [
        ("correlation", lambda r, t: answer("correlation", r.correlation("x", "y", target=t)),
         lambda f: {"correlation": np.corrcoef(f["x"], f["y"])[0, 1]}),
    ]  # fmt: skip
    return draw, schema, None, asked, draw(LAW_ROWS, np.random.default_rng(99))


def missing_case():
    """A regressor of which three cells in ten are missing, and the more the larger another is; a rare first label."""

    def draw(n, rng):
        u = rng.normal(size=n)
        x, g = 0.5 * u + rng.normal(size=n), rng.choice(["a", "b", "c"], size=n, p=[0.02, 0.5, 0.48])
        w = rng.random(n) < 1 / (1 + np.exp(-(0.6 * x - 0.5 * u - 0.2)))
        y = 0.5 * x - 0.4 * u + 0.3 * (g == "c") + rng.normal(size=n)
        gap = rng.random(n) < 1 / (1 + np.exp(0.9 - 0.5 * u))
        return pd.DataFrame(
            {"x": np.where(gap, np.nan, x.clip(-5, 5)), "u": u.clip(-5, 5), "y": y.clip(-6, 6),
             "g": pd.Categorical(g, categories=["b", "a", "c"]),
             "w": pd.Categorical(np.where(w, "yes", "no"), categories=["no", "yes"])}
        )  # fmt: skip

    def schema(n):
        numbers = {
            "x": Continuous(lower=-5, upper=5, nullable=True), "u": Continuous(lower=-5, upper=5),
            "y": Continuous(lower=-6, upper=6), "g": Categorical(categories=("a", "b", "c")),
            "w": Categorical(categories=("no", "yes")),
        }  # fmt: skip
        return Schema(columns=numbers, rows=n)

    asked = [
        ("ols", lambda r, t: regression("missing", r.ols("y ~ x + u", target=t), ["x", "u"]),
         real_regression("missing", "y ~ x + u", ["x", "u"])),
        ("logit", lambda r, t: regression("missing logit", r.logit("w ~ x + u", target=t), ["x", "u"]),
         real_regression("missing logit", "w ~ x + u", ["x", "u"], logit=True)),
        ("levels", lambda r, t: regression(
            "reference", r.ols('y ~ u + C(g, contr.treatment("b"))', target=t), ["u"]),
         real_regression("reference", "y ~ u + C(g)", ["u"])),
    ]  # fmt: skip
    return draw, schema, None, asked, draw(LAW_ROWS // 4, np.random.default_rng(99))


CASES = {
    "strong_951": lambda: strong_case(0.951), "strong_9978": lambda: strong_case(0.9978), "missing": missing_case,
    "law": law_case, "skewed": skewed_case, "adult": adult_case, "california_housing": housing_case, **PAIR_CASES,
}  # fmt: skip


# --- counting


def widths(part, target):
    sizes = [part["noise"], part.get("sampling", 0.0)] if target == "population" else [part["noise"]]
    return 2 * 1.959964 * float(np.sqrt(np.square(sizes).sum()))


def run(case, n, epsilon, fits, seed=0):
    found = CASES[case]()
    draw, schema, target, questions, table = found if len(found) == 5 else (*found, None)
    population = law(LAW_ROWS, np.random.default_rng(99)) if table is None else table
    truths = {name: truth(population) for name, _, truth in questions}
    counted, refused = {}, {}
    started = time.time()
    for fit in range(fits):
        rng = np.random.default_rng([seed, fit, n])
        frame = draw(n, rng)
        release = MaxEntropy(epsilon=epsilon).fit(frame, schema=schema(n), target=target)
        for name, ask, truth in questions:
            for aim, truth_of in (("population", truths[name]), ("table", None)):
                try:
                    answers = ask(release, aim)
                except (EstimateError, UnknownGroupError):
                    refused[f"{name} / {aim}"] = refused.get(f"{name} / {aim}", 0) + 1
                    continue
                wanted = truth_of if truth_of is not None else truth(frame)
                for key, (value, low, high, part) in answers.items():
                    entry = counted.setdefault(f"{key} / {aim}", [])
                    entry.append((low <= wanted[key] <= high, value - wanted[key], high - low, widths(part, aim)))
    return {
        "case": case, "rows": n, "epsilon": epsilon, "fits": fits, "seconds": round(time.time() - started),
        "refused": refused,
        "answers": {key: summary(np.array(entry, dtype=float)) for key, entry in counted.items()},
    }  # fmt: skip


def run_replicates(case, n, epsilon, fits, m, seed=0):
    """As `run`, of combined results of replicates, for the population; quantiles have no standard error of rows."""
    found = CASES[case]()
    draw, schema, target, questions, table = found if len(found) == 5 else (*found, None)
    population = law(LAW_ROWS, np.random.default_rng(99)) if table is None else table
    questions = [(name, truth) for name, _, truth in questions if name != "quantile"]
    truths = {key: value for _, truth in questions for key, value in truth(population).items()}
    counted, started = {}, time.time()
    for fit in range(fits):
        frame = draw(n, np.random.default_rng([seed, fit, n]))
        release = MaxEntropy(epsilon=epsilon).fit(frame, schema=schema(n), target=target)
        tables = [as_drawn(one, population) for one in release.replicates(m, n=4 * n, seed=fit)]
        for name, truth in questions:
            results = [with_errors(name, truth)(one) for one in tables]
            for key in results[0]:
                combined = combine([result[key] for result in results])
                low, high = combined.conf_int(LEVEL).iloc[0]
                value = combined.params.iloc[0]
                entry = (low <= truths[key] <= high, value - truths[key], high - low, 2 * 1.96 * combined.bse.iloc[0])
                counted.setdefault(f"{key} / population", []).append(entry)
    return {
        "case": case, "rows": n, "epsilon": epsilon, "fits": fits, "replicates": m,
        "seconds": round(time.time() - started), "refused": {},
        "answers": {key: summary(np.array(entry, dtype=float)) for key, entry in counted.items()},
    }  # fmt: skip


def as_drawn(frame, like):
    """A replicate with labels as categories of the same levels."""
    labels_of = {name: kind.categories for name, kind in like.dtypes.items() if isinstance(kind, pd.CategoricalDtype)}
    return frame.assign(**{name: pd.Categorical(frame[name].astype(str), levels) for name, levels in labels_of.items()})


def summary(entry):
    covered, errors, wide, allowed = entry.T
    share = covered.mean()
    return {
        "fits": len(entry),
        "coverage": round(float(share), 4),
        "monte_carlo": round(float(np.sqrt(max(share * (1 - share), 0.95 * 0.05 / 4) / len(entry))), 4),
        "bias_in_deviations": round(float(errors.mean() / max(errors.std(), 1e-300)), 3),
        "rmse": float(np.sqrt((errors**2).mean())),
        "median_width": float(np.median(wide)),
        "width_over_noise_and_sampling": round(float(np.median(wide / np.maximum(allowed, 1e-300))), 3),
        "width_over_realised": round(float(np.median(wide) / max(2 * 1.96 * errors.std(), 1e-300)), 3),
    }


def table():
    """Print a row per setting and target: mean coverage, least and most of its answers, and widths."""
    found = [json.loads(path.read_text()) for path in RESULTS.glob("*.json")]
    found = [one for one in found if "replicates" not in one]
    print("| table | rows | ε | fits | of the | mean | least | most | slopes | width ÷ allowed: median, largest |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for one in sorted(found, key=lambda one: (one["case"], one["rows"], one["epsilon"])):
        for aim in ("population", "table"):
            entries = {key: entry for key, entry in one["answers"].items() if key.endswith(aim)}
            covered = {key: entry["coverage"] for key, entry in entries.items()}
            slopes = [value for key, value in covered.items() if key.startswith(("ols", "logit"))]
            wide = [entry["width_over_noise_and_sampling"] for key, entry in entries.items() if "quantile" not in key]
            numbers = [np.mean(list(covered.values())), min(covered.values()), max(covered.values())]
            numbers.append(np.mean(slopes or [np.nan]))
            mark = " †" if "counted" in one else ""  # with an allowance that was smaller
            print(
                f"| {one['case']}{mark} | {one['rows']:,} | {one['epsilon']:g} | {one['fits']} | {aim} | "
                + " | ".join("–" if np.isnan(number) else f"{number:.3f}" for number in numbers)
                + f" | {np.median(wide):.2f}, {max(wide):.2f} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", choices=[*sorted(CASES), "all"])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=0, metavar="M", help="combine M replicates, do not estimate")
    parser.add_argument("--table", action="store_true", help="print what was counted, and count nothing")
    args = parser.parse_args()
    if args.table:
        table()
        return
    if args.case == "all":
        parser.error("`all` is for --table: count one case at a time")
    setting = (args.case, args.rows, args.epsilon, args.fits)
    found = run_replicates(*setting, args.replicates) if args.replicates else run(*setting)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{args.case}_{args.rows}_{args.epsilon:g}{'_replicates' * bool(args.replicates)}.json"
    path.write_text(json.dumps(found, indent=2) + "\n")
    for key, entry in found["answers"].items():
        widths_over = f"{entry['width_over_noise_and_sampling']:.2f}, ÷ realised {entry['width_over_realised']:.2f}"
        print(
            f"{key:32s} {entry['coverage']:.3f} ±{entry['monte_carlo']:.3f}  bias {entry['bias_in_deviations']:+.2f}  "
            f"width ÷ allowed {widths_over}"
        )
    print("refused:", found["refused"], found["seconds"], "s", path)


if __name__ == "__main__":
    main()
