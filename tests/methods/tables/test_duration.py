"""About how long a fit takes: near recorded runs, by public facts, and silent where nothing was measured."""

import pytest

from fixtures import linked, tables
from sfumato import EstimateCount, NonPrivate, Schema
from sfumato.methods.tables.duration import fit_seconds, rounded


def _schema(columns: int, rows: int | None) -> Schema:
    names = {f"c{i}": "boolean" for i in range(columns)}
    return Schema.from_dict({"columns": names} if rows is None else {"rows": rows, "columns": names})


# Rows, columns, with a target, CPU seconds: `benchmarks/duration.py` on a machine that others used too, load 3.
RECORDED = (
    (1_000, 5, False, 2.3), (1_000, 5, True, 2.2), (1_000, 20, False, 2.5), (3_000, 60, True, 5.7),
    (10_000, 12, True, 3.1), (10_000, 30, True, 10.6), (10_000, 50, False, 6.9), (100_000, 12, False, 3.3),
    (100_000, 20, True, 5.4), (100_000, 40, False, 8.3), (100_000, 60, True, 17.0),
)  # fmt: skip
LEVELS = (2, 4, 10, 50)


def _recorded(rows: int, columns: int) -> Schema:
    """The tables of `benchmarks/passes.py`: numbers and labels in turn, then a class of two."""
    kinds: dict[str, object] = {
        f"c{j}": {"kind": "continuous", "lower": -4, "upper": 4}
        if j % 2
        else {"kind": "categorical", "categories": [f"l{i}" for i in range(LEVELS[j // 2 % 4])]}
        for j in range(columns - 1)
    }
    kinds["class"] = {"kind": "categorical", "categories": ["class 0", "class 1"]}
    return Schema.from_dict({"rows": rows, "columns": kinds})


@pytest.mark.parametrize(("rows", "columns", "by_class", "seconds"), RECORDED)
def test_recorded_runs_took_between_half_and_twice_as_long(rows, columns, by_class, seconds) -> None:
    forecast = fit_seconds("max-entropy", _recorded(rows, columns), target="class" if by_class else None)
    assert forecast is not None
    assert seconds / 2 < forecast < 2 * seconds


def test_more_work_takes_longer() -> None:
    base = fit_seconds("max-entropy", _schema(10, 10_000))
    assert base is not None
    more = [
        fit_seconds("max-entropy", _schema(20, 10_000)),
        fit_seconds("max-entropy", _schema(10, 10_000_000)),
        fit_seconds("max-entropy", _schema(10, 10_000), n_public=10_000_000),
    ]
    assert all(other is not None and other > base for other in more)


@pytest.mark.parametrize(
    ("method", "schema", "n_public"),
    [
        ("p3gm", _schema(10, 1_000), None),
        ("max-entropy", _schema(10, None), None),
        ("max-entropy", _schema(10, 1_000), EstimateCount()),
        ("max-entropy", tables.image_schema(), None),
        ("max-entropy", linked.schema(), None),
    ],
)
def test_nothing_is_said_of_what_was_not_measured(method, schema, n_public) -> None:
    assert fit_seconds(method, schema, n_public=n_public) is None


def test_nothing_is_said_of_fits_without_noise() -> None:
    assert fit_seconds("max-entropy", _schema(10, 1_000), epsilon=NonPrivate()) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (1.6, "2 seconds"), (12, "10 seconds"), (47, "50 seconds"), (130, "2 minutes"),
     (400, "5 minutes"), (4_000, "70 minutes"), (9_000, "2 hours"), (90_000, "20 hours")],
)  # fmt: skip
def test_times_are_said_roughly(seconds: float, words: str) -> None:
    assert rounded(seconds) == words
