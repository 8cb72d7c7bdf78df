"""DPGM: a mixture of generative networks, one per cluster of private kernel k-means.

    marginals     G(σ)                → ranks of numbers; tables only
    lengths       G(σ)                → the kernel's width; sets only
    clusters      G(σ), T times       → centres in feature space, a(x) = the nearest; more than one cluster only
    profiles      G(σ)                → sizes and mean vectors of clusters: weights of the mixture, output biases
    networks      P(q, G(σ)), T times → k networks at once

Acs, Melis, Castelluccia and De Cristofaro 2018, arXiv:1709.04514. Deviations: every step samples all records and every
network gets noise, as the choice of one network per step hides nothing; features have norm 1; centres start from random
directions; weights come from noisy sizes; outputs start at, and samples are brought to, the released mean vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, final

import numpy as np

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.maths.fourier import FourierFeatures
from sfumato.maths.streams import public_stream
from sfumato.methods.dpgm.profiles import ClusterProfiles, Profiles, TotalLength, calibrated, links
from sfumato.methods.dpgm.settings import RBM, VAE, Component, MixtureShares
from sfumato.methods.mixtures.centres import nearest, random_directions
from sfumato.methods.mixtures.kmeans import fit_kmeans, kmeans_stage
from sfumato.methods.nets.batches import require_single_records
from sfumato.methods.nets.clip_norms import AdaptiveClip
from sfumato.methods.nets.decoding import (
    flat_dimension,
    is_table,
    map_records,
    marginal_stages,
    nominal_budget,
    require_device,
    require_networks,
    schedule,
)
from sfumato.models.nets.ensemble import Decoders, Machines, NetworkMixture
from sfumato.models.nets.flat import AnyVectors, ImageVectors, RankVectors, SetVectors
from sfumato.plugins import (
    Facts,
    Fit,
    FittedModel,
    InParts,
    Noisy,
    Preset,
    Records,
    Rows,
    SetEncoder,
    Stage,
    Synthesizer,
    arrays_of,
    noisy_of,
    one_shot,
    sampled,
    together,
)

LENGTHS, CLUSTERS, PROFILES, NETWORKS = "lengths", "clusters", "profiles", "networks"
_SQRT2 = float(np.sqrt(2))
_FEATURE_SEED, _START_SEED = 0, 1
_MOST_ENTRIES = 20_000
_APART = 0.5  # length of the random vectors by which the first centres of one class are parted
_EPOCHS, _EPOCHS_OF_SETS = 4.0, 0.5  # docs/decisions/0017-dpgm.md
_DIFFERS = (
    "clusters' sizes and means are measured; centres start from no record; every step samples all records and every "
    "network gets noise, as the paper's choice of one cluster a step is not private at the epsilon it prints; clip "
    "norms follow earlier steps; shares of the noise are ours"
)
Assign = Callable[[np.ndarray], np.ndarray]


@final
@dataclass(frozen=True, kw_only=True)
class DPGM(Synthesizer):
    """A mixture of generative networks, for sets of items, images and tables. Needs the extra `nets`.

    Attributes:
        n_clusters: k.
        component: the network of each cluster: `VAE(...)` or `RBM(...)`.
        epochs: passes over the public number of records, in expectation; by default half a one for sets, whose networks
            have little of the budget, and 4 for others.
        batch_size: expected members of a batch of all records.
        clip_norm: bound on one record's gradient, or `AdaptiveClip(...)`.
        record_norm: bound on a record's vector in the profiles; by default the longest a set's can be, and the typical
            norm of others.
        shares: of the budget; by default most of it is the profiles' for sets, and the networks' for others.
        n_features: random Fourier features of the kernel.
        iterations: of k-means.
        distance: a typical squared distance s of two records' vectors, from public facts: the kernel is
            exp(−‖x − y‖²/s). By default twice the squared norm of a typical record: a third of the largest of images;
            what released marginals say of rows; what a noisy mean length says of sets.
        class_distance: the squared distance, in units of s, that the kernel puts between two classes of the label of
            images, or of the target of a table: clusters then keep classes apart.
        centres: vectors of *public* records to start clusters from, shape (k, m); by default a class each where there
            are classes, and random directions else.
        binary: whether samples of numbers are drawn, 0 or 1, or their means are taken. Sets are always drawn.
        device: where networks are trained: "cpu" or "cuda".

    Example:
        >>> sfumato.DPGM(epsilon=1.0, n_clusters=4, component=VAE(latent_dim=2)).fit(  # doctest: +SKIP
        ...     "baskets.dat", schema="schema.yaml"
        ... )
    """

    method: ClassVar[str] = "dpgm"
    resumable: ClassVar[bool] = True
    needs_declared_rows: ClassVar[bool] = True

    n_clusters: int = 10
    component: Component = field(default_factory=VAE)
    epochs: float | None = None
    batch_size: int = 500
    clip_norm: float | AdaptiveClip = 1.0
    record_norm: float | None = None
    shares: MixtureShares | None = None
    n_features: int = 200
    iterations: int = 8
    distance: float | None = None
    class_distance: float = 1.0
    centres: np.ndarray | None = field(default=None, compare=False)
    binary: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("n_clusters", "batch_size", "iterations"):
            require_integer(at_least=1, **{name: getattr(self, name)})
        if require_integer(at_least=2, n_features=self.n_features) % 2:
            raise ConfigError(f"Expected n_features to be even, got n_features={self.n_features!r}.")
        require_device(self.device)
        if not isinstance(self.clip_norm, AdaptiveClip):
            require_positive(clip_norm=self.clip_norm)
        if not (np.isfinite(self.class_distance) and self.class_distance >= 0):
            raise ConfigError(
                f"Expected class_distance to be a number of at least 0, got class_distance={self.class_distance!r}."
            )
        for name in ("epochs", "record_norm", "distance"):
            if getattr(self, name) is not None:
                require_positive(**{name: getattr(self, name)})
        if not isinstance(self.component, VAE | RBM):
            raise ConfigError(f"Expected component to be VAE(...) or RBM(...), got component={self.component!r}.")
        if not isinstance(self.shares, MixtureShares | None):
            raise ConfigError(f"Expected shares to be MixtureShares(...), got shares={self.shares!r}.")
        if self.centres is not None and np.ndim(self.centres) != 2:
            raise ConfigError(f"Expected centres of shape (k, m), got {np.ndim(self.centres)} axes.")

    @classmethod
    def presets(cls) -> Mapping[str, Preset]:
        """Return the settings of the paper's MNIST run, with autoencoders and with Boltzmann machines."""
        shared = {
            "n_clusters": 10, "epochs": 20, "batch_size": 102, "iterations": 20, "n_features": 200,
            "class_distance": 0.0, "clip_norm": AdaptiveClip.published(),
        }  # fmt: skip
        vae = VAE(hidden=(200,), latent_dim=2)
        rbm = RBM(hidden=200, learning_rate=0.01, n_chains=100, gibbs_steps=1, burn_in=1000)
        return {
            "published": Preset({**shared, "component": vae}, f"as the paper's autoencoders, but {_DIFFERS}."),
            "published-rbm": Preset({**shared, "component": rbm}, f"as the paper's machines, but by Adam; {_DIFFERS}."),
        }

    def stages(self, facts: Facts) -> list[Stage]:
        """Return the stages; see the module's docstring."""
        require_networks(self.device)
        require_single_records(facts.unit_rows)
        schema, sets = facts.schema, bool(facts.sets)
        tables = not sets and is_table(schema)
        dimension = SetEncoder.of(schema).dimension if sets else flat_dimension(schema)
        if sets and facts.target is not None:
            raise ConfigError(f"Expected no target for sets, got target={facts.target!r}. Leave it out.")
        if sets and dimension > _MOST_ENTRIES:
            raise ConfigError(
                f"Expected at most {_MOST_ENTRIES} items for the method dpgm, got {dimension}. Declare the items that "
                "matter and `other` for the rest."
            )
        if self.centres is not None and np.shape(self.centres) != (self.n_clusters, dimension):
            expected = (self.n_clusters, dimension)
            raise ConfigError(f"Expected centres of shape {expected}, got {np.shape(self.centres)}.")
        epochs = (_EPOCHS_OF_SETS if sets else _EPOCHS) if self.epochs is None else self.epochs
        probability, n_steps = schedule(facts.rows, self.batch_size, epochs)
        budget = nominal_budget(self.epsilon, self.delta, facts.rows)
        shares = self._shares(facts)
        left = 1 - shares.profiles
        stages = marginal_stages(schema, one_shot(shares.marginals, budget)) if tables else []
        left -= shares.marginals if tables else 0
        if sets and self._needs_width:
            stages.append(
                Stage(
                    name=LENGTHS,
                    noise_multiplier=one_shot(shares.lengths, budget),
                    replace_distance=1.0,
                    measures="how many items there are in all sets",
                )
            )
            left -= shares.lengths
        if self.n_clusters > 1:
            multiplier = one_shot(shares.clusters, budget, self.iterations)
            stages.append(
                kmeans_stage(
                    CLUSTERS, dimension=self.n_features, iterations=self.iterations, noise_multiplier=multiplier
                )
            )
            left -= shares.clusters
        stages.append(
            Stage(
                name=PROFILES,
                noise_multiplier=one_shot(shares.profiles, budget),
                replace_distance=_SQRT2,
                measures="how large clusters are, and their mean records",
            )
        )
        networks = Stage(
            name=NETWORKS,
            noise_multiplier=sampled(left, budget, probability=probability, count=n_steps),
            sampling_probability=probability,
            count=n_steps,
            measures=f"how the networks of {self.n_clusters} clusters should change",
        )
        return [*stages, networks]

    def _shares(self, facts: Facts) -> MixtureShares:
        if self.shares is not None:
            return self.shares
        # of sets: docs/decisions/0017-dpgm.md
        of_sets = {"marginals": 1e-6, "clusters": 0.08, "profiles": 0.85, "whole": 0.85}
        return MixtureShares(**of_sets) if facts.sets else MixtureShares()

    @property
    def _needs_width(self) -> bool:
        return self.n_clusters > 1 and self.distance is None

    def run(self, fit: Fit) -> FittedModel:
        """Fit clusters, profiles and networks; of a table, marginals first."""
        vectors, arrays, measured = self._mapped(fit)
        records = InParts(fit.data, vectors.dimension + self.n_features)
        assign, clustered = self._clusters(fit, records, vectors)
        norm = self.record_norm
        if norm is None:
            norm = vectors.norm_bound if isinstance(vectors, SetVectors) else vectors.typical_norm
        statistic = ClusterProfiles(vectors, assign, self.n_clusters, norm, self._shares(fit.facts).whole)
        noisy = fit.measure(PROFILES, statistic, records)
        profiles = statistic.read(noisy)
        networks, own = self._networks(fit, records, vectors, assign, profiles)
        arrays |= {**networks.to_arrays(), "component_shares": profiles.shares}
        arrays |= calibrated(networks, vectors, profiles)
        return FittedModel(
            {"name": NetworkMixture.name, "binary": self.binary, **own},
            arrays,
            (*measured, *clustered, (PROFILES, noisy)),
        )

    def _mapped(self, fit: Fit) -> tuple[AnyVectors, dict[str, np.ndarray], tuple[tuple[str, Noisy], ...]]:
        """The map between records and vectors, the sampler's arrays for it, and what was measured."""
        if not fit.facts.sets:
            mapped = map_records(fit)
            return mapped.vectors, dict(mapped.arrays), mapped.measured
        encoder = SetEncoder.of(fit.data.schema)
        if not self._needs_width:
            return SetVectors(encoder), {}, ()
        total = fit.measure(LENGTHS, TotalLength(encoder))
        length = float(np.clip(total.value / fit.n_public, 1.0, encoder.kind.longest))
        return SetVectors(encoder, length), {}, ((LENGTHS, total),)

    def _clusters(
        self, fit: Fit, records: Records, vectors: AnyVectors
    ) -> tuple[Assign, tuple[tuple[str, Noisy], ...]]:
        """Return the rule that gives a vector its cluster, and what was measured for it."""
        if self.n_clusters == 1:
            return (lambda vectors: np.zeros(len(vectors), dtype=np.int64)), ()
        distance = 2 * vectors.typical_norm**2 if self.distance is None else self.distance
        features = FourierFeatures.of(
            vectors.dimension, n_features=self.n_features, gamma=1 / distance, seed=_FEATURE_SEED
        )
        classes = _entries_of_classes(fit, vectors)
        if classes is not None:
            features = features.stretched(classes, float(np.sqrt(self.class_distance * distance / 2)))
        start = self._start(features, classes)

        def make() -> dict[str, np.ndarray]:
            clusters = fit_kmeans(
                records,
                partial(_encoded, features, vectors),
                start,
                stage=CLUSTERS,
                ledger=fit.ledger,
                noise=fit.noise,
                rng=public_stream(_START_SEED, 1),
            )
            return {"centres": clusters.centres, **arrays_of(together(clusters.releases))}

        arrays = fit.account.once(CLUSTERS, make)
        centres = arrays["centres"]
        return partial(_nearest_centre, features, centres), ((CLUSTERS, noisy_of(arrays, CLUSTERS)),)

    def _start(self, features: FourierFeatures, classes: slice | None) -> np.ndarray:
        """Return centres that no record has a part in: as given, or a class each, or random directions."""
        if self.centres is not None:
            return features.encode(np.asarray(self.centres, dtype=np.float64))
        rng = public_stream(_START_SEED)
        directions = random_directions(self.n_clusters, self.n_features, rng)
        if classes is None:
            return directions
        n_classes = classes.stop - classes.start
        labels = np.zeros((self.n_clusters, len(features.frequencies)))
        labels[np.arange(self.n_clusters), classes.start + np.arange(self.n_clusters) % n_classes] = 1.0
        return features.encode(labels) + _APART * directions

    def _networks(
        self, fit: Fit, records: Records, vectors: AnyVectors, assign: Assign, profiles: Profiles
    ) -> tuple[Decoders | Machines, Mapping[str, Any]]:
        """Train the networks and return them, with their settings for the sampler."""
        from sfumato.methods.dpgm.components import (
            AutoencoderGradients,
            MachineGradients,
            StackedAutoencoders,
            StackedMachines,
        )
        from sfumato.methods.nets.autoencoder import Groups, Heads, Output, level_slices
        from sfumato.methods.nets.sgd import Descent, train

        biases = np.stack([links(means, vectors) for means in profiles.means])
        chosen, k, m = self.component, self.n_clusters, vectors.dimension

        settings = Descent(clip_norm=self.clip_norm, learning_rate=chosen.learning_rate, device=self.device)
        if isinstance(chosen, VAE):
            output = Output(Heads.NATIVE, level_slices(vectors.parts))
            stack = StackedAutoencoders(Groups(k), m, chosen.latent_dim, chosen.hidden, output, biases)
            train(fit, NETWORKS, AutoencoderGradients(stack, assign), records, vectors, settings)
            layers = stack.layers()
            return Decoders(layers), {"component": "vae", "layers": len(layers[0].weights)}
        stack = StackedMachines(chosen.hidden, biases, vectors.parts)
        machines = MachineGradients(stack, n_chains=chosen.n_chains, gibbs_steps=chosen.gibbs_steps, assign=assign)
        train(fit, NETWORKS, machines, records, vectors, settings)
        released = Machines(stack.machines(), machines.chains, chosen.burn_in)
        return released, {"component": "rbm", "steps": chosen.burn_in}


def _nearest_centre(features: FourierFeatures, centres: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The rule that gives a vector the cluster of the nearest released centre."""
    return nearest(features.encode(vectors), centres)


def _encoded(features: FourierFeatures, vectors: AnyVectors, rows: Rows) -> np.ndarray:
    """The map from coded rows to Fourier features; workers get it with the first two."""
    return features.encode(vectors.encode(rows))


def _entries_of_classes(fit: Fit, vectors: AnyVectors) -> slice | None:
    """Return the entries of the label of images, or of the target of a table, if there is one."""
    if isinstance(vectors, ImageVectors):
        return None if vectors.layout.label is None else vectors.parts[-1].entries
    if isinstance(vectors, RankVectors) and fit.target is not None:
        return vectors.levels_of(fit.target)
    return None
