"""Laws of two columns that go together among many that do not, and questions about the two: cases of `coverage.py`.

`pairs_8` to `pairs_36` are one law with so many columns; `trial_9`, `survey_20` and `register_40` are others. What
goes with nothing is half labels, half numbers.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from sfumato import Schema
from sfumato.columns import Categorical, Continuous

LEVEL = 0.95
POPULATION = 2_000_000
LABELS = {2: ("a", "b"), 3: ("a", "b", "c"), 6: tuple("abcdef")}


def chosen(rng, shares):
    """Labels drawn by each row's shares, shape (n, k)."""
    places = (rng.random((len(shares), 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
    levels = LABELS[shares.shape[1]]
    return pd.Categorical.from_codes(places, categories=list(levels))


def binary(rng, share):
    return chosen(rng, np.column_stack([1 - share, share]))


def following(rng, labels, same, k):
    """Labels that are those given with a chance, and any of the others else."""
    rest = (1 - same) / (k - 1)
    return chosen(rng, np.where(np.arange(k) == labels.codes[:, None], same, rest))


def even(rng, n, k):
    return chosen(rng, np.full((n, k), 1 / k))


def pairs(n, rng):
    """Two labels, of shares that differ by .60; two of three levels; a number by a label, one of correlation .85."""
    x, c = even(rng, n, 2), even(rng, n, 3)
    u = rng.normal(size=n) + 0.5 * x.codes
    return {
        "x": x, "y": binary(rng, 0.2 + 0.6 * x.codes), "c": c, "r": following(rng, c, 0.66, 3),
        "u": u, "v": 0.825 * u + 0.5255 * rng.normal(size=n),
    }  # fmt: skip


def trial(n, rng):
    """A trial: the response differs by .2 between arms, and with age; severity in three levels goes with both."""
    x, u = even(rng, n, 2), rng.normal(size=n)
    y = binary(rng, 1 / (1 + np.exp(0.4 - 0.85 * x.codes - 0.6 * u)))
    c = chosen(rng, np.where(y.codes[:, None] == 1, [[0.5, 0.3, 0.2]], [[0.2, 0.3, 0.5]]))
    return {"x": x, "y": y, "c": c, "r": following(rng, c, 0.5, 3), "u": u, "v": 0.5 * u + rng.normal(size=n)}


def survey(n, rng):
    """Labels of six and uneven levels, skewed numbers."""
    shares = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    c, u = chosen(rng, np.tile(shares, (n, 1))), rng.gamma(2.0, 0.7, n)
    r = following(rng, c, 0.7, 6)
    x = binary(rng, 0.1 + 0.13 * c.codes)
    v = 0.9 * u + rng.gamma(1.0, 0.4, n)
    return {"x": x, "y": binary(rng, 0.3 + 0.35 * x.codes), "c": c, "r": r, "u": u, "v": v}


def register(n, rng):
    """A chain of labels that nearly repeat each other, and numbers that bend."""
    c = even(rng, n, 3)
    r, x = following(rng, c, 0.9, 3), binary(rng, 0.05 + 0.4 * c.codes)
    u = rng.normal(size=n) + 0.8 * c.codes - 0.8
    v = np.abs(u) + 0.5 * u + 0.3 * rng.normal(size=n)
    return {"x": x, "y": binary(rng, 0.15 + 0.7 * x.codes), "c": c, "r": r, "u": u, "v": v}


def with_others(law, width, n, rng):
    """Rows of a law with columns that go with nothing, up to a width."""
    columns = law(n, rng)
    for place in range(len(columns), width):
        columns[f"o{place}"] = even(rng, n, 3) if place % 2 else rng.normal(size=n)
    return pd.DataFrame({k: v if isinstance(v, pd.Categorical) else np.clip(v, -6, 8) for k, v in columns.items()})


def schema_of(law, width, n):
    few = with_others(law, width, 2, np.random.default_rng(0))
    return Schema(
        columns={
            name: Categorical(categories=tuple(few[name].cat.categories)) if few[name].dtype == "category"
            else Continuous(lower=-6, upper=8)
            for name in few
        },
        rows=n,
    )  # fmt: skip


def answer(name, estimate):
    """The value, the interval and the parts of the error of an estimate, by its name."""
    low, high = estimate.interval(LEVEL)
    return {name: (estimate.value, low, high, dict(estimate.parts))}


def correlation(name, first, second):
    return (
        name, lambda r, t: answer(name, r.correlation(first, second, target=t)),
        lambda f: {name: np.corrcoef(f[first], f[second])[0, 1]},
    )  # fmt: skip


def questions():
    def given(f, label):
        return (f["y"][f["x"] == label] == "b").mean()

    return [
        ("given", lambda r, t: answer("given", r.share({"r": "a"}, by="c", target=t)["a"]),
         lambda f: {"given": (f["r"][f["c"] == "a"] == "a").mean()}),
        ("cell", lambda r, t: answer("cell", r.share({"r": "b", "c": "a"}, target=t)),
         lambda f: {"cell": ((f["r"] == "b") & (f["c"] == "a")).mean()}),
        ("full cell", lambda r, t: answer("full cell", r.share({"r": "a", "c": "a"}, target=t)),
         lambda f: {"full cell": ((f["r"] == "a") & (f["c"] == "a")).mean()}),
        ("difference", lambda r, t: answer("difference", r.share({"y": "b"}, by="x", target=t).difference("b", "a")),
         lambda f: {"difference": given(f, "b") - given(f, "a")}),
        ("means", lambda r, t: answer("means", r.mean("u", by="x", target=t).difference("b", "a")),
         lambda f: {"means": f["u"][f["x"] == "b"].mean() - f["u"][f["x"] == "a"].mean()}),
        correlation("correlation", "u", "v"),
        ("mean", lambda r, t: answer("mean", r.mean("u", target=t)), lambda f: {"mean": f["u"].mean()}),
        ("share", lambda r, t: answer("share", r.share({"c": "a"}, target=t)),
         lambda f: {"share": (f["c"] == "a").mean()}),
    ]  # fmt: skip


def case(law, width):
    population = with_others(law, 6, POPULATION, np.random.default_rng(99))
    return partial(with_others, law, width), partial(schema_of, law, width), None, questions(), population


PAIR_CASES = {f"pairs_{width}": partial(case, pairs, width) for width in (8, 14, 36)} | {
    "trial_9": partial(case, trial, 9), "survey_20": partial(case, survey, 20),
    "register_40": partial(case, register, 40),
}  # fmt: skip
