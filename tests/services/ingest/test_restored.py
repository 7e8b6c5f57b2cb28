"""A database that is put back to an older copy under running services."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from common import schema
from common.schema import DATABASE
from mongo import topology
from mongo.backup.copying import make
from mongo.backup.folder import FolderShelf
from mongo.backup.restoring import restore
from mongo.clients import Client, as_administrator
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.service import Service, running

pytestmark = pytest.mark.long

WHO = 7
# Two beacons at places of one length: what is stored after the restore looks like what was lost.
LOST, KEPT = "C2A628384B08", "C2A628384B09"
COLLECTIONS = ("staff", "latest", "notes", "beacons", "directory")


def beacon(mac: str, location: str) -> dict[str, Any]:
    return {"_id": mac, "mac": mac, "level": "4", "location": location}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("restored")
    with Cluster(topology.load(topology.EMBEDDED), folder).running() as cluster:
        yield cluster


@pytest.fixture
def administrator(cluster: Cluster) -> Iterator[Client]:
    with as_administrator(cluster.local.users_set, cluster.secrets) as client:
        yield client


@pytest.fixture
def database(administrator: Client) -> Database[Any]:
    return administrator[DATABASE]


@pytest.fixture
def services(cluster: Cluster, database: Database[Any], tmp_path: Path) -> Iterator[list[Service]]:
    empty(database)
    database["beacons"].insert_many([beacon(LOST, "Lobby A"), beacon(KEPT, "Lobby B")])
    with running(
        *(Service(cluster.uri(), tmp_path, DIRECTORY_REFRESH_SECONDS=3600) for _ in range(2))
    ) as services:
        yield services


def empty(database: Database[Any]) -> None:
    for collection in schema.COLLECTIONS:
        database[collection.name].delete_many({})


def copied(database: Database[Any]) -> dict[str, list[Any]]:
    return {name: list(database[name].find()) for name in COLLECTIONS}


def put_back(database: Database[Any], copy: dict[str, list[Any]]) -> None:
    for name, documents in copy.items():
        database[name].delete_many({})
        if documents:
            database[name].insert_many(documents)


# Makes a copy, and returns what puts it back.
Way = Callable[[Database[Any], Path], Callable[[], None]]


def by_hand(database: Database[Any], _: Path) -> Callable[[], None]:
    return partial(put_back, database, copied(database))


def by_backup(database: Database[Any], folder: Path) -> Callable[[], None]:
    client: Client = database.client
    backup = make(client, FolderShelf(folder), None, "1.0", print)

    def restored() -> None:
        empty(database)
        restore(client, [], backup, None, print)

    return restored


def paths(start: int) -> list[str]:
    """Return all that is cached or has an ETag."""
    window = f"/extractbeacon?staff_id={WHO}&end_time=4102444800&start_time="
    return [
        f"{window}0",
        f"{window}{start + 2}",
        "/retrieveformonitoring",
        "/api/v1/staff",
        "/api/v1/now",
        "/api/v1/now?level=4",
        f"/api/v1/staff/{WHO}/detections",
        f"/api/v1/staff/{WHO}/detections?format=csv",
        "/api/v1/coverage",
        "/api/v1/beacons",
    ]


@pytest.mark.parametrize(
    ("commits", "way"),
    [(1, by_hand), (3, by_hand), (40, by_hand), (3, by_backup)],  # 40 are more than `latest` lists
)
def test_nothing_of_the_lost_time_passes_for_current(
    services: list[Service], database: Database[Any], tmp_path: Path, commits: int, way: Way
) -> None:
    start = int(time.time()) - 300
    for number in range(2):
        assert services[0].detect(WHO, timestamp=start + number).status_code == 200
    put(services[0], LOST, "Lobby A")
    restored = way(database, tmp_path / "backups")

    def go_on(mac: str, location: str) -> None:
        put(services[0], mac, location)
        eventually(
            lambda: all(location in service.read("/api/v1/beacons").text for service in services)
        )
        for number in range(commits):
            answer = services[number % 2].detect(
                WHO, beacon_address=mac, timestamp=start + 60 + number
            )
            assert answer.status_code == 200

    go_on(LOST, "Lobby C")
    before = {
        (service.url, path): service.read(path) for service in services for path in paths(start)
    }
    restored()
    eventually(lambda: all(service.get("/readyz").status_code == 200 for service in services))
    go_on(KEPT, "Lobby D")
    time.sleep(5.1)  # /coverage is read every 5 s

    for service in services:
        for path in paths(start):
            held = before[service.url, path].headers["ETag"]
            answer = service.session.get(
                service.url + path, headers={"If-None-Match": held}, timeout=30
            )
            assert (answer.status_code, path) == (200, path)
            assert "Lobby C" not in answer.text
            assert "Lobby D" in answer.text
        history = service.history(WHO)
        stored = database["staff"].find({"staff_id": WHO}).sort("timestamp", -1)
        fields = ("level", "location", "timestamp")
        assert history == [{name: detection[name] for name in fields} for detection in stored]


def put(service: Service, mac: str, location: str) -> None:
    url = f"{service.url}/api/v1/beacons/{mac}"
    answer = service.session.put(url, json={"level": "4", "location": location}, timeout=30)
    assert answer.status_code == 200, answer.text
