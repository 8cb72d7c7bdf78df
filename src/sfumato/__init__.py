"""Sfumato: publish data about people without publishing the people.

>>> import sfumato
>>> release = sfumato.ConditionalGaussian(epsilon=1.0).fit(frame, schema="schema.yaml")  # doctest: +SKIP
>>> synthetic = release.sample(10_000)  # doctest: +SKIP
"""

from importlib.metadata import PackageNotFoundError, version

from sfumato.fitting.data_ledger import create_ledger, read_ledger
from sfumato.fitting.tuning import tune
from sfumato.methods.dpgm.recipe import DPGM
from sfumato.methods.dpmix import AutoDegree, DPMix
from sfumato.methods.dpvae import DPVAE
from sfumato.methods.gaussian import ConditionalGaussian
from sfumato.methods.images.recipe import Fidelity, Training
from sfumato.methods.items import IndependentItems
from sfumato.methods.p3gm.recipe import P3GM
from sfumato.privacy.budget import BuyCount, NonPrivate, PrivacyBudget
from sfumato.release import Release, load
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

try:
    __version__ = version("sfumato")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "DPGM",
    "DPVAE",
    "P3GM",
    "AutoDegree",
    "BuyCount",
    "ConditionalGaussian",
    "DPMix",
    "Fidelity",
    "IndependentItems",
    "NonPrivate",
    "OpenSchema",
    "PrivacyBudget",
    "Release",
    "Schema",
    "Training",
    "__version__",
    "create_ledger",
    "load",
    "read_ledger",
    "tune",
]
