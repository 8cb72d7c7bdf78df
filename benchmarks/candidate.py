"""A candidate for the model of tables, put in place of the present one: `model.py` measures it as `candidate`.

In no release: it is fitted here by the product's own stages, whose accounting and noise stay. Its parts are

    statistic   second moments of all columns alike, the target among them, and by class of the target of what leads
                each number (`candidate_statistic.py`)
    moments     shrunk by empirical Bayes, what clipping took put back by the law (`candidate_moments.py`)
    law         a mixture of products fitted to them (`candidate_mixture.py`)
    tables      of the pairs that moments leave least known, as today (`candidate_pairs.py`)
    samples     a chain of softmaxes with the mixture's moments, in closed form (`candidate_chain.py`)

Where noise is great, classes of the target are counted with the margins too, the target weighs more, the margins have
more of the budget, and a number one function: all by public facts. Missing: areas, linked rows, priors and rules.
Figures are in `docs/decisions/0096-a-lawful-model-of-tables.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import candidate_pairs
import numpy as np
from candidate_chain import Chain, Products
from candidate_mixture import MixtureEffort, PairTargets, ProductMixture, fit_mixture
from candidate_moments import Evidence, pair_targets
from candidate_statistic import MOST_CLASSES, ContrastMoments, Contrasts, contrast_moments, number_features

from sfumato.methods.tables import layout, pair_tables, recipe, second_stage, settings, shares
from sfumato.methods.tables.clip_norms import clip_norm_of, mean_square
from sfumato.methods.tables.feature_moments import TableMoments
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.moment_entries import Entries
from sfumato.models.tables import softmax_chain
from sfumato.models.tables.softmax_chain import SoftmaxChain

ENTRY, FEW_ROWS, COUNTED = 5.1, 0.01, 0.02
"""Noise of an entry times rows ÷ columns at ε = 1; from which margins have more, and classes are counted."""

LITTLE_NOISE = 14
"""Polynomials that today's rule has for next to no noise: a law is then fitted more closely."""


def entry_noise(columns: int, rows: float, epsilon: float = 1.0) -> float:
    """Return about the noise of a moment of two functions that count as much as a column."""
    return ENTRY * columns / rows / epsilon


def marginal_share(columns: int, rows: float, epsilon: float = 1.0) -> float:
    """Return the margins' part of the squared budget: .3, and up to .5 where noise hides most moments."""
    return float(np.clip(0.3 + 0.5 * np.log10(entry_noise(columns, rows, epsilon) / FEW_ROWS), 0.3, 0.5))


def target_weight(entry: float, columns: int, classes: int) -> float:
    """Return the columns that a target counts for: 2, more of many classes, and as many as there are in much noise."""
    return max(2.0, columns * min(1.0, entry / 0.1), min(2.0 * np.sqrt(classes - 1.0), 0.6 * columns))


class Fitted:
    """One fit, between the product's stages."""

    def __init__(self) -> None:
        self.target: int | None = None
        self.columns: Sequence[ColumnShares] = ()
        self.moments: TableMoments | None = None
        self.orders = 0
        self.products: Products | None = None

    def statistic(self, table: layout.TableLayout, vectors: Any, clip_norm: float, *_: float, **more: Any) -> Any:
        """Stand in for `TableMoments`."""
        plain = TableMoments(table, vectors, clip_norm, **more)
        self.moments = plain if self.orders == 1 else contrast_moments(plain, self.columns, self.target)
        return self.moments

    def evidence(
        self, noisy: Any, weights: np.ndarray, entries: Entries, class_counts: np.ndarray, *_: Any, **__: Any
    ) -> Evidence:
        """Stand in for `cross_moments`."""
        n, moments, contrasts = float(class_counts.sum()), self.moments, None
        if isinstance(moments, ContrastMoments):
            contrasts = Contrasts.of(noisy.value, noisy.noise_std, moments, n)
        factor = weights[0] * n
        clipped = noisy.value[0] / factor / np.outer(entries.roots, entries.roots)
        noise, norm = (noisy.noise_std / np.sqrt(2) / factor) ** 2, moments.clip_norm if moments else 0.0
        return Evidence(clipped, float(noise), entries, norm, contrasts, self.target, self.orders == 1)

    def chain(self, columns: Sequence[ColumnShares], class_counts: np.ndarray, found: Evidence, *_: Any) -> Any:
        """Stand in for `fit_table_chain`."""
        guessed = found.guessed(float(class_counts.sum())).counted(found, columns).tabled(found, columns)

        def renewed(law: ProductMixture) -> PairTargets:
            moments = found.unclipped(columns, law).counted(found, columns).tabled(found, columns)
            return pair_targets(moments, found, columns)

        effort = MixtureEffort(400, independence=5.0) if self.orders == LITTLE_NOISE else MixtureEffort()
        law = fit_mixture(pair_targets(guessed, found, columns), effort, np.random.default_rng(0), renewed)
        chain = Chain(columns, law, found.entries, found.target, found.contrasts)
        fitted = chain.fit()
        self.products = chain.products
        return fitted


