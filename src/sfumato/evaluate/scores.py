"""All scores of a synthetic table, as one dictionary; and their means over runs, with intervals.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import SchemaError, require_instance, require_integer, require_name, require_open_unit
from sfumato.evaluate.coded_tables import CodedTable, closed_schema, not_compared, read_codes, table_kinds
from sfumato.evaluate.database_scores import scores_of_units
from sfumato.evaluate.fidelity import mean_distances, read_bins, rule_scores, table_correlations
from sfumato.evaluate.image_scores import evaluate_pictures, image_names
from sfumato.evaluate.likelihood import table_likelihood
from sfumato.evaluate.neighbours import table_neighbours
from sfumato.evaluate.utility import ClassificationTask, cluster_and_score, train_and_score
from sfumato.extras import require_extra
from sfumato.io.sources import Source, open_source
from sfumato.schema.open_schema import open_schema
from sfumato.schema.schema import Schema, SchemaLike


def evaluate(
    real: object,
    synthetic: object,
    *,
    schema: SchemaLike,
    test: object = None,
    target: str | None = None,
    positive: str | None = None,
    train_rows: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare a synthetic table with the real one it was made from.

    Privacy: none. It reads the real records without noise; no figure is private, and the result
    says so.

    Args:
        real: the real rows that the release was fitted to, anything `open_source` reads.
        synthetic: synthetic rows; as many as real ones make the scores comparable.
        schema: a `Schema` or the path of one; the columns that are compared are its released ones. Columns that it
            leaves open are declared by the real rows, and left out where `synthetic` does not have them.
        test: real rows that the release was not fitted to, for the classifiers. Without them the
            classifiers are scored on `real`, which flatters those trained on it.
        target: the column the classifiers predict; None leaves `utility` out.
        positive: the class to tell from the others; by default the last of two categories.
        train_rows: the most rows of a table that the four classifiers learn from, drawn by `seed`; at least 4. None
            takes all, which is most of the time that an evaluation takes. All other scores read all rows, but for those
            of `neighbours` and `log_likelihood`. Of linked rows and of images it does not matter.
        seed: random state of the classifiers, and which rows are drawn.

    Returns:
        `private`: false. `rows`: rows read of `real`, `synthetic` and `test`. `outside`: of the same tables, per
        column the share of cells outside the schema, where there are any: a number beyond its bounds counts as the
        bound, and an unknown label or unexpectedly missing cell as a value of its own in total variation (a target
        without a known label is left out, other scores see what a fit makes of it). `not_compared`: columns of `real`
        and of `synthetic` that no score reads, for the schema or the other table lacks them. `utility`: null, or
        the scores of `classifier_scores` trained on `synthetic`, with `real`, the same
        classifiers trained on the real rows, `clustering`, the clustering accuracy of k-means
        fitted to `synthetic` and to `real`, `scored_on`, `test` or `real`, and `sample`: null where
        classifiers learned from all rows, else `rows`, how many they learned from, and per table that is larger `of`,
        its rows, and `error`, by how much each score changes when a quarter of the drawn rows are learned from, which
        is about what it is off by for the sample's sake. `fidelity`:
        `tvd_1way`, `tvd_2way` and `tvd_3way`, the mean total variation of one, two and three
        columns (null if there are fewer), `k_marginal`, NIST's k-marginal score for k = 2,
        1000·(1 − tvd_2way), over all pairs of columns and with our bins, `rules`, null without rules in the schema,
        or as `rule_scores`, `correlations`, as
        `correlation_differences`, and `log_likelihood`, as there, of `test` or else `real`.
        `neighbours`: as `nearest_rows`. JSON-ready.

        Of images: `utility` with `accuracy` of a network (needs torch) and `real.accuracy`, or
        null and `missing`, the reason why; `fidelity` with `classes`, the total variation of the
        labels, and `mean_image`, the root mean square difference of the mean images in [0, 1].

        Of a schema with weights, real and test rows count by theirs, in all but `neighbours`, `rules`, `outside` and
        `rows`, which are of single rows; what learns from them learns from as many rows drawn by weights. Samples stand
        for the population, and count once.

        Of linked rows: as `evaluate_linked` says.

    Raises:
        ConfigError: the target is no released level column, or `positive` is none of its labels; scikit-learn or
            xgboost is not installed.
        SchemaError: a column of the schema is not in one of the tables.
        DataError: a table cannot be read, or has no rows.

    Example:
        >>> evaluate(frame, synthetic, schema=schema)["fidelity"]["tvd_1way"]  # doctest: +SKIP
        0.021
    """
    require_extra("evaluate", "score synthetic rows")
    if train_rows is not None:
        require_integer(at_least=4, train_rows=train_rows)
    require_integer(at_least=0, seed=seed)
    require_name(target=target)
    if positive is not None:
        require_instance(str, "a label of the target", positive=positive)
    schema = open_schema(schema)
    if schema.open:
        opened = (open_source(rows, csv=schema.reader.csv) for rows in (real, synthetic))
        schema = closed_schema(schema, *opened)
    if schema.linked:
        return scores_of_units(real, synthetic, schema=schema, test=test, target=target)
    if image_names(schema) is not None:
        return evaluate_pictures(real, synthetic, schema=schema, test=test, target=target, seed=seed)
    task = None if target is None else ClassificationTask.of(schema, target, positive)
    sources = {
        name: open_source(rows, csv=schema.reader.csv) for name, rows in (("real", real), ("synthetic", synthetic))
    }
    _require_weights(sources["real"], schema)
    fidelity, rows = _fidelity(sources, schema)
    tables = {name: read_codes(source, schema) for name, source in sources.items()}
    held_out = None if test is None else read_codes(test, schema)
    if held_out is not None:
        rows["test"] = held_out.n_rows
    fidelity["rules"] = rule_scores({name: count_breaks(source, schema) for name, source in sources.items()})
    fidelity["correlations"] = table_correlations(tables["real"], tables["synthetic"], schema=schema)
    scored = tables["real"] if held_out is None else held_out
    fidelity["log_likelihood"] = table_likelihood(scored, tables["synthetic"], tables["real"], schema=schema, seed=seed)
    kinds = table_kinds(schema)
    nearest = table_neighbours(tables["real"], tables["synthetic"], held_out, kinds=kinds, seed=seed)
    scores = None if task is None else _utility(tables, held_out, task, seed, train_rows)
    read = tables | ({} if held_out is None else {"test": held_out})
    return {
        "private": False,
        "rows": rows,
        "outside": {name: table.outside_shares for name, table in read.items()},
        "not_compared": not_compared(schema, sources),
        "utility": scores,
        "fidelity": fidelity,
        "neighbours": nearest,
    }


