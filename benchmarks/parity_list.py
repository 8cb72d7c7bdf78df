"""Twenty regressions of papers and textbooks, and the tables that they were run on: what `parity.py` asks of releases.

The list was written, and committed, before the first of them was run: none was chosen by its result. A table is made as
its analyst would make it (a subsample, a logarithm, a condition turned into a label), by the codebook alone; then
its schema is written from public descriptions: codebooks and ranges of scales. Regressions on a table are asked of one
release, which holds the columns of all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.columns import Categorical, Continuous, Integer

Column = Categorical | Continuous | Integer


@dataclass(frozen=True)
class Table:
    """Rows as an analyst has them, the public schema of each column, and the target that fits are told."""

    make: Callable[[], pd.DataFrame]
    columns: dict[str, Column]
    target: str | None = None


@dataclass(frozen=True)
class Wanted:
    """One regression: the table, the formula, and who ran it."""

    name: str
    table: str
    formula: str
    source: str
    logistic: bool = False


def stored(name):
    return pd.read_parquet(Path(os.environ.get("SFUMATO_DATA", "../shared/data")) / f"{name}.parquet")


def shipped(name):
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def yes(condition):
    return np.where(condition, "yes", "no")


BINARY = Categorical(categories=("no", "yes"))


def fair():
    found = shipped("fair")
    return found.assign(affair=yes(found["affairs"] > 0))


def randhie():
    found = shipped("randhie")
    flags = {name: yes(found[name] > 0) for name in ("idp", "physlm", "hlthg", "hlthf", "hlthp")}
    return found.assign(**flags, anyvisit=yes(found["mdvis"] > 0))


def anes():
    found = shipped("anes96")[["logpopul", "TVnews", "selfLR", "PID", "age", "educ", "income", "vote"]]
    return found.assign(dole=yes(found["vote"] == 1)).drop(columns="vote")


def adult():
    found = stored("adult").rename(columns=lambda name: name.replace("-", "_"))
    return found[["age", "education_num", "hours_per_week"]].astype(int).assign(
        sex=found["sex"].astype(str), married=yes(found["marital_status"].astype(str).str.startswith("Married")),
        black=yes(found["race"].astype(str) == "Black"), rich=yes(found["income"].astype(str) == ">50K"),
    )  # fmt: skip


def housing_log():
    found = stored("california_housing")
    people, homes = found["population"], found["households"]
    return pd.DataFrame(
        {
            "lvalue": np.log(found["medianHouseValue"]), "income": found["medianIncome"],
            "lage": np.log(found["housingMedianAge"]), "lrooms": np.log(found["totalRooms"] / people),
            "lbedrooms": np.log(found["totalBedrooms"] / people), "lsize": np.log(people / homes),
            "lhouseholds": np.log(homes),
        }
    )  # fmt: skip


def housing_raw():
    return stored("california_housing")


def telco():
    found = stored("telco_churn")
    named = {name: found[name].astype(str) for name in ("Contract", "InternetService", "PaperlessBilling", "Churn")}
    also = ("PhoneService", "MultipleLines", "OnlineSecurity", "TechSupport", "StreamingTV", "StreamingMovies")
    flags = {name: yes(found[name].astype(str) == "Yes") for name in also}
    own = pd.DataFrame({"tenure": found["tenure"], "MonthlyCharges": found["MonthlyCharges"], **named, **flags})
    return own.assign(Senior=yes(found["SeniorCitizen"] == 1))


def credit():
    found = stored("credit_sample")
    return found[["V4", "V10", "V12", "V14"]].astype(float).assign(
        lamount=np.log1p(found["Amount"].astype(float)), fraud=yes(found["Class"] == 1)
    )  # fmt: skip


SCHOOL = {1: 0, 2: 0, 3: 6, 4: 10, 5: 12, 6: 12, 7: 13, 8: 14, 9: 16, 10: 18, 11: 19, 12: 20}  # years, by code of EDU


def survey(name):
    found = stored(f"sdnist_{name}2019")
    found = found[(found["AGEP"] >= 25) & (found["AGEP"] <= 64) & (found["HOUSING_TYPE"] == 1)]
    return pd.DataFrame(
        {
            "age": found["AGEP"].astype(int), "school": found["EDU"].astype(int).map(SCHOOL).astype(int),
            "sex": np.where(found["SEX"] == 1, "man", "woman"), "married": yes(found["MSP"].isin(["1", "2"])),
            "black": yes(found["RAC1P"] == 2), "hispanic": yes(found["HISP"] > 0),
            "children": found["NOC"].fillna(0).clip(0, 9).astype(int), "owner": yes(found["OWN_RENT"] == 1),
            "limited": yes(found["DPHY"].astype(str) == "1"), "poor": yes(found["POVPIP"].fillna(501) < 100),
            "lincome": np.log(np.maximum(found["PINCP"].fillna(0), 1_000.0)),
        }
    ).reset_index(drop=True)  # fmt: skip


def magic():
    return (
        stored("magic04").assign(**{"class": stored("magic04")["class"].astype(str)}).rename(columns={"class": "kind"})
    )


def ds1():
    found = stored("ds1_10")
    numbers = found.drop(columns="label").astype(float)
    return numbers.assign(active=yes(found["label"] == 1))


SURVEY = {
    "age": Integer(lower=25, upper=64), "school": Integer(lower=0, upper=20),
    "sex": Categorical(categories=("man", "woman")), "married": BINARY, "black": BINARY, "hispanic": BINARY,
    "children": Integer(lower=0, upper=9), "owner": BINARY, "limited": BINARY, "poor": BINARY,
    "lincome": Continuous(lower=6.9, upper=14.2),
}  # fmt: skip
SCORES = {name: Continuous(lower=-30, upper=30) for name in ("V4", "V10", "V12", "V14")}
GUPT = {
    "x1": (-13.4531, -0.010748), "x2": (-6.4655, 5.9762), "x3": (-7.5628, 5.6764), "x4": (-4.7937, 5.3849),
    "x5": (-6.9696, 4.7242), "x6": (-5.0108, 6.466), "x7": (-4.6077, 6.3295), "x8": (-4.9134, 4.5263),
    "x9": (-5.12, 4.7116), "x10": (-3.4201, 4.9505),
}  # fmt: skip

TABLES = {
    "fair": Table(fair, {
        "rate_marriage": Integer(lower=1, upper=5), "age": Continuous(lower=17.5, upper=42),
        "yrs_married": Continuous(lower=0.5, upper=23), "children": Continuous(lower=0, upper=5.5),
        "religious": Integer(lower=1, upper=4), "educ": Integer(lower=9, upper=20),
        "occupation": Integer(lower=1, upper=6), "occupation_husb": Integer(lower=1, upper=6),
        "affairs": Continuous(lower=0, upper=60), "affair": BINARY,
    }),
    "randhie": Table(randhie, {
        "mdvis": Integer(lower=0, upper=100), "lncoins": Continuous(lower=0, upper=4.62), "idp": BINARY,
        "lpi": Continuous(lower=0, upper=7.2), "fmde": Continuous(lower=0, upper=8.3), "physlm": BINARY,
        "disea": Continuous(lower=0, upper=60), "hlthg": BINARY, "hlthf": BINARY, "hlthp": BINARY, "anyvisit": BINARY,
    }),
    "anes": Table(anes, {
        "logpopul": Continuous(lower=-2.31, upper=9), "TVnews": Integer(lower=0, upper=7),
        "selfLR": Integer(lower=1, upper=7), "PID": Integer(lower=0, upper=6), "age": Integer(lower=18, upper=95),
        "educ": Integer(lower=1, upper=7), "income": Integer(lower=1, upper=24), "dole": BINARY,
    }),
    "adult": Table(adult, {
        "age": Integer(lower=17, upper=90), "education_num": Integer(lower=1, upper=16),
        "hours_per_week": Integer(lower=1, upper=99), "sex": Categorical(categories=("Female", "Male")),
        "married": BINARY, "black": BINARY, "rich": BINARY,
    }, target="sex"),
    "housing_log": Table(housing_log, {
        "lvalue": Continuous(lower=9.6, upper=13.13), "income": Continuous(lower=0, upper=15.01),
        "lage": Continuous(lower=0, upper=3.96), "lrooms": Continuous(lower=-7, upper=5),
        "lbedrooms": Continuous(lower=-7, upper=4), "lsize": Continuous(lower=-1, upper=7.2),
        "lhouseholds": Continuous(lower=0, upper=9),
    }),
    "housing_raw": Table(housing_raw, {
        "longitude": Continuous(lower=-124.5, upper=-114), "latitude": Continuous(lower=32.5, upper=42),
        "housingMedianAge": Integer(lower=1, upper=52), "totalRooms": Integer(lower=0, upper=40_000),
        "totalBedrooms": Integer(lower=0, upper=7_000), "population": Integer(lower=0, upper=36_000),
        "households": Integer(lower=0, upper=6_500), "medianIncome": Continuous(lower=0, upper=15.01),
        "medianHouseValue": Continuous(lower=0, upper=500_001),
    }),
    "telco": Table(telco, {
        "tenure": Integer(lower=0, upper=72), "MonthlyCharges": Continuous(lower=15, upper=120),
        "Contract": Categorical(categories=("Month-to-month", "One year", "Two year")),
        "InternetService": Categorical(categories=("DSL", "Fiber optic", "No")),
        "PaperlessBilling": Categorical(categories=("No", "Yes")), "Churn": Categorical(categories=("No", "Yes")),
        "PhoneService": BINARY, "MultipleLines": BINARY, "OnlineSecurity": BINARY, "TechSupport": BINARY,
        "StreamingTV": BINARY, "StreamingMovies": BINARY, "Senior": BINARY,
    }, target="Churn"),
    "credit": Table(credit, {**SCORES, "lamount": Continuous(lower=0, upper=11), "fraud": BINARY}, target="fraud"),
    "survey_national": Table(lambda: survey("national"), SURVEY),
    "survey_tx": Table(lambda: survey("tx"), SURVEY, target="sex"),
    "survey_ma": Table(lambda: survey("ma"), SURVEY),
    "magic": Table(magic, {
        "fLength": Continuous(lower=0, upper=400), "fWidth": Continuous(lower=0, upper=300),
        "fSize": Continuous(lower=1, upper=6), "fConc": Continuous(lower=0, upper=1),
        "fConc1": Continuous(lower=0, upper=1), "fAsym": Continuous(lower=-600, upper=600),
        "fM3Long": Continuous(lower=-400, upper=400), "fM3Trans": Continuous(lower=-300, upper=300),
        "fAlpha": Continuous(lower=0, upper=90), "fDist": Continuous(lower=0, upper=500),
        "kind": Categorical(categories=("g", "h")),
    }, target="kind"),
    "ds1": Table(ds1, {**{name: Continuous(lower=low, upper=high) for name, (low, high) in GUPT.items()},
                       "active": BINARY}, target="active"),
}  # fmt: skip

_FAIR = "rate_marriage + age + yrs_married + children + religious + educ + occupation + occupation_husb"
_RAND = "lncoins + C(idp) + lpi + fmde + C(physlm) + disea + C(hlthg) + C(hlthf) + C(hlthp)"

REGRESSIONS = (
    Wanted("affairs, any", "fair", f"affair ~ {_FAIR}",
           "Fair 1978, A theory of extramarital affairs; the worked logit of the statsmodels documentation", True),
    Wanted("affairs, time", "fair", f"affairs ~ {_FAIR}", "Fair 1978, as a linear model of time spent"),
    Wanted("visits to a doctor", "randhie", f"mdvis ~ {_RAND}",
           "Newhouse 1993, the RAND experiment; columns of Deb and Trivedi 2002, as a linear model"),
    Wanted("any visit", "randhie", f"anyvisit ~ {_RAND}",
           "Manning and others 1987, first part of the two-part model; Cameron and Trivedi 2005, chapter 16", True),
    Wanted("vote of 1996", "anes", "dole ~ PID + selfLR + age + educ + income + logpopul",
           "American National Election Study 1996; Faraway 2006 and the statsmodels documentation", True),
    Wanted("high income", "adult", "rich ~ age + education_num + hours_per_week + C(sex) + C(married) + C(black)",
           "Becker and Kohavi 1996, Adult, census income", True),
    Wanted("hours of work", "adult", "hours_per_week ~ age + education_num + C(sex) * C(married)",
           "Mincer 1962, Labor force participation of married women: marriage acts differently by sex"),
    Wanted("age profile of income", "adult", "rich ~ education_num + age + I(age**2)",
           "Mincer 1974, Schooling, experience and earnings: a square of age", True),
    Wanted("house values, logarithms", "housing_log",
           "lvalue ~ income + I(income**2) + I(income**3) + lage + lrooms + lbedrooms + lsize + lhouseholds",
           "Pace and Barry 1997, Sparse spatial autoregressions, table 1"),
    Wanted("house values, as written", "housing_raw",
           "medianHouseValue ~ longitude + latitude + housingMedianAge + totalRooms + totalBedrooms + population"
           " + households + medianIncome", "Geron 2019, Hands-on machine learning, chapter 2"),
    Wanted("churn", "telco",
           "Churn ~ tenure + MonthlyCharges + C(Contract) + C(InternetService) + C(PaperlessBilling)"
           " + C(OnlineSecurity) + C(TechSupport) + C(Senior)", "IBM sample data, Telco customer churn", True),
    Wanted("prices of services", "telco",
           "MonthlyCharges ~ C(InternetService) + C(PhoneService) + C(MultipleLines) + C(OnlineSecurity)"
           " + C(TechSupport) + C(StreamingTV) + C(StreamingMovies)", "Rosen 1974, Hedonic prices, on the same table"),
    Wanted("fraud", "credit", "fraud ~ V4 + V10 + V12 + V14 + lamount",
           "Dal Pozzolo and others 2015, card fraud", True),
    Wanted("returns to schooling", "survey_national", "lincome ~ school + age + I(age**2) + C(sex)",
           "Mincer 1974; Card 1999, The causal effect of education on earnings"),
    Wanted("owning one's home", "survey_national",
           "owner ~ age + school + lincome + C(married) + children + C(black) + C(hispanic)",
           "Gyourko and Linneman 1997; Painter, Gabriel and Myers 2001", True),
    Wanted("poverty", "survey_national", "poor ~ age + school + children + C(married) + C(sex)"
           " + C(black) + C(hispanic)",
           "Bane and Ellwood 1986; the Census Bureau's profiles of poverty", True),
    Wanted("income by sex and marriage", "survey_tx", "lincome ~ age + school + C(sex) * C(married)",
           "Blau and Kahn 2017, The gender wage gap: marriage premium and penalty"),
    Wanted("health gradient", "survey_ma", "limited ~ age + school + lincome + C(sex) + C(married)",
           "Cutler and Lleras-Muney 2010, Understanding differences in health behaviors by education", True),
    Wanted("gamma or hadron", "magic",
           "kind ~ fLength + fWidth + fSize + fConc + fAsym + fM3Long + fM3Trans + fAlpha + fDist",
           "Bock and others 2004, Methods for multidimensional event classification", True),
    Wanted("active compounds", "ds1", "active ~ " + " + ".join(GUPT),
           "Komarek and Moore 2003; Mohan and others 2012 (GUPT), its logistic regression", True),
)  # fmt: skip
