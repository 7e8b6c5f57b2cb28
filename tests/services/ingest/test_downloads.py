"""A history of any length as one file: whole, in bounded memory, or visibly broken off."""

import base64
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from pymongo import MongoClient

from common.log_lines import FRAME
from ingest.web.long_answers import DOWNLOADS
from mongo import topology
from scripts.processes.cluster import Cluster
from scripts.processes.control_groups import SERVICE, Limits
from scripts.processes.limited_group import available
from scripts.processes.service import IngestService
from scripts.processes.waiting import eventually
from tests.client import Client
from tests.service import Service, running

NOW = int(time.time())
LONG = 55_000  # detections: 14 MB, of which the kernel takes no more than 4 of one reader
GROWTH = 6 * 2**20
NAMES = 2000  # of 60 characters each, which no zlib makes small: it is more than a service keeps
END = b"\r\n0\r\n\r\n"  # of a body in chunks


class File(NamedTuple):
    """An address, and what stands once in each row of its answer."""

    path: str
    row: bytes


CSV = File("/api/v1/staff/8/detections?format=csv", b",C2A628384B08,")
LEGACY = File(f"/extractbeacon?staff_id=9&start_time=0&end_time={NOW}", b'"timestamp":')
FILES = pytest.mark.parametrize("file", [CSV, LEGACY], ids=["csv", "legacy"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("downloads")
    with Cluster(topology.load(topology.EMBEDDED), folder).running() as cluster:
        row = {"mac": "C2A628384B08", "rssi": -20, "level": "4", "received_at": None}
        bits = random.Random(0)
        names = [base64.b64encode(bits.randbytes(45)).decode() for _ in range(NAMES)]
        with MongoClient[dict[str, Any]](cluster.uri()) as client:
            for staff_id, locations in ((8, ["L" * 150]), (9, names)):
                rows = (
                    row
                    | {"staff_id": staff_id, "timestamp": NOW - n}
                    | {"location": locations[n % len(locations)]}
                    for n in range(LONG)
                )
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
        assert FRAME not in (tmp_path / f"ingest-{service.port}.log").read_text()


def begin(service: Service, file: File, held: ExitStack) -> socket.socket:
    """Ask for the file, and read a byte of it."""
    reader = held.enter_context(socket.socket())
    reader.settimeout(60)
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", service.port))
    head = f"GET {file.path} HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n"
    reader.sendall(head.encode())
    assert reader.recv(1) == b"H"
    return reader


def rest(reader: socket.socket) -> bytes:
    parts = []
    while part := reader.recv(65536):
        parts.append(part)
    return b"".join(parts)


@FILES
@pytest.mark.long
def test_it_is_whole_and_takes_no_more_memory_with_slow_readers(
    service: Service, file: File
) -> None:
    process = psutil.Process(service.pid)
    with ExitStack() as held:
        assert rest(begin(service, file, held)).endswith(END)  # what any download takes at first
    before = process.memory_info().rss
    with ExitStack() as held:
        readers = [begin(service, file, held) for _ in range(DOWNLOADS)]
        for refused in (service.get(CSV.path), service.get(LEGACY.path)):
            assert refused.status_code == 429
            assert "long downloads are under way" in refused.text
            assert int(refused.headers["Retry-After"]) > 0
        assert refused.headers["Access-Control-Allow-Origin"] == "*"
        assert service.get(f"{CSV.path}&limit=1").status_code == 200  # they hold up nobody else
        assert service.get("/extractbeacon", staff_id=8, start_time=NOW, end_time=NOW).ok
        time.sleep(2)  # as long as all of it takes without a slow reader
        assert process.memory_info().rss - before < DOWNLOADS * GROWTH
        for reader in readers:
            answer = rest(reader)
            assert answer.endswith(END)
            assert answer.count(file.row) == LONG


@FILES
@pytest.mark.long
def test_who_gives_up_leaves_the_place_to_the_next(service: Service, file: File) -> None:
    with ExitStack() as held:
        for _ in range(DOWNLOADS):
            begin(service, file, held)
        assert service.get(CSV.path).status_code == 429

    def status() -> int:
        with service.session.get(f"{service.url}{file.path}", stream=True, timeout=30) as answer:
            return answer.status_code

    eventually(lambda: status() == 200)


@FILES
def test_a_database_that_fails_in_the_middle_makes_no_complete_file(
    service: Service, cluster: Cluster, file: File
) -> None:
    with ExitStack() as held:
        reader, answer = begin(service, file, held), b""
        while answer.count(file.row) < 1000:  # more than is read before anything is sent
            answer += reader.recv(65536)
        with cluster.away("mongod", "killed"):
            answer += rest(reader)
        assert answer.startswith(b"TTP/1.1 200 OK")
        assert answer.count(file.row) < LONG
        assert not answer.endswith(END)


def test_the_legacy_answer_is_the_same_however_it_is_sent(service: Service) -> None:
    url = f"{service.url}{LEGACY.path}"
    plain, packed = (
        service.session.get(url, headers={"Accept-Encoding": coding}, timeout=60)
        for coding in ("identity", "gzip")
    )
    assert plain.content == packed.content
    assert "Content-Length" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    history = plain.json()["location"]
    assert [row["timestamp"] for row in history] == list(range(NOW, NOW - LONG, -1))
    parts = [
        service.get("/extractbeacon", staff_id=9, start_time=start, end_time=start + 10_999)
        for start in range(NOW - 10_999, NOW - LONG, -11_000)
    ]
    assert "Content-Length" in parts[0].headers  # as all that is short
    rows = b",".join(part.content[len(b'{"location":[') : -len(b"]}\n")] for part in parts)
    assert plain.content == b'{"location":[' + rows + b"]}\n"
    assert service.session.head(url, timeout=60).status_code == 200
