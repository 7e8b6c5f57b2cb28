"""The event loop answers what Flask alone would answer, to the byte."""

import asyncio
import contextlib
import gc
import gzip
import itertools
import json
import socket
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import uvicorn
from flask import Flask
from pymongo.database import Database
from uvicorn.server import ServerState

from ingest import legacy
from ingest.assembly import Context
from ingest.errors import StoreUnavailable
from ingest.rules.roles import Role, needs
from ingest.storage.detections.inserts import Inserts
from ingest.web import request_body
from ingest.web.asgi_server import Server
from ingest.web.flask_bridge import PIECE_BYTES, Bridge
from ingest.web.http_protocol import Protocol
from ingest.web.lanes import HEALTH, LONG, SHORT, WRITES, Lane

MULTIPART_FORM = {"Content-Type": "multipart/form-data; boundary=x"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
GOOD = "user_address=7&beacon_address=C2A628384B08&rssi=-20"
DETECT = f"/newbeacondetect?{GOOD}"
EXTRACT = "/extractbeacon?staff_id=7&start_time=0&end_time=4102444800"


MULTIPART = b"--x--\r\n".join(
    [
        b"".join(
            b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name, value)
            for name, _, value in (pair.partition(b"=") for pair in GOOD.encode().split(b"&"))
        ),
        b"",
    ]
)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop of its own: a browser's of other tests may run in the main thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def serve(app: Flask, loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., Answer]]:
    """Return a function that asks the service as its server would."""
    context: Context = app.extensions["context"]

    async def make() -> Server:
        bridge = Bridge(app)
        return Server(
            legacy.endpoints(context),
            bridge,
            context.access.admission,
            context.recording.recorder.run_in,
            context.close,
            context.requests,
        )

    service = asyncio.run_coroutine_threadsafe(make(), loop).result()

    def ask(
        method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Answer:
        coroutine = one(service, method, url, body, headers or {})
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(20)

    yield ask
    service.close()


class Messages:
    """What the client sends, in one piece."""

    @staticmethod
    async def next(body: bytes) -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}


def receiver(body: bytes) -> Callable[[], Coroutine[Any, Any, dict[str, Any]]]:
    """Return what gives what the client sends; then it stays until it has all."""
    asked = itertools.count()

    async def receive() -> dict[str, Any]:
        if next(asked):
            await asyncio.Event().wait()
        return await Messages.next(body)

    return receive


async def one(
    service: Server, method: str, url: str, body: bytes, headers: dict[str, str]
) -> Answer:
    parts = urlsplit(url)
    messages: list[dict[str, Any]] = []
    sent = {"host": "localhost", "content-length": str(len(body))} | headers
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": parts.path,
        "http_version": "1.1",
    }
    scope |= {"query_string": parts.query.encode(), "scheme": "http", "server": ("localhost", 80)}
    scope |= {"headers": [(k.lower().encode(), v.encode()) for k, v in sent.items()]}

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)

    await service(scope, receiver(body), send)
    names = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    assert [message["more_body"] for message in messages[1:]] == [True] * (len(messages) - 2) + [
        False
    ]
    return Answer(
        messages[0]["status"], names, b"".join(message["body"] for message in messages[1:])
    )


