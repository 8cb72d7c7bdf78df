"""What is paid for is not lost to a warning, whatever filters make of it."""

import warnings

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.errors import ModelWarning, SchemaWarning
from sfumato.inference import agreement

FRAME = pd.DataFrame({"a": np.arange(300) % 6, "name": [f"N{i}" for i in range(300)]})


def test_a_warning_of_what_was_found_is_shown():
    with pytest.warns(SchemaWarning, match="no more than one value|left out"):  # noqa: PT031
        warnings.simplefilter("error")
        release = sfumato.fit(FRAME, epsilon=1.0, delta=1e-6, seed=0)
    assert release.schema.released


def test_a_warning_of_the_model_is_shown_and_others_are_raised_again_after(monkeypatch):
    monkeypatch.setattr(agreement, "in_words", lambda release: "The model is not what was measured.")
    method = sfumato.MaxEntropy(epsilon=1.0, delta=1e-6)
    schema = {"columns": {"a": (0, 5)}, "rows": 300}
    with pytest.warns(ModelWarning):  # noqa: PT031
        warnings.simplefilter("error")
        assert method.fit(FRAME[["a"]], schema=schema, seed=0).schema.released == ("a",)
        with pytest.raises(SchemaWarning):  # it is one, outside of a fit
            warnings.warn("of another", SchemaWarning, stacklevel=1)


def test_what_is_ignored_stays_ignored(monkeypatch, recwarn):
    monkeypatch.setattr(agreement, "in_words", lambda release: "The model is not what was measured.")
    warnings.simplefilter("ignore")
    sfumato.MaxEntropy(epsilon=1.0, delta=1e-6).fit(
        FRAME[["a"]], schema={"columns": {"a": (0, 5)}, "rows": 300}, seed=0
    )
    assert not recwarn.list
