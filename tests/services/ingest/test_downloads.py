"""A history of any length as one file: whole, in bounded memory, or visibly broken off."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymongo import MongoClient

from ingest.api.histories.staff_detections import DOWNLOADS
from mongo import topology
from scripts.processes.cluster import Cluster
from scripts.processes.control_groups import SERVICE, Limits
from scripts.processes.limited_group import available
from scripts.processes.service import IngestService
from scripts.processes.waiting import eventually
from tests.client import Client
from tests.service import Service, running

CSV = "/api/v1/staff/8/detections?format=csv"
LONG = 55_000  # detections: 14 MB, of which the kernel takes no more than 4 of one reader
GROWTH = 6 * 2**20
ROW = b",C2A628384B08,"
END = b"\r\n0\r\n\r\n"  # of a body in chunks


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("downloads")
    with Cluster(topology.load(topology.EMBEDDED), folder).running() as cluster:
        now = int(time.time())
        row = {
            "staff_id": 8,
            "mac": "C2A628384B08",
            "rssi": -20,
            "level": "4",
            "location": "L" * 150,
        }
        with MongoClient[dict[str, Any]](cluster.uri()) as client:
            rows = (row | {"timestamp": now - n, "received_at": None} for n in range(LONG))
            client["ICT3102"]["staff"].insert_many(rows, ordered=False)
        yield cluster


class Limited(Service):
    """A service inside its limit, where the machine lets us set one."""

    def __init__(self, mongodb_uri: str, folder: Path) -> None:
        limits = Limits(None, SERVICE.memory_bytes) if available() else None
        IngestService.__init__(self, mongodb_uri, folder, limits=limits)
        Client.__init__(self, self.url)


@pytest.fixture
def service(cluster: Cluster, tmp_path: Path) -> Iterator[Service]:
    with running(Limited(cluster.uri(), tmp_path)) as [service]:
        yield service
        assert service.running()
        assert "Traceback" not in (tmp_path / f"ingest-{service.port}.log").read_text()


def begin(service: Service, held: ExitStack) -> socket.socket:
    """Ask for the file, and read a byte of it."""
    reader = held.enter_context(socket.socket())
    reader.settimeout(60)
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", service.port))
    reader.sendall(b"GET %s HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n" % CSV.encode())
    assert reader.recv(1) == b"H"
    return reader


def rest(reader: socket.socket) -> bytes:
    parts = []
    while part := reader.recv(65536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.long
def test_it_is_whole_and_takes_no_more_memory_with_slow_readers(service: Service) -> None:
    process = psutil.Process(service.pid)
    before = process.memory_info().rss
    with ExitStack() as held:
        readers = [begin(service, held) for _ in range(DOWNLOADS)]
        refused = service.get(CSV)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_waiting")
        assert int(refused.headers["Retry-After"]) > 0
        assert service.get(f"{CSV}&limit=1").status_code == 200  # they hold up nobody else
        time.sleep(2)  # as long as all of it takes without a slow reader
        assert process.memory_info().rss - before < DOWNLOADS * GROWTH
        for reader in readers:
            file = rest(reader)
            assert file.endswith(END)
            assert file.count(ROW) == LONG


@pytest.mark.long
def test_who_gives_up_leaves_the_place_to_the_next(service: Service) -> None:
    with ExitStack() as held:
        for _ in range(DOWNLOADS):
            begin(service, held)
        assert service.get(CSV).status_code == 429

    def status() -> int:
        with service.session.get(f"{service.url}{CSV}", stream=True, timeout=30) as answer:
            return answer.status_code

    eventually(lambda: status() == 200)


def test_a_database_that_fails_in_the_middle_makes_no_complete_file(
    service: Service, cluster: Cluster
) -> None:
    with ExitStack() as held:
        reader, file = begin(service, held), b""
        while file.count(ROW) < 1000:  # more than is read before anything is sent
            file += reader.recv(65536)
        with cluster.away("mongod", "killed"):
            file += rest(reader)
        assert file.startswith(b"TTP/1.1 200 OK")
        assert file.count(ROW) < LONG
        assert not file.endswith(END)
