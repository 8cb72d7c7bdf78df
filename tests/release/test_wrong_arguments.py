"""Every public method of a release and of its estimates, and the front door, with arguments of every kind.

What is wrong is one sentence of a `SfumatoError`; nothing else is ever raised. A right answer is fine too.
"""

from __future__ import annotations

import datetime
import decimal
import inspect
import itertools
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato
import sfumato.columns
import sfumato.estimators
import sfumato.holders
import sfumato.settings
from fixtures.costly import slow_after
from sfumato.errors import SfumatoError, named_arguments
from sfumato.evaluate import evaluate
from sfumato.report import write_report

N = 600


class Odd:
    """Equal to nothing, no key, no truth."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __bool__(self) -> bool:
        raise RuntimeError("taken for a truth value")


def wrong() -> list[object]:
    return [
        None, [], ["a", "b"], ["s", "s"], [["s"], 1],
        ("a",), {}, {"a": 1}, {1: 2}, {"a": ["x"]}, {"s": np.array(["f", "m"])}, set(), "",
        "nonsense", "a\0b", "x" * 300, b"a", 0, 1, -1, 10**400, 1.5, -0.5, float("nan"), float("inf"), True,
        np.int64(3), np.int64(-3), np.float64(0.5), np.float64("nan"), np.bool_(True), np.array([1, 2]), np.array("a"),
        np.array(["a", "b"]), pd.NA, pd.NaT, pd.Series(["a"]), pd.DataFrame({"a": [1]}), datetime.date(2020, 1, 1),
        pd.Timestamp("2020-01-01"), decimal.Decimal("0.5"), 1j, object(), object, len, lambda x: x, Path("nowhere"),
        range(3), Odd(), iter([1]), np.datetime64("2020-01-01"), slice(1),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=N), "b": rng.normal(size=N), "s": rng.choice(["f", "m"], N),
            "t": rng.choice(["x", "y", "z"], N),
            "d": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, N), "D"),
            "c": rng.poisson(3, N).clip(0, 9),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    number = {"kind": "continuous", "lower": -5, "upper": 5}
    return {
        "rows": N,
        "columns": {
            "a": {**number, "nullable": True}, "b": number, "s": {"kind": "categorical", "categories": ["f", "m"]},
            "t": {"kind": "categorical", "categories": ["x", "y", "z"]},
            "d": {"kind": "datetime", "lower": "2020-01-01", "upper": "2021-01-01"},
            "c": {"kind": "integer", "lower": 0, "upper": 9},
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def release(table, schema) -> sfumato.Release:
    return sfumato.fit(table, schema, epsilon=8.0, delta=1e-5, target="s")


def calls(release: sfumato.Release) -> dict[str, tuple[Callable[..., Any], Mapping[str, Any]]]:
    """Return the methods, and arguments with which each is right."""
    groups, pairs, fitted = release.mean("a", by="s"), release.crosstab("s", "t"), release.ols("a ~ b")
    by = release.ols("a ~ b", by="s")
    found: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
        "mean": (release.mean, {"column": "a"}), "share": (release.share, {"condition": {"s": "f"}}),
        "missing": (release.missing, {"column": "a"}), "set_size": (release.set_size, {"column": "s"}),
        "count": (release.count, {}), "crosstab": (release.crosstab, {"first": "s", "second": "t"}),
        "quantile": (release.quantile, {"column": "d"}), "variance": (release.variance, {"column": "a"}),
        "correlation": (release.correlation, {"first": "a", "second": "b"}),
        "correlations": (release.correlations, {"columns": ["a", "b"]}),
        "anova": (release.anova, {"column": "a", "labels": "t"}),
        "independence": (release.independence, {"first": "s", "second": "t"}),
        "ols": (release.ols, {"formula": "a ~ b"}), "logit": (release.logit, {"formula": "s ~ b"}),
        "poisson": (release.poisson, {"formula": "c ~ b"}), "gamma": (release.gamma, {"formula": "c ~ b"}),
        "answers": (release.answers, {"most_pairs": 0}), "sample": (release.sample, {"n": 3}),
        "batches": (release.batches, {"n": 3}), "replicates": (release.replicates, {"m": 2, "n": 9}),
        "replicate_batches": (release.replicate_batches, {"m": 2, "n": 9}),
    }  # fmt: skip
    for name, held in {
        "estimate": release.mean("d"),
        "groups": groups,
        "pairs": pairs,
        "correlations": release.correlations(["a", "b", "c"]),
        "fit": fitted,
        "fits": by,
    }.items():
        for method in ("interval", "conf_int", "summary", "to_dict", "to_frame", "table", "__getitem__"):
            if hasattr(held, method):
                found[f"{name}.{method}"] = (getattr(held, method), {})
    return found


def passed_over(name: str, value: object) -> bool:
    """Whether a value is right, and slow; or a caller's own function, which may raise what it likes."""
    many = isinstance(value, int) and not isinstance(value, bool) and value > 2
    return (name in ("n", "m", "workers") and many) or (name == "progress" and callable(value))


