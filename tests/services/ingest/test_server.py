"""The service as a process: how it listens, what it refuses, and when it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymongo import MongoClient

from scripts.processes import ROOT
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.service import Service, running

GOOD = {"user_address": 7, "beacon_address": "C2A628384B08", "rssi": -20}
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
HISTORY = "/extractbeacon?staff_id=8&start_time=0&end_time=4102444800"
LONG, SLOW = 40_000, 8  # detections of a history; clients who read little of it
TAKEN_BY_KERNEL = 4 * 2**20  # of what a client does not read (net.ipv4.tcp_wmem)


@pytest.fixture(scope="module")
def service(mongod: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Service(mongod, tmp_path_factory.mktemp("server"))) as [started]:
        yield started


def connection(service: Service, receive_bytes: int = 65536) -> socket.socket:
    peer = socket.socket()
    peer.settimeout(20)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    peer.connect(("127.0.0.1", service.port))
    return peer


def received(peer: socket.socket) -> bytes:
    """Return all that comes until the service hangs up."""
    parts = []
    try:
        while part := peer.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_a_header_that_never_ends_is_refused(service: Service) -> None:
    """Also one in a single field, which the parser collects by itself."""
    for beginning in (b"", b"X-Long: "):
        with connection(service) as peer:
            peer.sendall(REQUEST + beginning)
            filler = b"x" * 8192 if beginning else b"X-Field: x\r\n" * 800
            sent = 0
            try:
                while sent < 8 * 2**20:
                    peer.sendall(filler)
                    sent += len(filler)
            except OSError:
                pass  # it hung up
            assert sent < 8 * 2**20
    assert service.get("/healthz").status_code == 200


def test_a_long_header_and_a_large_body_are_not_mistaken(service: Service) -> None:
    long = {"X-Long": "x" * 32_000}
    assert service.session.get(f"{service.url}/healthz", headers=long).status_code == 200
    url = f"{service.url}/api/v1/detections"
    body = b'{"detections": [' + b" " * 380_000 + b"]}"
    kind = {"Content-Type": "application/json"}
    for _ in range(2):  # on one connection
        assert service.session.post(url, data=body, headers=kind).status_code == 200


def test_nothing_is_believed_of_who_asks_or_where(service: Service) -> None:
    """No address that redirects, whatever Host was named; no server's name in any answer."""
    answer = service.session.get(
        f"{service.url}/api/v1//now",
        headers={"Host": "evil.example", "Sec-Waymark-Gateway": "1"},
        allow_redirects=False,
    )
    assert answer.status_code == 404
    assert "evil.example" not in answer.text + str(answer.headers)
    assert "Server" not in answer.headers
    joined = f"{service.url}//retrieveformonitoring"  # a base URL that was badly joined
    assert service.session.get(joined, allow_redirects=False).json().keys() == {"location"}


