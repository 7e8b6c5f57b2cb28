"""Fixtures that more than one folder of tests uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mongo import topology
from tests.cluster import Cluster
from tests.upstream import Upstream


@pytest.fixture(scope="session")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a real mongod as a replica set of one; return the services' connection string."""
    cluster = Cluster(topology.load(topology.EMBEDDED), tmp_path_factory.mktemp("mongod"))
    cluster.start()
    try:
        cluster.bootstrap()
        yield cluster.uri()
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the folder of the checkout."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Run one controllable server."""
    server = Upstream()
    yield server
    server.close()
