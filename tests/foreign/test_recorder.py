"""Whole fits of neighbours, judged by a harness that others wrote: dp-recorder (Cebere and others, PETS 2026).

It records every release of a fit, plays the fit of a neighbour again with the same releases, and says where anything
else than a mechanism's input differs, or an input by more than the sensitivity charged for. Neighbours are its own.
It wants an environment of its own, which `make recorder` makes; elsewhere these tests are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("dp_recorder", reason="dp-recorder has an environment of its own: make recorder")
pytest.importorskip("torch", reason="networks need the extra nets")

from dp_recorder import auditing as recorder  # type: ignore[import-not-found]
from dp_recorder.auditing.dataset_util import generate_neighbors  # type: ignore[import-not-found]

import sfumato
from fixtures.methods import QUICK
from harness.coupling import Tape, coupled, leaves
from sfumato import DPMix, MaxEntropy
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKMeans
from sfumato.mechanisms import queries
from sfumato.privacy.plan import Stage
from sfumato.records import engine

pytestmark = [pytest.mark.audit, pytest.mark.slow, pytest.mark.usefixtures("coarse_accounts")]

ROWS = 90
NUMBER = {"kind": "continuous", "lower": -3, "upper": 3, "nullable": True}
LABELS = {"kind": "categorical", "categories": list(range(4)), "other": "another"}
COLUMNS = {
    "x": NUMBER, "y": {**NUMBER, "nullable": False}, "count": {"kind": "integer", "lower": 0, "upper": 50},
    "group": LABELS, "answer": {"kind": "ordinal", "categories": list(range(3))},
}  # fmt: skip
SCHEMA = {"columns": COLUMNS, "rows": ROWS}
OWNERS = {**SCHEMA, "columns": {**COLUMNS, "owner": "identifier"}, "unit": {"column": "owner", "max_rows": 2}}
QUESTIONS = [{"ols": "x ~ y + C(group)"}, {"table": ["group", "answer"]}, {"mean": "count", "by": ["answer"]}]

# ways in which dp-recorder makes a neighbour
ADDED = (
    "copy_random", "uniform_supported", "uniform_domain", "insert_nan", "insert_inf", "insert_large_outliers",
    "insert_shifted_outliers",
)  # fmt: skip
REPLACED = ("modify_one_attr", *ADDED)
PAIRS = [(f"unbounded:add, {how}", "unbounded:add", how) for how in ADDED]
PAIRS += [(f"bounded:replace, {how}", "bounded:replace", how) for how in REPLACED]


def _with_owners(frame: pd.DataFrame) -> pd.DataFrame:
    """Two rows an owner; one that the neighbour has more is an owner's with both rows alike."""
    frame = frame.loc[[*range(len(frame)), *([ROWS] if len(frame) > ROWS else [])]].reset_index(drop=True)
    return frame.assign(owner=[f"p{row // 2}" for row in range(len(frame))])


def _array(frame: pd.DataFrame) -> np.ndarray:
    return frame.to_numpy(float)


def _released(method: Any, frame: pd.DataFrame, schema: Any = SCHEMA, **options: Any) -> dict[str, Any]:
    return leaves(method.fit(frame, schema=schema, seed=1, **options))


def _estimated(make: Any, frame: pd.DataFrame) -> dict[str, Any]:
    made = make(epsilon=2.0, delta=1e-5, n_public=ROWS, bounds=(-3.0, 3.0), seed=1).fit(_array(frame)[:, :3])
    return {name: value for name, value in vars(made).items() if name.endswith("_") and isinstance(value, np.ndarray)}


FITS = {
    "max-entropy": partial(_released, MaxEntropy(epsilon=2.0)),
    "max-entropy, target": partial(_released, MaxEntropy(epsilon=2.0), target="group"),
    "max-entropy, questions": partial(_released, MaxEntropy(epsilon=2.0), questions=QUESTIONS),
    "max-entropy, no schema": lambda frame: leaves(sfumato.fit(frame, epsilon=2.0, delta=1e-5, seed=1)),
    "max-entropy, owners": lambda frame: _released(MaxEntropy(epsilon=2.0), _with_owners(frame), OWNERS),
    "p3gm": partial(_released, QUICK["p3gm"](epsilon=2.0, batch_size=30)),
    "dpgm": partial(_released, QUICK["dpgm"](epsilon=2.0, batch_size=30)),
    "dpmix": partial(_released, DPMix(epsilon=2.0, mixture_degree=4)),
    "mixture": partial(_estimated, partial(DPGaussianMixture, 2)),
    "factors": partial(_estimated, partial(DPFactorAnalysis, 1)),
    "k-means": partial(_estimated, partial(DPKMeans, 2)),
}


class _Draw:
    """What a mechanism released, of which the recorder's comparison of parameters sees nothing."""

    def __init__(self, handed: Any) -> None:
        self.handed = handed

    def __repr__(self) -> str:
        return "a draw"

    def __deepcopy__(self, memo: Any) -> _Draw:
        return self


