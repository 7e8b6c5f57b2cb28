"""One stack for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.site import Site, running_site
from tests.ingest.conftest import app, client, database  # noqa: F401  # fixtures
from tests.page.conftest import opened  # noqa: F401  # fixtures


@pytest.fixture(scope="session")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(root, tmp_path_factory.mktemp("hostile")) as site:
        yield site


@pytest.fixture(scope="session")
def office(site: Site) -> Site:
    """Return the stack for the fixtures of the page."""
    return site
