"""A release of images, fitted once for each file."""

import pytest

from fixtures import tables
from fixtures.releases import fit
from sfumato.release_front import Release


@pytest.fixture(scope="module")
def pictures(remembered_accounts) -> Release:
    return fit(tables.images(), tables.image_schema())