def _require_weights(real: Source, schema: Schema) -> None:
    """Refuse real rows of a weighted schema without their weights: counted once each, they are not the population."""
    if schema.weight is not None and schema.weight.column not in real.storage:
        raise SchemaError(
            f"Expected {real.label} to have the column of weights, got no column {schema.weight.column!r}. Add it, or "
            "take `weight` out of the schema to compare single rows."
        )


def _fidelity(sources: Mapping[str, Source], schema: Schema) -> tuple[dict[str, Any], dict[str, int]]:
    """Total variations, of tables as bins, which take less memory than codes; and numbers of rows."""
    bins = {name: read_bins(source, schema) for name, source in sources.items()}
    distances: dict[str, Any] = mean_distances(bins["real"], bins["synthetic"], schema=schema, most=3)
    distances["k_marginal"] = None if distances["tvd_2way"] is None else 1000 * (1 - distances["tvd_2way"])
    return distances, {name: table.n_rows for name, table in bins.items()}


def _utility(
    tables: dict[str, CodedTable], test: CodedTable | None, task: ClassificationTask, seed: int, rows: int | None
) -> dict[str, Any]:
    """Scores of the classifiers trained on synthetic and on real rows, and of k-means."""
    held_out = tables["real"] if test is None else test
    scores = train_and_score(tables["synthetic"], held_out, task=task, seed=seed, rows=rows)
    scores["real"] = train_and_score(tables["real"], held_out, task=task, seed=seed, rows=rows)
    scores["clustering"] = {
        name: cluster_and_score(table, held_out, task=task, seed=seed, rows=rows) for name, table in tables.items()
    }
    sides = {"synthetic": scores, "real": scores["real"]}
    samples = {name: side.pop("sample") for name, side in sides.items() if "sample" in side}
    parts = {key: {name: sample[key] for name, sample in samples.items()} for key in ("of", "error")}
    scores["sample"] = {"rows": rows, **parts} if samples else None
    scores["scored_on"] = "real" if test is None else "test"
    return scores


def over_runs(score: Callable[[int], dict[str, Any]], *, runs: int, confidence: float = 0.95) -> dict[str, Any]:
    """Score `runs` times, with seeds 0, 1, …, and sum up every figure.

    The interval is Student's, for the mean over runs: it shows what the seeds of sampling and of classifiers make of a
    figure, and nothing of the noise of the release, of which there is one.

    Args:
        score: from a seed to scores, as `evaluate` returns them.
        runs: at least 2.
        confidence: of the intervals, in (0, 1).

    Returns:
        The scores of the first run with every figure under `fidelity`, `utility` and `neighbours` replaced by `mean`,
        `low`, `high` and `values`; names and counts stay those of the first run. `runs` and `confidence`.

    Raises:
        ConfigError: an argument is outside its domain.

    Example:
        >>> found = over_runs(lambda seed: {"fidelity": {"tvd_1way": 0.1 + 0.01 * seed}}, runs=3)
        >>> round(found["fidelity"]["tvd_1way"]["mean"], 6)
        0.11
    """
    require_instance(Callable, "a function from a seed to scores", score=score)  # type: ignore[arg-type]
    require_integer(at_least=2, runs=runs)
    require_open_unit(confidence=confidence)
    scores = [score(seed) for seed in range(runs)]
    figures = scores[0].keys() & {"fidelity", "utility", "neighbours"}
    summed = {key: _together([s[key] for s in scores], confidence) for key in figures}
    return {**scores[0], **summed, "runs": runs, "confidence": confidence}


def interval(values: Sequence[float], confidence: float) -> dict[str, Any]:
    """Student's interval for the mean of at least two independent figures."""
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    reach = deviation / math.sqrt(len(values)) * float(stats.t.ppf((1 + confidence) / 2, len(values) - 1))
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "values": [float(v) for v in values]}


def _together(values: Sequence[Any], confidence: float) -> Any:  # noqa: ANN401 - JSON
    first = values[0]
    if isinstance(first, dict):
        return {key: _together([value[key] for value in values], confidence) for key in first}
    numbers = [v for v in values if isinstance(v, float)]  # a whole number is a count
    return interval(numbers, confidence) if len(numbers) == len(values) else first
