"""Tables that hold next to nothing: every page, file and answer of their releases is there."""

import contextlib
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.costly import slow_after
from sfumato.errors import SfumatoError

N = 300


def _beside(**columns):
    rng = np.random.default_rng(5)
    return pd.DataFrame({"x": rng.normal(size=N).round(2), "g": rng.choice(["a", "b"], N), **columns})


def _rare():
    return [f"w{i}" for i in range(N)]


OPEN = {
    "a constant number": lambda: _beside(k=[7] * N),
    "a constant text": lambda: _beside(k=["same"] * N),
    "no value at all": lambda: _beside(k=[None] * N),
    "rare labels alone": lambda: pd.DataFrame({"k": _rare()}),
    "rare labels beside others": lambda: _beside(k=_rare()),
    "hardly a value": lambda: _beside(k=np.where(np.arange(N) % 30, np.nan, 1.0)),
    "empty texts": lambda: _beside(k=[""] * N),
    "a row": lambda: _beside().iloc[:1],
    "one number": lambda: _beside()[["x"]],
    "one truth value": lambda: pd.DataFrame({"b": np.arange(N) % 2 == 0}),
    "twins": lambda: _beside().assign(y=lambda frame: frame["x"])[["x", "y"]],
    "large and small": lambda: pd.DataFrame({"x": _beside()["x"] * 1e12, "t": _beside()["x"] * 1e-9}),
    "names that formulas use": lambda: _beside().set_axis(["a b:c", "Intercept"], axis=1).assign(other=1.0, count=2),
}
LABELS = {"kind": "categorical", "categories": ["a", "b"]}
NUMBER = {"kind": "continuous", "lower": -4, "upper": 4}
DECLARED = {
    "a constant": (lambda: _beside(k=[7] * N), {"g": LABELS, "k": {"kind": "integer", "lower": 7, "upper": 7}}),
    "one label": (lambda: pd.DataFrame({"g": ["a"] * N}), {"g": {"kind": "categorical", "categories": ["a"]}}),
    "a missing number": (lambda: _beside().assign(x=np.nan), {"x": {**NUMBER, "nullable": True}, "g": LABELS}),
    "missing labels": (lambda: _beside().assign(g=None), {"x": NUMBER, "g": {**LABELS, "nullable": True}}),
    "no row": (lambda: _beside().iloc[:0], {"x": NUMBER, "g": LABELS}),
    "a row": (lambda: _beside().iloc[:1], {"x": NUMBER, "g": LABELS}),
}  # fmt: skip


def _answers(release):
    """Ask about each column and each pair: an answer is a finite number, a refusal an error of ours."""
    names, n_answers = list(release.schema.released), 0
    for name in names:
        for question, what in (
            (release.mean, name),
            (release.variance, name),
            (release.count, {name: "a"}),
            (release.share, {name: "a"}),
            (release.quantile, [name, 0.5]),
        ):
            try:
                answer = question(*what) if isinstance(what, list) else question(what)
            except SfumatoError:
                continue
            n_answers += 1
            for estimate in answer if hasattr(answer, "__iter__") else [answer]:
                assert np.all(np.isfinite(estimate.interval())), (name, question)
                assert estimate.interval()[0] <= estimate.value <= estimate.interval()[1]
    for first, second in itertools.pairwise(names):
        for question in (release.correlation, release.crosstab):
            try:
                question(first, second)
            except SfumatoError:
                continue
    return n_answers


def _every_way_out(release, table, folder, *, declared):
    release.save(folder / "r.sfm")
    again = sfumato.load(folder / "r.sfm")
    rows = again.sample(40, seed=1)
    assert list(rows.columns) == list(release.schema.released)
    assert len(rows) == 40
    for shown in (again, again.certificate, again.columns(), again.answers()):
        assert str(shown)
    for shown in (again, again.certificate):
        assert shown._repr_html_()
    again.report(folder / "page.html")
    if len(table) > 1:
        again.report(folder / "real.html", real=table)
    sfumato.pack(again, folder / "pack", n=40)
    assert _answers(again) or not declared
    with contextlib.suppress(SfumatoError):
        again.replicates(2)


def _fit(table, schema):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sfumato.fit(table, schema, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("table", slow_after(4, OPEN))
@pytest.mark.filterwarnings("ignore")
def test_open(table, tmp_path):
    frame = OPEN[table]()
    try:
        release = _fit(frame, sfumato.OpenSchema.of(frame, rows=len(frame)))
    except SfumatoError as error:
        assert "Expected" in str(error)  # noqa: PT017
        return
    _every_way_out(release, frame, tmp_path, declared=False)


@pytest.mark.parametrize("table", slow_after(3, DECLARED))
@pytest.mark.filterwarnings("ignore")
def test_declared(table, tmp_path):
    make, columns = DECLARED[table]
    frame = make()
    try:
        release = _fit(frame, {"rows": max(len(frame), 1), "columns": columns})
    except SfumatoError as error:
        assert "Expected" in str(error)  # noqa: PT017
        return
    _every_way_out(release, frame, tmp_path, declared=True)
