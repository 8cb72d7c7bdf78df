"""Epistemic parity: are the findings of twenty regressions still found, from a release instead of the real rows?

    python benchmarks/parity.py                     # every table, 5 fits each: estimates and the naive table
    python benchmarks/parity.py --replicates 10     # also combined replicates, at ten times the time
    python benchmarks/parity.py --only fair adult --fits 2
    python benchmarks/parity.py --named 0.2         # also a release that names a table's regressions, for that part

The regressions are those of `parity_list.py`, written down before the first was run. Each table is fitted at ε = 1,
δ = 1e-6, as often as asked; each regression is asked of the release (`release.ols`, `release.logit`), of one synthetic
table taken for records, and of replicates put together by `combine`. Beside them stands a floor: the real coefficients
with nothing but the privacy noise that the release states, no model in between; and `alone`: were all of the budget
spent on this one regression.

Counted are coefficients but for the intercept, at 5 %, by each answer's own test, of the real rows with robust standard
errors (HC0): of those significant in the
real rows, how many have their sign, and how many are significant with their sign; of the others, how many are
significant all the same. A regression that is refused has kept nothing, and is listed. Writes results/parity.json. Not
private: it reads real records. Reference: Rosenblatt and others 2023, Epistemic parity.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from parity_list import REGRESSIONS, TABLES
from scipy import stats

from sfumato import MaxEntropy, Schema, combine
from sfumato.errors import EstimateError

RESULTS = Path(__file__).parent / "results" / "parity.json"
WAYS = ("estimate", "named", "floor", "alone", "naive", "replicates")
EPSILON, DELTA, Z = 1.0, 1e-6, stats.norm.ppf(0.975)


def commonest_first(frame, wanted):
    """The rows with the labels of a regression in the order of releases, which compare them with the commonest."""
    frame = frame.copy()
    for name in [n for n in frame.columns if f"C({n})" in wanted.formula]:
        first = frame[name].value_counts().index[0]
        others = [label for label in frame[name].cat.categories if label != first]
        frame[name] = frame[name].cat.reorder_categories([first, *others])
    return frame


def of_rows(frame, wanted):
    """Coefficients and robust standard errors by statsmodels, of rows taken for records."""
    import statsmodels.formula.api as smf

    formula, frame = wanted.formula, commonest_first(frame, wanted)
    left, right = formula.split(" ~ ")
    if wanted.logistic:
        labels = frame[left].cat.categories
        frame[left] = (frame[left] == labels[1]).astype(float)
        fitted = smf.logit(f"{left} ~ {right}", frame).fit(disp=0, maxiter=200, cov_type="HC0")
        if not fitted.mle_retvals["converged"]:
            raise EstimateError("no convergence")
    else:
        fitted = smf.ols(formula, frame).fit(cov_type="HC0")
    return series(fitted.params), series(fitted.bse)


def series(values):
    return pd.Series({name.replace(" ", ""): float(value) for name, value in values.items()}).drop("Intercept")


def labelled(frame, table):
    """Labels as categories of all levels, in the schema's order, whichever of them rows have."""
    levels = {name: kind.categories for name, kind in table.columns.items() if hasattr(kind, "categories")}
    return frame[list(table.columns)].assign(
        **{name: pd.Categorical(frame[name].astype(str), categories=list(known)) for name, known in levels.items()}
    )


def floor(real, noise, sampling):
    """Chances that a coefficient has its sign, and is significant with it, or at all, under the stated noise alone."""
    size, spread = np.abs(real), np.hypot(noise, sampling)
    with_sign = stats.norm.sf((Z * spread - size) / noise)
    against = stats.norm.cdf((-Z * spread - size) / noise)
    columns = {"sign": stats.norm.cdf(size / noise), "kept": with_sign, "either": with_sign + against}
    return pd.DataFrame(columns, index=real.index)


def sigma():
    """Noise of one Gaussian sum of sensitivity 1 that has all of the budget."""
    from dp_accounting.dp_event import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant

    low, high = 0.1, 100.0
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        spent = PLDAccountant().compose(GaussianDpEvent(middle)).get_epsilon(DELTA)
        low, high = (middle, high) if spent > EPSILON else (low, middle)
    return high


