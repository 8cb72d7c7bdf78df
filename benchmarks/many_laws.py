"""Four laws of many rows a person, for `many.py`: path, clinic, ledger, register. All records are made up.

Each has its parameters in `PARAMETERS`, which the benchmark prints, a generator with a seed, a schema document, and
counts of what may not be. Dates of the schemas are public bounds, wider than the law's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

Tables = dict[str, pd.DataFrame]
Rng = np.random.Generator

PARAMETERS: dict[str, dict[str, Any]] = {
    "path": {
        "stage 1 to 4, shares": [0.4, 0.3, 0.2, 0.1],
        "states": ["a", "b", "c", "d", "e", "f", "g", "dead", "well"],
        "first state, weights": [5, 4, 3, 2, 2, 1, 1],
        "next k after i, j, log weight": "1.5 [j = k] + 1.6 sin(1.7 j + 2.3 k) + 1.2 sin(1.1 i + 0.7 j k + k)",
        "stay, pull of j, pull of i and j": [1.5, 1.6, 1.2],
        "log weight of dead and well; more a stage": [[-1.2, -0.8], [0.5, -0.5]],
        "events, if no end": "4 + binomial(16, 0.6)",
        "days to the next, median by state": [10, 20, 35, 60, 90, 25, 14],
        "days to the next, times by stage": [1.0, 0.8, 0.65, 0.5],
        "days to the next, deviation of the logarithm": 0.6,
    },
    "clinic": {
        "age": "normal(55, 18) within 18 to 95",
        "diabetes, heart, log odds": "-3.2 + .03 age; -5 + .055 age + .4 of men",
        "visits": "negative binomial of shape 1.5, at most 12; mean 1.5 + 1.8 diabetes + 2.2 heart",
        "kind of visit, log weight": "0; inpatient -1.2 + .8 heart + .015 (age - 55); emergency -.8 + .3 diabetes",
        "stay": "outpatient 0, inpatient lognormal(1.5, .7) from 1 to 60, emergency 0 or 1",
        "days to the next visit": "exponential of mean 200 / (1 + .5 diabetes + .5 heart), at most 720, from the end",
        "cost": "lognormal of median 120, 1500, 400 by kind, deviation .5, + 350 a day",
        "chronic codes": "E11 of diabetes, I50 of heart, I10 by age, N18 of .3 of diabetes; each at a visit with .75",
        "acute codes a visit": "Poisson(.8) of 26, weights 1 / rank, ranks turned by kind of visit; 4 codes at most",
        "pressure": "level 118 + .3 (age - 50) + 12 heart + normal(0, 10), slope a year 1 + normal(0, 2), error 5",
        "pressures a visit": "binomial(2, .5 + .2 heart)",
        "lines of drugs": "Poisson(.6 + 1.2 diabetes + 1.2 heart), at most 6, of persons with a visit, after the first",
        "first drug, weights": "1; metformin 12 of diabetes; ramipril and bisoprolol 4 of heart",
        "second after j; later after i, j: log weight of k": "1.5 sin(2 j + 1.7 k); 1.5 sin(1.3 i + 2.1 j + 1.7 k)",
        "death, log odds": "-5.5 + .045 age + .9 heart; exponential(90) days after the last visit or drug",
    },
    "ledger": {
        "accounts a client": "1 + binomial(2, .3; of firms .5)",
        "account, opened": "half 2018 to 2021, half January to June 2022",
        "tariffs, shares": [0.5, 0.3, 0.2],
        "transactions an account": "8 salaries, one a month, and 12 to 22 others within 240 days",
        "salary": "lognormal(7, .35) of the client, times .7, 1, 1.3 by tariff; 2 % up or down by month",
        "others, shares of card, cash, transfer, fee, fraud": [0.545, 0.2, 0.2, 0.05, 0.005],
        "amount of others": "lognormal of medians 150, 300, 900, 5, 900, deviation .6; plus twice; .3 of transfers in",
        "balance": "that before + amount; first lognormal(7, .8)",
        "loan": "of .15, .25, .5 of accounts by tariff; 10 salaries, deviation .3; defaults more if the balance is low",
    },
    "register": {
        "pupils": "two sexes, three tracks of .5, .3, .2; entered August to September 2019 to 2021",
        "ability": "normal(0, 1) + .8 (track - 1)",
        "school years": "2, or 3 of a half; school of 5 by track, stays with .9",
        "days absent": "Poisson(exp(1.8 - .4 ability)), at most 60",
        "marks": "8 subjects a year, one each; 3 - .7 ability + .5 sin(subject) + normal(0, .7), rounded, 1 to 5",
        "events": "11, in six seasons a year, 0 to 20 days into it; points 50 + 12 ability + normal(0, 10)",
    },
}


@dataclass(frozen=True)
class Law:
    """A law: its tables by seed, its schema, and what may not be.

    Attributes:
        draw: Tables of n persons, by a seed.
        document: The schema document of n persons.
        facts: Counts of rows that break what is certain, and shares that single pairs of columns do not show.
        gaps: Largest number of days to the row before, by table; longer ones count as it.
        origin: Day 0 of all dates.
        above: Tables whose row before is that of the same row above; of others that of the same person.
        wishes: What is certain, as additions to the document, or None where schemas have no form for it.
    """

    draw: Callable[[int, int], Tables]
    document: Callable[[int], dict[str, Any]]
    facts: Callable[[Tables], dict[str, float]]
    gaps: Mapping[str, int]
    origin: str = "2015-01-01"
    above: tuple[str, ...] = ()
    wishes: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]] | None] = field(default_factory=dict)


def pick(rng: Rng, weights: np.ndarray) -> np.ndarray:
    """Return an index for each row of weights."""
    sums = np.cumsum(weights, axis=1)
    return (sums < rng.random((len(weights), 1)) * sums[:, -1:]).sum(axis=1)


def chance(rng: Rng, log_odds: np.ndarray) -> np.ndarray:
    return rng.random(log_odds.size) < 1 / (1 + np.exp(-log_odds))


def labels(*names: str) -> dict[str, Any]:
    return {"kind": "categorical", "categories": list(names)}


def whole(lower: int, upper: int) -> dict[str, Any]:
    return {"kind": "integer", "lower": lower, "upper": upper}


def dates(lower: str, upper: str) -> dict[str, Any]:
    return {"kind": "datetime", "lower": lower, "upper": upper, "resolution": "day"}


def as_dates(origin: str, days: np.ndarray) -> np.ndarray:
    return np.datetime64(origin) + np.asarray(days).astype("timedelta64[D]")


def spread(rng: Rng, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the owner of each row, and its number among the owner's rows."""
    who = np.repeat(np.arange(counts.size), counts)
    return who, np.arange(who.size) - np.repeat(np.cumsum(counts) - counts, counts)


