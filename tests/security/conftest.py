"""Two stacks for all tests of this folder: one that is open, one that requires tokens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.conftest import opened  # noqa: F401  # fixtures
from tests.security.site import Guarded, Site, running
from tests.services.ingest.conftest import app, client, database, patience  # noqa: F401  # fixtures


@pytest.fixture(scope="session")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(Site(root, tmp_path_factory.mktemp("hostile") / "data")) as site:
        yield site


@pytest.fixture(scope="session")
def office(site: Site) -> Site:
    """Return the stack for the fixtures of the page."""
    return site


@pytest.fixture(scope="session")
def guarded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with running(Guarded(root, tmp_path_factory.mktemp("guarded") / "data")) as site:
        yield site
