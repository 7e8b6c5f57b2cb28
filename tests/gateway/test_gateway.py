"""What the gateway does while services answer, fail and are gone."""

import contextlib
import email.utils
import gzip
import http.client
import json
import re
import socket
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from common.browsers import LOOKED_AT
from gateway.render import Config, render, render_all, template
from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.gateway.conftest import OPEN, SLOW_SECONDS, Answer, Gateway

LEGACY = ["/newbeacondetect", "/extractbeacon", "/retrieveformonitoring"]
DATA = [*LEGACY, "/api/v1/x"]


def test_the_numbers_of_the_breaker() -> None:
    text = render(Config(ingest="a:1 b:2 c:3", run="/with space"), template())
    assert text.count("max_fails=5 fail_timeout=1s;") == 6
    assert text.count("max_fails=0 max_conns=4 backup;") == 6
    assert text.count("least_conn;") == 2
    assert "gzip_comp_level 6;" in text
    assert 'pid "/with space/nginx.pid";' in text
    assert not re.search(r"@\{\w", text)
    quoted = render(Config(run='/a"b\\c'), template())
    assert r'pid "/a\"b\\c/nginx.pid";' in quoted
    assert "user " not in render(Config(user=""), template()).split("worker_processes")[0]


def test_a_connection_is_kept_for_each_place_and_closed_by_the_gateway_first() -> None:
    files = render_all(Config())
    upstreams = dict(re.findall(r"upstream (\w+) \{(.*?)\n    \}", files["nginx.conf"], re.DOTALL))
    all_files = "\n".join(files.values())
    groups = {"ingest": ["detections", "batches"], "reads": ["short_reads", "long_reads"]}
    for name, zones in groups.items():
        places = [{int(n) for n in re.findall(rf"limit_conn {z} (\d+);", all_files)} for z in zones]
        assert all(len(numbers) == 1 for numbers in places)  # a probe sees what a client meets
        kept = int(re.findall(r"keepalive (\d+);", upstreams[name])[0])
        assert kept >= sum(number for (number,) in places)
    services = ROOT / "services"
    ingest = (services / "ingest" / "ingest" / "__main__.py").read_text()
    monitoring = (services / "monitoring" / "gunicorn.conf.py").read_text()
    (ingest_idle,) = re.findall(r"(?m)^KEEP_ALIVE_SECONDS = (\d+)$", ingest)
    (monitoring_idle,) = re.findall(r"(?m)^keepalive = (\d+)\b", monitoring)
    idle = {"ingest": ingest_idle, "reads": ingest_idle}
    idle |= {"monitoring": monitoring_idle, "fallback": monitoring_idle}
    assert {name for name, text in upstreams.items() if "keepalive" in text} == idle.keys()
    for name, seconds in idle.items():
        (kept_for,) = re.findall(r"keepalive_timeout (\d+)s;", upstreams[name])
        assert int(kept_for) + 30 <= int(seconds)  # with room for a worker that is late


@pytest.mark.long
def test_a_phone_that_pauses_meets_an_open_connection(gateway: Gateway) -> None:
    """Many ask every 30 s, which is when a gateway that keeps connections for 30 s closes them."""

    def ask(phone: http.client.HTTPConnection) -> tuple[int, bytes]:
        phone.request("POST", "/newbeacondetect")
        answer = phone.getresponse()
        return answer.status, answer.read()

    with contextlib.ExitStack() as held:
        phones = {}
        for pause in (29, 30, 31, 60):
            phone = http.client.HTTPConnection(*gateway.address)
            phones[pause] = held.enter_context(contextlib.closing(phone))
            assert ask(phone) == (200, b"ok")
            phone.auto_open = False  # a connection that was closed is an error from here on
        began = time.monotonic()
        for pause, phone in phones.items():
            time.sleep(began + pause - time.monotonic())
            assert ask(phone) == (200, b"ok"), pause


