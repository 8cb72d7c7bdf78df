"""Eighteen questions about the clinic of `many.py`: of persons, of rows, by group, across tables; none named before.

Each is put to the release in the form that its documentation names, and to the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from many_laws import Tables

from sfumato.errors import SfumatoError

Answers = dict[str, float]
GROUPS, Z = 40, 1.959964


@dataclass(frozen=True)
class Question:
    """A question: of what, how a release answers it, and how records do."""

    of: str
    release: Callable[[Any], Any]
    records: Callable[[Tables], Any]


def number(name: str) -> Callable[[Tables], pd.Series]:
    """The number of rows a person."""
    return lambda t: t[name].groupby("person").size().reindex(t["persons"]["person"], fill_value=0)


def visits(t: Tables) -> pd.DataFrame:
    return t["visits"].merge(t["persons"], on="person")


def pressures(t: Tables) -> pd.DataFrame:
    return t["pressures"].merge(visits(t), on="visit")


def ever(t: Tables, name: str, column: str, label: str) -> pd.Series:
    """Whether any row of a person has the label."""
    rows = t[name] if "person" in t[name] else t[name].merge(t["visits"], on="visit")
    persons = rows.loc[rows[column] == label, "person"]
    return pd.Series(t["persons"]["person"].isin(persons).to_numpy(), index=t["persons"]["person"])


def metformin_of_e11(t: Tables) -> Answers:
    users = ever(t, "drugs", "drug", "metformin")
    return users.groupby(ever(t, "codes", "code", "E11")).mean().to_dict()


QUESTIONS = {
    "mean age": Question(
        "persons", lambda r: r.table("visits").units.mean("age"), lambda t: t["persons"]["age"].mean()
    ),
    "share of women": Question(
        "persons", lambda r: r.table("visits").units.share({"sex": "f"}), lambda t: (t["persons"]["sex"] == "f").mean()
    ),
    "share with diabetes": Question(
        "persons",
        lambda r: r.table("visits").units.share({"diabetes": "yes"}),
        lambda t: (t["persons"]["diabetes"] == "yes").mean(),
    ),
    "mean number of visits": Question(
        "persons", lambda r: r.table("visits").units.mean("number of visits"), lambda t: number("visits")(t).mean()
    ),
    "mean number of drugs": Question(
        "persons", lambda r: r.table("drugs").units.mean("number of drugs"), lambda t: number("drugs")(t).mean()
    ),
    "share of the dead": Question(
        "persons", lambda r: r.table("deaths").units.mean("number of deaths"), lambda t: number("deaths")(t).mean()
    ),
    "mean cost of a visit": Question(
        "rows", lambda r: r.table("visits").mean("cost"), lambda t: t["visits"]["cost"].mean()
    ),
    "median cost of a visit": Question(
        "rows", lambda r: r.table("visits").quantile("cost"), lambda t: t["visits"]["cost"].median()
    ),
    "share of inpatient visits": Question(
        "rows",
        lambda r: r.table("visits").share({"kind": "inpatient"}),
        lambda t: (t["visits"]["kind"] == "inpatient").mean(),
    ),
    "share of E11 of codes": Question(
        "rows", lambda r: r.table("codes").share({"code": "E11"}), lambda t: (t["codes"]["code"] == "E11").mean()
    ),
    "mean pressure": Question(
        "rows", lambda r: r.table("pressures").mean("pressure"), lambda t: t["pressures"]["pressure"].mean()
    ),
    "share of metformin of drugs": Question(
        "rows",
        lambda r: r.table("drugs").share({"drug": "metformin"}),
        lambda t: (t["drugs"]["drug"] == "metformin").mean(),
    ),
    "mean cost by kind of visit": Question(
        "groups",
        lambda r: r.table("visits").mean("cost", by="kind"),
        lambda t: t["visits"].groupby("kind")["cost"].mean().to_dict(),
    ),
    "share of inpatient visits by sex": Question(
        "groups",
        lambda r: r.table("visits").share({"kind": "inpatient"}, by="sex"),
        lambda t: (visits(t)["kind"] == "inpatient").groupby(visits(t)["sex"]).mean().to_dict(),
    ),
    "mean pressure by diabetes": Question(
        "groups",
        lambda r: r.table("pressures").mean("pressure", by="diabetes"),
        lambda t: pressures(t).groupby("diabetes")["pressure"].mean().to_dict(),
    ),
    "correlation of numbers of visits and drugs": Question(
        "across",
        lambda r: r.table("drugs").units.correlation("number of drugs", "number of visits"),
        lambda t: np.corrcoef(number("visits")(t), number("drugs")(t))[0, 1],
    ),
    "metformin ever, by E11 ever": Question(
        "across",
        lambda r: r.table("drugs").units.share({"ever of drug=metformin": True}, by="ever of code=E11"),
        metformin_of_e11,
    ),
    "correlation of number of drugs and a person's mean pressure": Question(
        "across",
        lambda r: r.table("drugs").units.correlation("number of drugs", "mean of pressure"),
        lambda t: number("drugs")(t).corr(pressures(t).groupby("person")["pressure"].mean()),
    ),
}


def by_group(answer: Any) -> dict[str, Any]:
    """Return an answer as one by group."""
    return {str(key): value for key, value in answer.items()} if hasattr(answer, "items") else {"": answer}


def of_release(release: Any) -> dict[str, Any]:
    """Return for each question the ends of the interval by group, or why there is no answer."""
    lines = dict[str, Any]()
    for name, question in QUESTIONS.items():
        try:
            answer = by_group(question.release(release))
            lines[name] = {key: [float(end) for end in estimate.interval()] for key, estimate in answer.items()}
        except (SfumatoError, ValueError, KeyError, TypeError) as error:
            lines[name] = f"{type(error).__name__}: {error}"
    return lines


def of_records(tables: Tables, without: Iterator[Tables]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return each number of the records with half its sampling interval, by tables that lack some persons."""
    values = {name: by_group(question.records(tables)) for name, question in QUESTIONS.items()}
    parts = [{name: by_group(question.records(part)) for name, question in QUESTIONS.items()} for part in without]
    lines = dict[str, dict[str, tuple[float, float]]]()
    for name, groups in values.items():
        deviation = {key: np.std([part[name].get(key, np.nan) for part in parts]) for key in groups}
        lines[name] = {
            key: (float(value), float(Z * deviation[key] * np.sqrt(len(parts) - 1))) for key, value in groups.items()
        }
    return lines


