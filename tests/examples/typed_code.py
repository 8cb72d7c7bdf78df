"""Code as users write it, which `make lint` checks by pyright: shorthand facts, questions and the types of answers.

A comment `pyright: ignore` stands where a call is wrong: where it no longer is an error, lint fails.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true, reportUnusedExpression=false

from datetime import date
from typing import assert_type

import pandas as pd

import sfumato
from sfumato import Estimate, Estimates, HypothesisTest, Regression, Regressions, Release, Schema


def describe(frame: pd.DataFrame) -> None:
    facts = sfumato.describe(frame, {"age": (0, 120), "country": ["AT", "DE"], "returned": "boolean"}, unit="customer")
    assert_type(facts, Schema)
    sfumato.describe(frame, {"day": (date(2024, 1, 1), date(2024, 12, 31)), "visits": range(10), "note": "identifier"})
    sfumato.describe(
        frame, {"income": {"kind": "integer", "lower": 0, "upper": 9}}, unit={"column": "id", "max_rows": 2}
    )
    sfumato.describe(frame, {"age": 120})  # pyright: ignore[reportArgumentType]
    Schema.from_dict({"columns": {"age": (0, 120), "country": ["AT", "DE"], "returned": "boolean"}, "unit": "customer"})


def fit(frame: pd.DataFrame, schema: Schema) -> None:
    assert_type(sfumato.fit(frame, schema, epsilon=1.0, target="income"), Release)
    sfumato.fit(frame, {"columns": {"age": (0, 120)}, "rows": 1_000}, epsilon=1.0)
    sfumato.fit(frame, schema, eps=1.0)  # pyright: ignore[reportCallIssue]
    plan = sfumato.MaxEntropy(epsilon=1.0).plan(schema)
    print(plan, plan["marginals"].noise_multiplier)


def ask(release: Release, by: str) -> None:
    assert_type(release.mean("age"), Estimate)
    assert_type(release.mean("age", by="sex"), Estimates)
    assert_type(release.share({"age": (18, 65)}, by=by)["f"], Estimate)
    assert_type(release.quantile("age", 0.9, by="sex"), Estimates)
    assert_type(release.quantile("age", 0.9, target="table"), Estimate)
    assert_type(release.variance("age"), Estimate)
    assert_type(release.missing("age"), Estimate)
    assert_type(release.set_size("items", by="sex"), Estimates)
    assert_type(release.ols("y ~ x"), Regression)
    assert_type(release.poisson("y ~ x", by="sex"), Regressions)
    assert_type(release.logit("y ~ x").predict({"x": 1.0}), Estimate)
    assert_type(release.gamma("y ~ x").predict([{"x": 1.0}]), Estimates)
    assert_type(release.anova("y", "sex"), HypothesisTest)
    mean = release.mean("age")
    print(mean.value, mean.low, mean.high, float(mean), release.ols("y ~ x").params)
    release.mean("age", by="sex").difference("f", "m").interval(0.9)
    several: Estimates = release.mean("age")  # pyright: ignore[reportAssignmentType]
    print(several)