def _distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The distance of two statistics: an array, and counts of words, 0 where one has none."""
    squares = float(np.sum((one["array"] - other["array"]) ** 2))
    words = one.keys() | other.keys() - {"array"}
    return (squares + sum((one.get(w, 0.0) - other.get(w, 0.0)) ** 2 for w in words if w != "array")) ** 0.5


@recorder.audit_spec(kind="Gaussian", input_arg="exact", sensitivity_arg="sensitivity", metric_fn=_distance)
def _mechanism(exact: dict[str, Any], sensitivity: float, stage: str, noise_std: Any, draw: _Draw) -> _Draw:
    """A release in units of its noise; what was drawn is handed on."""
    del exact, sensitivity, stage, noise_std
    return draw


@dataclass
class Recorded(Tape):
    """A tape that has dp-recorder write down, play back and judge."""

    auditor: Any = field(default_factory=recorder.Auditor)
    replaced: bool = False

    def replayed(self) -> None:
        """Turn to the neighbour's fit, once."""
        if self.second and self.auditor.mode.value == "record":
            self.auditor.set_replay()

    def take(self, stage: Stage, standardised: np.ndarray, handed: Any, std: Any, words: Any = None) -> Any:
        """Hand the release over to the recorder."""
        self.replayed()
        counts = {f"{name}: {word}": n for name, some in (words or {}).items() for word, n in some.items()}
        sensitivity = (stage.replace_distance if self.replaced else 1.0) / stage.noise_multiplier
        exact = {"array": standardised.copy(), **counts}
        return _mechanism(exact, sensitivity * (1 + 1e-9), stage.name, std, _Draw(handed)).handed


def judged(monkeypatch, fit: Any, one: pd.DataFrame, other: pd.DataFrame, *, replaced: bool) -> int:
    """Fit both, and have what was released and what left compared; return how many releases there were."""
    tape = Recorded(replaced=replaced)

    def watched(frame: pd.DataFrame) -> None:
        left = fit(frame)
        for name, value in left.items():
            recorder.ensure_equality(**{name: value if isinstance(value, np.ndarray) else repr(value)})

    with tape.auditor:
        coupled(monkeypatch, watched, one, other, more=0 if replaced else 1, tape=tape)
    assert tape.auditor._cursor == len(tape.auditor.log), "the neighbour's fit released less often"
    tape.auditor.validate_records()
    return sum(entry.kind != "EQ" for entry in tape.auditor.log)


def _pair(mode: str, how: str, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=ROWS), rng.integers(0, 4, ROWS)
    table = np.column_stack([x, x + rng.normal(size=ROWS), rng.integers(0, 51, ROWS), group, rng.integers(0, 3, ROWS)])
    domain = [3, 3, 50, 4, 3]
    (other,) = generate_neighbors(table, 1, mode=mode, domain=domain, rng=rng, strategy=how)
    return pd.DataFrame(table, columns=list(COLUMNS)), pd.DataFrame(other, columns=list(COLUMNS))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mode", "how"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS])
@pytest.mark.parametrize("fit", FITS)
def test_no_violation(monkeypatch, fit, mode, how):
    one, other = _pair(mode, how)
    assert judged(monkeypatch, FITS[fit], one, other, replaced="replace" in mode) > 0


# bugs planted for it


def _half_bounds(monkeypatch) -> None:
    bounds = engine._bounds
    monkeypatch.setattr(engine, "_bounds", lambda *of: {**bounds(*of), "norm_bound": bounds(*of)["norm_bound"] / 2})


def _noise_by_records(monkeypatch) -> None:
    charge = queries.charge_stage

    def charged(exact, stage, ledger, noise):
        return charge(exact, stage, ledger, noise) * (1 + 1e-3 * abs(float(np.sum(exact.open_in_mechanism()))))

    monkeypatch.setattr(queries, "charge_stage", charged)


def _counts_leave(frame: pd.DataFrame) -> dict[str, Any]:
    return {**FITS["max-entropy"](frame), "rows": len(frame)}


def _bounds_of_records(frame: pd.DataFrame) -> dict[str, Any]:
    wide = {**COLUMNS, "x": {**NUMBER, "lower": -3, "upper": float(np.nanmax(np.abs(frame["x"].to_numpy())))}}
    return _released(MaxEntropy(epsilon=2.0), frame, {**SCHEMA, "columns": wide})


def _stage_by_records(frame: pd.DataFrame) -> dict[str, Any]:
    schema = {**SCHEMA, "columns": {name: kind for name, kind in COLUMNS.items() if name != "y" or len(frame) > ROWS}}
    return _released(MaxEntropy(epsilon=2.0), frame, schema)


BUGS = {
    "half the bound is charged": (_half_bounds, FITS["max-entropy"]),
    "half the bound of owners is charged": (_half_bounds, FITS["max-entropy, owners"]),
    "noise by the records": (_noise_by_records, FITS["max-entropy"]),
    "the number of rows leaves": (lambda _: None, _counts_leave),
    "bounds of the records": (lambda _: None, _bounds_of_records),
    "what is measured follows from the records": (lambda _: None, _stage_by_records),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(monkeypatch, bug):
    plant, fit = BUGS[bug]
    plant(monkeypatch)
    one, other = _pair("unbounded:add", "insert_large_outliers")
    with pytest.raises((AssertionError, RuntimeError, ValueError)):  # the last where shapes no longer fit
        judged(monkeypatch, fit, one, other, replaced=False)