def alone(rows, wanted, real, error, multiplier):
    """Chances as `floor`, were all of the budget spent on this regression and nothing else.

    Its terms are standardised and clipped at the 95th percentile of their length, for nothing; clipping is taken to do
    no harm. Least squares: one noisy matrix of second moments. Logistic: one noisy sum of scores, at the true
    coefficients. No mechanism here is a release: this says what any could hope for.
    """
    import statsmodels.formula.api as smf

    left, _ = wanted.formula.split(" ~ ")
    frame = commonest_first(rows, wanted)
    if wanted.logistic:
        frame[left] = (frame[left] == frame[left].cat.categories[1]).astype(float)
    model = (smf.logit if wanted.logistic else smf.ols)(wanted.formula, frame)
    names = [name.replace(" ", "") for name in model.exog_names]
    kept, X, y = [name != "Intercept" for name in names], model.exog, model.endog
    middle, scale = X[:, kept].mean(axis=0), X[:, kept].std(axis=0)
    Z = np.column_stack([np.ones(len(X)), (X[:, kept] - middle) / scale])
    if wanted.logistic:
        chances = model.predict(model.fit(disp=0, maxiter=200).params)
        inverse = np.linalg.inv((Z * (chances * (1 - chances))[:, None]).T @ Z)
        length = np.quantile(np.linalg.norm(Z * (y - chances)[:, None], axis=1), 0.95)
        covariance = (multiplier * length) ** 2 * inverse @ inverse
    else:
        v = (y - y.mean()) / y.std()
        inverse = np.linalg.inv(Z.T @ Z)
        params = inverse @ (Z.T @ v)
        square = np.quantile((Z**2).sum(axis=1) + v**2, 0.95)
        # entries off the diagonal have half the variance: those of E(1, -params) are near independent
        size = (multiplier * square) ** 2 * (1 + params @ params) / 2
        covariance = size * inverse @ inverse * y.var()
    noise = pd.Series(np.sqrt(np.diagonal(covariance))[1:] / scale, index=[n for n in names if n != "Intercept"])
    return floor(real, noise[real.index], error)


def compared(real, error, found, found_error):
    """What one way made of each coefficient."""
    there = np.isfinite(found) & np.isfinite(found_error)
    significant = there & (np.abs(found) > Z * found_error)
    sign = there & (np.sign(found) == np.sign(real))
    return pd.DataFrame({"sign": sign, "kept": significant & sign, "either": significant}).astype(float)


