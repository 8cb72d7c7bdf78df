"""What cells are, counted: each record in one cell, read by itself; and what follows from the counts."""

import math

import numpy as np
import pytest

from harness.privacy import join
from sfumato.columns.date_forms import DATE_FORMS
from sfumato.columns.open import Open
from sfumato.columns.written import Written
from sfumato.fitting.domain_counts import KindCounts, cells_that_parse, kinds_of, reasons_of, resolutions_of
from sfumato.mechanisms.queries import Noisy

DAYS = [f"{2019 + day // 360}-{1 + day // 30 % 12:02}-{1 + day % 28:02}" for day in range(0, 700, 11)]

TEXTS = {
    "whole": (["1", "20", None, "3.0"], Open(kind="integer")),
    "real": (["1.5", "2", "1e3", "-.25"], Open(kind="continuous")),
    "cents": (["1.25", "0.5", "3", "7.00"], Open(kind="continuous")),
    "word": (["1", "a", "b", "c"], Open(kind="categorical")),
    "codes": (["788", "250.01", "V57", "41"], Open(kind="categorical")),
    "zeros": (["007", "07", "7", "0"], Open(kind="categorical")),
    "call": (["+49301234567", "+15551234567", "4930123456"], Open(kind="categorical")),
    "large": ([str(10**17 + i) for i in range(9)], Open(kind="categorical")),
    "gone": ([None], Open(kind="categorical")),
    "infinite": (["1", "2", "inf", "-inf"], Open(kind="integer")),
    "day": (DAYS, Open(kind="datetime")),
    "stamp": ([f"{day} 08:15:00" for day in DAYS], Open(kind="datetime", resolution="minute")),
    "offset": (
        [f"{day}T08:00:00+02:00" for day in DAYS],
        Open(kind="datetime", format="%Y-%m-%dT%H:%M:%S+02:00", resolution="hour"),
    ),
    "compact": ([day.replace("-", "") for day in DAYS], Open(kind="datetime", format="%Y%m%d")),
    "few dates": ([*DAYS[:2], "1", "20", "a", "b"], Open(kind="categorical")),
    "numbers like dates": (["20210716", *(str(90_000_000 + i) for i in range(9))], Open(kind="integer")),
    "zero dates": (["0000-00-00", *DAYS], Open(kind="datetime")),
    "clock": (["08:15", "23:59", "00:00"], Open(kind="datetime", format="%H:%M", resolution="minute")),
    "month": (["2021-07", "2021-12"], Open(kind="datetime", format="%Y-%m", resolution="month")),
    "week": (["2022-W05", "2022-W51"], Open(kind="datetime", format="%G-W%V", resolution="week")),
}


def _counted(texts):
    statistic = KindCounts(tuple(texts))
    longest = max(map(len, texts.values()))
    rows = {n: np.array((t * longest)[: 20 * longest] * 100, dtype=object) for n, t in texts.items()}
    rows = {n: np.resize(column, 100 * longest) for n, column in rows.items()}
    total = statistic.zero()
    statistic.add(total, join([rows]))
    return total, 100 * longest


def test_a_record_is_in_one_cell_of_each_column():
    total, n = _counted({name: texts for name, (texts, _) in TEXTS.items()})
    assert (total.sum(axis=1) == n).all()
    assert total.shape == (len(TEXTS), total.shape[1])
    assert total.shape[1] > len(DATE_FORMS)


@pytest.mark.parametrize("name", TEXTS)
def test_kinds(name):
    texts, kind = TEXTS[name]
    total, n = _counted({name: texts})
    noisy = Noisy(total, n / 500)
    assert kinds_of(noisy, (name,)) == {name: kind}
    assert kinds_of(Noisy(0 * total, n / 500), (name,)) == {name: Open(kind="categorical")}
    rng = np.random.default_rng(1)
    for _ in range(20):
        noise = rng.normal(0, n / 500, total.shape)
        assert kinds_of(Noisy(total + noise, n / 500), (name,)) == {name: kind}


@pytest.mark.parametrize("name", ["zip", "Postleitzahl", "patient_id", "order_no", "phone"])
def test_whole_numbers_that_name_places_or_people_are_labels(name):
    total, n = _counted({name: ["10115", "80331", "20095"], "visits": ["1", "20", "3"], "zip_mean": ["1.5", "2.5"]})
    found = kinds_of(Noisy(total, n / 500), (name, "visits", "zip_mean"))
    assert {column: kind.kind for column, kind in found.items()} == {
        name: "categorical", "visits": "integer", "zip_mean": "continuous",
    }  # fmt: skip


