"""The demonstration: a real table, from schema to scores.

The RAND Health Insurance Experiment (Newhouse 1993; Deb and Trivedi 2002) ships with statsmodels: 20,190 person-years
of families in six American places, 1974 to 1982. Its schema below was written from the study's published
description, not from the records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, Integer
from sfumato.errors import ConfigError, OutputError
from sfumato.evaluate import evaluate
from sfumato.extras import require_extra
from sfumato.io.atomic import refuse_existing
from sfumato.maths.streams import public_stream
from sfumato.methods.gaussian import ConditionalGaussian
from sfumato.release import load
from sfumato.release.files import FILES
from sfumato.schema.schema import Schema

__all__ = ["demo_schema", "run_demo"]

TARGET = "hlthf"
DELTA = 1e-6
_SPLIT_SEED = 0
_YES_NO = Categorical(categories=("0", "1"))


def demo_schema() -> Schema:
    """Return what is publicly known of the table: the study's code book and size."""
    columns: dict[str, ColumnKind] = {
        "mdvis": Integer(lower=0, upper=100),  # outpatient visits in a year
        "lncoins": Continuous(lower=0, upper=math.log(101)),  # ln(coinsurance + 1), coinsurance 0 to 100 percent
        "idp": _YES_NO,  # individual deductible plan
        "lpi": Continuous(lower=0, upper=math.log(1500)),  # ln(participation incentive), at most 1,500 dollars
        "fmde": Continuous(lower=0, upper=math.log(5000)),  # ln(maximum expenditure ÷ coinsurance), below 5,000
        "physlm": Continuous(lower=0, upper=1),  # physical limitation
        "disea": Continuous(lower=0, upper=60, resolution=0.1),  # index of chronic diseases
        "hlthg": _YES_NO,  # health rated good
        "hlthf": _YES_NO,  # fair
        "hlthp": _YES_NO,  # poor; excellent if none of the three
    }
    return Schema(columns=columns, rows=20_000)


def run_demo(out: Path, *, epsilon: float, overwrite: bool, show: Callable[[str, Any], None]) -> None:
    """Release the table at (epsilon, 1e-6), sample from it, and score the sample.

    Args:
        out: directory for `schema.yaml`, `release/`, `synthetic.csv`.
        epsilon: ε in nats.
        overwrite: whether these may be replaced.
        show: called with a title and a text, a plan, a certificate or scores.

    Raises:
        ConfigError: statsmodels, scikit-learn or xgboost is not installed.
        OutputError: an output exists and may not be replaced.
    """
    require_extra("evaluate", "score the demonstration")
    frame = _table()
    schema, synthesizer = demo_schema(), ConditionalGaussian(epsilon=epsilon, delta=DELTA)
    _make_directory(out)
    refuse_existing(out / "schema.yaml", overwrite=overwrite)
    refuse_existing(out / "release", overwrite=overwrite, marker=FILES)
    refuse_existing(out / "synthetic.csv", overwrite=overwrite)
    order = public_stream(_SPLIT_SEED).permutation(len(frame))
    held_out = len(frame) // 5
    train, test = frame.iloc[order[held_out:]], frame.iloc[order[:held_out]]
    show(
        "The data",
        "RAND Health Insurance Experiment, shipped with statsmodels: 20,190 person-years, 10 columns. The unit of "
        "privacy here is the person-year: a person observed for several years is protected for each, not for all "
        "together. A fifth of the rows is held out for scoring. The schema is written from the study's description.",
    )
    schema.save(out / "schema.yaml", overwrite=overwrite)
    show("The plan, made before any record is read", synthesizer.description(schema, target=TARGET))
    release = synthesizer.fit(train, schema=schema, target=TARGET)
    release.save(out / "release", overwrite=overwrite)
    release = load(out / "release")
    show("The certificate of the release", release.certificate)
    release.write_sample(out / "synthetic.csv", len(train), overwrite=overwrite)
    scores = evaluate(train, out / "synthetic.csv", schema=schema, test=test, target=TARGET)
    show(f"Scores: classifiers of {TARGET} (health rated fair), trained on synthetic or on real rows", scores)
    show(
        "How to read them",
        "The split is by person-year, so most people have rows on both sides. Trees trained on real rows recognise "
        "people they have seen, which is what a private release must not let them do. Logistic regression, which "
        "cannot, is the fairer comparison.",
    )
    show(
        "Where it lies",
        f"{out / 'synthetic.csv'}: synthetic person-years\n{out / 'release'}: the release; `sfumato sample` draws "
        f"more, `sfumato certificate` shows what it cost\n{out / 'schema.yaml'}: what was taken as public",
    )


def _table() -> Any:  # noqa: ANN401 - a pandas data frame
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        randhie = None
    if randhie is None:
        raise ConfigError("The demo needs statsmodels, which carries its data: pip install 'sfumato[demo]'.")
    return randhie.load_pandas().data


def _make_directory(out: Path) -> None:
    reason = ""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:
        raise OutputError(f"Cannot make the directory {out}: {reason}.")
