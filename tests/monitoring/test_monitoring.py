"""The monitoring service in this process."""

import gzip
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from monitoring import create_app
from monitoring.config import Config
from monitoring.snapshot import GatewayUnavailable, Heard, SnapshotReader, latest_per_staff
from tests.ports import free_port
from tests.upstream import Upstream


def heard(staff_id: object, timestamp: int) -> dict[str, Any]:
    return {"staff_id": staff_id, "timestamp": timestamp, "level": "1", "location": "Lobby A"}


@pytest.fixture
def client() -> FlaskClient:
    return create_app(Config(gateway_url=f"http://127.0.0.1:{free_port()}")).test_client()


def test_it_never_imports_pymongo(root: Any) -> None:
    code = "import sys, monitoring; monitoring.create_app(); sys.exit('pymongo' in sys.modules)"
    environment = {"PYTHONPATH": str(root / "services" / "monitoring")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize("path", ["/newbeacondetect", "/extractbeacon", "/retrieveformonitoring"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_fallback_is_no_success(client: FlaskClient, path: str, method: str) -> None:
    answer = client.open(path, method=method)
    assert answer.status_code == 503
    assert answer.text == '{"data": "Flask servers circuit breaker open."}'
    assert answer.content_type == "application/json"
    assert answer.headers["X-Circuit-State"] == "open"
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers.getlist("Access-Control-Allow-Origin") == ["*"]


def test_the_newest_detection_of_each_counts() -> None:
    detections = [heard(1, 30), heard("A", 25), heard(1, 20), heard(2, 10)]
    assert latest_per_staff(detections) == [heard(1, 30), heard("A", 25), heard(2, 10)]


def test_one_read_serves_many_pages_and_a_failure_keeps_the_last() -> None:
    now = 100.0
    answers: list[Any] = [
        Heard(99.5, [heard(1, 99)]),
        GatewayUnavailable("open", "503"),
        Heard(129.5, [heard(2, 130)]),
    ]
    reads = 0

    def fetch() -> Heard:
        nonlocal reads
        reads += 1
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Heard)
        return answer

    reader = SnapshotReader(fetch, 2, lambda: now)
    assert [reader.latest().staff for _ in range(10)] == [[heard(1, 99)]] * 10
    assert reads == 1
    now = 110.0
    blind = reader.latest()
    assert (blind.circuit, blind.taken_at, blind.staff) == ("open", 99.5, [heard(1, 99)])
    now = 130.0
    assert reader.latest()[:3] == ("closed", 129.5, [heard(2, 130)])


def test_a_hanging_gateway_does_not_hold_every_page() -> None:
    release = threading.Event()

    def fetch() -> Heard:
        release.wait(10)
        return Heard(0.0, [])

    reader = SnapshotReader(fetch, 2)
    first = threading.Thread(target=reader.latest)
    first.start()
    began = time.monotonic()
    assert reader.latest().circuit == "unknown"
    assert time.monotonic() - began < 2
    release.set()
    first.join()


def latest(upstream: Upstream) -> Any:
    app = create_app(Config(gateway_url=upstream.url, gateway_timeout_seconds=1))
    answer = app.test_client().get("/monitoring/latest")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.get_json()


def test_latest_tells_what_it_knows(upstream: Upstream) -> None:
    upstream.answer(200, b'{"location":[{"staff_id":7,"timestamp":1}]}')
    known = latest(upstream)
    assert (known["circuit"], known["staff"]) == ("closed", [{"staff_id": 7, "timestamp": 1}])
    assert abs(known["now"] - time.time()) < 5


def test_a_kept_answer_is_as_old_as_it_is(upstream: Upstream) -> None:
    upstream.answer(200, b'{"location":[]}', {"Date": "Thu, 01 Jan 1970 00:01:40 GMT"})
    assert latest(upstream)["taken_at"] == 100


@pytest.mark.parametrize(
    ("status", "headers", "body", "circuit"),
    [
        (503, {"X-Circuit-State": "open"}, b"{}", "open"),
        (503, {}, b"{}", "unknown"),
        (500, {}, b"oops", "unknown"),
        (200, {}, b"not json", "unknown"),
        (200, {}, b"[]", "unknown"),
        (200, {}, b"{}", "unknown"),
    ],
)
def test_latest_admits_what_it_cannot_tell(
    upstream: Upstream, status: int, headers: dict[str, str], body: bytes, circuit: str
) -> None:
    upstream.answer(status, body, headers)
    known = latest(upstream)
    assert (known["circuit"], known["taken_at"], known["staff"]) == (circuit, None, [])


def test_no_gateway_at_all(client: FlaskClient) -> None:
    assert client.get("/monitoring/latest").get_json()["circuit"] == "unknown"
    assert client.get("/healthz").status_code == 200


def test_the_page_names_the_address_its_visitor_uses(client: FlaskClient) -> None:
    direct = client.get("/monitoring")
    assert "default-src 'self'" in direct.headers["Content-Security-Policy"]
    assert "curl &#39;" not in direct.text
    through_gateway = {"Host": "way.example:8080", "X-Forwarded-Proto": "https"}
    page = client.get("/monitoring", headers=through_gateway).text
    assert "https://way.example:8080/newbeacondetect?" in page
    assert client.get("/").headers["Location"] == "/monitoring"
    assert client.get("/nothing").get_json() == {"error": "not found"}


@pytest.mark.parametrize("name", ["style.css", "page.js", "words.js", "icon.svg"])
def test_static_files_are_compressed_once(client: FlaskClient, root: Path, name: str) -> None:
    file = root / "services" / "monitoring" / "monitoring" / "static" / name
    url = f"/monitoring/static/{name}"
    plain = client.get(url)
    assert (plain.status_code, plain.data) == (200, file.read_bytes())
    zipped = client.get(url, headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.data) == file.read_bytes()
    assert plain.headers["Vary"] == zipped.headers["Vary"] == "Accept-Encoding"
    again = client.get(url, headers={"If-None-Match": zipped.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_only_static_files_are_served(client: FlaskClient) -> None:
    for path in ("none.css", "../config.py", "%2e%2e/config.py"):
        assert client.get(f"/monitoring/static/{path}").status_code == 404
