"""All that reads the database, while one of its servers has just frozen."""

import signal
import time

from flask.testing import FlaskClient

from scripts.processes.cluster import Cluster

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
# What the service gives itself is 0.8 s. The quickest of three must keep that, and a busy machine
# may not delay one by much more.
LONGEST_SECONDS, EVER_SECONDS = 1.0, 2.5


def read_while_frozen(
    client: FlaskClient, cluster: Cluster, server: str, staff_id: object
) -> dict[str, list[tuple[float, int]]]:
    """Return what was not a 503 in time, with the seconds and the status of each try."""
    paths = [*READS, f"/api/v1/staff/{staff_id}/detections", f"{EXTRACT}{staff_id}"]
    for path in paths:
        assert client.get(path).status_code in (200, 404), path
    cluster.send_signal(server, signal.SIGSTOP)
    time.sleep(0.1)  # it goes on until one of its threads gets to run
    try:
        told = {path: sorted(_timed(client, path) for _ in range(3)) for path in paths}
    finally:
        cluster.send_signal(server, signal.SIGCONT)
    return {
        path: tries
        for path, tries in told.items()
        if {status for _, status in tries} != {503}
        or tries[0][0] >= LONGEST_SECONDS
        or tries[-1][0] >= EVER_SECONDS
    }


def _timed(client: FlaskClient, path: str) -> tuple[float, int]:
    began = time.monotonic()
    status = client.get(path).status_code
    return time.monotonic() - began, status
