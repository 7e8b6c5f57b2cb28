"""Settings of an ingest service in this process, on a cluster of the tests."""

import uuid

from ingest.config import Config
from scripts.processes.cluster import Cluster


def settings(cluster: Cluster, router: int = 0, timeout_ms: int = 10_000) -> Config:
    """Return the settings of a service on one of the routers, with a spool of its own."""
    spool = str(cluster.folder / f"{uuid.uuid4().hex}.db")
    uri = cluster.uri(router)
    return Config(mongodb_uri=uri, mongodb_timeout_ms=timeout_ms, spool_file=spool)
