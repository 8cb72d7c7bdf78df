"""Settings that are more than a number: each choice is a type, given to a method's argument.

>>> from sfumato import settings
>>> settings.Mixture(n_components=5)
Mixture(n_components=5, full_covariances=False, iterations=20)
"""

from sfumato._lazy import explain_calls
from sfumato.mechanisms.mixing import FixedDegreeMixing, PoissonMixing, SubsetMixing
from sfumato.methods.dpgm.settings import RBM, VAE, MixtureShares
from sfumato.methods.nets.clip_norms import AdaptiveClip
from sfumato.methods.p3gm.settings import ByClass, Mixture, Multipliers, PrincipalAxes, Random, Shares, StandardNormal

__all__ = [
    "RBM",
    "VAE",
    "AdaptiveClip",
    "ByClass",
    "FixedDegreeMixing",
    "Mixture",
    "MixtureShares",
    "Multipliers",
    "PoissonMixing",
    "PrincipalAxes",
    "Random",
    "Shares",
    "StandardNormal",
    "SubsetMixing",
]

explain_calls(__name__)
