"""Sfumato: publish data about people without publishing the people.

>>> import sfumato
>>> release = sfumato.fit(frame, epsilon=1.0, delta=1e-6)  # doctest: +SKIP
>>> synthetic = release.sample(10_000)  # doctest: +SKIP

Public are the names below and those of `sfumato.settings`, `columns`, `engines`, `estimators`, `evaluate`, `holders`,
`report`, `audit`, `errors` and `demo`. Each is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato import audit as audit
    from sfumato import columns as columns
    from sfumato import demo as demo
    from sfumato import engines as engines
    from sfumato import errors as errors
    from sfumato import estimators as estimators
    from sfumato import evaluate as evaluate
    from sfumato import holders as holders
    from sfumato import plugins as plugins
    from sfumato import report as report
    from sfumato import settings as settings
    from sfumato import two_stages as two_stages
    from sfumato._version import __version__ as __version__
    from sfumato.combined_release import CombinedRelease as CombinedRelease
    from sfumato.combined_release import combine_releases as combine_releases
    from sfumato.data_ledger.data_ledger import create_ledger as create_ledger
    from sfumato.data_ledger.data_ledger import read_ledger as read_ledger
    from sfumato.data_ledger.ledger_state import LedgerState as LedgerState
    from sfumato.fitting.arguments import FitOptions as FitOptions
    from sfumato.fitting.purposes import Fidelity as Fidelity
    from sfumato.fitting.purposes import Training as Training
    from sfumato.front import describe as describe
    from sfumato.front import fit as fit
    from sfumato.front import tune as tune
    from sfumato.inference.estimate import Correlations as Correlations
    from sfumato.inference.estimate import Estimate as Estimate
    from sfumato.inference.estimate import Estimates as Estimates
    from sfumato.inference.joint_errors import HypothesisTest as HypothesisTest
    from sfumato.inference.regression_results import Regression as Regression
    from sfumato.inference.regression_results import Regressions as Regressions
    from sfumato.inference.replicates import CombinedResult as CombinedResult
    from sfumato.inference.replicates import combine as combine
    from sfumato.measurements import Measurement as Measurement
    from sfumato.measurements.stated_counts import marginal as marginal
    from sfumato.methods.dpgm.recipe import DPGM as DPGM
    from sfumato.methods.dpmix import AutoDegree as AutoDegree
    from sfumato.methods.dpmix import DPMix as DPMix
    from sfumato.methods.items import IndependentItems as IndependentItems
    from sfumato.methods.max_entropy import MaxEntropy as MaxEntropy
    from sfumato.methods.p3gm.recipe import P3GM as P3GM
    from sfumato.methods.sets.recipe import LatentClasses as LatentClasses
    from sfumato.methods.tables.estimated_model import estimate_model as estimate_model
    from sfumato.models.mixed_training import MixtureTraining as MixtureTraining
    from sfumato.models.mixed_training import train_on_mixtures as train_on_mixtures
    from sfumato.privacy.budget import EstimateCount as EstimateCount
    from sfumato.privacy.budget import NonPrivate as NonPrivate
    from sfumato.privacy.budget import PrivacyBudget as PrivacyBudget
    from sfumato.privacy.certificate import Certificate as Certificate
    from sfumato.privacy.plan import Neighbours as Neighbours
    from sfumato.privacy.risk import Advantage as Advantage
    from sfumato.privacy.risk import TruePositiveRate as TruePositiveRate
    from sfumato.publish.pack import export as export
    from sfumato.publish.pack import pack as pack
    from sfumato.release import SourceForm as SourceForm
    from sfumato.release.signature import new_key as new_key
    from sfumato.release.signature import sign_release as sign_release
    from sfumato.release.signature import verify_release as verify_release
    from sfumato.release_front import Release as Release
    from sfumato.release_front import load as load
    from sfumato.schema.database import Branch as Branch
    from sfumato.schema.database import Database as Database
    from sfumato.schema.open_schema import OpenSchema as OpenSchema
    from sfumato.schema.schema import Schema as Schema
    from sfumato.schema.schema_facts import Weight as Weight
    from sfumato.schema.unit import Unit as Unit
    from sfumato.verification import Verification as Verification
    from sfumato.verification import verify_finding as verify_finding
else:  # a type checker should not take every name for one of ours
    from sfumato._lazy import lazy_names

    _HOMES = {
        "DPGM": "sfumato.methods.dpgm.recipe",
        "P3GM": "sfumato.methods.p3gm.recipe",
        "Advantage": "sfumato.privacy.risk",
        "AutoDegree": "sfumato.methods.dpmix",
        "Branch": "sfumato.schema.database",
        "Database": "sfumato.schema.database",
        "EstimateCount": "sfumato.privacy.budget",
        "Certificate": "sfumato.privacy.certificate",
        "CombinedRelease": "sfumato.combined_release",
        "CombinedResult": "sfumato.inference.replicates",
        "MaxEntropy": "sfumato.methods.max_entropy",
        "Correlations": "sfumato.inference.estimate",
        "DPMix": "sfumato.methods.dpmix",
        "Estimate": "sfumato.inference.estimate",
        "Estimates": "sfumato.inference.estimate",
        "FitOptions": "sfumato.fitting.arguments",
        "Fidelity": "sfumato.fitting.purposes",
        "HypothesisTest": "sfumato.inference.joint_errors",
        "IndependentItems": "sfumato.methods.items",
        "LatentClasses": "sfumato.methods.sets.recipe",
        "LedgerState": "sfumato.data_ledger.ledger_state",
        "Measurement": "sfumato.measurements",
        "MixtureTraining": "sfumato.models.mixed_training",
        "Neighbours": "sfumato.privacy.plan",
        "NonPrivate": "sfumato.privacy.budget",
        "OpenSchema": "sfumato.schema.open_schema",
        "PrivacyBudget": "sfumato.privacy.budget",
        "Regression": "sfumato.inference.regression_results",
        "Regressions": "sfumato.inference.regression_results",
        "Release": "sfumato.release_front",
        "Schema": "sfumato.schema.schema",
        "SourceForm": "sfumato.release",
        "Training": "sfumato.fitting.purposes",
        "TruePositiveRate": "sfumato.privacy.risk",
        "Unit": "sfumato.schema.unit",
        "Verification": "sfumato.verification",
        "Weight": "sfumato.schema.schema_facts",
        "__version__": "sfumato._version",
        "combine": "sfumato.inference.replicates",
        "combine_releases": "sfumato.combined_release",
        "create_ledger": "sfumato.data_ledger.data_ledger",
        "describe": "sfumato.front",
        "estimate_model": "sfumato.methods.tables.estimated_model",
        "export": "sfumato.publish.pack",
        "fit": "sfumato.front",
        "load": "sfumato.release_front",
        "marginal": "sfumato.measurements.stated_counts",
        "new_key": "sfumato.release.signature",
        "pack": "sfumato.publish.pack",
        "read_ledger": "sfumato.data_ledger.data_ledger",
        "sign_release": "sfumato.release.signature",
        "train_on_mixtures": "sfumato.models.mixed_training",
        "tune": "sfumato.front",
        "verify_finding": "sfumato.verification",
        "verify_release": "sfumato.release.signature",
    }
    _ROOMS = (
        "audit",
        "columns",
        "demo",
        "engines",
        "errors",
        "estimators",
        "evaluate",
        "holders",
        "plugins",
        "report",
        "settings",
        "two_stages",
    )
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, _ROOMS)
    __all__ = sorted(_HOMES)
