"""The demonstration: a real table, from schema to scores.

The RAND Health Insurance Experiment (Newhouse 1993; Deb and Trivedi 2002) ships with statsmodels: 20,190 person-years
of families in six American places, 1974 to 1982. Its schema below was written from the study's published
description, not from the records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sfumato.cards.html import figure
from sfumato.columns.facts import grouped
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, Integer
from sfumato.data_ledger.data_ledger import create_ledger, read_ledger
from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import ConfigError, OutputError
from sfumato.evaluate import evaluate
from sfumato.evaluate.fidelity import read_bins
from sfumato.extras import require_extra
from sfumato.inference.estimate import Estimates
from sfumato.io.atomic import refuse_existing
from sfumato.io.sources import open_source
from sfumato.maths.streams import public_stream
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.release.files import FILES
from sfumato.release_front import Release, load
from sfumato.report.columns import column_figures
from sfumato.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.data_ledger.ledger_state import LedgerState

__all__ = ["demo_schema", "run_demo"]

TARGET = "hlthf"
DELTA = 1e-6
_SPLIT_SEED = 0
_PICTURED = 10_000
_BARS = " ▁▂▃▄▅▆▇█"
_YES_NO = Categorical(categories=("0", "1"))


def demo_schema() -> Schema:
    """Return the public facts of the table: the study's code book and size."""
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
    health = ("hlthg", "hlthf", "hlthp")
    once = [{"never": {first: "1", second: "1"}} for first, second in combinations(health, 2)]  # one answer, not two
    questions = ({"mean": "mdvis", "by": "idp"},)  # what the study asked: do people who pay see a doctor less
    return Schema(columns=columns, rows=20_000, rules=tuple(once), questions=questions)