def test_noise_of_many_cells_is_no_number():
    total, n = _counted({"x": [None]})
    rng = np.random.default_rng(0)
    noisy = (Noisy(total + rng.normal(0, n / 500, total.shape), n / 500) for _ in range(150))
    assert all(kinds_of(one, ("x",)) == {"x": Open(kind="categorical")} for one in noisy)


def test_reasons():
    names = tuple(TEXTS)
    total, n = _counted({name: texts for name, (texts, _) in TEXTS.items()})
    assert reasons_of(Noisy(total, n / 500), names) == {"large": "large", "gone": "empty"}


def test_resolutions():
    texts = {
        "whole": ["1", "7.0"],
        "cents": ["1.25", "0.5", "3"],
        "exact": ["0.1234567"],
        "small": ["1.5e-3", "2e-3"],
    }
    total, n = _counted(texts)
    found = resolutions_of(Noisy(total, n / 1000), tuple(texts))
    assert found == {"whole": 1.0, "cents": 0.01, "small": 0.0001}


def test_what_a_cell_is_follows_from_it_alone():
    texts = [text for some, _ in TEXTS.values() for text in some[:12]]
    texts += ["", "caf\u00e9", "\u0667", "1,5", "#N/A", "x" * 99]
    together = cells_that_parse(np.array(texts, dtype=object))
    alone = [int(cells_that_parse(np.array([text], dtype=object))[0]) for text in texts]
    assert together.tolist() == alone
    rng = np.random.default_rng(0)
    for _ in range(3):
        some = rng.permutation(len(texts))[: len(texts) // 2]
        assert cells_that_parse(np.array(texts, dtype=object)[some]).tolist() == together[some].tolist()


def test_numbers_of_a_column_of_numbers():
    values = np.array([1.0, 7.25, math.nan, 1e17])
    texts = np.array(["1", "7.25", None, "100000000000000000"], dtype=object)
    assert cells_that_parse(values).tolist() == cells_that_parse(texts).tolist()


def test_numbers_as_they_are_written():
    texts = np.array(["1.234,50", "12,5"], dtype=object)
    plain = np.array(["1234.50", "12.5"], dtype=object)
    written = Written(decimal=",", thousands=".")
    assert cells_that_parse(texts, written).tolist() == cells_that_parse(plain).tolist()


def test_resolutions_by_noisy_counts():
    counts = np.zeros((3, 11))
    counts[0, [1, 2, 3]] = 900, 500, 4_000  # cents
    counts[1, [1, 8]] = 100, 5_000  # very many decimals
    counts[2, [1, 3, 7]] = 5_000, 4_000, 20  # six decimals below the noise
    assert resolutions_of(Noisy(counts, 5.0), ("a", "b", "c")) == {"a": 0.01, "c": 0.01}
    assert resolutions_of(Noisy(counts, 0.1), ("a", "b", "c")) == {"a": 0.01, "c": 0.01}  # one of a hundred may


def test_of_columns_without_a_value_the_noise_says_nothing_else():
    """Among thousands of cells that no record has, some noise is large: the reason stays the true one."""
    noise = np.random.default_rng(0).normal(size=(200, KindCounts(("a",)).zero().shape[1]))
    noise[:, 0] += 50.0
    columns = tuple(f"c{i}" for i in range(len(noise)))
    reasons = reasons_of(Noisy(noise, 1.0), columns)
    assert sum(reasons.get(name) == "empty" for name in columns) >= 198


@pytest.mark.parametrize("name", ["whole", "amount", "date"])
def test_noise_of_many_cells_makes_no_labels(name):
    """At 70 deviations a column, as 5,000 rows and epsilon = 1 have, one in fifty columns of numbers was read so."""
    texts = {"whole": ["1", "20", "3"], "amount": ["1.123456789", "2.5012345678"], "date": ["2021-03-04", "2022-12-31"]}
    total, n = _counted({name: texts[name]})
    rng = np.random.default_rng(0)
    noisy = (Noisy(total + rng.normal(0, n / 70, total.shape), n / 70) for _ in range(300))
    read = [kinds_of(one, (name,))[name].kind for one in noisy]
    assert read.count("categorical") <= 1