@pytest.mark.parametrize(
    ("method", "url", "body", "headers"),
    [
        ("GET", DETECT, b"", {}),
        ("GET", DETECT + "&event_id=a&timestamp=1700000000", b"", {}),
        ("GET", DETECT + "&user_address=9&event_id=first-wins", b"", {}),
        ("GET", DETECT.replace("=7", "=%37") + "&event_id=encoded", b"", {}),
        ("GET", DETECT + "&event_id=a+b", b"", {}),
        ("GET", DETECT + "&event_id=%ff", b"", {}),
        ("POST", "/newbeacondetect", GOOD.encode(), FORM),
        ("POST", "/newbeacondetect?rssi=-30&event_id=f", GOOD.encode(), FORM),
        ("POST", "/newbeacondetect?rssi=", GOOD.encode(), FORM),
        ("POST", "/newbeacondetect", GOOD.encode(), {}),
        ("POST", "/newbeacondetect", GOOD.encode() + b"&event_id=\xff", FORM),
        ("POST", DETECT, b'{"event_id": "e1"}', JSON),
        ("POST", DETECT, b'{"event_id": 5}', {"Content-Type": "application/json; charset=utf-8"}),
        ("POST", DETECT, b"{", JSON),
        ("POST", DETECT, b"[]", JSON),
        ("POST", DETECT, b"\xff\xfe", JSON),
        ("POST", DETECT, b'{"event_id": "e"}', {"Content-Type": "application/vnd.x+json"}),
        ("HEAD", DETECT, b"", {}),
        ("PUT", DETECT, b"", {}),
        ("OPTIONS", DETECT, b"", {"Origin": "http://a"}),
        ("GET", "/newbeacondetect", b"", {}),
        ("GET", DETECT.replace("-20", "x"), b"", {}),
        ("GET", EXTRACT, b"", {}),
        ("GET", EXTRACT, b"", {"Accept-Encoding": "gzip, deflate"}),
        ("GET", EXTRACT, b"", {"Accept-Encoding": "gzip;q=0"}),
        ("GET", EXTRACT.replace("end_time=4102444800", "end_time=1699999990"), b"", {}),
        ("GET", EXTRACT.replace("staff_id=7", "staff_id=nobody"), b"", {}),
        ("HEAD", EXTRACT, b"", {}),
        ("POST", "/extractbeacon", b'{"staff_id":7,"start_time":0,"end_time":9e9}', JSON),
        ("POST", "/extractbeacon", EXTRACT.partition("?")[2].encode(), FORM),
        ("GET", "/extractbeacon?staff_id=7", b"", {}),
        (
            "POST",
            "/newbeacondetect",
            MULTIPART,
            {"Content-Type": "multipart/form-data; boundary=x"},
        ),
        ("POST", DETECT, b"--x", MULTIPART_FORM),
        (
            "POST",
            "/newbeacondetect",
            MULTIPART,
            {"Content-Type": "MULTIPART/Form-Data; boundary=x"},
        ),
        ("POST", "/newbeacondetect", b"&" * 1001, FORM),
        ("GET", DETECT + "&" * 1001, b"", {}),
        ("GET", "/retrieveformonitoring", b"", {}),
        ("GET", "/nothing/ä%20here".replace("ä", "%C3%A4"), b"", {}),
        ("GET", "/healthz", b"", {}),
    ],
)
def test_loop_and_flask_agree(
    app: Flask,
    serve: Callable[..., Answer],
    method: str,
    url: str,
    body: bytes,
    headers: dict[str, str],
) -> None:
    one = {"staff_id": 7, "mac": "C2A628384B08", "rssi": -20}
    before = [
        one | {"timestamp": 1700000000 - number, "event_id": f"before-{number}"}
        for number in range(60)
    ]
    stored = app.test_client().post("/api/v1/detections", json={"detections": before})
    assert stored.status_code == 200
    path, _, query = url.partition("?")
    flask = app.test_client().open(
        path, query_string=query, method=method, data=body, headers=headers
    )
    looped = serve(method, url, body, headers)
    expected = {name.lower(): value for name, value in flask.headers.items()}
    if expected.pop("x-detection", None):
        repeated = "event_id" in url + body.decode("latin-1") or "X-Request-ID" in headers
        assert looped.headers.pop("x-detection") == ("duplicate" if repeated else "stored")
    for by_name in (looped.headers, expected):
        by_name.pop("date", None)  # a second may have passed
    assert (looped.status, looped.headers) == (flask.status_code, expected)
    assert looped.body == flask.data