HEAD = ["question", "of", "records", "answered", "hold it", "width"]


def lines_of(records: dict[str, dict[str, tuple[float, float]]], fits: list[dict[str, Any]]) -> list[list[str]]:
    """Return a line for each question, below `HEAD`."""
    lines = []
    for name, groups in records.items():
        covers, widths = list[bool](), list[float]()
        for fit in fits:
            for key, (value, width) in groups.items() if isinstance(fit[name], dict) else ():
                low, high = fit[name].get(key, (np.nan, np.nan))
                if np.isfinite([low, high]).all():
                    covers.append(low <= value <= high)
                    widths.append((high - low) / 2 / width)
        real = ", ".join(f"{key} {value:.4g}".strip() for key, (value, _) in groups.items())
        results = [f"{sum(covers)} of {len(covers)}", f"{np.mean(widths):.1f}"] if covers else ["", "refused"]
        lines.append([name, QUESTIONS[name].of, real, f"{len(covers)} of {len(groups) * len(fits)}", *results])
    return lines


def refusals(fits: list[dict[str, Any]]) -> list[str]:
    """Return the last reason for which each question had no answer."""
    reasons = {name: answer for fit in fits for name, answer in fit.items() if isinstance(answer, str)}
    return [f"  refused: {name}: {reason[:240]}" for name, reason in reasons.items()]
