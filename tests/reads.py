"""All that reads the database, while one of its servers has just frozen."""

import signal
import time

from flask.testing import FlaskClient

from tests.cluster import Cluster

EXTRACT = "/extractbeacon?start_time=0&end_time=4102444800&staff_id="
READS = (
    "/readyz",
    "/retrieveformonitoring",
    "/api/v1/staff",
    "/api/v1/now",
    "/api/v1/changes",
    "/api/v1/coverage",
    "/api/v1/beacons/unknown",
    "/api/v1/system/database",
)
# What the service gives itself is 0.8 s.
LONGEST_SECONDS = 1.0


def read_while_frozen(
    client: FlaskClient, cluster: Cluster, server: str, staff_id: object
) -> dict[str, tuple[int, float]]:
    """Return what was not a 503 in time, with its status and its seconds; at best of three."""
    paths = [*READS, f"/api/v1/staff/{staff_id}/detections", f"{EXTRACT}{staff_id}"]
    for path in paths:
        assert client.get(path).status_code in (200, 404), path
    cluster.send_signal(server, signal.SIGSTOP)
    try:
        told = {path: min(_timed(client, path) for _ in range(3)) for path in paths}
    finally:
        cluster.send_signal(server, signal.SIGCONT)
    return {
        path: (status, seconds)
        for path, (seconds, status) in told.items()
        if status != 503 or seconds >= LONGEST_SECONDS
    }


def _timed(client: FlaskClient, path: str) -> tuple[float, int]:
    began = time.monotonic()
    status = client.get(path).status_code
    return time.monotonic() - began, status
