"""Every name that was documented before the rooms were moved imports still, and says its new name."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pytest

import sfumato
from sfumato._moved import MOVED, REMOVED, MovedModules

# as the page of the Python interface had them
NEW_NAMES = {
    "sfumato.synthesizers.p3gm.ByClass": "sfumato.settings.ByClass",
    "sfumato.synthesizers.p3gm.Mixture": "sfumato.settings.Mixture",
    "sfumato.synthesizers.p3gm.Shares": "sfumato.settings.Shares",
    "sfumato.synthesizers.p3gm.Multipliers": "sfumato.settings.Multipliers",
    "sfumato.synthesizers.p3gm.Random": "sfumato.settings.Random",
    "sfumato.synthesizers.p3gm.PrincipalAxes": "sfumato.settings.PrincipalAxes",
    "sfumato.synthesizers.dpgm_settings.VAE": "sfumato.settings.VAE",
    "sfumato.synthesizers.dpgm_settings.RBM": "sfumato.settings.RBM",
    "sfumato.synthesizers.dpgm_settings.MixtureShares": "sfumato.settings.MixtureShares",
    "sfumato.learners.clip_norms.AdaptiveClip": "sfumato.settings.AdaptiveClip",
    "sfumato.learners.mixture_training.train_on_mixtures": "sfumato.train_on_mixtures",
    "sfumato.learners.mixture_training.MixtureTraining": "sfumato.MixtureTraining",
    "sfumato.synthesizers.data_ledger.LedgerState": "sfumato.LedgerState",
    "sfumato.data.schema.Unit": "sfumato.Unit",
    "sfumato.data.kinds.Categorical": "sfumato.columns.Categorical",
    "sfumato.data.kinds.Ordinal": "sfumato.columns.Ordinal",
    "sfumato.data.kinds.Boolean": "sfumato.columns.Boolean",
    "sfumato.data.kinds.Integer": "sfumato.columns.Integer",
    "sfumato.data.kinds.Continuous": "sfumato.columns.Continuous",
    "sfumato.data.kinds.DateTime": "sfumato.columns.DateTime",
    "sfumato.data.kinds.Image": "sfumato.columns.Image",
    "sfumato.data.kinds.Identifier": "sfumato.columns.Identifier",
    "sfumato.data.set_kind.ItemSet": "sfumato.columns.ItemSet",
}
SAME_PLACES = [
    *(
        f"sfumato.{name}"
        for name in (
            "ConditionalGaussian", "Fidelity", "Training", "P3GM", "DPVAE", "DPGM", "DPMix", "AutoDegree",
            "IndependentItems", "tune", "Release", "load", "PrivacyBudget", "BuyCount", "NonPrivate", "create_ledger",
            "read_ledger", "Schema", "OpenSchema",
        )
    ),
    "sfumato.release.Measurement", "sfumato.release.SourceForm", "sfumato.privacy.certificate.Certificate",
    "sfumato.estimators.DPGaussianMixture", "sfumato.estimators.DPFactorAnalysis", "sfumato.estimators.DPKernelKMeans",
    "sfumato.estimators.DPKMeans", "sfumato.evaluate.evaluate", "sfumato.evaluate.classifier_scores",
    "sfumato.evaluate.total_variation", "sfumato.evaluate.counting_query_errors",
    "sfumato.evaluate.correlation_differences", "sfumato.evaluate.clustering_accuracy",
    "sfumato.evaluate.nearest_rows", "sfumato.evaluate.log_likelihood", "sfumato.evaluate.release_log_likelihood",
    "sfumato.evaluate.mixture_scores", "sfumato.evaluate.over_runs", "sfumato.report.write_report",
    "sfumato.audit.audit",
    *(
        f"sfumato.errors.{name}"
        for name in (
            "SfumatoError", "PrivacyError", "BudgetExceededError", "LedgerError", "UnsupportedEventError",
            "ConfigError", "SchemaError", "DataError", "OutputError", "ReleaseError", "TrainingError",
            "PrivacyWarning",
        )
    ),
]  # fmt: skip


def _at(name: str) -> object:
    home, _, last = name.rpartition(".")
    return getattr(importlib.import_module(home), last)


@pytest.mark.parametrize(("old", "new"), NEW_NAMES.items())
def test_a_moved_name_warns_and_is_the_new_one(old: str, new: str) -> None:
    home, _, last = old.rpartition(".")
    scope: dict[str, object] = {}
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}\\.") as caught:
        exec(f"from {home} import {last}", scope)
    assert caught[0].filename == "<string>"
    assert scope[last] is _at(new)
    with pytest.warns(DeprecationWarning, match="is now"):
        assert eval(old, {"sfumato": sfumato}) is scope[last]


@pytest.mark.parametrize("name", SAME_PLACES)
def test_a_name_that_stayed_imports_without_a_word(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        assert _at(name) is not None


def test_names_that_stayed_are_attributes_after_one_import() -> None:
    """Where nothing else has imported their modules."""
    for name in ("sfumato.release.Measurement", "sfumato.privacy.certificate.Certificate", "sfumato.errors.DataError"):
        code = f"import sfumato; print({name}.__name__)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == name.rpartition(".")[2]


def test_every_module_of_before_has_a_documented_name() -> None:
    assert {name.rpartition(".")[0] for name in NEW_NAMES} == {name for name, home in MOVED.items() if home is not None}


def test_what_was_never_documented_is_not_there() -> None:
    with pytest.raises(ImportError, match="Schema2"):
        exec("from sfumato.data.schema import Schema2")
    for name in ("sfumato.data.engine", "sfumato.encoders"):
        with pytest.raises(ModuleNotFoundError, match=name):
            importlib.import_module(name)


def test_what_left_the_package_says_where_it_is() -> None:
    (name,) = REMOVED
    with pytest.raises(ModuleNotFoundError, match="papers/dpmix"):
        importlib.import_module(name)


def test_the_finder_is_there_once_and_last() -> None:
    from sfumato import _moved

    _moved.install()
    assert sys.meta_path.count(MovedModules) == 1  # type: ignore[arg-type]
    assert MovedModules.find_spec("sfumato.release") is None
    assert MovedModules.find_spec("numpy") is None