def with_rule(rule: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An addition to a document: one rule more."""
    return lambda document: {**document, "rules": [*document.get("rules", ()), rule]}


# Path: one table of linked rows, here beside a table of its persons.

MOST_EVENTS, PATH_DAYS, LONGEST = 20, 3_000, 400


def path(n: int, seed: int) -> Tables:
    """Return persons with their stage, and up to twenty events."""
    rng, of = np.random.default_rng(seed), PARAMETERS["path"]
    stay, one, two = of["stay, pull of j, pull of i and j"]
    ends, more = (np.array(part) for part in of["log weight of dead and well; more a stage"])
    medians = np.array(of["days to the next, median by state"])
    times = np.array(of["days to the next, times by stage"])
    stage = pick(rng, np.tile(of["stage 1 to 4, shares"], (n, 1)))
    state, day = pick(rng, np.tile(of["first state, weights"], (n, 1))), rng.integers(0, 700, n)
    before, goes, k = np.full(n, 7), 4 + rng.binomial(16, 0.6, n), np.arange(7)
    parts, on = [], np.arange(n)
    for step in range(MOST_EVENTS):
        parts.append(pd.DataFrame({"person": on, "day": day[on], "state": np.array(of["states"])[state[on]]}))
        on = on[(state[on] < 7) & (goes[on] > step + 1)]
        i, j, s = before[on, None], state[on, None], stage[on, None]
        logs = stay * (j == k) + one * np.sin(1.7 * j + 2.3 * k) + two * np.sin(1.1 * i + 0.7 * j * k + k)
        weights = np.exp(np.hstack([logs, ends + more * (s - 1)]))
        gap = np.exp(np.log(medians[state[on]] * times[stage[on]]) + 0.6 * rng.normal(size=on.size))
        day[on] = np.minimum(day[on] + np.minimum(gap.round().astype(int), LONGEST), PATH_DAYS)
        before[on], state[on] = state[on], pick(rng, weights)
    persons = pd.DataFrame({"person": np.arange(n), "stage": (stage + 1).astype(str)})
    return {"persons": persons, "events": pd.concat(parts, ignore_index=True)}


def path_document(n: int) -> dict[str, Any]:
    return {
        "unit": {
            "column": "person", "max_rows": MOST_EVENTS, "order": "day", "constant": ["stage"], "units": n,
            "ends": {"state": ["dead", "well"]},
        },
        "columns": {
            "person": "identifier", "stage": labels(*"1234"), "day": whole(0, PATH_DAYS),
            "state": labels(*PARAMETERS["path"]["states"]),
        },
    }  # fmt: skip


def joined(tables: Tables) -> pd.DataFrame:
    """Return the rows of `path` as linked rows, each with its person's stage."""
    return tables["events"].merge(tables["persons"], on="person")


def apart(rows: pd.DataFrame) -> Tables:
    """Return linked rows as the tables of `path`."""
    persons = rows.groupby("person", as_index=False)["stage"].first()
    return {"persons": persons, "events": rows.drop(columns="stage")}


def path_facts(tables: Tables) -> dict[str, float]:
    rows = tables["events"].sort_values(["person", "day"], kind="stable")
    over = rows["state"].isin(["dead", "well"]).astype(int)
    return {
        "rows after an end": float((over.groupby(rows["person"]).cumsum() - over).gt(0).sum()),
        "persons with an end, share": float(over.groupby(rows["person"]).any().mean()),
    }


# Clinic: persons; visits with codes and pressures; lines of drugs; deaths.

CHRONIC, ACUTE = ["E11", "I50", "I10", "N18"], [f"A{place:02}" for place in range(1, 27)]
DRUGS = ["metformin", "insulin", "ramipril", "bisoprolol", "statin", "aspirin", "opioid", "other"]
KINDS = ["outpatient", "inpatient", "emergency"]
CLINIC_DAYS = 3_652  # 2015 to 2024


def clinic_visits(rng: Rng, persons: pd.DataFrame) -> pd.DataFrame:
    """Return visits, dates as days, in order."""
    d, h, age = (persons[name].to_numpy() for name in ("diabetes", "heart", "age"))
    mean = 1.5 + 1.8 * d + 2.2 * h
    goes = np.minimum(rng.negative_binomial(1.5, 1.5 / (1.5 + mean)), 12)
    day, parts, n = rng.integers(0, 1500, age.size), [], age.size
    for place in range(12):
        logs = np.column_stack([np.zeros(n), -1.2 + 0.8 * h + 0.015 * (age - 55), -0.8 + 0.3 * d])
        kind = pick(rng, np.exp(logs))
        within = np.clip(np.exp(rng.normal(1.5, 0.7, n)).round(), 1, 60).astype(int)
        stay = np.choose(kind, [0 * within, within, rng.integers(0, 2, n)])
        on = np.flatnonzero((goes > place) & (day + stay < CLINIC_DAYS - 150))
        rows = {"person": on, "kind": kind[on], "start": day[on], "end": (day + stay)[on], "stay": stay[on]}
        parts.append(pd.DataFrame(rows))
        gap = np.ceil(rng.exponential(200 / (1 + 0.5 * d + 0.5 * h)))
        day = day + stay + np.clip(gap, 1, 720).astype(int)
    visits = pd.concat(parts).sort_values(["person", "start"], ignore_index=True)
    base = np.log(np.array([120, 1_500, 400]))[visits["kind"]] + rng.normal(0, 0.5, len(visits))
    visits["cost"] = np.minimum(np.exp(base) + 350 * visits["stay"], 40_000).round().astype(int)
    visits.insert(0, "visit", rng.permutation(len(visits)))
    return visits


def clinic_codes(rng: Rng, persons: pd.DataFrame, visits: pd.DataFrame) -> pd.DataFrame:
    """Return up to four codes a visit; those of chronic illness come again."""
    n, (d, age) = len(persons), (persons[name].to_numpy() for name in ("diabetes", "age"))
    ill = np.column_stack([d, persons["heart"], chance(rng, (age - 60) / 8), d & (rng.random(n) < 0.3)]) > 0
    again = ill[visits["person"]] & (rng.random((len(visits), 4)) < 0.75)
    row, code = np.nonzero(again)
    parts = [pd.DataFrame({"row": row, "code": np.array(CHRONIC)[code]})]
    of, _ = spread(rng, rng.poisson(0.8, len(visits)))
    ranks = (np.arange(26) + 9 * visits["kind"].to_numpy()[of, None]) % 26
    parts.append(pd.DataFrame({"row": of, "code": np.array(ACUTE)[pick(rng, 1 / (1 + ranks))]}))
    codes = pd.concat(parts).drop_duplicates().groupby("row", as_index=False).head(4)
    return pd.DataFrame({"visit": visits["visit"].to_numpy()[codes["row"]], "code": codes["code"].to_numpy()})


def clinic_pressures(rng: Rng, persons: pd.DataFrame, visits: pd.DataFrame) -> pd.DataFrame:
    """Return up to two pressures a visit, within it, by a person's level and slope."""
    h, n = persons["heart"].to_numpy(), len(persons)
    level = 118 + 0.3 * (persons["age"].to_numpy() - 50) + 12 * h + rng.normal(0, 10, n)
    slope = 1 + rng.normal(0, 2, n)
    of, _ = spread(rng, rng.binomial(2, 0.5 + 0.2 * h[visits["person"]]))
    who, start = visits["person"].to_numpy()[of], visits["start"].to_numpy()
    at = start[of] + (rng.random(of.size) * (visits["stay"].to_numpy()[of] + 1)).astype(int)
    years = (at - visits.groupby("person")["start"].transform("min").to_numpy()[of]) / 365
    value = np.clip(level[who] + slope[who] * years + rng.normal(0, 5, of.size), 60, 240).round().astype(int)
    return pd.DataFrame({"visit": visits["visit"].to_numpy()[of], "at": at, "pressure": value})


def clinic_drugs(rng: Rng, persons: pd.DataFrame, first: np.ndarray) -> pd.DataFrame:
    """Return lines of drugs of those with a first visit; from the third on each depends on the two before."""
    d, h = persons["diabetes"].to_numpy(), persons["heart"].to_numpy()
    goes = np.where(first >= 0, np.minimum(rng.poisson(0.6 + 1.2 * d + 1.2 * h), 6), 0)
    weights = np.ones((d.size, len(DRUGS)))
    weights[:, 0] += 11 * d
    weights[:, 2:4] += 3 * h[:, None]
    drug, day, parts, k = pick(rng, weights), first + rng.exponential(100, d.size).astype(int), [], np.arange(8)
    before = drug
    for place in range(6):
        on = np.flatnonzero((goes > place) & (day < CLINIC_DAYS - 60))
        packs = 1 + rng.binomial(8, 0.15 + 0.08 * drug[on])
        parts.append(pd.DataFrame({"person": on, "since": day[on], "drug": np.array(DRUGS)[drug[on]], "packs": packs}))
        i, j = before[:, None], drug[:, None]
        logs = 1.5 * np.sin(2 * j + 1.7 * k) if place == 0 else 1.5 * np.sin(1.3 * i + 2.1 * j + 1.7 * k)
        before, drug = drug, pick(rng, np.exp(logs))
        day = day + 1 + rng.exponential(150, d.size).astype(int)
    return pd.concat(parts).sort_values(["person", "since"], ignore_index=True)


def clinic(n: int, seed: int) -> Tables:
    """Return persons, visits with codes and pressures, lines of drugs, deaths."""
    rng = np.random.default_rng(seed)
    age, man = np.clip(rng.normal(55, 18, n), 18, 95).astype(int), rng.random(n) < 0.5
    diabetes, heart = chance(rng, -3.2 + 0.03 * age), chance(rng, -5 + 0.055 * age + 0.4 * man)
    persons = pd.DataFrame({"person": np.arange(n), "age": age, "sex": np.where(man, "m", "f")})
    persons = persons.assign(diabetes=diabetes.astype(int), heart=heart.astype(int))
    visits = clinic_visits(rng, persons)
    codes, pressures = clinic_codes(rng, persons, visits), clinic_pressures(rng, persons, visits)
    first = visits.groupby("person")["start"].min().reindex(range(n), fill_value=-1).to_numpy()
    drugs = clinic_drugs(rng, persons, first)
    last = pd.concat([visits.groupby("person")["end"].max(), drugs.groupby("person")["since"].max()]).groupby(level=0)
    last_day = last.max().reindex(range(n)).fillna(pd.Series(rng.integers(500, 3_500, n))).to_numpy()
    last_days = last_day + np.ceil(rng.exponential(90, n))
    dead = np.flatnonzero(chance(rng, -5.5 + 0.045 * age + 0.9 * heart) & (last_days < CLINIC_DAYS))
    cause = np.array(["heart", "tumour", "other"])[
        pick(rng, np.column_stack([1 + 4 * heart, 2 + 0 * age, 1 + 0 * age]))
    ]
    deaths = pd.DataFrame({"person": dead, "died": last_days[dead], "cause": cause[dead]})
    for frame, name in ((visits, "start"), (visits, "end"), (pressures, "at"), (drugs, "since"), (deaths, "died")):
        frame[name] = as_dates("2015-01-01", frame[name].to_numpy())
    visits["kind"] = np.array(KINDS)[visits["kind"]]
    persons = persons.assign(**{name: persons[name].map({0: "no", 1: "yes"}) for name in ("diabetes", "heart")})
    return {"persons": persons, "visits": visits, "codes": codes, "pressures": pressures, "drugs": drugs,
            "deaths": deaths}  # fmt: skip


def clinic_document(n: int) -> dict[str, Any]:
    day = dates("2015-01-01", "2024-12-31")
    return {
        "tables": {
            "persons": {"key": "person", "rows": n, "columns": ["age", "sex", "diabetes", "heart"]},
            "visits": {"of": "persons", "key": "visit", "max_rows": 12, "order": "start",
                       "columns": ["kind", "start", "end", "stay", "cost"]},
            "codes": {"of": "visits", "max_rows": 4, "columns": ["code"]},
            "pressures": {"of": "visits", "max_rows": 2, "order": "at", "within": ["start", "end"],
                          "columns": ["at", "pressure"]},
            "drugs": {"of": "persons", "max_rows": 6, "order": "since", "columns": ["since", "drug", "packs"]},
            "deaths": {"of": "persons", "max_rows": 1, "columns": ["died", "cause"]},
        },
        "columns": {
            "person": "identifier", "visit": "identifier", "age": whole(18, 95), "sex": labels("f", "m"),
            "diabetes": labels("no", "yes"), "heart": labels("no", "yes"), "kind": labels(*KINDS), "start": day,
            "end": day, "stay": whole(0, 60), "cost": whole(0, 40_000), "code": labels(*CHRONIC, *ACUTE), "at": day,
            "pressure": whole(60, 240), "since": day, "drug": labels(*DRUGS), "packs": whole(1, 9), "died": day,
            "cause": labels("heart", "tumour", "other"),
        },
        "rules": [{"difference": {"stay": ["end", "start"]}}, {"order": ["start", "end"]}],
    }  # fmt: skip


def clinic_facts(tables: Tables) -> dict[str, float]:
    visits, drugs = tables["visits"], tables["drugs"]
    death = tables["deaths"].drop_duplicates("person").set_index("person")["died"]
    of_visits, of_drugs = (death.reindex(rows["person"]).to_numpy() for rows in (visits, drugs))
    values = tables["pressures"].merge(visits, on="visit")
    first = visits.groupby("person")["start"].min().reindex(drugs["person"]).to_numpy()
    codes = tables["codes"].merge(visits[["visit", "person"]], on="visit")
    ill = codes.loc[codes["code"] == "E11", "person"].unique()
    users = drugs.loc[drugs["drug"] == "metformin", "person"].unique()
    order = values.sort_values(["person", "at"], kind="stable")
    lag = order.groupby("person")["pressure"].shift()
    return {
        "visits that end after the death": float((visits["end"].to_numpy() > of_visits).sum()),
        "drugs after the death": float((drugs["since"].to_numpy() > of_drugs).sum()),
        "visits that end before they start": float((visits["end"] < visits["start"]).sum()),
        "stays that are not end less start": float(((visits["end"] - visits["start"]).dt.days != visits["stay"]).sum()),
        "pressures outside the stay": float(((values["at"] < values["start"]) | (values["at"] > values["end"])).sum()),
        "drugs before the first visit, or of none": float((~(drugs["since"].to_numpy() >= first)).sum()),
        "codes twice in a visit": float(tables["codes"].duplicated().sum()),
        "metformin ever, of those ever with E11, share": float(np.isin(ill, users).mean()) if ill.size else np.nan,
        "pressure and that before, correlation": float(order["pressure"].astype(float).corr(lag.astype(float))),
    }


# Ledger: clients; accounts with transactions and loans.

TARIFFS, MOVES = ["basic", "plus", "savings"], ["card", "cash", "transfer", "fee", "fraud", "salary"]


def ledger_transactions(rng: Rng, accounts: pd.DataFrame, level: np.ndarray) -> pd.DataFrame:
    """Return dated transactions with a running balance; dates are days since 2018."""
    count, n = rng.integers(12, 23, len(accounts)), len(accounts)
    begin = np.maximum(accounts["opened"].to_numpy(), 1_461)  # 1 January 2022
    of, _ = spread(rng, count)
    shares = PARAMETERS["ledger"]["others, shares of card, cash, transfer, fee, fraud"]
    kind = pick(rng, np.tile(shares, (of.size, 1)))
    tariff = accounts["tariff"].to_numpy()
    size = np.exp(np.log(np.array([150, 300, 900, 5, 900]))[kind] + rng.normal(0, 0.6, of.size))
    comes_in = (kind == 2) & (rng.random(of.size) < 0.3)
    amount = size * np.where(tariff[of] == 1, 2, 1) * np.where(comes_in, 1, -1)
    day = begin[of] + rng.integers(0, 240, of.size)
    month, pay = np.tile(np.arange(8), n), np.repeat(np.arange(n), 8)
    income = level[accounts["client"]] * np.array([0.7, 1.0, 1.3])[tariff]
    rows = {
        "row": np.concatenate([of, pay]),
        "date": np.concatenate([day, begin[pay] + 30 * month + 20 + rng.integers(0, 4, pay.size)]),
        "move": np.concatenate([kind, np.full(pay.size, 5)]),
        "amount": np.concatenate([amount, income[pay] * (1 + 0.02 * rng.normal(size=pay.size))]).round(),
    }
    table = pd.DataFrame(rows).sort_values(["row", "date"], kind="stable", ignore_index=True)
    table["amount"] = table["amount"].clip(-9_000, 12_000)
    opening = np.exp(rng.normal(7, 0.8, n)).round()
    table["balance"] = opening[table["row"]] + table.groupby("row")["amount"].cumsum()
    return table


def ledger(n: int, seed: int) -> Tables:
    """Return clients, accounts, transactions, loans."""
    rng = np.random.default_rng(seed)
    firm = rng.random(n) < 0.2
    region = np.array(list("uvwxyz"))[pick(rng, np.tile([6, 5, 4, 3, 2, 1], (n, 1)))]
    clients = pd.DataFrame({"client": np.arange(n), "region": region, "firm": np.where(firm, "yes", "no")})
    clients["born"] = rng.integers(1940, 2005, n)
    of, _ = spread(rng, 1 + rng.binomial(2, np.where(firm, 0.5, 0.3)))
    m = of.size
    begins = np.where(rng.random(m) < 0.5, rng.integers(0, 1_461, m), 1_461 + rng.integers(0, 180, m))
    tariff = pick(rng, np.tile(PARAMETERS["ledger"]["tariffs, shares"], (m, 1)))
    accounts = pd.DataFrame({"account": rng.permutation(m), "client": of, "opened": begins, "tariff": tariff})
    level = np.exp(rng.normal(7, 0.35, n))
    moves = ledger_transactions(rng, accounts, level)
    mean = moves.groupby("row")["balance"].mean().to_numpy()
    has = np.flatnonzero(rng.random(m) < np.array([0.15, 0.25, 0.5])[tariff])
    poor = -(mean[has] - mean.mean()) / mean.std()
    status = pick(rng, np.exp(np.column_stack([0 * poor, -0.3 - 0.3 * poor, -1.5 + 1.5 * poor])))
    loans = pd.DataFrame({"account": accounts["account"].to_numpy()[has]})
    loans["granted"] = as_dates("2018-01-01", begins[has] + 10 + rng.integers(0, 300, has.size))
    loans["lent"] = np.minimum(10 * level[of[has]] * np.exp(rng.normal(0, 0.3, has.size)), 60_000).round(-2)
    loans["months"] = np.array(["12", "24", "36", "48", "60"])[np.clip((loans["lent"] / 5_000).astype(int), 0, 4)]
    loans["status"] = np.array(["running", "paid", "default"])[status]
    moves["account"] = accounts["account"].to_numpy()[moves["row"]]
    moves["date"], moves["move"] = as_dates("2018-01-01", moves["date"]), np.array(MOVES)[moves["move"]]
    accounts["opened"] = as_dates("2018-01-01", begins)
    accounts["tariff"] = np.array(TARIFFS)[tariff]
    moves = moves[["account", "date", "move", "amount", "balance"]]
    return {"clients": clients, "accounts": accounts, "transactions": moves, "loans": loans}


def ledger_document(n: int) -> dict[str, Any]:
    return {
        "tables": {
            "clients": {"key": "client", "rows": n, "columns": ["region", "firm", "born"]},
            "accounts": {"of": "clients", "key": "account", "max_rows": 3, "order": "opened",
                         "columns": ["opened", "tariff"]},
            "transactions": {"of": "accounts", "max_rows": 30, "order": "date",
                             "columns": ["date", "move", "amount", "balance"]},
            "loans": {"of": "accounts", "max_rows": 1, "columns": ["granted", "lent", "months", "status"]},
        },
        "columns": {
            "client": "identifier", "account": "identifier", "region": labels(*"uvwxyz"), "firm": labels("no", "yes"),
            "born": whole(1930, 2010), "opened": dates("2018-01-01", "2022-12-31"), "tariff": labels(*TARIFFS),
            "date": dates("2022-01-01", "2023-06-30"), "move": labels(*MOVES), "amount": whole(-9_000, 12_000),
            "balance": whole(-20_000, 80_000), "granted": dates("2018-01-01", "2023-12-31"), "lent": whole(0, 60_000),
            "months": labels("12", "24", "36", "48", "60"), "status": labels("running", "paid", "default"),
        },
    }  # fmt: skip


def ledger_facts(tables: Tables) -> dict[str, float]:
    begins = tables["accounts"].set_index("account")["opened"]
    moves, loans = tables["transactions"].sort_values(["account", "date"], kind="stable"), tables["loans"]
    pays = (moves["move"] == "salary").groupby(moves["account"]).sum()
    running = moves.groupby("account")["balance"].diff()
    later = running.notna()
    return {
        "transactions before the account": float(
            (moves["date"].to_numpy() < begins.reindex(moves["account"]).to_numpy()).sum()
        ),
        "loans before the account": float(
            (loans["granted"].to_numpy() < begins.reindex(loans["account"]).to_numpy()).sum()
        ),
        "accounts with eight salaries, share": float((pays == 8).mean()),
        "balances that follow from that before, share": float(
            (running[later] - moves["amount"][later]).abs().le(1).mean()
        ),
        "fraud of transactions, share": float((moves["move"] == "fraud").mean()),
    }


# Register: pupils of years with eight marks each, and eleven events at set seasons.

SUBJECTS = ["maths", "German", "English", "physics", "biology", "history", "music", "sport"]
SEASONS = {"check": 0, "test": 40, "talk": 90, "retest": 150, "trip": 210, "exam": 280}


def register(n: int, seed: int) -> Tables:
    """Return pupils, their school years, eight marks a year, eleven events."""
    rng = np.random.default_rng(seed)
    track, cohort = pick(rng, np.tile([0.5, 0.3, 0.2], (n, 1))), rng.integers(0, 3, n)
    ability = rng.normal(size=n) + 0.8 * (track - 1)
    begin = 365 * cohort + 230 + rng.integers(0, 30, n)  # days since 2019: late August and September
    pupils = pd.DataFrame({"pupil": np.arange(n), "sex": np.where(rng.random(n) < 0.5, "f", "m")})
    pupils["track"], pupils["entered"] = np.array(list("ABC"))[track], as_dates("2019-01-01", begin)
    of, place = spread(rng, rng.integers(2, 4, n))
    home = (2 * track + rng.integers(0, 2, n)) % 5
    school = np.where(rng.random(of.size) < 0.9, home[of], rng.integers(0, 5, of.size))
    years = pd.DataFrame({"stage": rng.permutation(of.size), "pupil": of, "year": 2019 + cohort[of] + place})
    years["school"] = np.array(list("pqrst"))[school]
    years["absent"] = np.minimum(rng.poisson(np.exp(np.minimum(1.8 - 0.4 * ability[of], 4))), 60)
    row, subject = np.repeat(np.arange(of.size), 8), np.tile(np.arange(8), of.size)
    mark = 3 - 0.7 * ability[of[row]] + 0.5 * np.sin(subject) + rng.normal(0, 0.7, row.size)
    marks = pd.DataFrame({"stage": years["stage"].to_numpy()[row], "subject": np.array(SUBJECTS)[subject]})
    marks["mark"] = np.clip(mark.round(), 1, 5).astype(int)
    who, number = np.repeat(np.arange(n), 11), np.tile(np.arange(11), n)
    seasons = np.array(list(SEASONS.values()))
    day = 365 * (cohort[who] + number // 6) + 262 + seasons[number % 6] + rng.integers(0, 21, who.size)
    events = pd.DataFrame({"pupil": who, "date": as_dates("2019-01-01", day)})
    events["event"] = np.array(list(SEASONS))[number % 6]
    events["points"] = np.clip(50 + 12 * ability[who] + rng.normal(0, 10, who.size), 0, 100).round().astype(int)
    marks = marks.sample(frac=1, random_state=seed).reset_index(drop=True)
    return {"pupils": pupils, "years": years, "marks": marks, "events": events}


def register_document(n: int) -> dict[str, Any]:
    return {
        "tables": {
            "pupils": {"key": "pupil", "rows": n, "columns": ["sex", "track", "entered"]},
            "years": {"of": "pupils", "key": "stage", "max_rows": 3, "order": "year",
                      "columns": ["year", "school", "absent"]},
            "marks": {"of": "years", "max_rows": 8, "columns": ["subject", "mark"]},
            "events": {"of": "pupils", "max_rows": 11, "order": "date", "columns": ["date", "event", "points"]},
        },
        "columns": {
            "pupil": "identifier", "stage": "identifier", "sex": labels("f", "m"), "track": labels(*"ABC"),
            "entered": dates("2019-01-01", "2021-12-31"), "year": whole(2019, 2024), "school": labels(*"pqrst"),
            "absent": whole(0, 60), "subject": labels(*SUBJECTS), "mark": whole(1, 5),
            "date": dates("2019-01-01", "2024-12-31"), "event": labels(*SEASONS), "points": whole(0, 100),
        },
    }  # fmt: skip


def register_facts(tables: Tables) -> dict[str, float]:
    starts = tables["pupils"].set_index("pupil")["entered"]
    events, marks = tables["events"], tables["marks"]
    number = marks.groupby("stage").size().reindex(tables["years"]["stage"], fill_value=0)
    twice = marks[marks.duplicated(["stage", "subject"])]["stage"].nunique()
    in_order = tables["years"].sort_values(["pupil", "year"])
    steps = in_order.groupby("pupil")["year"].diff().dropna()
    eleven = events.groupby("pupil").size().reindex(starts.index, fill_value=0) == 11
    return {
        "events before the pupil entered": float(
            (events["date"].to_numpy() < starts.reindex(events["pupil"]).to_numpy()).sum()
        ),
        "years without eight marks, share": float((number != 8).mean()),
        "years with a subject twice, share": twice / len(in_order),
        "years that do not follow the year before, share": float((steps != 1).mean()),
        "pupils with eleven events, share": float(eleven.mean()),
    }


LAWS = {
    "path": Law(path, path_document, path_facts, {"events": LONGEST}),
    "clinic": Law(
        clinic, clinic_document, clinic_facts, {"visits": 800, "pressures": 800, "drugs": 800},
        wishes={
            "no visit ends after the death": with_rule({"order": ["end", "died"]}),
            "no drug after the death": with_rule({"order": ["since", "died"]}),
            "no code twice in a visit": None,
        },
    ),
    "ledger": Law(
        ledger, ledger_document, ledger_facts, {"accounts": 1_600, "transactions": 80}, "2018-01-01",
        ("transactions",),
        {
            "no transaction before the account": with_rule({"order": ["opened", "date"]}),
            "no loan before the account": with_rule({"order": ["opened", "granted"]}),
            "a balance is that before and the amount": None, "a salary a month": None,
        },
    ),
    "register": Law(
        register, register_document, register_facts, {"years": 4, "events": 240}, "2019-01-01", (),
        {
            "no event before the pupil entered": with_rule({"order": ["entered", "date"]}),
            "a mark in each subject": None,
        },
    ),
}  # fmt: skip
