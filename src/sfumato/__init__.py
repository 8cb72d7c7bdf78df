"""Sfumato: publish data about people without publishing the people.

>>> import sfumato
>>> release = sfumato.ConditionalGaussian(epsilon=1.0).fit(frame, schema="schema.yaml")  # doctest: +SKIP
>>> synthetic = release.sample(10_000)  # doctest: +SKIP
"""

from importlib.metadata import PackageNotFoundError, version

from sfumato.data.open_schema import OpenSchema
from sfumato.data.schema import Schema
from sfumato.privacy.budget import BuyCount, NonPrivate, PrivacyBudget
from sfumato.release import Release, load
from sfumato.synthesizers.data_ledger import create_ledger, read_ledger
from sfumato.synthesizers.dpgm import DPGM
from sfumato.synthesizers.dpmix import AutoDegree, DPMix
from sfumato.synthesizers.dpvae import DPVAE
from sfumato.synthesizers.gaussian import ConditionalGaussian
from sfumato.synthesizers.independent_items import IndependentItems
from sfumato.synthesizers.p3gm import P3GM
from sfumato.synthesizers.purposes import Fidelity, Training
from sfumato.synthesizers.tuning import tune

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
