"""Bugs that would break the guarantee, each planted into a copy of the package by a change of its text.

Every one has to be found by the tests it names. A text that is no longer there is an error: then the code has changed,
and the bug has to be planted anew.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlantedBug:
    """A change of one file: `text` becomes `wrong`, everywhere; the tests of `found_by` have to fail."""

    name: str
    file: str
    text: str
    wrong: str
    found_by: str


QUERIES = "mechanisms/queries.py"
DRAW = "value = noise.rounded_gaussian(whole.shape, noise_std, grid)\n"
DRAW_OF_FLOATS = "value = noise.gaussian(exact.open_in_mechanism().shape, noise_std)\n"
ON_GRID = "on_grid(exact.whole_in_mechanism(), exact.step, noise_std, noise)"
EVENTS_OF_PLAN = "tests/mechanisms/test_events.py -k of_its_plan"
GRID = "tests/mechanisms/test_grid.py"
LAW = "tests/mechanisms/test_queries.py -k law"
RECIPES = "tests/attacks/test_recipes.py"
TUNING = "search/tuning.py"
DRIVER = "fitting/driver.py"
SEARCHES = "tests/attacks/test_searches.py"
DRAWN = "drawn_repetitions(self.plans[0].repetitions or Repetitions(1), noise)"
SCORED = "distance = mean_distance(scores, counts, self._sampled(fitted))\n"
KEPT = "            if result.before(best):\n                best = result\n"
SEALED_NUMBER = "return noisy_sum(_largest(counts, samples, starts), stage=stage, ledger=ledger, noise=noise)"
JUDGED = "        noisy = noisy_misplaced(exact, state, starts, stage=self.stage, ledger=ledger, noise=noise)\n"
WHOLE = "mechanisms/contributions.py"
ROUNDED = "    whole = np.rint(scaled)\n"
CUT = (
    "    for i in np.flatnonzero(_squares(whole) > most):\n"
    "        whole[i] = np.trunc(scaled[i])\n"
    "    whole[_squares(whole) > most] = 0.0  # never, by the margin of clipping; but then it need not be trusted\n"
)

MEASURED_QUERIES = "measurements/queries.py"
CLIPPING = "        return np.minimum(most // np.maximum(squares, 1), 1 << self.bits.weights).astype(np.float64)\n"
SQUARED = "        for of_cell, column in zip(self._squares, cells, strict=True):\n"
NOISY_MATRIX = "_noisy_matrix(value[index], float(steps[index].item()), noise_std, noise, result[index])\n"

LINKED = "records/linked.py"
STEPS = "methods/linked/statistics.py"
SHARING = "records/sharing.py"
STEP_PAIRS = "search/pair_counts.py"
TABLE_PAIRS = "records/table_pairs.py"
LINKED_RECIPE = "methods/linked/recipe.py"
LINKED_FITS = "tests/attacks/test_linked.py"
UNIT_CLASSES = "tests/methods/linked/test_unit_classes.py"
WEIGHTED = "methods/tables/weighted.py"
SCORES = "measurements/score_query.py"
SCORE_TESTS = "tests/measurements/test_score_query.py"
QUESTION_SUMS = "methods/tables/question_sums.py"
UNIT_FEATURES = "records/feature_records.py"
UNIT_FEATURE_TESTS = "tests/records/test_feature_records.py -k by_itself"
QUESTION_BOUNDS = "tests/mechanisms/test_queries.py -k named"
WEIGHTED_FITS = "tests/attacks/test_weights.py"
TRUE_STEPS = "np.bincount(data.sequences().sizes - 1, minlength=law.size)"

DATA_LEDGER = "data_ledger/data_ledger.py"
COPIES = "tests/attacks/test_checkpoint_copies.py"

SET_FITS = "tests/attacks/test_sets_beside.py"
PAIRS = "methods/sets/pairs.py"
PAIR_COUNTS = "tests/mechanisms/test_queries.py -k pairs"

READERS = "tests/attacks/test_readers.py"

BUGS = [
    PlantedBug(
        "questions: scores longer than their bound are left as they are",
        SCORES,
        "        long = squares > float(ONE) ** 2\n",
        "        long = squares > 9 * float(ONE) ** 2\n",
        f"{SCORE_TESTS} -k longer",
    ),
    PlantedBug(
        "questions: clipped scores rounded to the nearest",
        SCORES,
        "np.trunc(turned * factors[:, None])",
        "np.rint(turned * factors[:, None])",
        f"{SCORE_TESTS} -k longer",
    ),
    PlantedBug(
        "questions: residuals less the chunk's mean",
        SCORES,
        "        residual = self.residual(left, terms)\n        turned",
        "        residual = self.residual(left, terms)\n        residual = residual - residual.mean()\n        turned",
        f"{SCORE_TESTS} -k by_itself",
    ),
    PlantedBug(
        "questions: scores are taken to point one way",
        QUESTION_SUMS,
        "math.sqrt((2 * counts + 4 * scores) / (counts + scores))",
        "math.sqrt(2.0)",
        QUESTION_BOUNDS,
    ),
    PlantedBug(
        "questions: a table counts for nothing in the norm",
        QUESTION_SUMS,
        "math.fsum(part.weight**2 for part in self.parts)",
        "math.fsum(part.weight**2 for part in self.parts[1:])",
        QUESTION_BOUNDS,
    ),
    PlantedBug(
        "questions: scores of weighted records by the root of their weight",
        QUESTION_SUMS,
        "(weights * 2.0**-WEIGHT_BITS)[:, None])",
        "(weights * 2.0**-WEIGHT_BITS + 0.2)[:, None])",
        QUESTION_BOUNDS,
    ),
    PlantedBug(
        "questions: scores clipped by the true number of records",
        "methods/tables/question_stage.py",
        "        noise_std = 0.0 if fit.noise.silent else",
        "        true = sum(len(next(iter(rows.values()))) for rows in fit.data.coded())\n"
        "        noise_std = 0.0 if fit.noise.silent or true % 2 else",
        f"{RECIPES} -k named",
    ),
    PlantedBug(
        "questions: coefficients of the records themselves",
        "methods/tables/question_stage.py",
        "    return aim_scores(replace(query, weight=weight), measured, weights, noise_std)\n",
        "    query = aim_scores(replace(query, weight=weight), measured, weights, noise_std)\n"
        "    total = sum(np.sum(query.sides(BaseCells(rows))[0]) for rows in RECORDS[0].coded())\n"
        "    return replace(query, coefficients=query.coefficients + int(total))\n",
        f"{RECIPES} -k named",
    ),
    PlantedBug(
        "questions of linked rows: values about the mean of all units",
        UNIT_FEATURES,
        "(np.rint(codes * ONE) - feature.centre)",
        "(np.rint(codes * ONE) - np.rint(codes.mean() * ONE if codes.size else 0.0))",
        UNIT_FEATURE_TESTS,
    ),
    PlantedBug(
        "questions of linked rows: pairs of rows of two units",
        UNIT_FEATURES,
        "pairs = (owners == self.owners[codes.size - n :]) & ~np.isnan(earlier)",
        "pairs = (owners < owners + 1) & ~np.isnan(earlier)",
        UNIT_FEATURE_TESTS,
    ),
    PlantedBug(
        "questions of linked rows: aimed by the true number of units",
        "methods/linked/unit_sums.py",
        "    sums = aimed_sums(fit, aim.query_of)\n",
        "    true = data.sequences().sizes.size\n"
        "    sums = aimed_sums(fit, lambda part, noise: aim.query_of(part, noise * (true % 2)))\n",
        "tests/attacks/test_linked.py -k more_or_another and questions",
    ),
    PlantedBug(
        "discovery: bounds are read off the records before they are counted",
        "fitting/domain_counts.py",
        "                part += np.bincount(cells_of(numbers), minlength=MISSING + 1)\n",
        "                numbers = numbers - np.nanmin(numbers, initial=0.0)\n"
        "                part += np.bincount(cells_of(numbers), minlength=MISSING + 1)\n",
        "tests/mechanisms/test_queries.py tests/fitting/test_discovery.py",
    ),
    PlantedBug(
        "estimates of linked rows: a model that misses its measurements answers all the same",
        "inference/linked_questions.py",
        "if calibration.surprise > _LARGEST_SURPRISE:",
        "if calibration.surprise > 1e9:",
        "tests/inference/test_linked_questions.py -k misses",
    ),
    PlantedBug(
        "estimates of linked rows: a surprise in units of the noise alone",
        "inference/calibration.py",
        "/ max(missed.size, 1)",
        "/ max(missed.size, 1) ** 2",
        "tests/inference/test_linked_questions.py -k misses",
    ),
    PlantedBug(
        "counts: what tails put beyond an end is shared out among the rest",
        "methods/tables/edges.py",
        "total += known * (counted - total)",
        "total += 0 * known * (counted - total)",
        "tests/methods/tables/test_histograms.py -k law_that_ends",
    ),
    PlantedBug(
        "counts: a spike is a share of the sum of noisy cells",
        "methods/tables/histograms.py",
        "return curve * max(rest, 0.0) / on_curve",
        "return curve",
        "tests/methods/tables/test_histograms.py -k share_of_all_records",
    ),
    PlantedBug(
        "counts: nothing is an answer where records are",
        "methods/tables/edges.py",
        "inner = min(inner, int(sure[0])) if sure.size else inner",
        "inner = inner if sure.size else inner",
        "tests/methods/tables/test_histograms.py -k law_that_ends",
    ),
    PlantedBug(
        "counts: where a count stands out of its noise, the edge of a curve is scaled all the same",
        "methods/tables/edges.py",
        "            result[outer[are_seen]] = combined[outer[are_seen]]\n",
        "            are_seen[:] = False\n",
        "tests/methods/tables/test_histograms.py -k law_that_ends",
    ),
    PlantedBug(
        "moments: what is left of a faint feature is divided by its weight",
        "methods/tables/cross_moments.py",
        "    return together / scale * prior / (prior + low_rank_variances(together, variance) / scale**2)\n",
        "    return together / scale\n",
        "tests/methods/tables/test_cross_moments.py -k no_record_has",
    ),
    PlantedBug(
        "softmax: a few rows are raked to shares, which undoes their dependence",
        "maths/constants.py",
        "fewest_raked: int = 64",
        "fewest_raked: int = 1",
        "tests/models/tables/test_softmax_chain.py -k few_rows",
    ),
    PlantedBug(
        "estimators: a row more of a unit counts than noise is for",
        "estimators/row_columns.py",
        'UnitRows(self.max_rows_per_unit, ("",))',
        'UnitRows(self.max_rows_per_unit + 1, ("",))',
        "tests/attacks/test_recipes.py -k estimators_of_units",
    ),
    PlantedBug(
        "estimators: a name of a unit decides how the others are read",
        "estimators/row_columns.py",
        "    return pd.DataFrame({CELLS: _objects(cells)})\n",
        "    return pd.DataFrame({CELLS: np.asarray(cells)})\n",
        "tests/estimators/test_units.py -k no_name_changes",
    ),
    PlantedBug(
        "estimators: noise is that of one row of a schema's unit",
        "estimators/records.py",
        "        return 1 if self.unit is None else self.unit.max_rows\n",
        "        return 1\n",
        "tests/estimators/test_units.py -k schema_names",
    ),
    PlantedBug(
        "estimates of all rows: steps of long units count whole",
        "inference/linked_rows.py",
        "return self.sums.spread(self._sharing.weights(self._steps) * 2.0**-WEIGHT_BITS)",
        "return np.ones(self.n_rows)",
        "tests/inference/test_linked_questions.py -k as_they_were_measured",
    ),
    PlantedBug(
        "estimates of all rows: products by class of one column are a sign of a model that is off",
        "inference/linked_questions.py",
        "by_class=len(set(columns)) > 1",
        "by_class=True",
        "tests/inference/test_linked_questions.py -k share_of_a_class",
    ),
    PlantedBug(
        "estimates of all rows: rows are drawn one by one, and not units",
        "inference/linked_rows.py",
        "        return 1\n",
        "        return 0\n",
        "tests/inference/test_linked_questions.py -k without_noise",
    ),
    PlantedBug(
        "estimates: two columns that were counted apart are answered",
        "inference/calibrated_rows.py",
        "        if len(columns) == _PAIR and not free:\n",
        "        if len(columns) > len(self.measured.columns):\n",
        "tests/inference/test_together.py -k counted_apart",
    ),
    PlantedBug(
        "estimates: what long sets lack is not put back",
        "inference/item_measurements.py",
        "        value = weighted / known\n",
        "        value = weighted\n",
        "tests/inference/test_set_questions.py -k put_back",
    ),
    PlantedBug(
        "estimates: a pair of items is read off another",
        "measurements/item_queries.py",
        "return first * (2 * f - first - 1) // 2 + second - first - 1",
        "return first * (2 * f - first + 1) // 2 + second - first - 1",
        "tests/measurements/test_item_queries.py -k pairs_are_counted",
    ),
    PlantedBug(
        "estimates: what lies within the cell that a span ends in is not allowed for",
        "inference/calibrated_rows.py",
        "            variance += float(np.sum(parts * (wholes - parts))) / _ANY_PART\n",
        "            variance += 0.0\n",
        "tests/inference/test_spans.py -k within_the_cells",
    ),
    PlantedBug(
        "estimates: groups are compared as if their errors were independent",
        "inference/joint_errors.py",
        "                correlation = covariances[cause] / np.outer(*(2 * [np.where(own > 0, own, np.inf)]))\n",
        "                correlation = np.eye(len(size))\n",
        "tests/inference/test_joint_errors.py -k against_each_other",
    ),
    PlantedBug(
        "estimates: gamma regression of columns that nobody measured together",
        "inference/regression.py",
        "    if not (named or family.pairs):\n",
        "    if not family.two_values and family.linear:\n",
        "tests/inference/test_families.py -k three_columns_is_refused",
    ),
    PlantedBug(
        "estimates: quantiles are biased",
        "inference/questions.py",
        "        value = at(q)\n",
        "        value = at(0.9 * q)\n",
        "tests/inference -k quantile",
    ),
    PlantedBug(
        "tables: numbers go together with nothing",
        "methods/tables/features.py",
        "        columns.append(np.append(power, 0.0) if missing else power)\n",
        "        columns.append(np.zeros(present.size + missing))\n",
        "tests/methods/tables/test_dependence.py",
    ),
    PlantedBug(
        "calibration: small budgets take gigabytes",
        "privacy/accounting.py",
        "    return max(interval, _FINEST_INTERVAL)\n",
        "    return 1e-9\n",
        "tests/privacy/test_calibration_cost.py",
    ),
    PlantedBug(
        "readers: whole numbers beside a missing cell keep their digits",
        "io/origins.py",
        "    return column.cast(pa.float64(), safe=False)\n",
        "    return column\n",
        f"{READERS} -k wide",
    ),
    PlantedBug(
        "readers: objects of Python keep the digits that floats lose",
        "io/frames.py",
        "            return float_text(float(cell))\n",
        "            return str(cell)\n",
        f"{READERS} -k wide and pandas",
    ),
    PlantedBug(
        "readers: numbers that were rounded name units",
        "records/unit_names.py",
        "    return pc.if_else(lost, pa.scalar(None, text.type), text)\n",
        "    return text\n",
        f"{READERS} -k left_out",
    ),
    PlantedBug(
        "readers: files that pandas wrote have the types they say",
        "io/origins.py",
        '    written = (schema.metadata or {}).get(b"pandas")\n',
        "    written = None\n",
        f"{READERS} -k wide and parquet",
    ),
    PlantedBug(
        "readers: batches have the types of the first",
        "io/chunks.py",
        "        if pending and pending[0].schema != table.schema:\n",
        "        if False:\n",
        f"{READERS} -k batches",
    ),
    PlantedBug(
        "readers: casts of plans are strict",
        "io/lazy_frames.py",
        'if value == "Strict" or (key == "strict" and value is True):',
        "if False:",
        "tests/io/test_lazy_frames.py",
    ),
    PlantedBug(
        "readers: a quote that nobody closes takes the next lines along",
        "io/csv_record_ends.py",
        "            match = form.open_line.search(text, start, stop)\n",
        "            match = None\n",
        f"{READERS} -k no_record",
    ),
    PlantedBug(
        "readers: a line of any length is held whole",
        "io/csv_record_ends.py",
        "        while len(text) > LONGEST and _line_end(text) is None:",
        "        while False:",
        "tests/io/test_csv_record_ends.py -k memory",
    ),
    PlantedBug(
        "readers: a record of any length reaches the parser",
        "io/csv_record_ends.py",
        "    while len(lines) - start > LONGEST:",
        "    while False:",
        "tests/io/test_csv_record_ends.py",
    ),
    PlantedBug(
        "readers: a list in one batch stops them all",
        "io/common_types.py",
        "if has_canonical_text(cells.type) else pa.nulls(len(cells), storage)\n",
        "\n",
        "tests/io/test_common_types.py",
    ),
    PlantedBug(
        "sets: a record's items count for the one before it too",
        "schema/set_columns.py",
        "        table[sets.codes, sets.owners] = IN\n",
        "        table[sets.codes, sets.owners] = table[sets.codes, np.maximum(sets.owners - 1, 0)] = IN\n",
        SET_FITS,
    ),
    PlantedBug(
        "sets: items that no record holds are not told apart",
        "schema/set_columns.py",
        "        return dict(zip(self.items, table, strict=True))\n",
        "        return dict(zip(self.items, table[np.argsort(-table.sum(axis=1), kind='stable')], strict=True))\n",
        SET_FITS,
    ),
    PlantedBug(
        "pairs of items: a long set counts in full",
        PAIRS,
        "min(_PARTS, math.isqrt(bound // squared_length(s)))",
        "_PARTS",
        PAIR_COUNTS,
    ),
    PlantedBug(
        "pairs of items: a short set counts the square of its weight",
        PAIRS,
        "math.isqrt(_PARTS**2 * squared_length(self.in_full)) / _PARTS",
        "squared_length(self.in_full)",
        PAIR_COUNTS,
    ),
    PlantedBug(
        "pairs of items: sizes are left out of the norm",
        PAIRS,
        "    return 1 + n_watched * (n_watched + 1) // 2\n",
        "    return max(1, n_watched * (n_watched + 1) // 2)\n",
        PAIR_COUNTS,
    ),
    PlantedBug(
        "pairs of items: watched ones by their true counts",
        "methods/sets/recipe.py",
        "        statistic = ItemPairCounts(encoder, self._watched(totals, _SEEN * pair_std), in_full)\n",
        "        true = sum(encoder.encode(rows).sum(axis=0) for rows in fit.data.coded())\n"
        "        statistic = ItemPairCounts(encoder, self._watched(true % 2, 0.5), in_full)\n",
        f"{RECIPES} -k latent",
    ),
    PlantedBug(
        "weights: one above its bound is not clipped",
        "lenses/weights.py",
        "    return np.clip(np.where(np.isnan(codes), 0.0, codes), 0.0, 1.0)\n",
        "    return np.maximum(np.nan_to_num(codes), 0.0)\n",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights: a negative one passes",
        "lenses/weights.py",
        "    return np.clip(np.where(np.isnan(codes), 0.0, codes), 0.0, 1.0)\n",
        "    return np.clip(np.nan_to_num(codes), -1.0, 1.0)\n",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights: a missing one counts for half, one out of bounds is kept",
        "lenses/weights.py",
        "    return np.clip(np.where(np.isnan(codes), 0.0, codes), 0.0, 1.0)\n",
        "    return np.where(np.isnan(codes), 0.5, codes)\n",
        "tests/lenses/test_weights.py",
    ),
    PlantedBug(
        "weights: pairs of a search count twice as much as they are charged for",
        "search/pair_counts.py",
        "    step: float = 2.0**-WEIGHT_BITS\n",
        "    step: float = 2.0 ** (1 - WEIGHT_BITS)\n",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights of linked rows: rounded up beyond what a unit may add",
        SHARING,
        "(product + (1 << (coarser - 1))) >> coarser",
        "(product >> coarser) + 1",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights of linked rows: steps of a unit are weighted, and clipped no more",
        "methods/linked/statistics.py",
        "        product = shared.astype(np.int64) * weights",
        "        product = (1 << self.bits.weights) * weights",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights: products are weighted, and then clipped no more",
        WEIGHTED,
        "        clipping = self.clipping(cells).astype(np.int64)\n",
        "        clipping = np.full(cells[0].size, 1 << self.bits.weights)\n",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights: rounded up beyond what a record may add",
        WEIGHTED,
        "        return (product >> WEIGHT_BITS).astype(np.float64)\n",
        "        return ((product >> WEIGHT_BITS) + 1).astype(np.float64)\n",
        "tests/mechanisms/test_queries.py -k weighted",
    ),
    PlantedBug(
        "weights: the noise that is stated is not scaled with the counts",
        "methods/tables/recipe.py",
        "unweighted(counts, runs, RUN_STEP / worth,",
        "unweighted(counts, runs, RUN_STEP,",
        "tests/methods/tables/test_weighted.py -k unit_of_weights",
    ),
    PlantedBug(
        "weights: a bound that was read off the records is not told",
        "schema/sources.py",
        "for name in (*schema.released, *hidden):\n",
        "for name in schema.released:\n",
        "tests/schema/test_weight.py -k read_off",
    ),
    PlantedBug(
        "weights of estimators: the largest one counts twice",
        "estimators/records.py",
        "        for bit in range(self.bits + 1):\n",
        "        for bit in (*range(self.bits + 1), self.bits):\n",
        "tests/mechanisms/test_queries.py -k weighed",
    ),
    PlantedBug(
        "weights of estimators: the largest one counts for nothing",
        "estimators/records.py",
        "        for bit in range(self.bits + 1):\n",
        "        for bit in range(self.bits):\n",
        "tests/estimators/test_weighted_rows.py -k no_weights",
    ),
    PlantedBug(
        "weights of estimators: a bit is worth the next one",
        "estimators/records.py",
        "total += part.astype(np.int64) << bit",
        "total += part.astype(np.int64) << (bit + 1)",
        "tests/mechanisms/test_queries.py -k weighed",
    ),
    PlantedBug(
        "weights of estimators: steps are not divided by the grid of weights",
        "estimators/records.py",
        "        return self.statistic.step * 2.0**-self.bits\n",
        "        return self.statistic.step * 2.0 ** (1 - self.bits)\n",
        "tests/mechanisms/test_queries.py -k weighed",
    ),
    PlantedBug(
        "weights of estimators: a weight that is not clipped at the bound",
        "estimators/records.py",
        "        weights = whole_weights(rows, WEIGHT, self.bits)\n",
        "        weights = np.abs(np.nan_to_num(rows[WEIGHT], posinf=8) * 2**self.bits).astype(np.int64)\n",
        "tests/mechanisms/test_queries.py -k weighed",
    ),
    PlantedBug(
        "weights of estimators: the bound is the largest weight",
        "estimators/row_columns.py",
        "Weighting(column=column, upper=float(bound))",
        "Weighting(column=column, upper=float(np.nanmax(weights)))",
        "tests/attacks/test_weights.py -k estimators",
    ),
    PlantedBug(
        "weights of estimators: weights are scaled to their mean",
        "estimators/row_columns.py",
        "        return np.concatenate([np.zeros(0), *parts])\n",
        "        return np.concatenate([np.zeros(0), *parts]) / max(2 * float(np.mean(np.concatenate(parts))), 1e-9)\n",
        "tests/attacks/test_weights.py -k estimators",
    ),
    PlantedBug(
        "weights of estimators: a missing one counts whole",
        "estimators/row_columns.py",
        'fractions(self._kind.code(chunk.columns[CELLS], missing=("",)))',
        '1 - fractions(1 - self._kind.code(chunk.columns[CELLS], missing=("",)))',
        "tests/estimators/test_weighted_rows.py -k cell",
    ),
    PlantedBug(
        "weights of estimators: units forget them",
        "estimators/row_columns.py",
        "        self.dimension, self.names, self.weight = records.dimension, records.names, records.weight\n",
        "        self.dimension, self.names, self.weight = records.dimension, records.names, None\n",
        "tests/estimators/test_weighted_rows.py -k units",
    ),
    PlantedBug(
        "weights of estimators: a sum leaves them out",
        "records/engine.py",
        "        statistic = records.weighed(statistic)\n    value",
        '        statistic = records.weighed(statistic) if statistic.name != "cluster sums" else statistic\n    value',
        "tests/estimators/test_weighted_rows.py -k whole_weights",
    ),
    PlantedBug(
        "weights of estimators: smaller parts of chunks leave them out",
        "records/engine.py",
        "return self.records.weighed(statistic) if isinstance(self.records, WeighedRecords) else statistic",
        "return statistic",
        "tests/estimators/test_weighed.py -k leaves",
    ),
    PlantedBug(
        "weights of estimators: every chunk has the weights of the first",
        "estimators/row_columns.py",
        "            start = stop\n",
        "            start = 0\n",
        "tests/estimators/test_weighted_rows.py -k chunks",
    ),
    PlantedBug(
        "weights of estimators: the public number of rows divides weighted sums",
        "estimators/factor_analysis.py",
        "        if self.centred and records.weight is not None:\n",
        "        if self.centred and records.weight is not None and self.n_public is None:\n",
        "tests/estimators/test_weighted_rows.py -k total",
    ),
    PlantedBug(
        "weights of estimators: sums run over, as if each counted once",
        "mechanisms/contributions.py",
        " - weight_bits) // 2\n",
        ") // 2\n",
        "tests/mechanisms/test_grid.py -k weighed",
    ),
    PlantedBug(
        "weights: the clip norm follows from the true sum of weights",
        WEIGHTED,
        "        del fit\n        return self._sum(class_counts)\n",
        "        return max(1.0, sum(float(rows[self.column].sum()) for rows in fit.data.coded()))\n",
        WEIGHTED_FITS,
    ),
    PlantedBug(
        "steps: clipped row by row, not by unit",
        "records/sharing.py",
        "            np.add.at(squares, owners[pairs], (1.0 if lag == 0 else 2.0) * products**2)\n",
        "            np.maximum.at(squares, owners[pairs], products**2)\n",
        "tests/mechanisms/test_queries.py -k steps",
    ),
    PlantedBug(
        "steps: the clip forgets how steps of a unit go together",
        "records/sharing.py",
        "        for lag in range(int(steps.max(initial=0))):\n",
        "        for lag in range(1):\n",
        "tests/mechanisms/test_queries.py -k steps",
    ),
    PlantedBug(
        "steps: every one counts whole",
        SHARING,
        "        return np.minimum(1 << WEIGHT_BITS, (self.full << WEIGHT_BITS) // np.maximum(steps, 1))\n",
        "        return np.full_like(steps, 1 << WEIGHT_BITS)\n",
        "tests/mechanisms/test_queries.py -k steps",
    ),
    PlantedBug(
        "linked rows: one too many counts",
        LINKED,
        "        counts = rank < self._max_rows\n",
        "        counts = rank <= self._max_rows\n",
        "tests/records/test_linked.py -k first_rows_count",
    ),
    PlantedBug(
        "linked rows: what lies beyond the last step is read",
        SHARING,
        "    mine = np.arange(width) < steps[:, None]\n",
        "    mine, steps = np.full((steps.size, width), True), np.full(steps.size, width)\n",
        "tests/methods/linked/test_statistics.py -k beyond",
    ),
    PlantedBug(
        "linked rows: ties follow from the place in the file",
        LINKED,
        "        place = np.lexsort((*keys, units))\n",
        "        return np.lexsort((keys[-1], units))\n",
        "tests/records/test_linked.py -k ties_are_the_same",
    ),
    PlantedBug(
        "two tables: rows of nobody are given to the last person",
        TABLE_PAIRS,
        "            rows = np.flatnonzero(place != NOBODY)\n            if",
        "            rows = np.arange(place.size)\n            if",
        "tests/attacks/test_two_tables.py -k whose_person",
    ),
    PlantedBug(
        "two tables: of persons with one key, the last in the file",
        TABLE_PAIRS,
        "        if not several.size:\n",
        "        if several.size >= 0:\n",
        "tests/records/test_table_pairs.py -k order_of_the_file",
    ),
    PlantedBug(
        "two tables: a person without rows has another's first row",
        LINKED,
        "        self.starts = np.cumsum(lengths) - lengths\n",
        "        self.starts = np.cumsum(sizes) - sizes\n",
        "tests/records/test_table_pairs.py -k keys_do_not_meet",
    ),
    PlantedBug(
        "two tables: settings by the true number of persons without rows",
        LINKED_RECIPE,
        "    sharing, share = shared(fit, tables, law, counted)\n",
        "    sharing, share = shared(fit, tables, law, counted)\n"
        "    share /= 1 + (data.sequences().sizes == 0).sum() % 2\n",
        "tests/attacks/test_two_tables.py -k little_noise",
    ),
    PlantedBug(
        "steps: how much each counts, by the true numbers of rows",
        LINKED_RECIPE,
        "    sharing, share = shared(fit, tables, law, counted)\n",
        f"    law = {TRUE_STEPS} / max({TRUE_STEPS}.sum(), 1)\n"
        "    sharing, share = shared(fit, tables, law, counted)\n",
        LINKED_FITS,
    ),
    PlantedBug(
        "linked rows: settings by the true number of units",
        LINKED_RECIPE,
        "    counted = counted_units(facts, units)\n",
        "    counted = float(max(1, data.sequences().sizes.size))\n",
        LINKED_FITS,
    ),
    PlantedBug(
        "linked rows: classes are told apart where records have several of them",
        LINKED_RECIPE,
        "    units = run_table(Fit(data, fit.account, facts), ",
        "    lone = fit.target is not None and np.unique(data.sequences().codes[fit.target]).size < 2\n"
        "    told = _facts(Facts(fit.facts.described, None, n))[0] if lone else facts\n"
        "    units = run_table(Fit(data, fit.account, told), ",
        f"{LINKED_FITS} -k only_unit_of_its_class",
    ),
    PlantedBug(
        "linked rows: the number of rows is read off the column before it, where units have classes",
        LINKED_RECIPE,
        'if c.name != units.sampler["target"]]',
        "if c.name]",
        f"{UNIT_CLASSES} -k read_off",
    ),
    PlantedBug(
        "linked rows: rows that are drawn again are of the first class",
        "release/table_samplers.py",
        "            classes = codes[self.class_column].astype(np.int64)\n",
        "            classes = 0 * codes[self.class_column].astype(np.int64)\n",
        f"{UNIT_CLASSES} -k take_the_place",
    ),
    PlantedBug(
        "linked rows: units that break rules are replaced by ones of any class",
        "lenses/unit_rules.py",
        "alike = np.zeros(n, dtype=np.int64) if classes is None else classes",
        "alike = np.zeros(n, dtype=np.int64)",
        f"{UNIT_CLASSES} -k rules",
    ),
    PlantedBug(
        "unique rows of units: a row is like itself",
        "release/unique_rows.py",
        "np.divmod(np.unique(owners * ",
        "np.divmod(np.sort(owners * ",
        "tests/release/test_unique_rows.py -k twice",
    ),
    PlantedBug(
        "workers: units are divided among pieces",
        "records/source_records.py",
        "if self._engine is None or self._schema.unit is not None:",
        "if self._engine is None:",
        "tests/engines/test_processes.py -k units",
    ),
    PlantedBug(
        "units: one row too many",
        "records/units.py",
        ".head(self._max_rows)",
        ".head(self._max_rows + 1)",
        "tests/records/test_units.py -k order_and_chunks",
    ),
    PlantedBug(
        "units: rows are counted anew in every chunk",
        "records/units.py",
        "        self._used += np.bincount(place[chosen], minlength=self._used.size)\n",
        "",
        "tests/records/test_units.py -k equal_rows",
    ),
    PlantedBug(
        "units: which rows count depends on the units before",
        "records/unit_names.py",
        "            self._hashes.append(text_hash(name))\n",
        "            self._hashes.append(text_hash(name) + len(self._hashes) << 8 & (1 << 64) - 1)\n",
        "tests/records/test_units.py -k order_and_chunks",
    ),
    PlantedBug(
        "workers: the words that tell lost and doubled pieces are not read",
        "engines/pads.py",
        "return None if total[-TAG_WORDS:].any() else total[:-TAG_WORDS].view(np.int64)",
        "return total[:-TAG_WORDS].view(np.int64)",
        "tests/engines/test_pads.py -k lost",
    ),
    PlantedBug(
        "workers: one pad for all pieces",
        "engines/pads.py",
        'start = piece.to_bytes(8, "big") + bytes(8)',
        "start = bytes(16)",
        "tests/engines/test_pads.py -k alike",
    ),
    PlantedBug(
        "workers: one raises",
        "engines/work.py",
        "except BaseException as error:",
        "except MemoryError as error:",
        "tests/engines/test_work.py -k never_raises",
    ),
    PlantedBug(
        "workers: of any version",
        "engines/work.py",
        "if version != __version__:",
        "if not version:",
        "tests/engines/test_work.py -k another_version",
    ),
    PlantedBug(
        "workers: of any machine",
        "engines/passes.py",
        "if self._machine not in (None, answer.machine):",
        "if not answer.machine:",
        "tests/engines/test_work.py -k two_kinds",
    ),
    PlantedBug(
        "a file that changes between passes is read",
        "io/stored.py",
        "if _stamp(self.path, self.system) != self.stamp:",
        "if _stamp(self.path, self.system)[0] is None:",
        "tests/engines/test_processes.py -k changes_between",
    ),
    PlantedBug(
        "types from data",
        "fitting/contents.py",
        "    storage = {name: _sample_type(schema, name, source.container) for name in schema.written}\n",
        "    storage = {name: source_type(source, name) for name in schema.written}\n",
        "tests/attacks/test_storage_types.py -k form_of_samples",
    ),
    PlantedBug(
        "truth values as text are no numbers",
        "columns/text_forms.py",
        "    text = _numbered(ascii_text(text))\n",
        "    text = ascii_text(text)\n",
        "tests/attacks/test_storage_types.py -k other_cells",
    ),
    PlantedBug(
        "a draft accepted silently",
        "schema/sources.py",
        "    if not facts or accept_draft:\n",
        "    if True:\n",
        "tests/schema/test_sources.py -k refused",
    ),
    PlantedBug(
        "a certificate that says facts read off the records were fixed beforehand",
        "fitting/driver.py",
        "read_off=read_off(schema),",
        "read_off=(),",
        "tests/fitting/test_drafts.py -k certificate",
    ),
    PlantedBug(
        "an unbound certificate",
        "release/model.py",
        "        check_binding(manifest, release.certificate)\n",
        "",
        "tests/release/test_binding.py -k another_release",
    ),
    PlantedBug(
        "a certificate of any unit",
        "release/model.py",
        "if self.certificate.unit != Protected(**self.schema.protects):",
        "if not self.certificate.unit.name:",
        "tests/release/test_binding.py -k another_unit",
    ),
    PlantedBug(
        "the scale of a column of decimals is in the text of each",
        "io/frames.py",
        'return digits.rstrip("0").rstrip(".") if "." in digits else digits',
        "return digits",
        "tests/io/test_frame_cells.py -k fraction",
    ),
    PlantedBug(
        "noise_std is not compared with its stage",
        "privacy/origin.py",
        "if abs(noise_std / self.norm_bound / multiplier - 1) > _SAME:",
        "if self.norm_bound <= 0:",
        "tests/release/test_binding.py -k not_the_stages",
    ),
    PlantedBug(
        "the grid is not checked",
        "privacy/origin.py",
        "return None if self._on_grid(value) else",
        "return None if value is not None else",
        "tests/release/test_binding.py -k naive",
    ),
    PlantedBug(
        "a ledger rewound",
        "data_ledger/ledger_check.py",
        "if state.chain[of_charge] != charge.chain:",
        "if state.chain[of_charge] == '':",
        "tests/data_ledger/test_ledger_check.py -k put_back",
    ),
    PlantedBug("noise × 2/3", QUERIES, DRAW, DRAW.replace("noise_std,", "noise_std * 2 / 3,"), LAW),
    PlantedBug("noise × 3/2", QUERIES, DRAW, DRAW.replace("noise_std,", "noise_std * 3 / 2,"), LAW),
    PlantedBug(
        "noise of gradients × 2/3",
        QUERIES,
        DRAW_OF_FLOATS,
        DRAW_OF_FLOATS.replace("noise_std)", "noise_std * 2 / 3)"),
        LAW,
    ),
    PlantedBug(
        "symmetric noise off the diagonal, halved",
        QUERIES,
        "noise_std / np.sqrt(2), noise)",
        "noise_std / np.sqrt(8), noise)",
        LAW,
    ),
    PlantedBug(
        "no clipping of gradients",
        "methods/nets/clipped.py",
        "factors = (clip_norms * SAFETY / norms.clamp_min(1e-300)).clamp_max(SAFETY)",
        "factors = torch.ones_like(norms)",
        "tests/methods/nets/test_sgd.py -k Sensitivity",
    ),
    PlantedBug(
        "rounding left out of the sensitivity",
        "methods/nets/sgd.py",
        "state.clip.fixed * (1 + sums.slack)",
        "state.clip.fixed",
        "tests/methods/nets/test_sgd.py -k rounding",
    ),
    PlantedBug(
        "adaptive clipping: rounding left out of the sensitivity",
        "mechanisms/norms.py",
        "longest = w1 * (1 + slack)",
        "longest = w1",
        "tests/methods/dpgm/test_components.py -k neighbours",
    ),
    PlantedBug(
        "the rounding of one neighbour's sum alone",
        "methods/nets/rounding.py",
        "return 2 * self.most * ",
        "return self.most * ",
        "tests/methods/nets/test_rounding.py -k Bound",
    ),
    PlantedBug(
        "noise for rounding by the size of the batch",
        "methods/nets/sgd.py",
        "state.clip.fixed * (1 + sums.slack)",
        "state.clip.fixed * (1 + 2 * 65 * len(batch) * 2.0**-24)",
        "tests/methods/nets/test_sgd.py -k law",
    ),
    PlantedBug(
        "batches of any size in 32 bits",
        "methods/nets/sums.py",
        "self._blocks is not None and len(batch) <= self._blocks.most:",
        "self._blocks is not None:",
        "tests/methods/nets/test_rounding.py -k Batches",
    ),
    PlantedBug(
        "products of as many records as are in the batch",
        "methods/nets/sums.py",
        "blocks.block, self._scratch",
        "len(batch), self._scratch",
        "tests/methods/nets/test_rounding.py -k Batches",
    ),
    PlantedBug(
        "32-bit factors that run over",
        "methods/nets/shares.py",
        "clamped = torch.where(fine, norms, 0.5).clamp(_LEAST, _LARGEST)",
        "clamped = torch.ones_like(norms) / 2",
        "tests/methods/nets/test_rounding.py -k exact",
    ),
    PlantedBug(
        "no clipping of a table's vectors",
        MEASURED_QUERIES,
        CLIPPING,
        "        return np.full(squares.size, float(1 << self.bits.weights))\n",
        "tests/mechanisms/test_queries.py -k moment",
    ),
    PlantedBug(
        "clipping rounded up",
        MEASURED_QUERIES,
        "most // np.maximum(squares, 1)",
        "-(-most // np.maximum(squares, 1))",
        "tests/mechanisms/test_table_bounds.py -k exactly",
    ),
    PlantedBug(
        "counts of pairs without clipping",
        "methods/tables/feature_moments.py",
        "np.bincount(where, clipping, part.stop - part.start)",
        "np.bincount(where, minlength=part.stop - part.start) * 2**self.moments.bits.weights",
        "tests/methods/tables/test_feature_moments.py -k have_the_bits",
    ),
    PlantedBug(
        "entries of mixed records clipped, not their norms",
        "mechanisms/mixing.py",
        "whole_rows(np.maximum(features, 0.0), feature_norm, _BITS)",
        "np.rint(np.clip(np.nan_to_num(features), 0.0, feature_norm) / step_of(feature_norm, _BITS))",
        "tests/mechanisms/test_mixing.py -k contributions",
    ),
    PlantedBug(
        "no clipping of profiles",
        "methods/dpgm/profiles.py",
        "whole_rows(np.maximum(part, 0.0), self.clip_norm)",
        "np.rint(np.maximum(part, 0.0) / step_of(self.clip_norm))",
        "tests/mechanisms/test_queries.py -k profiles",
    ),
    PlantedBug(
        "adaptive clipping: the sum not in units of the clip norms",
        "methods/nets/sgd.py",
        "return clip_factors(norms, clip_norms) / clip_norms",
        "return clip_factors(norms, clip_norms)",
        "tests/methods/dpgm/test_components.py -k neighbours",
    ),
    PlantedBug(
        "wrong q: batches larger than charged",
        "mechanisms/sampling.py",
        "    probability = sampling_probability(stage, ledger)\n",
        "    probability = min(1.0, 1.5 * sampling_probability(stage, ledger))\n",
        "tests/methods/nets/test_batches.py",
    ),
    PlantedBug(
        "Poisson samples charged, fixed batches drawn",
        "mechanisms/sampling.py",
        "noise.poisson_samples(n, probability, min(",
        "noise.subsets(n, round(n * probability), min(",
        "tests/methods/nets/test_batches.py",
    ),
    PlantedBug(
        "Poisson samples charged, records shuffled and dealt out",
        "methods/nets/batches.py",
        "member_sets = poisson_member_sets(len(vectors), len(gathered), stage=stage, ledger=ledger, noise=noise)",
        "size = max(1, round(len(vectors) * sampling_probability(stage, ledger)))\n"
        "            member_sets = [(next(_DEALT) * size + np.arange(size)) % max(len(vectors), 1) for _ in gathered]",
        "tests/methods/nets/test_batches.py",
    ),
    PlantedBug(
        "one sample for all steps of a pass",
        "methods/nets/batches.py",
        "zip(gathered, member_sets, strict=True)",
        "zip(gathered, member_sets[:1] * len(member_sets), strict=True)",
        "tests/methods/nets/test_batches.py",
    ),
    PlantedBug(
        "members that come twice are not drawn again",
        "mechanisms/membership.py",
        "missing = wanted - np.bincount(keys // n, minlength=len(wanted))",
        "missing = 0 * wanted",
        "tests/mechanisms/test_sampling.py -k law",
    ),
    PlantedBug(
        "the number of members is that of the mean",
        "mechanisms/noise.py",
        "uniform_subsets(self.bits, n, binomial_counts(self.bits, n, probability, size))",
        "uniform_subsets(self.bits, n, np.full(size, round(n * probability)))",
        "tests/mechanisms/test_sampling.py -k law",
    ),
    PlantedBug(
        "mixtures of more records than charged",
        "mechanisms/mixing.py",
        "yield noise.poisson_samples(n, event.sampling_probability, block)",
        "yield noise.poisson_samples(n, min(1.0, 2 * event.sampling_probability), block)",
        "tests/attacks/test_distinguishers.py -k poisson_mixtures",
    ),
    PlantedBug(
        "mixtures divided by how many are in them",
        "mechanisms/mixing.py",
        "step / settings.degree, noise_std",
        "step / np.maximum(np.diff(members.indptr), 1)[:, None], noise_std",
        "tests/mechanisms/test_mixing.py -k divisor",
    ),
    PlantedBug(
        "an empty batch gets no noise",
        "methods/nets/sgd.py",
        "            total, counts = _guarded_sum(sums, batch, state.clip, noise)\n",
        "            if not len(batch):\n                ledger.replay(stage, 1)\n                continue\n"
        "            total, counts = _guarded_sum(sums, batch, state.clip, noise)\n",
        "tests/methods/nets/test_sgd.py",
    ),
    PlantedBug(
        "the divisor is the size of the batch",
        "methods/nets/sgd.py",
        "state.step(gradient, divisor)",
        "state.step(gradient, max(len(batch), 1))",
        f"{RECIPES} -k dp-vae",
    ),
    PlantedBug(
        "an un-noised count",
        "fitting/arguments.py",
        "    return max(1, round(float(count.value)))",
        "    return max(1, int(reduce(RowCount(), records).open_in_mechanism()))",
        f"{RECIPES} -k bought",
    ),
    PlantedBug(
        "the label ratio leaked",
        "methods/tables/recipe.py",
        "        parameters={**chain.to_arrays(), **grid.arrays()},",
        "        parameters={**chain.to_arrays(), **grid.arrays(), **_leaked(reduce(counting, fit.data), counting)},",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "what the query of moments says, moved by the records",
        "methods/tables/second_stage.py",
        "        return SecondRelease(moment_measurements(noisy, moments, self.worth), pairs)\n",
        "        true = float(reduce(TwoResolutionCounts(first.layout), fit.data).open_in_mechanism().sum())\n"
        "        moved = replace(moments, clip_norm=moments.clip_norm + 1e-3 * true)\n"
        "        return SecondRelease(moment_measurements(noisy, moved, self.worth), pairs)\n",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "a clip norm read off the records",
        "methods/tables/second_stage.py",
        "        moments = self.statistic(first.layout,",
        "        true = float(reduce(TwoResolutionCounts(first.layout), fit.data).open_in_mechanism().sum())\n"
        "        clip_norm += 1e-6 * true\n"
        "        moments = self.statistic(first.layout,",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "an entry that all rows share, left out of the norm",
        MEASURED_QUERIES,
        SQUARED,
        "        shared = not self.features[-1].cells.column\n"
        "        counted = self._squares[:-1] if shared else self._squares\n"
        "        for of_cell, column in zip(counted, cells[: len(counted)], strict=True):\n",
        "tests/mechanisms/test_queries.py -k second",
    ),
    PlantedBug(
        "bounds apart by the true number of records",
        "methods/tables/recipe.py",
        "    grid = Grid.of(schema, numeric_cells=settings.cells, ends=settings.ends, narrow=True)\n",
        "    true = sum(len(next(iter(rows.values()))) for rows in fit.data.coded())\n"
        "    settings = replace(settings, ends=true % 2 == 0)\n"
        "    grid = Grid.of(schema, numeric_cells=settings.cells, ends=settings.ends, narrow=True)\n",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "an entry that all rows share, by the true number of records",
        "methods/tables/recipe.py",
        "    if target is not None or settings.effort.low_rank:",
        "    true = sum(len(next(iter(rows.values()))) for rows in fit.data.coded())\n"
        "    if target is not None or true % 2:",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "a record's cell counted for nothing in the norm",
        "methods/tables/cell_counts.py",
        "return len(self.layout.features) * SQUARES\n",
        "return len(self.layout.features) * RUN_STEP**2\n",
        "tests/mechanisms/test_queries.py -k resolutions",
    ),
    PlantedBug(
        "pooled and class moments charged as one of them",
        "methods/tables/feature_moments.py",
        "np.array([1 - self.by_class] + [self.by_class] * self.layout.n_classes)",
        "np.array([1.0] + [self.by_class] * self.layout.n_classes)",
        "tests/mechanisms/test_queries.py -k moment",
    ),
    PlantedBug(
        "an indicator of the class left out of the norm",
        MEASURED_QUERIES,
        SQUARED,
        "        for of_cell, column in list(zip(self._squares, cells, strict=True))[:-1]:\n",
        "tests/mechanisms/test_queries.py -k moment",
    ),
    PlantedBug(
        "as many runs of cells as hold any record",
        "methods/tables/recipe.py",
        "    columns = column_shares(counts, counting, class_counts, settings.resolution)\n",
        "    held = max(2, int(np.count_nonzero(reduce(counting, fit.data).open_in_mechanism())))\n"
        "    found = Resolution(held, settings.resolution.orders, level_groups, settings.resolution.weights)\n"
        "    columns = column_shares(counts, counting, class_counts, found)\n",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "orders of polynomials by the true number of records",
        "methods/tables/recipe.py",
        "    columns = column_shares(counts, counting, class_counts, settings.resolution)\n",
        "    rows = counting.split(reduce(counting, fit.data).open_in_mechanism())[0][0].sum()\n"
        "    found = Resolution(settings.resolution.most_runs, 1 + int(rows) % 6, level_groups, {})\n"
        "    columns = column_shares(counts, counting, class_counts, found)\n",
        f"{RECIPES} -k max-entropy or max_entropy",
    ),
    PlantedBug(
        "half the noise in all matrices but the first",
        QUERIES,
        NOISY_MATRIX,
        NOISY_MATRIX.replace("noise_std,", "noise_std / (2 if any(index) else 1),"),
        LAW,
    ),
    PlantedBug(
        "no noise in the last matrix",
        QUERIES,
        NOISY_MATRIX,
        NOISY_MATRIX.replace("noise_std,", "0.0 if sum(index) + 1 == len(value) > 1 else noise_std,"),
        LAW,
    ),
    PlantedBug(
        "all matrices with the first one's step",
        QUERIES,
        NOISY_MATRIX,
        NOISY_MATRIX.replace("steps[index].item()", "steps.flat[0]"),
        LAW,
    ),
    PlantedBug(
        "half the noise on the diagonal",
        QUERIES,
        "np.fill_diagonal(result, on_grid(np.diagonal(whole), step, noise_std, noise))",
        "np.fill_diagonal(result, on_grid(np.diagonal(whole), step, noise_std / 2, noise))",
        LAW,
    ),
    PlantedBug(
        "counts of two resolutions at half the noise of the finer ones",
        "methods/tables/cell_counts.py",
        "np.full(cells, CELL_STEP)])",
        "np.full(cells, 2 * CELL_STEP)])",
        "tests/mechanisms/test_queries.py -k resolutions",
    ),
    PlantedBug(
        "norms added up in an order that depends on the other records",
        "mechanisms/contributions.py",
        'clipped = np.array(vectors, dtype=np.float64, order="C")',
        "clipped = np.array(vectors, dtype=np.float64)",
        "tests/mechanisms/test_clip.py -k memory",
    ),
    PlantedBug(
        "seed reused: every process draws the same noise",
        "mechanisms/noise.py",
        "os.urandom(32)",
        "bytes(32)",
        "tests/mechanisms/test_noise.py -k sources_differ",
    ),
    PlantedBug(
        "seed reused: a forked process draws its parent's noise",
        "mechanisms/noise.py",
        "self._chain + os.urandom(32)",
        "self._chain",
        "tests/mechanisms/test_noise.py -k fork",
    ),
    PlantedBug(
        "entropy not folded in: a snapshot draws what the original draws",
        "mechanisms/noise.py",
        "self._chain + os.urandom(32)",
        "self._chain",
        "tests/mechanisms/test_noise.py -k snapshot",
    ),
    PlantedBug(
        "noise drawn ahead for one release serves all",
        "mechanisms/ahead.py",
        "        self._draw_next()\n        return scaled_normals(normals, noise_std)",
        "        return scaled_normals(normals.copy(), noise_std)",
        "tests/mechanisms/test_ahead.py",
    ),
    PlantedBug(
        "noise drawn ahead by a source that two threads use",
        "mechanisms/ahead.py",
        "self._source = noise.apart()",
        "self._source = noise",
        "tests/mechanisms/test_ahead.py",
    ),
    PlantedBug(
        "the second thread's noise is that of the first",
        "mechanisms/noise.py",
        '        return SeededNoise(int.from_bytes(self.bits(4).tobytes(), "little"))\n',
        "        return SeededNoise(0)\n",
        "tests/mechanisms/test_ahead.py -k apart",
    ),
    PlantedBug(
        "the same noise for two statistics",
        QUERIES,
        "        _noisy_matrix(value[index], float(steps[index].item()), noise_std, noise, result[index])\n",
        "        first = (0,) * len(index)\n"
        "        if not any(index):\n"
        "            _noisy_matrix(value[index], float(steps[index].item()), noise_std, noise, result[index])\n"
        "        result[index] = result[first] + value[index] * steps[index] - value[first] * steps[first]\n",
        "tests/mechanisms/test_queries.py -k independent",
    ),
    PlantedBug(
        "charge after noise",
        QUERIES,
        "    noise_std = charge_stage(exact, stage, ledger, noise)\n"
        f"    if exact.step is not None:\n        return Noisy({ON_GRID}, noise_std)\n",
        "    noise_std = 0.0 if noise.silent else ledger.plan[stage].noise_multiplier * exact.norm_bound\n"
        f"    value = {ON_GRID} if exact.step is not None else None\n"
        "    charge_stage(exact, stage, ledger, noise)\n"
        "    if value is not None:\n        return Noisy(value, noise_std)\n",
        "tests/mechanisms/test_queries.py -k charge",
    ),
    PlantedBug(
        "charge missing",
        QUERIES,
        "    ledger.charge(stage, event)\n",
        "",
        "tests/mechanisms/test_queries.py -k charge",
    ),
    PlantedBug(
        "the noise that is charged × 2/3",
        QUERIES,
        "ledger.plan[stage].noise_multiplier * exact.norm_bound\n",
        "ledger.plan[stage].noise_multiplier * exact.norm_bound * 2 / 3\n",
        EVENTS_OF_PLAN,
    ),
    PlantedBug(
        "noise by the bound of one record, of units of several",
        QUERIES,
        "ledger.plan[stage].noise_multiplier * exact.norm_bound\n",
        "ledger.plan[stage].noise_multiplier * min(exact.norm_bound, 1.0)\n",
        EVENTS_OF_PLAN,
    ),
    PlantedBug(
        "the noise of another stage",
        QUERIES,
        "ledger.plan[stage].noise_multiplier * exact.norm_bound\n",
        "ledger.plan.stages[0].noise_multiplier * exact.norm_bound\n",
        EVENTS_OF_PLAN,
    ),
    PlantedBug(
        "a sample's statistic charged as one of all records",
        "methods/nets/sgd.py",
        "replace_distance=2.0, sampling_probability=probability",
        "replace_distance=2.0",
        "tests/methods/nets/test_sgd.py",
    ),
    PlantedBug(
        "mixtures: noise of labels by the share of features",
        "mechanisms/mixing.py",
        "label_norm / math.sqrt(self.label_share)",
        "label_norm / math.sqrt(1 - self.label_share)",
        EVENTS_OF_PLAN,
    ),
    PlantedBug(
        "mixtures: a unit of fixed degree in one of them",
        "mechanisms/mixing.py",
        "return stage.noise_multiplier * math.sqrt(self.repeats)",
        "return stage.noise_multiplier",
        EVENTS_OF_PLAN,
    ),
    PlantedBug(
        "the threshold of words by another part of delta than the plan's",
        "mechanisms/unlisted_words.py",
        "extra_delta=extra_delta)",
        "extra_delta=2 * extra_delta)",
        EVENTS_OF_PLAN,
    ),
    PlantedBug(
        "the ledger takes any noise",
        "privacy/ledger.py",
        "if not abs(event.noise_multiplier - stage.noise_multiplier) <= _ROUNDING * stage.noise_multiplier:",
        "if stage.noise_multiplier != self._plan[name].noise_multiplier:",
        "tests/mechanisms/test_events.py -k refused",
    ),
    PlantedBug(
        "the ledger takes statistics of all records for samples",
        "privacy/ledger.py",
        "if (event.sampling_probability, event.subset) != (stage.sampling_probability, stage.subset):",
        "if event.subset != stage.subset:",
        "tests/mechanisms/test_events.py -k sample",
    ),
    PlantedBug(
        "one charge for many steps",
        "privacy/ledger.py",
        "if count < 1 or before + count > stage.count:",
        "if count < 1:",
        "tests/privacy/test_subsets.py -k charged",
    ),
    PlantedBug(
        "adjacency mixed up: replace-one charged as add/remove",
        "privacy/plan.py",
        "single = dp_event.GaussianDpEvent(2 * multiplier / self.replace_distance)",
        "single = dp_event.GaussianDpEvent(multiplier)",
        "tests/privacy/test_golden.py -k kmeans",
    ),
    PlantedBug(
        "adjacency mixed up: subsets charged as Poisson samples",
        "privacy/plan.py",
        "event=dp_event.GaussianDpEvent(multiplier / self.replace_distance),",
        "event=dp_event.GaussianDpEvent(multiplier),",
        "tests/privacy/test_subsets.py -k fixed_size",
    ),
    PlantedBug(
        "distance between records without negative entries forgotten",
        "mechanisms/statistics.py",
        "        return _SQRT2 * self.norm_bound\n",
        "        return self.norm_bound\n",
        "tests/mechanisms/test_queries.py -k profiles",
    ),
    PlantedBug(
        "distance between clipped vectors that point apart forgotten",
        "mechanisms/statistics.py",
        "        return 2 * self.clip_norm\n",
        "        return _SQRT2 * self.clip_norm\n",
        "tests/mechanisms/test_queries.py -k teacher",
    ),
    PlantedBug(
        "norm of outer products not squared",
        "mechanisms/statistics.py",
        "        return self.clip_norm**2\n",
        "        return self.clip_norm\n",
        "tests/mechanisms/test_queries.py -k moment",
    ),
    PlantedBug(
        "noise of unlisted words × 2/3",
        "mechanisms/unlisted_words.py",
        "dtype=np.int64), 1.0, noise_std, noise)",
        "dtype=np.int64), 1.0, noise_std * 2 / 3, noise)",
        "tests/mechanisms/test_unlisted_words.py",
    ),
    PlantedBug(
        "threshold of noise that is not rounded",
        "mechanisms/unlisted_words.py",
        "noise_std * quantile + float(grid) / 2",
        "noise_std * quantile",
        "tests/mechanisms/test_unlisted_words.py -k rounded",
    ),
    PlantedBug(
        "a line that cannot be read decides whether a fit by subsets is refused",
        "methods/dpmix.py",
        "records = records.settled(fit.n_public)",
        "pass",
        "tests/methods/test_dpmix.py -k TestSubsetsOfText",
    ),
    PlantedBug(
        "bits of products that do not follow from the number of rows: sums run over",
        "mechanisms/contributions.py",
        "    return (min(2 * PRODUCT_BITS, 63 - _SPARE_BITS - (n_public - 1).bit_length()) - weight_bits) // 2",
        "    return PRODUCT_BITS",
        "tests/mechanisms/test_grid.py -k run_over",
    ),
    PlantedBug(
        "bits of products that are one too many",
        "mechanisms/contributions.py",
        " - weight_bits) // 2\n",
        " - weight_bits) // 2 + 2\n",
        "tests/mechanisms/test_grid.py -k run_over",
    ),
    PlantedBug(
        "threshold halved",
        "mechanisms/unlisted_words.py",
        "if v >= threshold]",
        "if v >= threshold * 0.5]",
        "tests/mechanisms/test_unlisted_words.py",
    ),
    PlantedBug(
        "additive delta not composed",
        "privacy/accounting.py",
        "return float(accountant.get_epsilon(delta - extra_delta)) - math.log1p(-extra_delta)",
        "return float(accountant.get_epsilon(delta))",
        "tests/mechanisms/test_unlisted_words.py",
    ),
    PlantedBug(
        "the ledger pays more than it has",
        "data_ledger/data_ledger.py",
        "if spent > state.budget.epsilon * (1 + _SLACK):",
        "if spent > 10 * state.budget.epsilon:",
        "tests/data_ledger/test_data_ledger.py -k pays",
    ),
    PlantedBug(
        "the ledger is charged without its lock",
        "data_ledger/process.py",
        "        lock.acquire()\n",
        "        pass\n",
        "tests/data_ledger/test_process.py -k thread",
    ),
    PlantedBug(
        "a running fit seems ended once the clock is set",
        "data_ledger/process.py",
        'return _ticks(number) if sys.platform == "linux" else f"{process.create_time():.3f}"',
        'return f"{process.create_time():.3f}"',
        "tests/data_ledger/test_process.py -k clock",
    ),
    PlantedBug(
        "the ledger charges after the fit",
        DRIVER,
        "charged = charge_data(path,",
        "charged = None and charge_data(path,",
        "tests/data_ledger/test_data_ledger.py -k before",
    ),
    PlantedBug(
        "a finished fit is made again from an old checkpoint",
        DRIVER,
        " if charged is None or not charged.complete else NoMoreNoise(self.noise)",
        "",
        "tests/data_ledger/test_journal.py -k finished",
    ),
    PlantedBug(
        "an older copy of a checkpoint goes on",
        DATA_LEDGER,
        "elif not checkpoint.goes_on(known.run):",
        "elif not known.run:",
        f"{COPIES} -k one_charge or sequence",
    ),
    PlantedBug(
        "the ledger does not count who goes on",
        DATA_LEDGER,
        "run=_mark(known.runs + 1))",
        "run=known.run)",
        f"{COPIES} -k one_charge or sequence",
    ),
    PlantedBug(
        "the ledger counts before the checkpoint knows",
        DATA_LEDGER,
        '        checkpoint.begin(charged.id, charged.run, before="" if known is None else known.run)\n'
        '        write_ledger_file(place, state, failing="Nothing was charged.")\n',
        '        write_ledger_file(place, state, failing="Nothing was charged.")\n'
        '        checkpoint.begin(charged.id, charged.run, before="" if known is None else known.run)\n',
        f"{COPIES} -k killed_between",
    ),
    PlantedBug(
        "a run that kept what it drew still goes by the mark before it",
        "data_ledger/journal.py",
        "            self._before = None\n            self._write()\n",
        "            self._write()\n",
        "tests/data_ledger/test_journal.py -k no_other",
    ),
    PlantedBug(
        "a release leaves that the ledger could not note",
        DRIVER,
        "with settled(charged, has_checkpoint=self.journal.active):",
        "with settled(charged):",
        f"{COPIES} -k could_not_note",
    ),
    PlantedBug(
        "a run that another took over gives its release out",
        DATA_LEDGER,
        " or own[0].run != self.run or own[0].entry",
        " or own[0].entry",
        f"{COPIES} -k took_over",
    ),
    PlantedBug(
        "another release is told again for a charge that has finished",
        DATA_LEDGER,
        "elif self.release != self._released:",
        "elif self.release is None:",
        f"{COPIES} -k another_release",
    ),
    PlantedBug(
        "a charge does not keep its release",
        DATA_LEDGER,
        'release=self.release if entry == "finished" else None)',
        "release=None)",
        "tests/data_ledger/test_data_ledger.py -k keeps_the_hashes",
    ),
    PlantedBug(
        "two releases for one charge are known",
        "data_ledger/ledger_check.py",
        'return "known" if noted == certificate.release else "other release"',
        'return "known"',
        f"{COPIES} -k copied_together",
    ),
    PlantedBug(
        "a ledger without its chain is read",
        "data_ledger/ledger_file.py",
        '        if fit.get("chain") != link:\n',
        '        if fit.get("chain") not in (link, None):\n',
        "tests/data_ledger/test_data_ledger.py -k without_its_chain",
    ),
    PlantedBug(
        "how a fit ended is changed by hand",
        "data_ledger/ledger_file.py",
        'if content.get("seal") != _seal(content):',
        "if False:",
        "tests/data_ledger/test_data_ledger.py -k by_hand_either",
    ),
    PlantedBug(
        "the studio's fits charge no ledger",
        "studio/session.py",
        "progress=fit.stages.append, ledger=ledger,",
        "progress=fit.stages.append,",
        "tests/studio/test_ledgers.py -k opens_the_ledger",
    ),
    PlantedBug(
        "each folder of a studio opens an account of its own",
        "studio/ledgers.py",
        "    return table.resolve().parent / f",
        "    return folder / f",
        "tests/studio/test_ledgers.py -k two_studios",
    ),
    PlantedBug(
        "what a lost release cost is not said",
        "cli/ending.py",
        "    if not release.certificate.private:",
        "    if release.certificate.private:",
        "tests/cli/test_full_disk.py -k without_a_checkpoint",
    ),
    PlantedBug(
        "the account of a long table's ids is one of rows",
        "schema/schema_facts.py",
        'return {"name": next(iter(self._ids), "row"), "max_rows": 1}',
        'return {"name": "row", "max_rows": 1}',
        "tests/methods/test_items.py -k protected",
    ),
    PlantedBug(
        "sums on a grid twice as coarse as that of their noise",
        QUERIES,
        "value += whole << finer",
        "value += whole << (finer + 1)",
        f"{GRID} -k fractions",
    ),
    PlantedBug(
        "a coordinate's step is twice what is charged for it",
        "methods/dpgm/profiles.py",
        "step[-1], step[:, 0] = step_of(w2), w0",
        "step[-1], step[:, 0] = step_of(w2, 25), w0",
        "tests/mechanisms/test_queries.py -k profiles",
    ),
    PlantedBug(
        "twice as many steps as the bound has",
        "methods/mixtures/kmeans.py",
        "whole_rows(distances, self.reach, self.bits)",
        "2 * whole_rows(distances, self.reach, self.bits)",
        "tests/mechanisms/test_queries.py -k feature",
    ),
    PlantedBug(
        "records of two clusters taken for records of one",
        "methods/mixtures/kmeans.py",
        "math.sqrt(max(2 * self.count**2 + 2 * self.sum**2, 4 * self.sum**2))",
        "2 * self.sum",
        "tests/mechanisms/test_queries.py -k cluster",
    ),
    PlantedBug(
        "recentred k-means without clipping",
        "methods/mixtures/kmeans.py",
        "whole_rows(distances, self.reach, self.bits)",
        "np.rint(distances / step_of(self.reach))",
        "tests/mechanisms/test_queries.py -k recentred",
    ),
    PlantedBug(
        "magnitudes rounded up, and records past their norm",
        WHOLE,
        ROUNDED + CUT,
        "    whole = np.copysign(np.ceil(np.abs(scaled)), scaled)\n",
        f"{GRID} -k too_long",
    ),
    PlantedBug("records that rounding made too long are kept", WHOLE, CUT, "", f"{GRID} -k too_long"),
    PlantedBug(
        "contributions are not rounded",
        WHOLE,
        ROUNDED + CUT,
        "    whole = scaled\n",
        "tests/mechanisms/test_queries.py -k contribution",
    ),
    PlantedBug(
        "sums of pieces in floats",
        "records/engine.py",
        "into[part] += flat[part].astype(np.int64)",
        "into[part] = (into[part].astype(np.float64) + flat[part]).astype(np.int64)",
        f"{GRID} -k pieces",
    ),
    PlantedBug(
        "sums of more records than floats hold",
        "records/engine.py",
        "for piece in _pieces(rows, ROWS_AT_ONCE):",
        "for piece in [rows]:",
        f"{GRID} -k chunks",
    ),
    PlantedBug(
        "search: the number of repetitions is fixed",
        "mechanisms/sampling.py",
        "while not noise.bernoulli(1, law.last(k))[0]:",
        "while k < law.mean:",
        f"{SEARCHES} -k law",
    ),
    PlantedBug(
        "search: at least two repetitions",
        "mechanisms/sampling.py",
        "    k = 1\n",
        "    k = 2\n",
        f"{SEARCHES} -k law",
    ),
    PlantedBug(
        "search: repeats twice as often as charged",
        TUNING,
        DRAWN,
        "drawn_repetitions(replace(self.plans[0].repetitions, mean=2 * self.plans[0].repetitions.mean), noise)",
        f"{SEARCHES} -k law",
    ),
    PlantedBug(
        "search: every candidate once, charged as a random number",
        TUNING,
        f"        repetitions = {DRAWN}\n",
        "        repetitions = len(self.candidates)\n"
        "        drawn_candidate = lambda n, noise, turn=iter(range(repetitions)): next(turn)\n",
        f"{SEARCHES} -k law",
    ),
    PlantedBug(
        "search: ends at the first fit that is good enough",
        TUNING,
        KEPT,
        KEPT + "            if distance < 0.01:\n                break\n",
        f"{SEARCHES} -k law",
    ),
    PlantedBug(
        "search: ends early, and its account does not see it",
        "privacy/ledger.py",
        "if self._left != 0 or not self._opened:",
        "if not self._opened:",
        "tests/privacy/test_search_accounts.py -k last",
    ),
    PlantedBug(
        "search: every fit draws the same noise",
        TUNING,
        "fit = Fit(records, Account(ledger, noise), self.facts)",
        "fit = Fit(records, Account(ledger, SeededNoise(7)), self.facts)",
        f"{SEARCHES} -k law",
    ),
    PlantedBug(
        "search: charged as one fit",
        "privacy/plan.py",
        "return (*events, repeated_event(repeated, neighbours)) if repeated else events",
        "return (*events, *(replace(stage, repetitions=None).event(neighbours) for stage in repeated))",
        f"{SEARCHES} -k best_fit",
    ),
    PlantedBug(
        "search: a score without noise",
        TUNING,
        "Account(once, noise).measure(s.stage,",
        "Account(once, NoNoise()).measure(s.stage,",
        f"{SEARCHES} -k choice",
    ),
    PlantedBug(
        "search: the best by an un-noised score",
        TUNING,
        KEPT,
        "            exact = Noisy(reduce(scores[0].statistic, records).open_in_mechanism(), 0.0)\n"
        "            true = scores[0].distance(exact, self._sampled(fitted)[0])\n"
        "            if best is None or true < least:\n"
        "                best, least = result, true\n",
        f"{SEARCHES} -k choice",
    ),
    PlantedBug(
        "search: a score bought by each fit, charged once",
        TUNING,
        SCORED,
        "once = Ledger(Plan(self.plans[0].parts[0]), None)\n"
        "            counts = (Account(once, noise).measure(scores[0].stage, scores[0].statistic, records),)\n"
        f"            {SCORED}",
        f"{SEARCHES} -k same",
    ),
    PlantedBug(
        "search of linked rows: every step of a unit counts whole in its pairs",
        STEP_PAIRS,
        "        shared = AS_ONE.weights(steps)[owners]\n",
        "        shared = np.full(owners.size, 1 << SHARE_BITS)\n",
        "tests/mechanisms/test_queries.py -k steps",
    ),
    PlantedBug(
        "search of linked rows: pairs of steps count twice as much as they are charged for",
        STEP_PAIRS,
        "    step: float = 2.0 ** -(SHARE_BITS + FINER_BITS)\n",
        "    step: float = 2.0 ** (1 - SHARE_BITS - FINER_BITS)\n",
        "tests/mechanisms/test_queries.py -k steps",
    ),
    PlantedBug(
        "search of linked rows: distances by the true number of units",
        TUNING,
        SCORED,
        SCORED + "            distance *= len(records.sequences().sizes)\n",
        f"{LINKED_FITS} -k search",
    ),
    PlantedBug(
        "searches: samples without a step have no finite distance, and fits no order",
        STEP_PAIRS,
        "    m = max(1.0, float(counts.sum()) / n_tables)\n",
        "    m = float(counts.sum()) / n_tables\n",
        "tests/search -k without_a_record or one_row",
    ),
    PlantedBug(
        "search: a fit that fails is left out",
        TUNING,
        "            fitted = self.candidates[j].run(fit)\n",
        "            try:\n                fitted = self.candidates[j].run(fit)\n"
        "            except ConfigError:\n                continue\n",
        "tests/search/test_tuning.py -k fails",
    ),
    PlantedBug(
        "search: the data's ledger is charged one fit",
        TUNING,
        "plan=search.plans[0],",
        "plan=Plan(replace(s, repetitions=None) for s in search.plans[0].stages),",
        "tests/search/test_tuning.py -k before_the_first",
    ),
    PlantedBug(
        "search: candidates that cost more than the one that is charged",
        "privacy/ledger.py",
        "if len({plan.parts[0] for plan in self._plans}) != 1 or not alike([plan.parts[1] for plan in self._plans]):",
        "if len({plan.parts[0] for plan in self._plans}) != 1:",
        "tests/privacy/test_search_accounts.py -k unlike",
    ),
    PlantedBug(
        "accept: the errors of all tables together",
        "mechanisms/misplaced.py",
        "np.asarray(apart.max()),",
        "np.asarray(apart.sum()),",
        "tests/mechanisms/test_misplaced.py -k neighbours",
    ),
    PlantedBug(
        "accept: every record out of place counts twice",
        "mechanisms/misplaced.py",
        "step=1 / (2 * total),",
        "step=1 / total,",
        "tests/mechanisms/test_misplaced.py -k neighbours",
    ),
    PlantedBug(
        "accept: a unit's records are charged as one",
        "mechanisms/misplaced.py",
        "norm_bound=float(rows),",
        "norm_bound=1.0,",
        "tests/mechanisms/test_misplaced.py -k unit",
    ),
    PlantedBug(
        "accept: two thirds of the noise",
        "mechanisms/misplaced.py",
        SEALED_NUMBER,
        SEALED_NUMBER.replace("noise=noise)", "noise=_TwoThirds(noise))"),
        "tests/mechanisms/test_misplaced.py -k law",
    ),
    PlantedBug(
        "accept: the verdict is of the exact value",
        "search/acceptance.py",
        JUDGED,
        JUDGED + "        noisy = replace(noisy, value=_largest(exact, state, starts).open_in_mechanism())\n",
        f"{SEARCHES} -k judged",
    ),
    PlantedBug(
        "accept: the AUROC of exact counts",
        "search/acceptance.py",
        "return self.verdict(*auroc_of(noisy.value, noisy.noise_std))",
        "return self.verdict(*auroc_of(exact.open_in_mechanism(), noisy.noise_std))",
        f"{SEARCHES} -k judged",
    ),
    PlantedBug(
        "accept: the classifier learns from the records",
        "search/acceptance.py",
        "exact = reduce(ScoreCounts.taught_by(self.task, state), records)",
        "exact = reduce(ScoreCounts.taught_by(self.task, list(records.coded())), records)",
        f"{SEARCHES} -k judged",
    ),
    PlantedBug(
        "accept: verdicts are left out of the account",
        TUNING,
        "searches.append(Plan([*scores, *repeated, *verdicts]))",
        "searches.append(Plan([*scores, *repeated, *(replace(v, noise_multiplier=1e6) for v in verdicts)]))",
        "tests/search/test_acceptance.py -k share",
    ),
    PlantedBug(
        "accept: fits that are not judged end a search",
        "privacy/ledger.py",
        '        if self._unjudged is not None:\n            _refuse("the search ends before',
        '        if False:\n            _refuse("the search ends before',
        "tests/privacy/test_search_accounts.py -k not_judged",
    ),
    PlantedBug(
        "accept: a fit is judged until it passes",
        "privacy/ledger.py",
        "stages, self._unjudged = self._plans[self._unjudged].parts[1], None",
        "stages = self._plans[self._unjudged].parts[1]",
        "tests/privacy/test_search_accounts.py -k handed_out_once",
    ),
    PlantedBug(
        "accept: a fit that failed leaves",
        TUNING,
        "    if not best.accepted:\n",
        "    if best.accepted is None:\n",
        "tests/search/test_acceptance.py -k alone_leave",
    ),
    PlantedBug(
        "many steps are composed in 64 bits",
        "privacy/pld.py",
        "fft.rfft(step._probs.astype(np.longdouble), size)",
        "fft.rfft(step._probs, size)",
        "tests/privacy/test_pld.py -k composed_exactly",
    ),
    PlantedBug(
        "a stranger's number of steps buys room in delta",
        "privacy/accounting.py",
        "min(2 * rounding, free / 10) if free > 0",
        "min(2 * rounding, delta / 10) if delta > 0",
        "tests/privacy/test_certificate.py -k room",
    ),
    PlantedBug(
        "what composing stages loses to rounding is not in delta",
        "privacy/pld.py",
        "infinite = step._infinity_mass + COMPOSITION_ROUNDING",
        "infinite = step._infinity_mass",
        "tests/privacy/test_pld.py -k small_delta",
    ),
    PlantedBug(
        "one cell of a list changes how all others are read",
        "estimators/records.py",
        "        return np.array([[_as_number(cell) for cell in row] for row in rows], dtype=np.float64)",
        "        try:\n            return np.asarray(rows, dtype=np.float64)\n"
        "        except (ValueError, TypeError, OverflowError):\n"
        "            return np.array([[_as_number(cell) for cell in row] for row in rows], dtype=np.float64)",
        "tests/estimators/test_estimators.py -k beside_it",
    ),
    PlantedBug(
        "a release imports a kind whose package it does not name",
        "release/manifest.py",
        "release_schema(value)",
        "Schema.from_dict(value)",
        "tests/plugins/test_duration.py -k imports_only",
    ),
    PlantedBug(
        "a kind is taken from another package than the document names",
        "columns/kinds.py",
        "if package is not None and not (",
        "if False and not (",
        "tests/plugins/test_duration.py -k imports_only",
    ),
    PlantedBug(
        "reading a release opens a file that it names",
        "schema/schema.py",
        "        if has_reference(entry):",
        "        if False:",
        "tests/schema/test_code_lists.py -k releases_name_no_files",
    ),
    PlantedBug(
        "a code that is kept apart is read as its parent",
        "columns/hierarchies.py",
        "strict=True) if code not in own}",
        "strict=True)}",
        "tests/columns/test_hierarchies.py -k kept_codes_then",
    ),
    PlantedBug(
        "answers to some questions make a draft public",
        "desk/review.py",
        '        if answer == "yes":\n            document.pop("draft", None)',
        '        if answer != "":\n            document.pop("draft", None)',
        "tests/desk/test_review.py -k holders_word",
    ),
    PlantedBug(
        "an open column is read as if it were declared",
        "schema/schema.py",
        "    if schema.open:\n        raise SchemaError(\n",
        "    if False:\n        raise SchemaError(\n",
        "tests/fitting/test_discovery.py -k holds_and_names",
    ),
    PlantedBug(
        "codes of a kind of whole numbers are not clamped",
        "columns/bounded.py",
        "codes = (np.clip(values, lower, upper) - lower) / float(max(span, 1))",
        "codes = (values - lower) / float(max(span, 1))",
        "tests/columns/test_coding.py",
    ),
    PlantedBug(
        "rules: distances are from the mean start of the records at hand",
        "rules/rule_plan.py",
        "values = column.values - self._start(later, table)\n",
        "values = column.values - self._start(later, table).mean().astype(column.values.dtype)\n",
        "tests/attacks/test_rules.py tests/rules/test_rule_plan.py -k records",
    ),
    PlantedBug(
        "distances between dates are from the mean start of the records at hand",
        "schema/distances.py",
        "        apart = _steps(self.kinds[1], later) - _steps(self.kinds[0], earlier)\n",
        "        apart = _steps(self.kinds[1], later) - int(_steps(self.kinds[0], earlier).mean())\n",
        "tests/schema/test_distances.py -k alone",
    ),
    PlantedBug(
        "distances between dates are told of the record before",
        "schema/distances.py",
        "d.read(codes[d.earlier], codes[d.later])",
        "d.read(np.roll(codes[d.earlier], 1), codes[d.later])",
        "tests/attacks/test_distances.py",
    ),
    PlantedBug(
        "a distance is kept out of the norm",
        "lenses/distance_columns.py",
        "        return {**columns} | {distance.column: distance.steps for distance in self.distances.values()}\n",
        "        return {**columns}\n",
        "tests/schema/test_distances.py -k which_dates",
    ),
    PlantedBug(
        "rules: mending changes classes that were asked for",
        "lenses/ruled_rows.py",
        "None if classes is None else self.class_column)\n",
        "None)\n",
        "tests/lenses/test_ruled_rows.py -k asked_for",
    ),
    PlantedBug(
        "rules: forbidden combinations are not seen",
        "rules/rule.py",
        "        return all_hold(self.terms, table)\n",
        "        return all_hold(self.terms, table) & False\n",
        "tests/rules/test_rule_entries.py -k breaks",
    ),
    PlantedBug(
        "discovery: the count of records is not in the norm",
        "fitting/domain_counts.py",
        "return len(self.kinds) + self.with_records",
        "return len(self.kinds)",
        "tests/mechanisms/test_queries.py",
    ),
    PlantedBug(
        "discovery: of a unit all rows are read with the noise of one",
        "fitting/discovery.py",
        "    records = OpenData(source, one_row_a_unit(schema), engine)\n",
        "    records = OpenData(source, schema, engine)\n"
        "    records.__class__ = type('R', (OpenData,), {'max_rows_per_unit': 1})\n",
        "tests/attacks/test_recipes.py -k units",
    ),
    PlantedBug(
        "discovery: a number counts in every coarser number of decimals",
        "fitting/kind_counts.py",
        "total[i] += np.bincount(cells_that_parse(rows[name], self.written.get(name)), minlength=_CELLS)\n",
        "counts = np.bincount(cells_that_parse(rows[name], self.written.get(name)), minlength=_CELLS)\n"
        "            counts[_DECIMALS:_LARGE] = np.cumsum(counts[_DECIMALS:_LARGE][::-1])[::-1]\n"
        "            total[i] += counts\n",
        "tests/fitting/test_kind_counts.py -k one_cell",
    ),
    PlantedBug(
        "discovery: a date counts as a date and as a text",
        "fitting/kind_counts.py",
        "total[i] += np.bincount(cells_that_parse(rows[name], self.written.get(name)), minlength=_CELLS)\n",
        "counts = np.bincount(cells_that_parse(rows[name], self.written.get(name)), minlength=_CELLS)\n"
        "            counts[_TEXT] += counts[_DATES:].sum()\n"
        "            total[i] += counts\n",
        "tests/fitting/test_kind_counts.py -k one_cell",
    ),
    PlantedBug(
        "discovery: how a cell is read follows from the other cells",
        "fitting/kind_counts.py",
        "    number = np.where(has_leading_zeros(plain) | is_calling(plain), _PADDED, number)\n",
        "    padded = has_leading_zeros(plain) | is_calling(plain)\n"
        "    number = np.where(padded | padded.any(), _PADDED, number)\n",
        "tests/fitting/test_kind_counts.py -k alone",
    ),
    PlantedBug(
        "one more name of a unit stops a fit",
        "columns/cells.py",
        "if not pa.types.is_dictionary(column.type) or not column.num_chunks:",
        "if True:",
        "tests/records/test_private.py -k one_more_name",
    ),
    PlantedBug(
        "merge keys and aliases of YAML multiply",
        "schema/documents.py",
        "        check_events(text)\n",
        "",
        "tests/schema/test_documents.py -k billion",
    ),
    PlantedBug(
        "aliases of YAML count as one value",
        "schema/yaml_events.py",
        "self._total += self._named[event.anchor]",
        "self._total += 1",
        "tests/schema/test_documents.py -k billion",
    ),
    PlantedBug(
        "a note beside a row of a workbook is its own column",
        "io/sheet.py",
        "0 <= self._column - self._first < self._width",
        "0 <= self._column - self._first",
        "tests/io/test_excel.py -k note",
    ),
    PlantedBug(
        "a shared text that is not there stops a workbook",
        "io/workbook.py",
        '        if not 0 <= number < self._count:\n            return ""\n',
        "",
        "tests/io/test_excel.py -k odd_cell",
    ),
    PlantedBug(
        "a truth value of 7 stops a workbook",
        "io/sheet.py",
        '_TRUTH.get(raw, "")',
        "_TRUTH[raw]",
        "tests/io/test_excel.py -k odd_cell",
    ),
    PlantedBug(
        "a control character in one cell stops a workbook",
        "io/markup.py",
        "block = rest + block.translate(None, _CONTROLS)",
        "block = rest + block",
        "tests/io/test_excel.py -k characters",
    ),
    PlantedBug(
        "a line of JSON that is read or not by the depth of its reader",
        "io/json_lines.py",
        "    return deepest > _DEEPEST\n",
        "    return False\n",
        "tests/io/test_packed_and_plain_files.py -k depth",
    ),
    PlantedBug(
        "a line that is too long is cut",
        "io/text_lines.py",
        "            yield None\n",
        "            yield line\n",
        "tests/io/test_set_sources.py -k overlong",
    ),
    PlantedBug(
        "an array allocates what its header says",
        "io/image_arrays.py",
        "size > most_bytes(archive, member)",
        "size > member.file_size",
        "tests/io/test_sources.py -k more_than_there_is",
    ),
    PlantedBug(
        "offsets of Arrow files are taken as they stand",
        "io/arrow_layout.py",
        "(array if kind is None else array.view(kind)).validate(full=True)",
        "(array if kind is None else array.view(kind)).validate()",
        "tests/io/test_arrow_layout.py -k points_elsewhere",
    ),
    PlantedBug(
        "a text that is no UTF-8 stops an Arrow file",
        "io/arrow_layout.py",
        "(array if kind is None else array.view(kind)).validate(full=True)",
        "array.validate(full=True)",
        "tests/io/test_arrow_layout.py -k any_content",
    ),
]

# names that a wrong text uses
HELPERS = {
    "the label ratio leaked": "\n\ndef _leaked(exact, counting):\n"
    "    counts = counting.split(exact.open_in_mechanism())[0][0].sum(axis=1)\n"
    "    return {'class_shares': np.maximum(counts, 1) / np.maximum(counts, 1).sum()}\n",
    **dict.fromkeys(
        ("what the query of moments says, moved by the records", "a clip norm read off the records"),
        "\n\nfrom sfumato.methods.tables.cell_counts import TwoResolutionCounts\n"
        "from sfumato.records.engine import reduce\n",
    ),
    "Poisson samples charged, records shuffled and dealt out": "\n\nimport itertools\n_DEALT = itertools.count()\n",
    "questions: coefficients of the records themselves": (
        "\n\nimport numpy as np\nfrom sfumato.measurements.cells import BaseCells\n\nRECORDS = [None]\n\n"
        "def with_questions_measured(fit, fitted, measure=with_questions_measured):\n"
        "    RECORDS[0] = fit.data\n    return measure(fit, fitted)\n"
    ),
    "search: every fit draws the same noise": "\n\nfrom sfumato.mechanisms.noise import SeededNoise\n",
    "search: a score without noise": "\n\nfrom sfumato.mechanisms.noise import NoNoise\n",
    "search: the best by an un-noised score": "\n\nfrom sfumato.records.engine import reduce\n",
    "accept: two thirds of the noise": (
        "\n\nclass _TwoThirds:\n    silent = False\n\n    def __init__(self, noise):\n        self.noise = noise\n\n"
        "    def rounded_gaussian(self, shape, noise_std, step):\n"
        "        return self.noise.rounded_gaussian(shape, noise_std * 2 / 3, step)\n"
    ),
    "accept: the verdict is of the exact value": "\n\nfrom sfumato.mechanisms.misplaced import _largest\n",
    "search: a score bought by each fit, charged once": "\n\nfrom sfumato.privacy.ledger import Ledger\n",
}
