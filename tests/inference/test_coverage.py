"""Intervals cover, and tests of true hypotheses reject rarely: of a known law, and of one that was held out."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.genmod.families import Gamma, Poisson
from statsmodels.genmod.families.links import Log

from sfumato import MaxEntropy, Schema

N, FITS, LARGE = 5_000, 40, 1_000_000
LEVEL = 0.95


def clinic(n, rng):
    """Counts and costs that go with age and sex; arms and wards that go with nothing; pay in heaps of a thousand."""
    age, female = rng.integers(18, 80, n), rng.random(n) < 0.5
    mean = np.exp(0.3 + 0.02 * (age - 45) + 0.4 * female)
    return pd.DataFrame(
        {
            "x": age.astype(float), "g": np.where(female, "f", "m"), "h": rng.choice(["a", "b", "c", "d"], n),
            "k": rng.choice(["u", "v"], n, p=[0.3, 0.7]), "count": np.minimum(rng.poisson(mean), 15).astype(float),
            "y": np.minimum(rng.gamma(2, mean / 2), 20),
            "pay": (rng.normal(40 + 6 * female, 15, n).round().clip(0, 100)),
            "w": np.where(rng.random(n) < 1 / (1 + np.exp(-0.04 * (age - 50) - 0.5 * female)), "yes", "no"),
        }
    )  # fmt: skip


def shop(n, rng):
    """Held out: skewed values, zeros, three unlike groups and a curved mean."""
    x = rng.gamma(2, 8, n).clip(0, 80)
    second = rng.random(n) < 0.25
    mean = np.exp(-0.2 + 0.015 * x + 0.6 * second)
    spent = np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(1 + 0.5 * second, 0.7, n))
    return pd.DataFrame(
        {
            "x": x, "g": np.where(second, "m", "f"), "h": rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "k": rng.choice(["u", "v"], n, p=[0.1, 0.9]),
            "count": np.minimum(rng.negative_binomial(2, 2 / (2 + mean)), 20),
            "y": spent.clip(0, 40), "pay": rng.choice([9.5, 12, 20, 40, 60], n) + rng.choice([0, 0.25], n),
            "w": np.where(rng.random(n) < 0.15 + 0.01 * np.minimum(x, 60), "yes", "no"),
        }
    )  # fmt: skip


BOUNDS = {"x": (0, 80), "count": (0, 20), "y": (0, 40), "pay": (0, 100)}
LABELS = {"g": ["f", "m"], "h": ["a", "b", "c", "d"], "k": ["u", "v"], "w": ["no", "yes"]}
SCHEMA = {
    "rows": N,
    "columns": {name: {"kind": "continuous", "lower": low, "upper": high} for name, (low, high) in BOUNDS.items()}
    | {name: {"kind": "categorical", "categories": labels} for name, labels in LABELS.items()},
}


def truths(frame):
    """The numbers of a table, by name."""
    within = frame.pay.between(20, 50)
    own = frame.assign(w=(frame.w == "yes") * 1.0, f=(frame.g == "m") * 1.0)
    at = pd.DataFrame({"x": [30.0], "f": [0.0]})
    ols = smf.ols("y ~ x + f", own).fit()
    return {
        "span": within.mean(),
        "span and label": (within & (frame.g == "f")).mean(),
        "span by label": within[frame.g == "f"].mean(),
        "median by label": frame.y[frame.g == "f"].median(),
        "difference of means": frame.y[frame.g == "f"].mean() - frame.y[frame.g == "m"].mean(),
        "difference of shares": own.w[frame.g == "f"].mean() - own.w[frame.g == "m"].mean(),
        "r squared": ols.rsquared,
        "mean at": ols.predict(at).item(),
        "chance at": smf.logit("w ~ x + f", own).fit(disp=0).predict(at).item(),
        "poisson": smf.glm("count ~ x + f", own, family=Poisson()).fit().params["x"],
        "gamma": smf.glm("y ~ f", own, family=Gamma(Log())).fit().params["f"],
    }


def intervals(release, target):
    """The ends of the intervals of the release, by name."""
    means, shares = release.mean("y", by="g", target=target), release.share({"w": "yes"}, by="g", target=target)
    at = {"x": 30.0, "g": "f"}
    fits = {
        "ols": release.ols("y ~ x + C(g, contr.treatment('f'))", target=target),
        "logit": release.logit("w ~ x + C(g, contr.treatment('f'))", target=target),
        "poisson": release.poisson("count ~ x + C(g, contr.treatment('f'))", target=target),
        "gamma": release.gamma("y ~ C(g, contr.treatment('f'))", target=target),
    }
    answers = {
        "span": release.share({"pay": (20, 50)}, target=target),
        "span and label": release.share({"pay": (20, 50), "g": "f"}, target=target),
        "span by label": release.share({"pay": (20, 50)}, by="g", target=target)["f"],
        "median by label": release.quantile("y", by="g", target=target)["f"],
        "difference of means": means.difference("f", "m"),
        "difference of shares": shares.difference("f", "m"),
        "r squared": fits["ols"].rsquared,
        "mean at": fits["ols"].predict(at),
        "chance at": fits["logit"].predict(at),
    }
    # noise may hide what is explained: a release says None then
    ends = {name: answer.interval(LEVEL) for name, answer in answers.items() if answer is not None}
    ends["poisson"] = tuple(fits["poisson"].conf_int(LEVEL).loc["x"])
    ends["gamma"] = tuple(fits["gamma"].conf_int(LEVEL).iloc[1])
    return ends


def nulls(release, target):
    """Chances of hypotheses that are true of the law."""
    return {
        "independence": release.independence("h", "k", target=target).pvalue,
        "anova": release.anova("y", "h", target=target).pvalue,
        "factor": release.ols("y ~ x + C(h)", target=target).wald_test("C(h)").pvalue,
    }


def count(law, fits, first=0):
    """How often intervals cover, by target and question; true hypotheses are rejected; groups are covered at once."""
    population = truths(law(LARGE, np.random.default_rng(99)))
    law_means = law(LARGE, np.random.default_rng(99)).groupby("h").y.mean()
    covered, rejected, at_once = [], [], []
    for seed in range(first, first + fits):
        frame = law(N, np.random.default_rng(seed))
        release = MaxEntropy(epsilon=1.0).fit(frame, schema=Schema.from_dict(SCHEMA), seed=seed)
        for target, own in (("population", population), ("table", truths(frame))):
            ends = intervals(release, target)
            assert set(own) - set(ends) <= {"r squared"}
            covered.append(
                {"target": target} | {name: float(low <= own[name] <= high) for name, (low, high) in ends.items()}
            )
        rejected.append({name: chance < 1 - LEVEL for name, chance in nulls(release, "population").items()})
        groups = release.mean("y", by="h")
        ends = groups.conf_int(LEVEL, simultaneous=True)
        wanted = law_means[ends.index]
        at_once.append(bool(((ends["low"] <= wanted) & (wanted <= ends["high"])).all()))
    return pd.DataFrame(covered).groupby("target").mean(), pd.DataFrame(rejected).mean(), float(np.mean(at_once))


@pytest.mark.slow
@pytest.mark.parametrize("law", [clinic, shop])
def test_intervals_cover_and_true_hypotheses_stand(law):
    covered, rejected, at_once = count(law, FITS)
    assert (covered.to_numpy() >= 0.8).all(), covered  # of 44 figures, each of 40 fits
    assert covered.to_numpy().mean() >= 0.93, covered
    assert (rejected <= 0.16).all(), rejected
    assert at_once >= 0.85