class Lines(NamedTuple):
    """A table to show."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


def run_demo(out: Path, *, epsilon: float, overwrite: bool, show: Callable[[str, Any], None]) -> Path:
    """Release the table at (epsilon, 1e-6), sample from it, ask it, score the sample, and write a page about it.

    Args:
        out: directory for `schema.yaml`, `demo.ledger`, `release/`, `synthetic.csv` and `report.html`.
        epsilon: ε in nats.
        overwrite: whether these may be replaced; the ledger of a demonstration too, which no other ever is.
        show: called with a title and a text, lines, a plan, a certificate or scores.

    Returns:
        The page.

    Raises:
        ConfigError: statsmodels, scikit-learn, xgboost or formulaic is not installed.
        OutputError: an output exists and may not be replaced.
    """
    require_extra("evaluate", "score the demonstration")
    require_extra("regression", "measure its question")
    frame = _table()
    schema, synthesizer = demo_schema(), MaxEntropy(epsilon=epsilon, delta=DELTA)
    places = _places(out, overwrite=overwrite)
    order = public_stream(_SPLIT_SEED).permutation(len(frame))
    held_out = len(frame) // 5
    train, test = frame.iloc[order[held_out:]], frame.iloc[order[:held_out]]
    show(
        "The data",
        "RAND Health Insurance Experiment, shipped with statsmodels: 20,190 person-years, 10 columns. The unit of "
        "privacy here is the person-year: a person observed for several years is protected for each, not for all "
        "together. A fifth of the rows is held out for scoring. The schema is written from the study's description.",
    )
    schema.save(places["schema.yaml"], overwrite=overwrite)
    show("The plan, made before any record is read", synthesizer.description(schema, target=TARGET))
    create_ledger(places["demo.ledger"], epsilon=2 * epsilon, delta=DELTA)
    release = synthesizer.fit(train, schema=schema, target=TARGET, ledger=places["demo.ledger"])
    release.save(places["release"], overwrite=overwrite)
    release = load(places["release"])
    show("The certificate of the release", release.certificate)
    show("The ledger: what all fits of these data cost together", _account(read_ledger(places["demo.ledger"])))
    release.write_sample(places["synthetic.csv"], len(train), overwrite=overwrite)
    show("Rules, which are public and cost nothing", _rules(release, places["synthetic.csv"]))
    show("The question named before the fit: visits to a doctor in a year, by plan", _visits(release, train))
    scores = evaluate(train, places["synthetic.csv"], schema=schema, test=test, target=TARGET)
    show(f"Scores: classifiers of {TARGET} (health rated fair), trained on synthetic or on real rows", scores)
    show(
        "How to read them",
        "The split is by person-year, so most people have rows on both sides. Trees trained on real rows recognise "
        "people they have seen, which is what a private release must not let them do. Logistic regression, which "
        "cannot, is the fairer comparison.",
    )
    release.report(places["report.html"], overwrite=overwrite)
    show("The columns of the release, as a reader of the page sees them", _pictures(release))
    show(
        "Where it is",
        f"{places['synthetic.csv']}: synthetic person-years\n{places['release']}: the release; `sfumato sample` draws "
        f"more, `sfumato certificate` shows what it cost\n{places['schema.yaml']}: what was taken as public\n"
        f"{places['demo.ledger']}: the account of the data, which stays with their holder\n"
        f"{places['report.html']}: one page about the release, to publish with it",
    )
    return places["report.html"]


def _places(out: Path, *, overwrite: bool) -> dict[str, Path]:
    """Make the directory, and refuse what is there before any work."""
    reason = ""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    if reason:
        raise OutputError(f"Cannot make the directory {out}: {reason}.")
    names = ("schema.yaml", "demo.ledger", "release", "synthetic.csv", "report.html")
    places = {name: out / name for name in names}
    for name, place in places.items():
        refuse_existing(place, overwrite=overwrite, marker=FILES if name == "release" else None)
    places["demo.ledger"].unlink(missing_ok=True)
    return places


def _account(ledger: LedgerState) -> Lines:
    account = ledger.describe()
    budget, spent = account["budget"], account["spent"]["epsilon"]
    rows: list[Sequence[object]] = [
        (f["started"][:16], f["method"], figure(f["epsilon_alone"], 4), f["status"]) for f in account["fits"]
    ]
    left = f"of {budget['epsilon']:g} at delta = {budget['delta']:g}"
    return Lines(("fit", "method", "epsilon", "status"), [*rows, ("together", left, figure(spent, 4), "")])


def _rules(release: Release, synthetic: Path) -> Lines:
    """Return the rules of the schema, and how many synthetic rows break each."""
    breaks = count_breaks(open_source(synthetic), release.schema)
    assert breaks is not None  # the schema has rules
    return Lines(("rule", f"broken, of {grouped(breaks.n_rows)} synthetic rows"), list(breaks.counts.items()))


def _visits(release: Release, train: pd.DataFrame) -> Lines:
    """Return an estimate from the release beside what only the holder of the records can compute."""
    means = release.mean("mdvis", by="idp", target="table")
    assert isinstance(means, Estimates)
    rows = []
    for label, words in (("0", "no deductible"), ("1", "an individual deductible")):
        low, high = means[label].interval()
        own = train.loc[train["idp"] == int(label), "mdvis"].mean()
        rows.append((words, f"{means[label].value:.2f}", f"{low:.2f} to {high:.2f}", f"{own:.2f}"))
    return Lines(("mean of mdvis", "estimate", "95 %, with the noise", "the records' own: NOT private"), rows)


def _pictures(release: Release) -> Lines:
    """Return the columns as bars of text, drawn from synthetic rows."""
    schema = release.schema
    table = pa.concat_tables(release.batches(_PICTURED, seed=0))
    rows = []
    for column in column_figures(read_bins(table, schema), None, schema):
        tallest = max(b.synthetic for b in column.bins) or 1.0
        marks = (_BARS[round(b.synthetic / tallest * (len(_BARS) - 1))] for b in column.bins)
        ends = f"{column.bins[0].label}, {column.bins[-1].label}"
        rows.append((column.name, "".join(mark * (1 if len(column.bins) > 2 else 4) for mark in marks), ends))
    return Lines(("column", "shares", "from, to"), rows)


def _table() -> Any:  # noqa: ANN401 - a pandas data frame
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        randhie = None
    if randhie is None:
        raise ConfigError("The demo needs statsmodels, which carries its data: pip install 'sfumato[demo]'.")
    return randhie.load_pandas().data
