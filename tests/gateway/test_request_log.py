"""The log of requests: whom it names, and how much of it is kept."""

import gzip
import http.client
import json
import random
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from common.routes import ROUTES
from gateway import request_log
from gateway.request_log import NAME, RequestLog, segments
from scripts.processes.waiting import eventually
from tests.gateway.conftest import Gateway

PERSON = "Zaphod-4711"
FORMS = [PERSON, "%5Aaphod-4711", f"irk:{PERSON}", f"%49rk%3A{PERSON}", quote(f'é{PERSON}"\\')]


def ask(gateway: Gateway, method: str, target: str, **headers: str) -> None:
    """Send a request as it is, and take whatever is answered."""
    connection = http.client.HTTPConnection(*gateway.address, timeout=30)
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.getresponse().read()
    connection.close()


def everywhere(person: str) -> list[str]:
    """Return every address with somebody's id in each part, and below and beside all of them."""
    known = [route.path for route in ROUTES]
    named = [path.replace("<", f"{person}<") for path in known if "<" in path]
    beside = [f"{path}/{person}" for path in (*known, "", "/monitoring", "/monitoring/static")]
    wrong = [
        f"//api//v1/staff/{person}",
        f"/api/v1/Staff/{person}/detections",
        f"/{person}/{person}",
    ]
    queries = [f"{path}?user_address={person}&staff_id={person}&token={person}" for path in known]
    return [path.replace("<", "").replace(">", "") for path in (*named, *beside, *wrong, *queries)]


def test_no_log_has_what_a_client_says_in_its_own_words(gateway: Gateway) -> None:
    for upstream in gateway.ingest[:1]:
        upstream.close()  # what NGINX says of an error repeats the request
    for person in FORMS:
        for target in everywhere(person):
            ask(gateway, "GET", target, Referer=f"http://x/{person}", Authorization=person)
    ask(gateway, PERSON.upper(), "/newbeacondetect")
    ask(gateway, "ZAPHOD_", f"/api/v1/staff/{PERSON}")
    ask(gateway, "GET", f"/{PERSON * 900}")  # 414
    (gateway.run / "client_body").rename(gateway.run / "gone")  # critical: it cannot be buffered
    answer = gateway.request("POST", f"/api/v1/detections?x={PERSON}", data=b"x" * 40_000)
    assert answer.status_code == 503
    lines = gateway.logged()
    assert len(lines) > 400
    for file in (gateway.log, gateway.errors, gateway.said):
        assert b"zaphod" not in file.read_bytes().lower(), file
        assert b"aphod" not in file.read_bytes(), file
    assert {line["method"] for line in lines} == {"GET", "POST", "?"}


@pytest.mark.parametrize(
    ("asked", "logged"),
    [
        ("/newbeacondetect?user_address=7", "/newbeacondetect"),
        ("//newbeacondetect", "/newbeacondetect"),
        ("/api/v1/staff/7/detections?start=1", "/api/v1/staff/*/detections"),
        ("/api/v1/people/7", "/api/v1/people/*"),
        ("/api/v1/people/unnamed", "/api/v1/people/unnamed"),
        ("/api/v1/accounts/anna", "/api/v1/accounts/*"),
        ("/api/v1/staff/7", "?"),
        ("/monitoring", "/monitoring"),
        ("/monitoring/replay", "/monitoring/*"),
        ("/monitoring/static/app.js", "/monitoring/static/*"),
        ("/wp-admin", "?"),
    ],
)
def test_an_address_is_told_by_its_row_in_the_table(
    gateway: Gateway, asked: str, logged: str
) -> None:
    ask(gateway, "GET", asked)
    [line] = gateway.logged()
    assert line["path"] == logged
    assert len(line["request_id"]) == 32


def test_no_request_makes_a_long_line(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.close()  # all tries are told
    for target in ("/x" * 3000, f"/api/v1/beacons/{'y' * 6000}", f"/newbeacondetect?{'z' * 7000}"):
        ask(gateway, "GET", target, Referer="r" * 7000)
    assert len(gateway.logged()) == 3
    assert max(map(len, gateway.log.read_bytes().splitlines())) < 500


def rotated(folder: Path) -> list[bytes]:
    """Return all lines that are kept, the oldest first."""
    packed = [
        (gzip.decompress if segment.suffix == ".gz" else bytes)(segment.read_bytes())
        for segment in segments(folder)
    ]
    return b"".join([*packed, (folder / NAME).read_bytes()]).splitlines()


def test_no_line_is_lost_when_it_is_rotated(gateway: Gateway) -> None:
    """NGINX opens a new file by itself, under requests that go on."""
    filling = b"{}\n" * (request_log.SEGMENT_BYTES // 3)
    with gateway.log.open("ab") as file:
        file.write(filling)
    count = 0

    def packed() -> bool:
        nonlocal count
        answers = gateway.load(100, 1)
        count += len(answers)
        return [segment.suffix for segment in segments(gateway.run)] == [".gz"]

    eventually(packed)
    gateway.logged()  # all are written
    lines = [line for line in rotated(gateway.run) if line != b"{}"]
    detections = [line for line in map(json.loads, lines) if line["path"] == "/newbeacondetect"]
    assert len({line["request_id"] for line in detections}) == len(detections) == count
    assert gateway.log.stat().st_size < request_log.SEGMENT_BYTES // 2


Maker = Callable[[], RequestLog]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """Return a function that makes the log of a writer who opens it when it is told to."""
    monkeypatch.setattr(request_log, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(request_log, "KEPT_BYTES", 5000)
    (tmp_path / NAME).touch()
    return lambda: RequestLog(tmp_path, (tmp_path / NAME).touch)


def write(folder: Path, text: bytes) -> None:
    with (folder / NAME).open("ab") as file:
        file.write(text)


def test_what_is_kept_is_bounded_and_the_newest(tmp_path: Path, make: Maker) -> None:
    """Also of lines that nothing compresses."""
    log = make()
    largest = 0
    for number in range(300):
        write(tmp_path, b"%d %s\n" % (number, random.randbytes(700).hex().encode()))
        log.look()
        largest = max(largest, sum(file.stat().st_size for file in tmp_path.iterdir()))
    assert largest < 5000 + 3 * 1410  # what is written, and what was rotated since the last look
    numbers = [int(line.split()[0]) for line in rotated(tmp_path)]
    assert numbers == list(range(numbers[0], 300))
    assert len(numbers) > 4


def test_one_that_was_killed_is_gone_on_with(tmp_path: Path, make: Maker) -> None:
    write(tmp_path, b"a\n" * 600)
    make().look()
    segments(tmp_path)[0].with_name(f"{NAME}.0000000001.new").write_bytes(b"half of it")
    write(tmp_path, b"b\n" * 600)
    log = make()
    log.look()
    log.look()
    assert [segment.name for segment in segments(tmp_path)] == [
        f"{NAME}.0000000001.gz",
        f"{NAME}.0000000002.gz",
    ]
    assert rotated(tmp_path) == [b"a"] * 600 + [b"b"] * 600
    assert len(list(tmp_path.iterdir())) == 3


def test_without_a_new_file_nothing_is_packed(tmp_path: Path) -> None:
    """NGINX, on a full disk, still writes to what was renamed: it is told again and again."""
    told: list[int] = []
    log = RequestLog(tmp_path, lambda: told.append(1))
    for _ in range(3):
        log.look()
    assert len(told) == 3