def clip_norm(vectors: Sequence[np.ndarray], masses: Sequence[np.ndarray], noise: float) -> float:
    """Return the clip norm, that of a record of mean squared length; without noise that of the longest record."""
    return float(np.sqrt(mean_square(vectors, masses))) if noise else clip_norm_of(vectors, masses, noise)


@contextmanager
def installed() -> Iterator[None]:
    """Put the candidate in place of the product's model of tables, for a fit and samples of it."""
    fitted, facts_of, settings_of = Fitted(), settings.TableFacts.of.__func__, settings.Settings.of.__func__  # type: ignore[attr-defined]
    release, model = second_stage.SecondMoments.release, recipe.MeasuredTable.model
    predictor = softmax_chain.RowsByClass.predictor

    def facts(kind: Any, public: Any, level_groups: int | None = None) -> Any:
        plain = facts_of(kind, replace(public, target=None), level_groups)
        classes = facts_of(kind, public, level_groups).n_classes
        counted = entry_noise(plain.n_features, public.rows) > COUNTED and classes <= MOST_CLASSES
        return replace(plain, n_classes=classes if counted else 1)

    def chosen(kind: Any, fit: Any, sizes: Any, *rest: Any, **more: Any) -> Any:
        found = settings_of(kind, fit, sizes, *rest, **more)
        fitted.orders = found.resolution.orders
        weights = dict(found.resolution.weights)
        if fit.target is not None:
            classes = getattr(fit.data.schema.columns[fit.target], "n_levels", 2)
            weights[fit.target] = target_weight(found.entry, sizes.n_features, max(classes, 2))
        return replace(found, resolution=replace(found.resolution, weights=weights))

    def released(self: Any, fit: Any, first: Any) -> Any:
        fitted.target = None if fit.target is None else fit.data.schema.released.index(fit.target)
        fitted.columns = first.columns
        return release(self, fit, first)

    def measured(noisy: Any, statistic: TableMoments, worth: float = 1.0) -> Any:
        weight = statistic.weights[0] / worth
        pooled = second_stage.unweighted(noisy, noisy.value[0] / weight, weight, 0, statistic.pooled_query)
        return ((second_stage.POOLED, pooled),)

    def classless(self: Any, chain: SoftmaxChain | None = None) -> Any:
        plain = replace(self, layout=layout.TableLayout(self.layout.grid, None))
        return model(plain, self.chain() if chain is None else chain)

    def predicted(self: Any, step: Any, k: int, rows: slice) -> np.ndarray:
        base, products = predictor(self, step, k, rows), fitted.products
        if products is None or step.column != products.column:
            return base
        blocks = self.chain.blocks()
        drawn = np.argsort(np.concatenate([np.arange(blocks[j].start, blocks[j].stop) for j in self.chain.order]))
        known = self.features[:, rows]
        return base + products.weights @ (known[drawn[products.first]] * known[drawn[products.second]])

    with ExitStack() as stack:
        for owner, name, other in (
            (shares, "number_features", number_features),
            (second_stage, "cross_moments", fitted.evidence),
            (second_stage, "moment_measurements", measured),
            (second_stage.SecondMoments, "release", released),
            (recipe, "TableMoments", fitted.statistic),
            (recipe, "clip_norm_of", clip_norm),
            (recipe, "class_weight_of", lambda *_: 0.0),
            (recipe, "fit_table_chain", fitted.chain),
            (pair_tables, "chosen_pairs", candidate_pairs.chosen),
            (pair_tables, "with_runs", candidate_pairs.with_runs),
            (pair_tables, "with_laws", candidate_pairs.with_laws),
            (recipe.MeasuredTable, "model", classless),
            (settings, "_by_class", lambda *_: 0.0),
            (settings.TableFacts, "of", classmethod(facts)),
            (settings.Settings, "of", classmethod(chosen)),
            (layout.TableLayout, "features", property(lambda self: tuple(self.grid.columns))),
            (softmax_chain.RowsByClass, "predictor", predicted),
        ):
            stack.enter_context(patch.object(owner, name, other))
        yield
