"""What every engine is compared with: the release of one process, and the same records as a folder of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine_cases import bits, fit, folder_of, table


@pytest.fixture(scope="session")
def local() -> str:
    return bits(fit(table()))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(table(), tmp_path_factory.mktemp("data") / "folder")