def test_a_browser_gets_nothing_for_the_page_of_a_stranger(service: Service) -> None:
    def is_refused(path: str, headers: dict[str, str]) -> bool:
        answer = service.session.post(f"{service.url}{path}", headers=headers, timeout=30)
        return answer.status_code == 421

    strange = [
        {"Host": "stranger.example:5001"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
    ]
    for headers in strange:
        for path in ("/api/v1/detections", "/api/v1/beacons/import", "/docs", "//api/v1/staff"):
            assert is_refused(path, headers)
            assert not is_refused(path, headers | {"Sec-Waymark-Gateway": "1"})
        for path in ("/newbeacondetect", "/extractbeacon", "/retrieveformonitoring", "/healthz"):
            assert not is_refused(path, headers)
    for host in ("localhost:5001", "127.0.0.1", "[::1]:5001", "10.1.2.3"):
        assert not is_refused("/api/v1/detections", {"Host": host})


DETECT = b"/newbeacondetect?user_address=%d&beacon_address=C2A628384B08&rssi=-20&event_id=%b"
HOST, CLOSE = b"Host: a\r\n", b"Connection: close\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


def in_url(event: bytes, fields: bytes = b"", version: bytes = b"1.1") -> bytes:
    """Return a whole request to store a detection of staff member 31."""
    return b"GET %b HTTP/%b\r\n%b%b\r\n" % (DETECT % (31, event), version, HOST, fields)


def in_body(event: bytes, fields: bytes = b"") -> tuple[bytes, bytes]:
    """Return the header of such a request, and its body."""
    path, _, body = (DETECT % (31, event)).partition(b"?")
    length = b"Content-Length: %d\r\n" % len(body)
    head = b"POST %b HTTP/1.1\r\n%b%b%b%b\r\n" % (path, HOST, FORM, length, fields)
    return head, body


CHUNKED = b"POST /newbeacondetect HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + FORM + CLOSE
LAST = in_url(b"last", CLOSE)
WAYS: dict[str, tuple[tuple[bytes, ...], int]] = {
    "whole": ((LAST,), 1),
    "byte by byte": (tuple(bytes([byte]) for byte in LAST), 1),
    "old": ((in_url(b"last", version=b"1.0"),), 1),
    "with a body": ((b"".join(in_body(b"last", CLOSE)),), 1),
    "a body that comes later": (in_body(b"last", CLOSE), 1),
    "asked before its body": (in_body(b"last", CLOSE + b"Expect: 100-continue\r\n"), 1),
    "in chunks": (
        (
            CHUNKED + b"\r\n",
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(in_body(b"last")[1]), in_body(b"last")[1]),
        ),
        1,
    ),
    "one upon the other": ((in_url(b"one") + b"".join(in_body(b"two")) + LAST,), 3),
    "behind others": ((REQUEST + b"\r\n" + in_url(b"one") + REQUEST + b"\r\n" + LAST,), 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_detection_is_answered_alike_however_it_comes(
    service: Service, mongod: str, way: str
) -> None:
    pieces, count = WAYS[way]
    with MongoClient[dict[str, Any]](mongod) as client:
        staff = client["ICT3102"]["staff"]
        staff.delete_many({"staff_id": 31})
        with connection(service) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in pieces:
                peer.sendall(piece)
                time.sleep(0.05 if len(pieces) < 9 else 0)  # or both come at once
            answers = received(peer)
        assert staff.count_documents({"staff_id": 31}) == count
    heads = answers.split(b"New Beacon Detection Added")
    assert len(heads) == count + 1
    assert heads.pop() == b""
    whole = re.compile(
        rb"HTTP/1\.1 200 OK\r\ndate: [^\r]+ GMT\r\ncontent-type: text/plain; charset=utf-8\r\n"
        rb"content-length: 26\r\nx-detection: stored\r\naccess-control-allow-origin: \*\r\n"
        rb"access-control-expose-headers: Retry-After, X-Circuit-State, X-Request-ID\r\n"
        rb"(connection: close\r\n)?\r\n\Z"
    )
    assert all(whole.search(head) for head in heads)
    assert [b"connection: close" in head for head in heads] == [False] * (count - 1) + [True]


def test_what_is_wrong_with_a_detection_leaves_the_connection_as_it_is(service: Service) -> None:
    wrong = b"GET /newbeacondetect?user_address=x HTTP/1.1\r\n" + HOST + b"\r\n"
    with connection(service) as peer:
        peer.sendall(wrong + in_url(b"a") + wrong + in_url(b"b", CLOSE))
        answers = received(peer)
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", answers)
    assert statuses == [b"400", b"200", b"400", b"200"]
    assert answers.count(b'"parameter":') == 2


def test_who_hangs_up_is_stored_all_the_same(service: Service, mongod: str) -> None:
    with MongoClient[dict[str, Any]](mongod) as client:
        staff = client["ICT3102"]["staff"]
        staff.delete_many({"staff_id": 31})
        for n in range(20):
            with connection(service) as peer:
                peer.sendall(in_url(b"gone%d" % n))
        eventually(lambda: staff.count_documents({"staff_id": 31}) == 20)
    assert service.get("/healthz").ok


@pytest.mark.long
def test_a_long_answer_waits_for_slow_clients_piece_by_piece(service: Service, mongod: str) -> None:
    """Not whole, of which the kernel takes no more than 4 MiB."""
    now = int(time.time())
    row = {"staff_id": 8, "mac": "C2A628384B08", "rssi": -20, "level": "4", "location": "L" * 300}
    with MongoClient[dict[str, Any]](mongod) as client:
        rows = (row | {"timestamp": now - n, "received_at": None} for n in range(LONG))
        client["ICT3102"]["staff"].delete_many({"staff_id": 8})  # of other files
        client["ICT3102"]["staff"].insert_many(rows, ordered=False)
    whole = len(service.read(HISTORY).content)
    assert whole > 3 * TAKEN_BY_KERNEL
    before = resident(service)
    with ExitStack() as held:
        slow = [held.enter_context(connection(service, 4096)) for _ in range(SLOW)]
        for half_sent in slow:
            half_sent.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % HISTORY.encode())
        for half_sent in slow:
            assert half_sent.recv(1) == b"H"
        grown = resident(service) - before
        assert grown < SLOW * (whole - TAKEN_BY_KERNEL) / 2
        slow[0].sendall(REQUEST + b"Connection: close\r\n\r\n")
        answers = received(slow[0])
    assert answers.count(b'"timestamp"') == LONG
    assert answers.endswith(b"}\n")


def resident(service: Service) -> int:
    """Return the bytes of memory that a service has."""
    return int(psutil.Process(service.pid).memory_info().rss)


def test_bytes_that_are_no_text_are_a_400(service: Service) -> None:
    """As raw bytes, which HTTP does not allow but a client can send."""
    for path in (b"/newbeacondetect?user_address=\xff", b"/api/v1/now?level=\xe4", b"/\xff"):
        with connection(service) as peer:
            peer.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")
            status = received(peer).split(b" ", 2)[1]
        assert status in (b"200", b"400", b"404"), (path, status)


def test_what_is_no_request_is_told_the_date_as_well(service: Service) -> None:
    """Nothing wakes the service to write it."""
    assert service.get("/healthz").ok
    time.sleep(2.5)
    with connection(service) as peer:
        peer.sendall(b"no request at all\r\n\r\n")
        head = received(peer)
    assert head.startswith(b"HTTP/1.1 400 ")
    told = re.search(rb"(?i)\r\ndate: (.+?)\r\n", head)
    assert told
    assert abs(parsedate_to_datetime(told[1].decode()).timestamp() - time.time()) < 2


def test_a_stop_answers_what_is_under_way(mongod: str, tmp_path: Path) -> None:
    """An idle connection, as the gateway keeps many, does not hold it up."""
    with running(Service(mongod, tmp_path)) as [service], connection(service) as idle:
        idle.sendall(REQUEST + b"\r\n")
        assert idle.recv(65536)
        with connection(service) as busy:
            busy.sendall(b"GET /api/v1/changes?wait=20 HTTP/1.1\r\nHost: [::1]\r\n\r\n")
            time.sleep(0.5)  # until it waits there
            began = time.monotonic()
            os.kill(service.pid, signal.SIGTERM)
            answer = received(busy)
            assert b" 200 OK" in answer
            assert b'{"next":' in answer  # it waits no longer, and gets its cursor
        eventually(lambda: not service.running(), 20)
        assert time.monotonic() - began < 20


def test_what_a_stop_cuts_off_is_a_503_that_the_gateway_repeats(
    mongod: str, tmp_path: Path
) -> None:
    """Here after no time, with followers who go on waiting, and a database that answers nobody."""
    waiting = tmp_path / "waiting"
    program = (
        "import asyncio, ingest.recording.recorder as recorder\n"
        "import ingest.__main__ as main, ingest.storage.histories.change_stream as stream\n"
        "main.GRACEFUL_SECONDS = 0.1\n"
        "recorder.Recorder.submit = lambda *_: asyncio.get_running_loop().create_future()\n"
        "read = stream.ChangeStream.read\n"
        "def told(*given):\n"
        f"    with open({str(waiting)!r}, 'a') as file:\n"
        "        file.write('.')\n"
        "    return read(*given)\n"
        "stream.ChangeStream.read = told\n"
        "stream.ChangeStream.end_waits = lambda self: None\n"
        "main.main()\n"
    )
    follow = b"GET /api/v1/changes?wait=20 HTTP/1.1\r\nHost: [::1]\r\n\r\n"
    halves = [
        b"POST %s HTTP/1.1\r\nHost: [::1]\r\nContent-Length: %d\r\n\r\n{" % half
        for half in ((b"/newbeacondetect", 99), (b"/api/v1/detections", 99_000))
    ]
    with ExitStack() as held:
        service = Service(mongod, tmp_path, [sys.executable, "-c", program])
        held.enter_context(running(service))
        requests = [*halves, in_url(b"waits"), follow, follow]
        clients = [held.enter_context(connection(service)) for _ in requests]
        for client, request in zip(clients, requests, strict=True):
            client.sendall(request)
        # Both followers wait, and the others came before them.
        eventually(lambda: waiting.exists() and waiting.read_text() == "..")
        service.send_signal(signal.SIGTERM)
        for client in clients:
            head, _, text = received(client).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nretry-after: 2" in head
            assert b"being restarted" in text


@pytest.mark.long
def test_a_stop_waits_for_no_tick(mongod: str, tmp_path: Path) -> None:
    """Between two ticks the signal itself wakes the service."""
    program = "import ingest.__main__ as main\nmain.TICK_SECONDS = 600\nmain.main()\n"
    port = free_port()
    settings = {"INGEST_BIND": f"127.0.0.1:{port}", "SPOOL_FILE": str(tmp_path / "spool.db")}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | settings | {"MONGODB_URI": mongod},
        cwd=ROOT / "services" / "ingest",
    ) as service:
        try:
            eventually(lambda: http_problem(f"http://127.0.0.1:{port}/healthz") is None)
            service.terminate()
            service.wait(60)
        finally:
            service.kill()


@pytest.mark.long
def test_an_event_loop_that_hangs_ends_the_process(mongod: str, tmp_path: Path) -> None:
    """Nobody is there to notice but whoever starts it again."""
    program = (
        "import time, ingest.__main__ as main\n"
        "main.HANG_SECONDS = 6\n"
        "tick, seconds = main.Server.on_tick, [0, 0, 600]\n"
        "async def hang(self, counter):\n"
        "    await tick(self, counter)\n"
        "    time.sleep(seconds.pop(0))\n"
        "main.Server.on_tick = hang\n"
        "main.main()\n"
    )
    settings = {"INGEST_BIND": "127.0.0.1:0", "SPOOL_FILE": str(tmp_path / "spool.db")}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | settings | {"MONGODB_URI": mongod},
        cwd=ROOT / "services" / "ingest",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "Timeout (0:00:06)!" in ended.stderr
    assert "in hang" in ended.stderr
