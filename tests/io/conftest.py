"""Where temporary files lie while a test runs."""

import gc
import tempfile

import pytest


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where temporary files lie, which are gone at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    gc.freeze()  # what other modules hold takes seconds to look through
    yield folder
    gc.collect()
    gc.unfreeze()
    assert not list(folder.iterdir())