def test_a_history_can_be_compressed_and_need_not_be_sent_again(
    serve: Callable[..., Answer],
) -> None:
    for number in range(50):
        serve("GET", f"{DETECT}&timestamp={1700000000 + number}")
    plain = serve("GET", EXTRACT)
    packed = serve("GET", EXTRACT, b"", {"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body) / 5
    assert gzip.decompress(packed.body) == plain.body
    rows = json.loads(plain.body)["location"]
    assert [row["timestamp"] for row in rows] == [1700000049 - n for n in range(50)]
    assert plain.headers["etag"] == packed.headers["etag"]
    held = {"If-None-Match": f'"other", {plain.headers["etag"]}'}
    again = serve("GET", EXTRACT, b"", held)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", plain.headers["etag"])
    serve("GET", DETECT)
    assert serve("GET", EXTRACT, b"", held).status == 200


@pytest.mark.parametrize(
    ("url", "length"),
    [
        (DETECT, {}),
        (EXTRACT, {"Transfer-Encoding": "chunked"}),
        ("/newbeacondetect", {"Content-Length": "99999999999"}),
        ("/healthz", {}),
        ("/nowhere", {"Transfer-Encoding": "chunked"}),
    ],
)
def test_a_body_too_large_is_refused_whatever_else_is_good(
    app: Flask,
    serve: Callable[..., Answer],
    database: Database[Any],
    url: str,
    length: dict[str, str],
) -> None:
    body = b"x" * 2**20 + b"x"
    expected = (413, {"error": "body: larger than the limit", "parameter": "body"})
    answer = serve("POST", url, body, FORM | length)
    assert (answer.status, json.loads(answer.body)) == expected
    alone = app.test_client().post(url, data=body, headers=FORM)
    assert (alone.status_code, alone.get_json()) == expected
    assert database["staff"].count_documents({}) == 0


def test_a_body_that_does_not_come_is_a_408(
    serve: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(request_body, "BODY_SECONDS", 0.05)
    monkeypatch.setattr(Messages, "next", never)
    answer = serve("POST", DETECT, b"{}", JSON)
    assert (answer.status, json.loads(answer.body)) == (
        408,
        {"error": "the request took too long to arrive"},
    )


def test_a_long_answer_of_flask_comes_in_pieces(app: Flask, serve: Callable[..., Answer]) -> None:
    @app.get("/long")
    @needs(Role.NOBODY)
    def long() -> Any:
        return iter([b"x" * 1000] * 1000)

    assert PIECE_BYTES < 10**6
    assert serve("GET", "/long").body == b"x" * 10**6


def test_requests_of_one_moment_are_stored_together(
    app: Flask,
    serve: Callable[..., Answer],
    database: Database[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[int] = []
    store = Inserts.store

    def counted(self: Inserts, documents: list[Any]) -> Any:
        groups.append(len(documents))
        time.sleep(0.05)
        return store(self, documents)

    monkeypatch.setattr(Inserts, "store", counted)
    statuses: list[int] = []
    threads = [
        threading.Thread(
            target=lambda n=n: statuses.append(serve("GET", f"{DETECT}&rssi=-{n}").status)
        )
        for n in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 40
    assert database["staff"].count_documents({}) == sum(groups) == 40
    assert len(groups) < 20


def test_a_full_spool_is_a_503(
    serve: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, app: Flask
) -> None:
    context: Context = app.extensions["context"]
    monkeypatch.setattr(context.database.availability, "_away", True)
    monkeypatch.setattr(context.recording.spools.own, "_max_detections", 0)
    answer = serve("GET", DETECT)
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert "send it again" in json.loads(answer.body)["error"]
    asked = serve("GET", EXTRACT)
    assert asked.status == 503
    assert "ask again" in json.loads(asked.body)["error"]


ASKED = {HEALTH: "/healthz", SHORT: "/api/v1/now", LONG: "/api/v1/coverage"}


@pytest.mark.parametrize("full", [SHORT, LONG])
def test_a_full_lane_holds_up_no_other(
    app: Flask, serve: Callable[..., Answer], full: Lane
) -> None:
    released = threading.Event()
    slow = {SHORT: "/slow", LONG: "/api/v1/staff/slow"}[full]
    started = threading.Semaphore(0)

    @app.get(slow)
    @needs(Role.NOBODY)
    def wait() -> str:
        started.release()
        released.wait(60)
        return "done"

    statuses: list[int] = []
    waiting = [
        threading.Thread(target=lambda: statuses.append(serve("GET", slow).status))
        for _ in range(full.threads + 8)
    ]
    for thread in waiting:
        thread.start()
    for _ in range(full.threads):
        assert started.acquire(timeout=20)
    try:
        for lane, path in ASKED.items():
            if lane is not full:
                assert serve("GET", path).status == 200
        batch = {"detections": [{"staff_id": 7, "mac": "C2A628384B08", "rssi": -20}]}
        for _ in range(WRITES.threads + 1):
            answer = serve("POST", "/api/v1/detections", json.dumps(batch).encode(), JSON)
            assert answer.status == 200
        assert serve("GET", DETECT).status == 200
        assert serve("GET", EXTRACT).status == 200
        assert not statuses
    finally:
        released.set()
        for thread in waiting:
            thread.join()
    assert statuses == [200] * len(waiting)


def test_what_fails_before_its_first_piece_is_said(
    app: Flask, serve: Callable[..., Answer]
) -> None:
    """Flask has started its response by then, but nothing has left."""

    def rows() -> Iterator[bytes]:
        yield b"x" * 1000
        raise StoreUnavailable("it has just gone")

    for path in ("/rows", "/api/v1/rows"):
        app.add_url_rule(path, path, needs(Role.NOBODY)(lambda: rows()))
    answer = serve("GET", "/rows")
    assert (answer.status, json.loads(answer.body)["error"][:12]) == (503, "the database")
    answer = serve("GET", "/api/v1/rows")
    assert (answer.status, answer.headers["content-type"]) == (503, "application/problem+json")


def test_what_was_sent_in_part_when_the_service_ends_is_sent_whole(
    app: Flask, loop: asyncio.AbstractEventLoop
) -> None:
    """The rest is waited for; an answer that had not begun is a 503."""
    released = threading.Event()

    def rows() -> Iterator[bytes]:
        yield b"x" * PIECE_BYTES
        yield b"y"
        released.wait(60)
        yield b"z" * PIECE_BYTES

    def later() -> str:
        released.wait(60)
        return "too late"

    for path, view in (("/rows", rows), ("/later", later)):
        app.add_url_rule(path, path, needs(Role.NOBODY)(view))
    context: Context = app.extensions["context"]

    async def ended(path: str) -> list[dict[str, Any]]:
        service = Server(
            [],
            Bridge(app),
            context.access.admission,
            lambda _: None,
            lambda: None,
            context.requests,
        )
        messages: list[dict[str, Any]] = []
        begun = asyncio.Event()

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)
            begun.set()

        scope = {"type": "http", "method": "GET", "path": path, "query_string": b""}
        scope |= {"http_version": "1.1", "scheme": "http", "headers": [(b"host", b"[::1]")]}
        request = asyncio.create_task(service(scope, receiver(b""), send))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(begun.wait(), 60 if path == "/rows" else 0.1)
        request.cancel()
        asyncio.get_running_loop().call_later(0.1, released.set)
        await request
        await asyncio.to_thread(service.close)
        return messages

    start, *body = asyncio.run_coroutine_threadsafe(ended("/rows"), loop).result(90)
    assert start["status"] == 200
    assert b"".join(message["body"] for message in body)[-PIECE_BYTES - 1 :][:2] == b"yz"
    assert not body[-1]["more_body"]
    released.clear()
    start, _ = asyncio.run_coroutine_threadsafe(ended("/later"), loop).result(90)
    assert start["status"] == 503


BATCH, FILE = "/api/v1/detections", "/api/v1/beacons/import?dry_run=1"
CSV = {"Content-Type": "text/csv"}
HEADER = b"mac,level,location,x,y\n"
PART = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n"
BAD_ITEM = b'{"staff_id":true,"mac":"x","rssi":"y","timestamp":"z","event_id":" "}'
UNKNOWN_FIELDS = b"{%s}" % b",".join(b'"%d":1' % n for n in range(11))
WORST: list[tuple[str, bytes, dict[str, str]]] = [
    ("/newbeacondetect", b"a=%C3&" * 999, FORM),
    ("/newbeacondetect", b"&".join(b"%%%02x=%%ff" % n for n in range(256)) * 3, FORM),
    ("/newbeacondetect", b"[" * 8000, JSON),
    ("/newbeacondetect", b'{"a":' * 1300 + b"1" + b"}" * 1300, JSON),
    ("/newbeacondetect", PART * 160, MULTIPART_FORM),
    (BATCH, b'{"detections":[' + b"{}," * 127_000 + b"{}]}", JSON),
    (BATCH, b'{"detections":[' + b"1," * 190_000 + b"1]}", JSON),
    (BATCH, b'{"detections":[' + b'"\\u0041",' * 43_000 + b"1]}", JSON),
    (BATCH, b'{"detections":["' + b"\\\\" * 190_000 + b'"]}', JSON),
    (BATCH, b"[" * 390_000, JSON),
    (BATCH, b'{"detections":' + b'{"a":' * 65_000 + b"1" + b"}" * 65_001, JSON),
    (BATCH, b'{"detections":[' + b",".join([BAD_ITEM] * 1000) + b"]}", JSON),
    (BATCH, b'{"detections":[' + b",".join([UNKNOWN_FIELDS] * 999) + b"]}", JSON),
    (FILE, HEADER + b"\n" * 10**6, CSV),
    (FILE, HEADER + b"x\n" * 500_000, CSV),
    (FILE, HEADER + b'"' * 10**6, CSV),
    (FILE, HEADER + b"zz,\x01,\x01,x,y\n" * 1999, CSV),
]
# 5 to 20 ms on a core that has nothing else to do; a busy neighbour doubles that.
WORST_CPU_SECONDS = 0.05


@pytest.mark.parametrize("number", range(len(WORST)))
@pytest.mark.usefixtures("no_collection")
def test_the_worst_bodies_cost_little(serve: Callable[..., Answer], number: int) -> None:
    url, body, headers = WORST[number]
    taken = []
    for _ in range(3):
        began = time.process_time()
        answer = serve("POST", url, body, headers)
        taken.append(time.process_time() - began)
        assert answer.status in (200, 400, 413), answer
    assert min(taken) < WORST_CPU_SECONDS, (answer.status, taken)


@pytest.mark.parametrize("url", [DETECT, "/newbeacondetect"], ids=["plain", "refused"])
def test_a_connection_that_ends_is_freed_at_once(
    app: Flask, loop: asyncio.AbstractEventLoop, url: str
) -> None:
    """It and its last request keep nothing of each other in memory until the collector comes."""
    context: Context = app.extensions["context"]
    recorder = context.recording.recorder

    async def end() -> bool:
        admission = context.access.admission
        endpoints = legacy.endpoints(context)
        service = Server(
            endpoints, Bridge(app), admission, recorder.run_in, context.close, context.requests
        )
        settings = uvicorn.Config(service, ws="none", interface="asgi3", proxy_headers=False)
        settings.load()
        held: list[weakref.ref[Protocol]] = []

        def make() -> Protocol:
            protocol = Protocol(settings, ServerState(), {})
            held.append(weakref.ref(protocol))
            return protocol

        near, far = socket.socketpair()
        with far:
            far.settimeout(0)
            running_loop = asyncio.get_running_loop()
            await running_loop.create_connection(make, sock=near)
            await running_loop.sock_sendall(far, f"GET {url} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            answer = await running_loop.sock_recv(far, 4096)
            assert answer.startswith(b"HTTP/1.1 200 " if url == DETECT else b"HTTP/1.1 400 ")
        deadline = time.monotonic() + 10
        while held[0]() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return held[0]() is None

    gc.disable()
    try:
        assert asyncio.run_coroutine_threadsafe(end(), loop).result(20)
    finally:
        gc.enable()
