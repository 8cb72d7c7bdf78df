"""From a release, and real rows if they are given, to the page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import ConfigError, OutputError, require_flag, require_integer, require_name, require_path
from sfumato.evaluate.coded_tables import read_codes
from sfumato.evaluate.fidelity import read_bins, rule_scores
from sfumato.evaluate.image_scores import image_names, read_pictures
from sfumato.evaluate.mixtures import mixture_scores
from sfumato.evaluate.scores import evaluate
from sfumato.evaluate.utility import TRAIN_ROWS
from sfumato.extras import require_extra
from sfumato.inference.agreement import in_words
from sfumato.io.atomic import atomic_path, reason_of, refuse_existing
from sfumato.maths.threads import few_threads
from sfumato.privacy import words
from sfumato.records.table_sources import open_records
from sfumato.release.model import ReleaseValue, read_release
from sfumato.release.signature import verify_release
from sfumato.report import page as charts
from sfumato.report.column_lines import column_lines, cures
from sfumato.report.columns import PICTURED_PAIRS, column_figures, joint_figures, pair_figures, set_content
from sfumato.report.estimates import estimates_of
from sfumato.report.linked import linked_content
from sfumato.report.matrix import matrix_of
from sfumato.report.page import image_column, render, sheets
from sfumato.report.uses import among_others, uses_of
from sfumato.schema.schema import Schema
from sfumato.schema.set_columns import sets_alone

_WORDS = {
    "tvd_1way": "total variation of one column, mean",
    "tvd_2way": "total variation of two columns, mean",
    "tvd_3way": "total variation of three columns, mean",
    "k_marginal": "NIST k-marginal score, 1000 is best",
    "classes": "total variation of the classes",
    "mean_image": "difference of the mean images, of 1",
    "mean_entry": "difference of the mean records, of 1",
}
_PARTS = (  # that a page may lack
    "columns", "matrix", "pairs", "n_pairs", "scores", "target", "drawn", "queries", "frequent_items", "outside",
    "rules", "joint", "noise", "no_estimates", "pair_lines", "answer_lines", "linked", "tables", "uses",
)  # fmt: skip
LEAST_PICTURED = 0.1
"""An association that is pictured where there are no intervals."""

MOST_ROWS = 50_000
"""Rows that are drawn for a page made from the release alone."""


@few_threads
def write_report(
    release: ReleaseValue | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    real: object = None,
    test: object = None,
    target: str | None = None,
    train_rows: int | None = TRAIN_ROWS,
    seed: int = 0,
    overwrite: bool = False,
    public_key: str | os.PathLike[str] | None = None,
) -> None:
    """Write one self-contained HTML page about a release.

    Privacy: without `real`, none is spent: the page is a function of the release and may be published with it. With
        `real`, the page is made from real records without noise; it is NOT private, and says so at its top.

    Args:
        release: a release, or the path of one.
        out: the page to write, `.html`.
        real: the real rows that were released, anything `open_source` reads.
        test: real rows that were not released, to score classifiers on. Needs `real`.
        target: the column that classifiers predict; by default the release's own target. Needs `real`.
        train_rows: beside `real`, the most rows of a table that classifiers learn from, as for `evaluate`; None takes
            all. The page says what the sample may be off by.
        seed: of the rows that are drawn and of the classifiers.
        overwrite: whether an existing page may be replaced.
        public_key: PEM of the key that the release, a path, is signed with; the page then shows its fingerprint.

    Raises:
        ConfigError: `public_key` is no such key, or the release is no path; beside `real` scikit-learn or xgboost is
            not installed; `test` or `target` without `real`; `test` or `target` beside sets.
        OutputError: the page exists, or cannot be written.
        ReleaseError: the release cannot be read, its certificate does not hold, or the key's signature of it is not
            beside it.
        SchemaError, DataError: the real rows cannot be read under the release's schema.
    """
    out = require_path(out=out)
    require_flag(overwrite=overwrite)
    require_name(target=target)
    require_integer(at_least=0, seed=seed)
    refuse_existing(out, overwrite=overwrite)
    if real is not None:
        require_extra("evaluate", "compare with real rows")
    if real is None and (test is not None or target is not None):
        raise ConfigError(
            f"Expected real rows beside {'test' if test is not None else 'target'}, got none. Pass real=."
        )
    signed = signer(release, public_key)
    value = release if isinstance(release, ReleaseValue) else read_release(release, ReleaseValue)
    if value.certificate.epsilon is not None:
        value.certificate.verify()
    content = page_content(value, real=real, test=test, target=target, train_rows=train_rows, seed=seed, signed=signed)
    page = render(content)
    with atomic_path(out, overwrite=overwrite, secret=real is not None) as partial:
        failure = reason_of(lambda: partial.write_text(page, encoding="utf-8", errors="replace"))
        if failure:
            raise OutputError(f"Cannot write {out}: {failure}.")


def signer(release: ReleaseValue | str | os.PathLike[str], public_key: str | os.PathLike[str] | None) -> str | None:
    """Return the fingerprint of the key whose signature of a release was verified; None without a key."""
    if public_key is None:
        return None
    if isinstance(release, ReleaseValue):
        raise ConfigError("Expected the path of a release beside public_key, got a release in memory. Save it.")
    return verify_release(require_path(release=release), require_path(public_key=public_key))


def page_content(
    release: ReleaseValue,
    *,
    real: object,
    test: object,
    target: str | None,
    train_rows: int | None,
    seed: int,
    signed: str | None = None,
) -> dict[str, Any]:
    """Return the content of the template. With real rows it is not private; arguments as `write_report`.

    `signed` is the fingerprint of the key whose signature was verified.
    """
    certificate = release.certificate
    content: dict[str, Any] = {
        "from_real": real is not None,
        "certificate": certificate,
        "cost": words.cost(certificate),
        "replaced": words.replaced(certificate),
        "who": words.who(certificate),
        "weighted": words.weighted(certificate),
        "relation": words.relation(certificate),
        "repetitions": words.repetitions(certificate),
        "candidates": () if certificate.search is None else certificate.search.candidates,
        "verdicts": words.verdicts(certificate),
        "meaning": words.meaning(certificate),
        "not_covered": words.not_covered(certificate),
        "origins": words.origins(certificate),
        "checked": words.checked(release.checked),
        "signed": None if signed is None else words.signed(signed),
        "others": among_others(certificate.epsilon if certificate.private else None),
        "stages": words.stages(certificate),
        "stage_bar": charts.stages([stage.share for stage in certificate.stages]),
        "lines": (lines := column_lines(release)),
        "cures": cures(lines),
        "n_columns": len(release.schema.released),
        "disagreements": in_words(release),
        "measurements": [
            (m.name, " × ".join(map(str, m.value.shape)) or "1", m.noise_std) for m in release.measurements
        ],
        "sheets": sheets(release, seed=seed),
        "measured": _WORDS,
        "mixtures": release.is_data_set,
        **dict.fromkeys(_PARTS),
    }
    if content["mixtures"]:
        if target not in (None, release.sampler.get("target")):
            raise ConfigError(
                f"Expected no target beside mixtures but their own label, got target={target!r}. Leave it out."
            )
        if real is not None:
            content |= _mixtures(release, real, test)
    elif release.schema.linked:
        content |= _linked(release, real, test, target, seed)
    elif sets_alone(release.schema):
        if test is not None or target is not None:
            raise ConfigError(
                "Expected no test rows and no target beside sets of items: no classifier learns from them."
            )
        content |= _sets(release, real, seed)
    elif image_column(release) is None:
        content |= _tables(release, real, test, target, train_rows, seed)
    elif real is not None:
        content |= _images(release, real, test, target, seed)
    # real records that cannot be read are left out of every figure
    content["n_skipped"] = 0 if real is None else sum(1 for _ in open_records(real, release.schema).notes("skipped"))
    content["tables"] = content["tables"] or {"": dict(content)}
    if content["uses"] is None and (real is None or not content["matrix"]):
        content["uses"] = uses_of(release)  # beside real rows of a table, scores say it
    return content


def _linked(release: ReleaseValue, real: object, test: object, target: str | None, seed: int) -> dict[str, Any]:
    if test is not None or target is not None:
        raise ConfigError("Expected no test rows and no target beside linked rows: no classifier learns from them.")
    content = linked_content(release, real, seed)
    sample = {"synthetic": content.pop("sample")}
    content["rules"] = _rules(sample | ({} if real is None else {"real": real}), release.schema)
    return content


def _sets(release: ReleaseValue, real: object, seed: int) -> dict[str, Any]:
    n = min(MOST_ROWS, release.certificate.n_public)
    table = pa.concat_tables(release.batches(n, seed=seed))
    estimates = estimates_of(release) if real is None else {}
    return {"drawn": n, **estimates, **set_content(table, real, schema=release.schema, seed=seed)}


def _mixtures(release: ReleaseValue, real: object, test: object) -> dict[str, Any]:
    features, labels = (release.parameters[name] for name in ("features", "labels"))
    target = release.sampler.get("target")
    noise = release.measurements[0].noise_std
    scores = mixture_scores(real, features, labels, schema=release.schema, target=target, noise_std=noise, test=test)
    return {"scores": scores, "target": target}


def _tables(
    release: ReleaseValue, real: object, test: object, target: str | None, train_rows: int | None, seed: int
) -> dict[str, Any]:
    schema = release.schema
    real_bins = None if real is None else read_bins(real, schema)
    n = min(MOST_ROWS, release.certificate.n_public) if real_bins is None else real_bins.n_rows
    table = pa.concat_tables(release.batches(n, seed=seed))
    bins = read_bins(table, schema)
    target = release.target if target is None else target
    beside = None if real is None else read_codes(real, schema).population(0)
    matrix = matrix_of(read_codes(table, schema), beside, schema, target)
    rules = _rules({"synthetic": table} | ({} if real is None else {"real": real}), schema)
    content: dict[str, Any] = {"drawn": n, "matrix": matrix, "rules": rules}
    if real_bins is None:
        del table  # before the estimates, which hold far more
        pa.default_memory_pool().release_unused()
        estimates = estimates_of(release)
        content |= {**estimates, "uses": uses_of(release, estimates)}
        content.pop("answers", None)
        content["columns"] = column_figures(bins, None, schema, content.pop("ends", None))
        content["noise"] = {column.name: column.noise for column in content["columns"] if column.noise}
        content["joint"] = joint_figures(bins, schema, _strongest(content))
    else:
        content["columns"] = column_figures(bins, real_bins, schema)
        content["pairs"], content["n_pairs"] = pair_figures(bins, real_bins, schema)
        content["target"] = target
        content["scores"] = evaluate(
            real, table, schema=schema, test=test, target=target, train_rows=train_rows, seed=seed
        )
        content["outside"] = sorted(real_bins.outside_shares.items(), key=lambda share: -share[1])
    return content


def _strongest(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs of columns that go together most beyond the noise; without intervals, most in the model."""
    if content.get("pair_lines"):
        pairs = [line.names for line in content["pair_lines"] if line.stands_out]
    else:
        lines = content["matrix"].lines if content["matrix"] else ()
        pairs = [line.names for line in lines if abs(line.synthetic) >= LEAST_PICTURED]
    shown = {column.name for column in content["columns"]}
    return [pair for pair in pairs if shown.issuperset(pair)][:PICTURED_PAIRS]


def _rules(tables: Mapping[str, object], schema: Schema) -> list[tuple[str, dict[str, float]]] | None:
    """Return per rule the share of rows of each table that break it; None without rules."""
    sources = {name: open_records(rows, schema) for name, rows in tables.items()}
    scores = rule_scores({name: count_breaks(source, schema) for name, source in sources.items()})
    return None if scores is None else list(scores["by_rule"].items())


def _images(release: ReleaseValue, real: object, test: object, target: str | None, seed: int) -> dict[str, Any]:
    names = image_names(release.schema)
    assert names is not None
    target = names[1] if target is None else target
    rows = len(read_pictures(real, release.schema).pixels)
    sample = release.sample(rows, seed=seed)
    scores = evaluate(real, sample, schema=release.schema, test=test, target=target, seed=seed)
    return {"scores": scores, "target": target}