def test_one_failure_takes_the_page_nowhere(gateway: Gateway) -> None:
    gateway.monitoring.fault = "reset"
    assert [gateway.request("GET", "/monitoring").status_code for _ in range(3)] == [503] * 3
    gateway.monitoring.answer(200, b"the page")
    gateway.monitoring.fault = ""
    assert gateway.request("GET", "/monitoring").text == "the page"  # there is no other place


def test_a_detection_brings_only_the_headers_that_are_read(gateway: Gateway) -> None:
    phone = {"User-Agent": "phone", "Cookie": "a=b", "X-Forwarded-Proto": "https"}
    gateway.request("POST", "/newbeacondetect", headers=phone, data={"a": "1"})
    [(_, _, headers)] = [request[:3] for service in gateway.ingest for request in service.requests]
    read = {"host", "x-request-id", "x-request-start", "content-type", "content-length"}
    assert set(headers) == read
    assert headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path", LEGACY)
def test_a_phone_is_answered_whatever_its_base_url_and_the_cookies_of_other_programs(
    gateway: Gateway, path: str
) -> None:
    for upstream in gateway.ingest:
        upstream.answer(200, b"{}", {"Date": email.utils.formatdate(usegmt=True)})
    cookie = {"Cookie": "other=" + "x" * 15_000}
    answer = gateway.request("GET", f"/{path}?token=x&a=1", headers=cookie)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")
    preflight = gateway.request("OPTIONS", f"/{path}", headers={"Origin": "http://a.example"})
    assert (preflight.status_code, preflight.headers["Access-Control-Allow-Origin"]) == (204, "*")


def test_requests_carry_what_makes_a_retry_harmless(gateway: Gateway) -> None:
    gateway.ingest[0].answer(503, b"")
    gateway.ingest[1].answer(503, b"")
    gateway.request("POST", "/newbeacondetect", data={"a": "1"})
    first, second = gateway.ingest[0].requests[0], gateway.ingest[1].requests[0]
    for name in ("x-request-id", "x-request-start"):
        assert first[2][name] == second[2][name]
    assert first[3] == second[3] == b"a=1"
    assert abs(float(first[2]["x-request-start"]) - time.time()) < 5


@pytest.mark.parametrize("monitoring", ["up", "down", "hanging"])
def test_open_circuit(gateway: Gateway, monitoring: str) -> None:
    for upstream in gateway.ingest:
        upstream.close()
    if monitoring == "down":
        gateway.monitoring.close()
    gateway.monitoring.fault = "hang" if monitoring == "hanging" else ""

    def ask(method: str, path: str) -> requests.Response:
        return gateway.request(method, path, data={"a": "1"} if method == "POST" else None)

    cases = [(method, path) for method in ("GET", "POST") for path in DATA]
    with ThreadPoolExecutor(len(cases) if monitoring == "hanging" else 1) as pool:
        answers = list(pool.map(lambda case: ask(*case), cases))
    waits = [answer.elapsed.total_seconds() for answer in answers]
    if monitoring != "hanging":
        assert statistics.median(waits) < SLOW_SECONDS
    # It is waited for 2 s long, and not twice; who took longer may have waited for this machine.
    again = [ask(*case) for case, seconds in zip(cases, waits, strict=True) if seconds >= 3]
    assert all(answer.elapsed.total_seconds() < 3 for answer in again)
    for (_, path), answer in zip(cases, answers, strict=True):
        assert (answer.status_code, answer.text) == (503, OPEN)
        for name, value in [("X-Circuit-State", "open"), ("Retry-After", "5")]:
            assert answer.headers[name] == value
        assert answer.headers["Content-Type"] == "application/json"
        origin = "*" if path in LEGACY else None  # twice would read "*, *"
        assert answer.headers.get("Access-Control-Allow-Origin") == origin
        assert len(answer.headers["X-Request-ID"]) == 32


