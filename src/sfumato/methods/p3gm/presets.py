"""Presets of P3GM: what its paper writes and what its authors' code has, a data set each.

Takagi, Takahashi, Cao and Yoshikawa 2021, arXiv:2006.12101. Noise multipliers have the published ratios, and ε scales
them: at the paper's rows and the ε of `P3GM.as_written` or `P3GM.as_released` they are the published ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sfumato.methods.p3gm.settings import (
    IMAGES,
    PUBLISHED,
    Mixture,
    PrincipalAxes,
    Random,
    StandardNormal,
    released_noise,
    written_noise,
)
from sfumato.plugins import Preset

WRITTEN, RELEASED, BASELINE = "as-written", "as-released", "dp-vae"
_USUAL = "mnist"  # what a preset without the name of a data set is of
_OURS = (
    "records are bounded at a third of the largest norm of an image, or a row's typical one; the mean record has "
    "noise; entries off a second moment's diagonal have 0.71 times its noise; masses, sums and moments are one "
    "release, the last three in ten are averaged, and the first is the start of several components; first weights of "
    "networks are the same in every fit; batches are Poisson; latents come from the mixture; of tables numbers are "
    "noisy ranks; epsilon is by exact account, not by the paper's theorem"
)
_TRAINED = "but Poisson batches, exact epsilon, of tables numbers as noisy ranks"
_OF_MNIST = "epochs and batches are those of MNIST."
_OF_AXES = ("variance", "record_norm")


def written(data: str) -> dict[str, Any]:
    """Return what the paper writes: three diagonal components on ten axes, a decoder that starts at random.

    Raises:
        ConfigError: no such data set.
    """
    noise = written_noise(data)
    return {"latent_dim": 10, "prior": Mixture(n_components=3), "start": Random(), "noise": noise, **_of_run(data)}


def released(data: str) -> dict[str, Any]:
    """Return what the authors' code has: one diagonal component on thirty axes, a decoder from the inverse projection.

    Raises:
        ConfigError: no such data set.
    """
    noise = released_noise(data)
    return {"latent_dim": 30, "prior": Mixture(), "start": PrincipalAxes(), "noise": noise, **_of_run(data)}


def _of_run(data: str) -> dict[str, Any]:
    run = PUBLISHED[data]
    return {
        "epochs": run.epochs, "batch_size": run.batch_size, "heads": "squared", "draw": False, "variance": True,
        "hidden": 1000, "learning_rate": 1e-3, "clip_norm": 1.0, "record_norm": None,
    }  # fmt: skip


@lru_cache(maxsize=1)
def presets() -> Mapping[str, Preset]:
    """Return the presets: `as-released` and `as-written`, of MNIST, and `as-released:adult` of another data set."""
    by_name = {RELEASED: _released(_USUAL), WRITTEN: _written(_USUAL)}
    by_name |= {f"{RELEASED}:{data}": _released(data) for data in PUBLISHED}
    return by_name | {f"{WRITTEN}:{data}": _written(data) for data in PUBLISHED} | _baselines()


def _baselines() -> dict[str, Preset]:
    """DP-VAE, with our settings last: a certificate names the first preset whose settings a fit has."""
    run = {name: value for name, value in _of_run(_USUAL).items() if name not in _OF_AXES}
    normal = {"prior": StandardNormal()}
    code = f"as DP-VAE of the authors' code, {_TRAINED}; {_OF_MNIST}"
    paper = f"as DP-VAE of the paper, {_TRAINED}; {_OF_MNIST}"
    return {
        f"{BASELINE}:{RELEASED}": Preset({**normal, "latent_dim": 30, **run}, code),
        f"{BASELINE}:{WRITTEN}": Preset({**normal, "latent_dim": 10, **run}, paper),
        BASELINE: Preset(normal, f"as DP-VAE, the paper's baseline, {_TRAINED}."),
    }


def _named(data: str) -> str:
    """Return what the settings are of: both stacks of images have the same."""
    return " and ".join(IMAGES) if data in IMAGES else data


def _released(data: str) -> Preset:
    return Preset(released(data), f"as the authors' code for {_named(data)}, but {_OURS}.")


def _written(data: str) -> Preset:
    noise = "; the mixture has the noise of esr, as by the paper's account none meets its epsilon"
    return Preset(written(data), f"as the paper for {_named(data)}, but {_OURS}{noise if data == 'credit' else ''}.")