def tried(
    method: Callable[..., Any], right: Mapping[str, Any], places: Iterator[Path]
) -> Iterator[tuple[str, Exception]]:
    """Yield what is raised beside our own errors, with each argument replaced by each wrong one."""
    parameters = inspect.signature(method).parameters
    output = next((name for name in ("path", "out") if name in parameters), None)
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        for value in wrong():
            if passed_over(name, value):
                continue
            arguments = {**right, **({} if output is None else {output: next(places)}), name: value}
            try:
                made = method(**arguments)
                if hasattr(made, "__next__"):
                    next(made, None)
            except SfumatoError as error:
                if not str(error).startswith(("Expected", "Cannot", "Column")):
                    yield f"{name}={type(value).__name__}", error
            except Warning:  # which are errors in these tests
                continue
            except Exception as error:  # noqa: BLE001 - this is what must not be
                yield f"{name}={type(value).__name__}", error


def refused(method: Callable[..., Any], right: Mapping[str, Any], folder: Path, suffix: str = "") -> None:
    places = (folder / f"{i}{suffix}" for i in itertools.count())
    here = Path.cwd()
    os.chdir(folder)  # what `nonsense` may name is written there
    try:
        assert [f"{name}: {error!r}" for name, error in tried(method, right, places)] == []
    finally:
        os.chdir(here)


@pytest.mark.parametrize("part", [3, 5, *slow_after(0, (0, 1, 2, 4))])
def test_questions_and_samples(release, tmp_path, part) -> None:
    for name, (method, right) in list(calls(release).items())[part::6]:
        (tmp_path / name).mkdir()
        refused(method, right, tmp_path / name)


def test_outputs(table, schema, tmp_path) -> None:
    columns = {"s": schema["columns"]["s"]}
    release = sfumato.fit(table[["s"]], {"rows": N, "columns": columns}, epsilon=8.0, delta=1e-5)
    for name, method, right, suffix in (
        ("save", release.save, {}, ".sfm"),
        ("write_sample", release.write_sample, {"n": 3}, ".csv"),
    ):
        (tmp_path / name).mkdir()
        refused(method, right, tmp_path / name, suffix)


@pytest.mark.slow
def test_pages_and_packs(table, schema, tmp_path) -> None:
    columns = {"s": schema["columns"]["s"]}
    release = sfumato.fit(table[["s"]], {"rows": N, "columns": columns}, epsilon=8.0, delta=1e-5)
    for name, method, right, suffix in (
        ("report", release.report, {}, ".html"),
        ("write_report", write_report, {"release": release}, ".html"),
        ("pack", sfumato.pack, {"release": release, "n": 3}, ""),
    ):
        (tmp_path / name).mkdir()
        refused(method, right, tmp_path / name, suffix)


def test_questions_about_sets(tmp_path) -> None:
    sets = pd.DataFrame({"s": [["x", "y"], ["x"], []] * 20})
    kind = {"kind": "set", "items": ["x", "y", "z"], "max_length": 2}
    release = sfumato.LatentClasses(epsilon=8.0, n_classes=2).fit(sets, schema={"rows": 60, "columns": {"s": kind}})
    asked = {"share": {"condition": {"s": "x"}}, "count": {"condition": {"s": ["x"]}}, "set_size": {"column": "s"}}
    for name, right in {**asked, "answers": {}, "mean": {"column": "s"}}.items():
        (tmp_path / name).mkdir()
        refused(getattr(release, name), right, tmp_path / name)


