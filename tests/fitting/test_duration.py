"""About how long a fit takes: by public facts, more for more work, and silent where nothing was measured."""

import pytest

from fixtures import linked, tables
from sfumato import EstimateCount, Schema
from sfumato.fitting.duration import fit_seconds, rounded


def _schema(columns: int, rows: int | None) -> Schema:
    names = {f"c{i}": "boolean" for i in range(columns)}
    return Schema.from_dict({"columns": names} if rows is None else {"rows": rows, "columns": names})


def test_more_work_takes_longer() -> None:
    base = fit_seconds("max-entropy", _schema(10, 10_000))
    assert base is not None
    more = [
        fit_seconds("max-entropy", _schema(20, 10_000)),
        fit_seconds("max-entropy", _schema(10, 10_000_000)),
        fit_seconds("max-entropy", _schema(10, 10_000), target="c0"),
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


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (1.6, "2 seconds"), (12, "10 seconds"), (47, "50 seconds"), (130, "2 minutes"),
     (400, "5 minutes"), (4_000, "70 minutes"), (9_000, "2 hours"), (90_000, "20 hours")],
)  # fmt: skip
def test_times_are_said_roughly(seconds: float, words: str) -> None:
    assert rounded(seconds) == words
