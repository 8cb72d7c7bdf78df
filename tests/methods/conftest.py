"""Fixtures of this folder."""

import pytest

from sfumato.release import blocks


@pytest.fixture(scope="module", autouse=True)
def smaller_blocks():
    """Sample in blocks of 2,048 rows, not 16,384: a few rows are drawn sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SAMPLE_BLOCK", 2_048)
        yield