def test_the_front_door(release, table, tmp_path) -> None:
    release.save(tmp_path / "r.sfm")
    refused(sfumato.describe, {"data": table}, tmp_path)
    refused(sfumato.load, {}, tmp_path)
    refused(sfumato.export, {"release": release, "form": "registry"}, tmp_path)
    refused(sfumato.combine, {"results": [(1.0, 0.1), (1.2, 0.1)]}, tmp_path)


@pytest.mark.slow
def test_scores_and_fits(release, table, schema, tmp_path) -> None:
    few = table[["s", "t"]].head(12)
    known = {"rows": 12, "columns": {name: schema["columns"][name] for name in few}}
    refused(evaluate, {"real": few, "synthetic": few, "schema": known}, tmp_path)
    small = sfumato.fit(few, known, epsilon=8.0, delta=1e-5)
    refused(small.evaluate, {"real": few, "n": 12}, tmp_path)
    refused(sfumato.fit, {"data": few, "schema": known, "epsilon": 1.0, "delta": 1e-5}, tmp_path)


def test_every_public_method_is_tried(release) -> None:
    """A new method joins this test, or stands here with the test that tries it."""
    elsewhere = {
        "check", "evaluate", "form", "certificate", "measurements", "parameters", "sampler", "schema", "units",
        "checked", "columns", "disagreements", "table_batches", "save", "report", "write_sample", "hashes",
        "target", "is_data_set", "table", "to_bytes", "part_of",
    }  # fmt: skip
    public = {name for name in dir(sfumato.Release) if not name.startswith("_")}
    assert public - elsewhere <= calls(release).keys()


def public_callables() -> dict[str, Callable[..., Any]]:
    """Classes and functions that pages name, but for results, which nobody makes by hand."""
    found = {}
    for package in (sfumato, sfumato.columns, sfumato.estimators, sfumato.settings, sfumato.evaluate, sfumato.holders):
        names = [name for name in package.__all__ if not name.startswith("_")]
        found |= {f"{package.__name__}.{name}": getattr(package, name) for name in names}
    results = {sfumato.Release, sfumato.Regressions, sfumato.Neighbours, sfumato.OpenSchema}
    return {name: one for name, one in found.items() if callable(one) and one not in results}


def test_a_name_that_no_argument_has_is_said_by_every_public_call(release) -> None:
    found = public_callables()
    assert len(found) > 80
    found |= {f"release.{name}": method for name, (method, _) in calls(release).items() if "." not in name}
    for name, call in found.items():
        with pytest.raises(SfumatoError, match=r"got (nonsense=|no )"):
            call(nonsense=1)
        assert not str(inspect.signature(call)).startswith("(*args"), name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.share("g", "b"), "Expected share(condition, by=..., target=...), got more without a name."),
        (lambda r: r.share(s="f"), "Expected share(condition, by=..., target=...), got s=."),
        (lambda r: r.mean(), "Expected mean(column, by=..., target=...), got no column."),
        (lambda _: sfumato.MaxEntropy(eps=1), "got eps=. Did you mean 'epsilon'?"),  # type: ignore[call-arg]
        (lambda _: sfumato.MaxEntropy(), "got no epsilon."),  # type: ignore[call-arg]
        (lambda _: sfumato.columns.Integer(lower=0, uper=1), "got uper=. Did you mean 'upper'?"),  # type: ignore[call-arg]
        (lambda _: sfumato.fit(epsilon=1.0), "got no data."),  # type: ignore[call-arg]
    ],
)
def test_calls_that_fit_no_arguments(release, call, message) -> None:
    with pytest.raises(sfumato.errors.ConfigError) as raised:
        call(release)
    assert message in str(raised.value)
    assert raised.value.__context__ is None


def test_a_type_error_of_the_work_itself_stays() -> None:
    def sums(values):
        return sum(values)

    with pytest.raises(TypeError, match="unsupported operand"):
        named_arguments(sums)(["a"])


def test_public_functions_can_be_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(sfumato.fit)) is sfumato.fit
    assert pickle.loads(pickle.dumps(sfumato.columns.Integer(lower=0, upper=1))).upper == 1