def asked(wanted, ask):
    """An answer, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask(), None
    except (EstimateError, np.linalg.LinAlgError) as problem:
        return None, str(problem).split(". ")[0]
    except Exception as problem:  # noqa: BLE001 - statsmodels on a synthetic table: separated groups and the like
        return None, f"{type(problem).__name__}: {problem}".split("\n")[0]


def of_release(release, wanted):
    fitted = (release.logit if wanted.logistic else release.ols)(wanted.formula)
    parts = {name: series(fitted.parts[name]) for name in ("noise", "sampling", "unmeasured")}
    return series(fitted.params), series(fitted.params / fitted.tvalues), parts


def of_replicates(tables, wanted):
    pairs = [of_rows(one, wanted) for one in tables]
    combined = combine(pairs)
    # t intervals: as wide as this many normal standard errors
    return combined.params, combined.bse * stats.t.ppf(0.975, combined.df) / Z


def named(table, real_rows, wanted, share):
    """A release that measures these regressions with a part of its budget."""
    questions = [f"{'logit' if one.logistic else 'ols'}: {one.formula}" for one in wanted]
    schema = Schema(columns=table.columns, rows=len(real_rows), questions=questions)
    method = MaxEntropy(epsilon=EPSILON, delta=DELTA, question_share=share)
    return method.fit(real_rows, schema=schema, target=table.target)


def one_fit(table, real_rows, wanted, reals, m, seed, share):
    """One release of a table, asked for all its regressions: entries (regression, way, frame of terms or refusal)."""
    schema = Schema(columns=table.columns, rows=len(real_rows))
    release = MaxEntropy(epsilon=EPSILON, delta=DELTA).fit(real_rows, schema=schema, target=table.target)
    naive = labelled(release.sample(len(real_rows), seed=seed), table)
    asked_for = named(table, real_rows, wanted, share) if share else None
    tables = [labelled(one, table) for one in release.replicates(m, seed=seed)] if m else []
    for one in wanted:
        real, error = reals[one.name]
        if not seed:
            yield one.name, "alone", alone(real_rows, one, real, error, sigma())
        if asked_for is not None:
            answer, refused = asked(one, lambda one=one: of_release(asked_for, one))
            yield (
                one.name,
                "named",
                refused if answer is None else compared(real, error, answer[0][real.index], answer[1][real.index]),
            )
        answer, refused = asked(one, lambda one=one: of_release(release, one))
        if answer is None:
            yield one.name, "estimate", refused
        else:
            params, bse, parts = (answer[0][real.index], answer[1][real.index], answer[2])
            found = compared(real, error, params, bse)
            inside = np.hypot(parts["noise"], parts["unmeasured"])[real.index]
            found["off"] = (params - real) / inside
            found["noise_over_real_error"] = parts["noise"][real.index] / error
            yield one.name, "estimate", found
            yield one.name, "floor", floor(real, parts["noise"][real.index], parts["sampling"][real.index])
        ways = [("naive", lambda one=one: of_rows(naive, one))]
        ways += [("replicates", lambda one=one: of_replicates(tables, one))] if m else []
        for way, ask in ways:
            answer, refused = asked(one, ask)
            yield one.name, way, refused if answer is None else compared(real, error, *(a[real.index] for a in answer))


def summary(entries, real, error):
    """Shares over fits and terms; a refusal has kept nothing, and found nothing."""
    significant = np.abs(real) > Z * error
    none = pd.DataFrame(0.0, index=real.index, columns=["sign", "kept", "either"])
    frames = [none if isinstance(entry, str) else entry for entry in entries]
    found = sum(frame[["sign", "kept", "either"]] for frame in frames) / len(frames)
    line = {
        "fits": len(frames), "refused": sum(isinstance(entry, str) for entry in entries),
        "why": sorted({entry for entry in entries if isinstance(entry, str)}),
        "sign": round(float(found["sign"][significant].sum()), 3),
        "kept": round(float(found["kept"][significant].sum()), 3),
        "false": round(float(found["either"][~significant].sum()), 3),
        "terms": {
            term: {
                "real": round(float(real[term]), 6), "t": round(float(real[term] / error[term]), 2),
                **{name: round(float(found.loc[term, name]), 3) for name in found},
            }
            for term in real.index
        },
    }  # fmt: skip
    answered = [frame for frame in frames if "off" in frame]
    for term in real.index if answered else ():
        off = [float(frame.loc[term, "off"]) for frame in answered]
        wide = [float(frame.loc[term, "noise_over_real_error"]) for frame in answered]
        line["terms"][term] |= {"off": [round(value, 2) for value in off], "noise_over_real": round(np.mean(wide), 2)}
    return line


def totals(regressions, way):
    """All regressions that were asked this way, together."""
    asked_of = [(entry["significant"], entry["others"], entry[way]) for entry in regressions.values() if way in entry]
    if not asked_of:
        return None
    significant, others = (sum(one[place] for one in asked_of) for place in (0, 1))
    return {
        "regressions": len(asked_of), "significant": significant, "others": others,
        **{name: round(sum(one[2][name] for one in asked_of) / significant, 4) for name in ("sign", "kept")},
        "false": round(sum(one[2]["false"] for one in asked_of) / max(others, 1), 4),
        "refused": sum(one[2]["refused"] for one in asked_of), "fits": sum(one[2]["fits"] for one in asked_of),
    }  # fmt: skip


def run(names, fits, m, share):
    regressions, started = {}, time.time()
    for name in names:
        table = TABLES[name]
        rows = labelled(table.make(), table)
        wanted = [one for one in REGRESSIONS if one.table == name]
        reals = {one.name: of_rows(rows, one) for one in wanted}
        entries = {}
        for seed in range(fits):
            for regression, way, entry in one_fit(table, rows, wanted, reals, m, seed, share):
                entries.setdefault((regression, way), []).append(entry)
        for one in wanted:
            real, error = reals[one.name]
            significant = int((np.abs(real) > Z * error).sum())
            regressions[one.name] = {
                "table": name, "rows": len(rows), "formula": one.formula, "source": one.source,
                "significant": significant, "others": len(real) - significant,
                **{way: summary(entries[one.name, way], real, error)
                   for way in WAYS if (one.name, way) in entries},
            }  # fmt: skip
            shown(one.name, regressions[one.name], time.time() - started)
    return regressions


def shown(name, entry, seconds):
    ways = ", ".join(
        f"{way} {entry[way]['sign']:.1f} {entry[way]['kept']:.1f} +{entry[way]['false']:.1f}"
        + f" refused {entry[way]['refused']}" * bool(entry[way]["refused"])
        for way in WAYS if way in entry
    )  # fmt: skip
    print(
        f"{name:28s} {entry['rows']:6d} rows, {entry['significant']:2d} + {entry['others']}: {ways}  {seconds:.0f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=sorted(TABLES), default=list(TABLES), metavar="TABLE")
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--replicates", type=int, default=0, metavar="M")
    parser.add_argument("--named", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    regressions = run(args.only, args.fits, args.replicates, args.named)
    ways = {way: totals(regressions, way) for way in WAYS}
    found = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "fits": args.fits,
        "replicates": args.replicates,
        "named": args.named,
        "all": ways,
    }
    args.out.write_text(json.dumps(found | {"regressions": regressions}, indent=1, default=float) + "\n")
    for way, line in ways.items():
        print(way, line)


if __name__ == "__main__":
    main()