def test_a_services_own_503_keeps_its_body(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.answer(503, b'{"error":"the database does not answer"}')
    answer = gateway.request("GET", "/newbeacondetect")
    assert answer.json() == {"error": "the database does not answer"}


@pytest.mark.parametrize("path", LEGACY)
def test_preflight_needs_no_service(gateway: Gateway, path: str) -> None:
    for upstream in gateway.ingest:
        upstream.close()
    wish = {"Origin": "http://x.example", "Access-Control-Request-Headers": "content-type"}
    answer = gateway.request("OPTIONS", path, headers=wish)
    assert answer.status_code == 204
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert answer.headers["Access-Control-Allow-Headers"] == "content-type"


def test_connections_to_the_services_are_used_again(gateway: Gateway) -> None:
    # One that is made anew for each request costs a service memory for 3 s after it closed.
    for upstream in gateway.ingest:
        upstream.delay_seconds = 0.1
    with ThreadPoolExecutor(32) as pool:
        for _ in range(8):
            list(pool.map(lambda _: gateway.request("GET", "/newbeacondetect"), range(32)))
    asked = sum(len(upstream.requests) for upstream in gateway.ingest)
    made = sum(len(upstream.connections) for upstream in gateway.ingest)
    assert asked >= 8 * 32
    # A round needs 32; one service may be given more than half, or what the other was slow for.
    assert 2 <= made <= asked / 4


def test_json_is_compressed_and_decompressed(gateway: Gateway) -> None:
    body = json.dumps([{"level": "4", "location": "Lobby B"}] * 5000).encode()
    for compressed in (False, True):
        headers = {"Content-Type": "application/json", "Vary": "Accept-Encoding"}
        headers |= {"Content-Encoding": "gzip"} if compressed else {}
        for upstream in gateway.ingest:
            upstream.answer(200, gzip.compress(body) if compressed else body, headers)
        small = gateway.request("GET", "/extractbeacon", headers={"Accept-Encoding": "gzip"})
        assert small.headers["Content-Encoding"] == "gzip"
        assert small.content == body
        plain = gateway.request("GET", "/extractbeacon", headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers
        assert plain.content == body
        assert plain.headers["Vary"] == "Accept-Encoding"


def test_a_long_history_is_small_on_the_way(gateway: Gateway) -> None:
    rows = [
        {"level": str(n % 7 + 1), "location": f"Lobby {n % 3}", "timestamp": 1_700_000_000 - 4 * n}
        for n in range(4000)
    ]
    body = json.dumps({"location": rows}).encode()
    assert len(body) > 250_000
    says = {"Content-Type": "application/json", "Vary": "Accept-Encoding"}
    for upstream in gateway.ingest:
        upstream.answer(200, body, says)
    headers = {"Accept-Encoding": "gzip"}
    with requests.get(f"{gateway.url}/extractbeacon", headers=headers, stream=True) as answer:
        assert len(answer.raw.read(decode_content=False)) < 20_000
        assert answer.headers["Vary"] == "Accept-Encoding"
    for upstream in gateway.ingest:
        upstream.answer(200, body[:999], {"Content-Type": "application/json"})
    short = gateway.request("GET", "/extractbeacon", headers=headers)
    assert "Content-Encoding" not in short.headers


@pytest.mark.parametrize(
    ("request_", "status", "error"),
    [
        (
            b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",
            404,
            "there is nothing at this address",
        ),
        (b"nonsense\r\n\r\n", 400, "the request is not valid HTTP"),
        (b"GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "the request is not valid HTTP"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "the request is not valid HTTP"),
        (b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: y\r\n\r\n", 400, "not valid HTTP"),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400, "not valid HTTP"),
        (b"GET /?" + b"x" * 17_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "too long"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 17_000 + b"\r\n\r\n", 400, "too long"),
        (
            b"POST /newbeacondetect HTTP/1.1\r\nHost: x\r\nContent-Length: 10485760\r\n\r\n",
            413,
            "body: larger than the limit",
        ),
    ],
)
def test_errors_are_json(gateway: Gateway, request_: bytes, status: int, error: str) -> None:
    with socket.create_connection(gateway.address, timeout=5) as connection:
        connection.sendall(request_)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == status
        assert error in json.loads(answer.read())["error"]
        assert answer.headers["Content-Type"] == "application/json"


def test_the_api_and_its_description_are_reached(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.answer(410, b'{"code": "cursor_expired"}', {"Retry-After": "7"})
    for method in ("GET", "POST", "PUT", "DELETE"):
        answer = gateway.request(method, "/api/v1/beacons/a%20b?c=d", data=b"x" * 8_000)
        assert (answer.status_code, answer.json()["code"]) == (410, "cursor_expired")
        assert answer.headers["Retry-After"] == "7"
    assert gateway.request("GET", "/docs").status_code == 410
    requests_ = [request[:2] for upstream in gateway.ingest for request in upstream.requests]
    paths = {path for _, path in requests_}
    assert paths == {"/api/v1/beacons/a%20b?c=d", "/docs"}
    assert {method for method, _ in requests_} == {"GET", "POST", "PUT", "DELETE"}


def test_waiting_for_changes_and_corrections_may_take_longer(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.delay_seconds = 9
    paths = ["/api/v1/changes?wait=9", "/api/v1/beacons/import", "/extractbeacon", "/api/v1/now"]
    with ThreadPoolExecutor() as threads:
        answers = threads.map(lambda path: gateway.request("GET", path).status_code, paths)
    assert list(answers) == [200, 200, 503, 503]


def test_what_a_service_that_ends_gives_up_the_other_one_answers(gateway: Gateway) -> None:
    """Also after the 4 s that it takes to end."""
    for upstream, status in zip(gateway.ingest, (503, 200), strict=True):
        upstream.answer(status, b"{}")
    gateway.ingest[0].delay_seconds = 4
    paths = ["/extractbeacon", "/api/v1/changes?wait=9", "/api/v1/detections"] * 2
    with ThreadPoolExecutor() as threads:
        answers = threads.map(lambda path: gateway.request("POST", path).status_code, paths)
    assert set(answers) == {200}
    assert gateway.ingest[0].requests


@pytest.mark.parametrize("circuit", ["ingest", "reads"])
def test_a_probe_tells_how_a_circuit_is(gateway: Gateway, circuit: str) -> None:
    for upstream in gateway.ingest:
        upstream.answer(200, b'{"status": "ok"}', {"Content-Type": "application/json"})

    def probe() -> tuple[int, str, str]:
        answer = gateway.request("POST", f"/_circuit/{circuit}?x=1", data=b"a=1")
        return answer.status_code, answer.headers["X-Circuit-State"], answer.text

    assert probe() == (200, "closed", '{"status": "ok"}')
    asked = [
        request[:2] + request[3:] for service in gateway.ingest for request in service.requests
    ]
    assert asked == [("GET", "/healthz", b"")]
    gateway.ingest[0].close()
    assert {probe()[1] for _ in range(10)} == {"closed"}
    gateway.ingest[1].close()
    said = (503, "open", '{"error":"open: no ingest service answers"}\n')
    assert {probe() for _ in range(8)} == {said}
    assert gateway.monitoring.requests == []  # it asks us: it must not be asked itself
    limited = {gateway.request("GET", f"/_circuit/{circuit}").status_code for _ in range(60)}
    assert limited == {503, 429}
    assert gateway.request("GET", "/healthz").status_code == 200
    assert [line for line in gateway.logged() if "_circuit" in line["path"]] == []


def test_each_service_is_asked_by_its_number(gateway: Gateway) -> None:
    """However many requests the others answer, it is told which one is silent."""
    for number, upstream in enumerate(gateway.ingest):
        upstream.answer(200, b'{"service": "%d"}' % number, {"Content-Type": "application/json"})

    def ask(number: object) -> tuple[int, str]:
        headers = {"Authorization": "Bearer t", "X-Other": "1"}
        answer = gateway.request("GET", f"/_service/{number}?x=1", headers=headers)
        return answer.status_code, answer.text

    assert [ask(0), ask(1)] == [(200, '{"service": "0"}'), (200, '{"service": "1"}')]
    assert ask("0/metrics")[0] == 200
    [(method, path, headers, _), (_, numbers, *_)] = gateway.ingest[0].requests
    assert (method, path, headers["authorization"]) == ("GET", "/api/v1/system", "Bearer t")
    assert numbers == "/metrics"
    assert "x-other" not in headers
    # Else a service refuses whoever asks the gateway by a name, as in a container.
    assert headers[LOOKED_AT.lower()] == "1"
    nobody = (404, '{"error":"there is nothing at this address"}\n')
    assert [ask(number) for number in (2, 99, "x", "", "0/x")] == [nobody] * 5
    gateway.ingest[0].fault = "hang"
    silent = (503, '{"error":"this ingest service does not answer"}\n')
    assert [ask(0), ask(1)] == [silent, (200, '{"service": "1"}')]
    gateway.ingest[0].close()
    assert [ask(0), ask(1)] == [silent, (200, '{"service": "1"}')]
    assert gateway.monitoring.requests == []
    assert [line for line in gateway.logged() if "_service" in line["path"]] == []


def test_a_probe_waits_for_a_hanging_service_once(gateway: Gateway) -> None:
    gateway.ingest[0].fault = "hang"

    def probes() -> list[Answer]:
        answers = [gateway.timed("GET", "/_circuit/ingest") for _ in range(6)]
        return answers if {answer.status for answer in answers} == {200} else []

    answers = eventually(probes, 60)  # where this machine stalls, no service answers in time
    waits = [answer.seconds for answer in answers if answer.seconds > 1]
    assert min(waits) < 3  # the best of them: this machine may stall


def test_the_page_and_its_absence(gateway: Gateway) -> None:
    gateway.monitoring.answer(200, b"ok")
    assert gateway.request("GET", "/monitoring").text == "ok"
    assert gateway.request("GET", "/monitoring/static/style.css").text == "ok"
    home = gateway.request("GET", "/", allow_redirects=False)
    assert (home.status_code, home.headers["Location"]) == (302, "/monitoring")
    for upstream in (gateway.monitoring, *gateway.ingest):
        upstream.close()
    page = {"Accept": "text/html,*/*;q=0.8"}
    for path, headers in [("/monitoring", {}), ("/monitoring?x", {}), ("/monitoring/x", page)]:
        absent = gateway.request("GET", path, headers=headers)
        assert (absent.status_code, absent.headers["Retry-After"]) == (503, "5")
        assert "The monitoring page does not answer" in absent.text
        assert "etections" not in absent.text  # the gateway does not know whether they are taken in
        assert absent.headers["Content-Type"].startswith("text/html")
    data = gateway.request("GET", "/monitoring/latest")
    assert (data.status_code, data.headers["Retry-After"]) == (503, "5")
    assert data.json() == {"error": "the monitoring service does not answer"}
    assert data.headers["Content-Type"] == "application/json"


def test_no_answer_leads_to_a_host_that_somebody_made_up(
    make_gateway: Callable[..., Gateway],
) -> None:
    gateway = make_gateway(hostnames="forged.example").start()
    for upstream in [*gateway.ingest, gateway.monitoring]:
        upstream.answer(308, b"", {"Location": "http://forged.example:81/api/v1/now?a=1"})
    forged = {"Host": "forged.example:81"}
    for path in ("/api/v1//now?a=1", "/monitoring", "/extractbeacon", "/docs"):
        answer = gateway.request("GET", path, headers=forged, allow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (308, "/api/v1/now?a=1")
    home = gateway.request("GET", "/", headers=forged, allow_redirects=False)
    assert home.headers["Location"] == "/monitoring"


@pytest.mark.parametrize("size", [0x10, 0x600, 0x1800, 0x5000])
def test_a_body_that_breaks_after_its_refusal_is_no_error_of_ours(
    gateway: Gateway, size: int
) -> None:
    """It answers 404, and finds only while it discards the body that a chunk has no end."""
    head = b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(5):
        with socket.create_connection(gateway.address, timeout=5) as peer:
            peer.sendall(b"%s%x\r\n%sno end of a chunk\r\n" % (head, size, b"x" * size))
            assert re.match(rb"HTTP/1.1 4\d\d ", peer.recv(65536))
