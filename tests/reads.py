"""Every endpoint that reads, while a server of the database has just frozen."""

import time
from collections.abc import Collection

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually

RECOVERY_SECONDS = 240  # an emulated server on a busy machine takes that long to elect itself
EXTRACT = "/extractbeacon?start_time=0&end_time=4102444800&staff_id="
READS = (
    "/readyz",
    "/retrieveformonitoring",
    "/api/v1/staff",
    "/api/v1/now",
    "/api/v1/changes",
    "/api/v1/coverage",
    "/api/v1/visits?level=4&location=Lobby%20B&from=1700000000&to=1700000900",
    "/api/v1/beacons/unknown",
    "/api/v1/beacons/batteries",
    "/api/v1/system/database",
)
# The service allows itself 0.8 s. The quickest of three tries must keep that; a busy machine may
# delay the others by somewhat more.
QUICKEST_SECONDS, SLOWEST_SECONDS = 1.0, 2.5


def answered(client: FlaskClient, path: str, *statuses: int) -> TestResponse:
    """Return an answer with one of these statuses; on a busy machine it may be a 503 at first."""

    def tried() -> list[TestResponse]:
        read = client.get(path)
        assert read.status_code in (*statuses, 503), path
        return [read] if read.status_code in statuses else []

    [answer] = eventually(tried, RECOVERY_SECONDS)
    return answer


def read_while_frozen(
    client: FlaskClient,
    cluster: Cluster,
    server: str,
    staff_id: object,
    partial: Collection[str] = (),
) -> dict[str, list[tuple[float, int]]]:
    """Return the paths whose answer was not a 503 in time, with seconds and status of each try.

    Those that are `partial` answer with what is there, in more time.
    """
    paths = [*READS, f"/api/v1/staff/{staff_id}/detections", f"{EXTRACT}{staff_id}"]
    paths = [path for path in paths if path not in partial]
    for path in paths:
        answered(client, path, 200, 404)
    with cluster.away(server, "frozen"):
        time.sleep(0.1)  # it goes on until one of its threads gets to run
        answers = {path: sorted(_timed(client, path) for _ in range(3)) for path in paths}
    return {
        path: tries
        for path, tries in answers.items()
        if {status for _, status in tries} != {503}
        or tries[0][0] >= QUICKEST_SECONDS
        or tries[-1][0] >= SLOWEST_SECONDS
    }


def _timed(client: FlaskClient, path: str) -> tuple[float, int]:
    began = time.monotonic()
    status = client.get(path).status_code
    return time.monotonic() - began, status
