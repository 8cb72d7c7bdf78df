"""Trees of columns: one noisy release of the tables of all pairs, then the tree that keeps most dependence.

    counts of pairs of cells    G(σ)    → P(column | parent) along a maximum spanning tree

Chow and Liu 1968, scored as in PrivBayes (Zhang et al. 2017). A last column of one cell is parent of independent ones.
"""

from copy import copy
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from sfumato import plugins
from sfumato.plugins import (
    Cells,
    ConfigError,
    FittedModel,
    Grid,
    MarginalQuery,
    QueryCounts,
    ReleaseError,
    Stage,
    project_to_simplex,
)

PAIRS, MOST_CELLS = "counts of pairs of cells", 2**22


def pair_counts(grid):
    """The tables of all P pairs. A record adds P ones: norm √P, and two are √(2P) apart."""
    columns = [*map(Cells.of, grid.columns), Cells.all_rows()]
    statistic = QueryCounts(MarginalQuery(tuple(combinations(columns, 2))), PAIRS)
    if sum(statistic.query.widths) > MOST_CELLS:
        raise ConfigError(f"Expected at most {MOST_CELLS} cells of pairs. Lower numeric_cells, or drop columns.")
    return statistic


@dataclass(frozen=True, kw_only=True)
class ChowLiu(plugins.Synthesizer):
    """Trees of columns: each given one other, by noisy tables of all pairs. Tables of few columns, in seconds."""

    method = "chow-liu"
    numeric_cells: int = 12

    def grid(self, schema):
        return Grid.of(schema, numeric_cells=self.numeric_cells)

    def counts(self, schema):
        return pair_counts(self.grid(schema))

    def stages(self, facts):
        self.counts(facts.schema)  # refuses what it cannot fit, before anything is charged
        return [Stage(name=PAIRS, noise_multiplier=1.0, replace_distance=2**0.5, measures="tables of all pairs")]

    def one_way_error(self, plan, facts):
        norm = self.counts(facts.schema).norm_bound * facts.unit_rows
        return plan[PAIRS].noise_multiplier * norm / facts.rows

    def run(self, fit):
        statistic, names = self.counts(fit.data.schema), fit.data.schema.released
        noisy = fit.measure(PAIRS, statistic)
        alone, joints, costs = len(names), {}, np.zeros((len(names) + 1, len(names) + 1))
        tables, pairs = statistic.query.split(noisy.value), combinations(range(alone + 1), 2)
        total = max(noisy.value.sum() / len(tables), 1.0)  # n_public need not be the number of records
        for table, (i, j) in zip(tables, pairs, strict=True):
            joint = project_to_simplex(table.ravel() / total, 1.0).reshape(table.shape)
            joints[i, j], joints[j, i] = joint, joint.T
            noise = 0.8 * noisy.noise_std / total * joint.size if j < alone else 0.0  # E|z| = 0.8 σ
            kept = np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum()
            costs[i, j] = 2 - np.clip(kept - noise, -1, 1)  # 2 for what is independent
        root = alone if fit.target is None else names.index(fit.target)
        order, parents = breadth_first_order(minimum_spanning_tree(costs), root, directed=False)
        parents = np.where(parents < 0, alone, parents)[:alone].astype(np.int64)
        parameters = {"order": order[order < alone].astype(np.int64), "parents": parents}
        for child, parent in enumerate(parents.tolist()):
            laws = np.where(joints[parent, child].any(axis=1)[:, None], joints[parent, child], joints[alone, child])
            parameters[f"column {child}"] = laws / laws.sum(axis=1, keepdims=True)
        parameters |= self.grid(fit.data.schema).arrays()
        return FittedModel({"name": TreeSampler.name, "target": fit.target}, parameters, ((PAIRS, noisy),))


class TreeSampler:
    """Draws the columns of a tree, parents first. Settings and parameters may be a stranger's: all are checked."""

    name = "chow_liu"

    def __init__(self, schema, settings, parameters):
        self.grid, self.class_column = Grid.stored(schema, parameters), settings["target"]
        sizes = [*(column.n_cells for column in self.grid.columns), 1]
        self.order, self.parents = parameters["order"].tolist(), parameters["parents"].tolist()
        self.laws = [parameters[f"column {j}"] for j in range(len(sizes) - 1)]
        self.width, self.target = sum(sizes), None if self.class_column is None else self.order[0]
        known = [len(sizes) - 1]
        for j in self.order:
            law, expected = self.laws[j], (sizes[self.parents[j]], sizes[j])
            fits = law.shape == expected and (law >= 0).all() and abs(law.sum(axis=1) - 1).max() < 1e-9
            if j in known or self.parents[j] not in known or not fits:
                raise ReleaseError("Expected a tree of columns with a law for each in the release.")
            known.append(j)
        if len(known) < len(sizes) or self.class_column not in (None, schema.released[self.order[0]]):
            raise ReleaseError("Expected every column in the tree of the release, the target first.")
        self.possible = np.ones(1 if self.target is None else sizes[self.target], dtype=bool)

    def rows(self, n, rng, classes=None):
        cells = np.zeros((n, len(self.order) + 1), dtype=np.int64)
        for j in self.order:
            ends = self.laws[j].cumsum(axis=1)[cells[:, self.parents[j]], :-1]
            drawn = (rng.random((n, 1)) >= ends).sum(axis=1)
            cells[:, j] = drawn if classes is None or j != self.target else classes
        return self.grid.rows(cells[:, :-1], rng)

    def given(self, codes):
        if list(codes) != [self.class_column]:
            raise ConfigError("Expected no given values but that of the target: this release can fix no other column.")
        fixed, cell = copy(self), self.grid.columns[self.target].cells(np.array([*codes.values()]))
        fixed.possible = np.arange(self.possible.size) == cell
        fixed.laws = [fixed.possible[None] * 1.0 if j == self.target else law for j, law in enumerate(self.laws)]
        return fixed
