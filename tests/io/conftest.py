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
    yield folder
    if any(folder.iterdir()):
        gc.collect()  # which takes seconds beside what other modules hold
    assert not list(folder.iterdir())
